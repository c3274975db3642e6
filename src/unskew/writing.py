"""Files that are written whole or not at all, and the refusal of those that cannot be written, before the work."""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unskew.errors import InputError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to, which becomes `path` at the end; after an error or Ctrl-C nothing is left.

    >>> with whole_file(Path("loads.html")) as unfinished:  # doctest: +SKIP
    ...     unfinished.write_text("<p>all of it</p>")
    """
    target = path.resolve()  # what a link points at is replaced, not the link
    writer = f"{os.getpid()}-{threading.get_ident()}"
    unfinished = target.with_name(f".{target.stem}-{writer}.unfinished{target.suffix}")
    try:
        yield unfinished
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def check_can_write(option: str, path: Path, force: bool) -> None:
    """InputError where the file `path`, named by `option`, is there already, or cannot be written."""
    if path.is_dir():
        raise InputError(f"{option}: {str(path)!r} is a folder; name a file")
    if path.exists() and not force:
        raise InputError(
            f"{option}: {str(path)!r} exists and was kept; add --force to replace it, or name another file"
        )
    check_folder_of(option, path.resolve())


def check_folder_of(option: str, path: Path) -> None:
    """InputError unless something new can be made beside `path`."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"{option}: the folder {str(folder)!r} does not exist")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{option}: {str(path)!r} cannot be written: {error.strerror}") from None
