"""The side folder: small files of ours beside a query's checkpoint, on any file system that Arrow knows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from unskew.batch_records import SIDE
from unskew.errors import InputError, InputTypeError
from unskew.writing import whole_file

GLOBS = "{}[]*?\\,"  # Spark takes them in an address for patterns
OURS = {"s3a://": "s3://", "s3n://": "s3://", "file:///": "/", "file:/": "/"}  # what Spark calls otherwise than Arrow


class SideFolder:
    """A folder of small texts and bytes by name. On a local disk and in object stores they are replaced whole."""

    def __init__(self, checkpoint: str | Path, name: str) -> None:
        if not isinstance(checkpoint, str | Path) or not str(checkpoint):
            raise InputTypeError(f"checkpoint: must be the address of the query's checkpoint, not {checkpoint!r}")
        wrong = [each for each in GLOBS if each in str(checkpoint)]
        if wrong:
            raise InputError(f"checkpoint: must have no {wrong[0]!r} in its address, not {str(checkpoint)!r}")
        address = str(checkpoint).rstrip("/")
        for spark, arrow in OURS.items():
            if address.startswith(spark):
                address = arrow + address.removeprefix(spark)
                break
        if address.endswith(":") and "://" in str(checkpoint):  # nothing but slashes behind the scheme
            raise InputError(f"checkpoint: must have a path behind its scheme, not {str(checkpoint)!r}")
        if "://" in address:
            self._files, path = _remote(address)
            self.root = str(checkpoint).rstrip("/")  # the checkpoint, as every process finds it
        else:
            self._files, path = fs.LocalFileSystem(), str(Path(address).absolute())
            self.root = f"file://{path}"
        self.address = f"{self.root}/{SIDE}/{name}"
        self._checkpoint, self._path = path, f"{path}/{SIDE}/{name}"

    def __reduce__(self) -> Any:
        raise TypeError("a side folder stays on the driver")

    def address_of(self, name: str) -> str:
        """The address of a text, for Spark."""
        return f"{self.address}/{name}"

    def read(self, name: str) -> str | None:
        """A text; None where there is none, or it cannot be read."""
        data = self.read_bytes(name)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError:
            return None

    def read_bytes(self, name: str) -> bytes | None:
        return self._read(f"{self._path}/{name}")

    def _read(self, path: str) -> bytes | None:
        try:
            with self._files.open_input_stream(path) as stream:
                return bytes(stream.read())
        except OSError:
            return None

    def write(self, name: str, text: str) -> None:
        """Put `text` in the place of the text called `name`."""
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, data: bytes) -> None:
        path = f"{self._path}/{name}"
        with self._refusing():
            self._files.create_dir(str(Path(path).parent), recursive=True)
            self._write(path, data)

    def create(self) -> None:
        """Create the folder; InputError where that is not possible."""
        with self._refusing():
            self._files.create_dir(self._path, recursive=True)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """InputError where something cannot be written."""
        try:
            yield
        except OSError as error:
            raise InputError(f"checkpoint: {self.root} must be a folder that can be written; {error}") from None

    def _write(self, path: str, data: bytes) -> None:
        if isinstance(self._files, fs.LocalFileSystem):
            with whole_file(Path(path)) as unfinished:
                unfinished.write_bytes(data)
            return
        with self._files.open_output_stream(path) as stream:
            stream.write(data)

    def is_of(self, query: str) -> bool:
        """Whether this is beside the checkpoint of the query with this id."""
        return query.encode() in (self._read(f"{self._checkpoint}/metadata") or b"")

    def has_begun(self) -> bool:
        """Whether a query has run from this checkpoint."""
        offsets = fs.FileSelector(f"{self._checkpoint}/offsets", allow_not_found=True)
        return bool(self._files.get_file_info(offsets))

    def has(self, name: str) -> bool:
        """Whether there is a text called `name`."""
        return bool(self._files.get_file_info(f"{self._path}/{name}").is_file)

    def siblings_with(self, name: str) -> list[str]:
        """The names of other side folders of the checkpoint that have a text called `name`."""
        parent = str(Path(self._path).parent)
        found = self._files.get_file_info(fs.FileSelector(parent, allow_not_found=True))
        names = sorted(each.base_name for each in found if each.type == fs.FileType.Directory)
        return [each for each in names if f"{parent}/{each}" != self._path and self._read(f"{parent}/{each}/{name}")]

    def names(self, folder: str) -> list[str]:
        """The names of the texts in a folder inside this one."""
        found = self._files.get_file_info(fs.FileSelector(f"{self._path}/{folder}", allow_not_found=True))
        return [each.base_name for each in found if each.is_file and not each.base_name.startswith(".")]

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder inside this one."""
        found = self._files.get_file_info(fs.FileSelector(f"{self._path}/{folder}", allow_not_found=True))
        return [each.base_name for each in found if each.type == fs.FileType.Directory]

    def remove_folder(self, name: str) -> None:
        try:
            self._files.delete_dir(f"{self._path}/{name}")
        except FileNotFoundError:
            return

    def remove(self, name: str) -> None:
        try:
            self._files.delete_file(f"{self._path}/{name}")
        except FileNotFoundError:
            return


def _remote(address: str) -> tuple[Any, str]:
    try:
        files, path = fs.FileSystem.from_uri(address)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise InputError(f"checkpoint: Arrow cannot open {address!r}: {str(error).splitlines()[0]}") from None
    return files, path
