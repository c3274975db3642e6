"""Passes of a grid that are done, kept in files until the page is written: a run that ends early goes on from them.

A pass is known by what it depends on: the job with its stream and schemes, the source of this package, the versions of
numpy and numba, and size and time of the files of real streams. So what another version, seed or grid has left is not
taken for it. Tasks write the files. Where they run on machines that do not see the folder, nothing is kept.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

import unskew
from unskew.writing import whole_file

NAME = "unskew-passes"  # of the folder, in that of the results


class KeptPasses:
    """The passes that are kept for the results in `folder`: of these `jobs`, on real streams in the folder `data`."""

    def __init__(self, folder: Path, jobs: Sequence[Any], data: Path) -> None:
        self._folder = folder.absolute() / NAME
        self._source = _source()
        self._depends_on = f"{self._source} numpy {np.__version__} numba {numba.__version__} {_state_of(data)}"
        self._names = {self._name_of(job) for job in jobs}

    @contextmanager
    def open(self) -> Iterator[None]:
        """Within it passes are kept; at its end no folder is left without files."""
        made = not self._folder.parent.exists()
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            yield
        finally:
            with suppress(OSError):  # there is something in it
                self._folder.rmdir()
                if made:
                    self._folder.parent.rmdir()

    def load(self, jobs: Sequence[Any]) -> dict[int, list[dict[str, Any]]]:
        """The results of the jobs that were done, by number; a damaged file counts as none."""
        found = {}
        for number, name in enumerate(map(self._name_of, jobs)):
            if name in self._names:
                with suppress(OSError, ValueError):
                    found[number] = json.loads((self._folder / name).read_text(encoding="utf-8"))
        return found

    def keep(self, job: Any, results: list[dict[str, Any]]) -> None:
        """Keep the results of a job, if that is possible here, and if this is the code that the run began with."""
        name = self._name_of(job)
        if name in self._names and self._folder.is_dir() and _source() == self._source:
            with suppress(OSError), whole_file(self._folder / name) as file:
                file.write_text(json.dumps(results), encoding="utf-8")

    @property
    def number(self) -> int:
        """Of these jobs, how many are kept."""
        return sum((self._folder / name).exists() for name in self._names)

    def remove(self) -> None:
        """They are needed no longer."""
        for name in self._names:
            (self._folder / name).unlink(missing_ok=True)

    def _name_of(self, job: Any) -> str:
        return hashlib.sha256(f"{self._depends_on} {job!r}".encode()).hexdigest()[:32] + ".json"


def _state_of(data: Path) -> list[tuple[str, int, int]]:
    """Changes with the files of real streams."""
    files = sorted(data.absolute().glob("*.parquet"))
    return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]


@cache
def _source() -> str:
    """Stands for the source of this package."""
    folder, digest = Path(unskew.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()} ".encode())
    return digest.hexdigest()
