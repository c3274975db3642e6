"""Passes of a grid that are done, kept in files until the page is written: a run that ends early goes on from them.

A pass is known by all that it depends on: the job with its stream and schemes, and the source of this package. So what
another version, seed or grid has left is not taken for it. (That a file of real data has not changed is taken for
granted.) Tasks write the files. Where they run on machines that do not see the folder, nothing is kept.
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import unskew
from unskew.writing import whole_file

NAME = "passes"  # of the folder, in that of the results


class KeptPasses:
    """The passes that are kept for the results in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute() / NAME

    def load(self, jobs: Sequence[Any]) -> dict[int, list[dict[str, Any]]]:
        """The results of the jobs that were done, by number; a damaged file counts as none."""
        found = {}
        for number, job in enumerate(jobs):
            with suppress(OSError, ValueError):
                found[number] = json.loads(self._file_of(job).read_text(encoding="utf-8"))
        return found

    def keep(self, job: Any, results: list[dict[str, Any]]) -> None:
        """Keep the results of a job, if that is possible here."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with whole_file(self._file_of(job)) as file:
                file.write_text(json.dumps(results), encoding="utf-8")

    def __len__(self) -> int:
        return len(list(self._folder.glob("[!.]*.json")))

    def remove(self) -> None:
        """They are needed no longer."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _file_of(self, job: Any) -> Path:
        name = hashlib.sha256(f"{_source()} {job!r}".encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"


@cache
def _source() -> str:
    """Stands for the source of this package."""
    folder, digest = Path(unskew.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()} ".encode())
    return digest.hexdigest()
