"""Files that tasks leave to the micro-batches after their own, by the number of the batch and a name.

Not every micro-batch has a task of every number: one without rows may have none. So a task reads what was left last
under its name, before its own micro-batch. One that runs again reads the same, and replaces what it left. What was left
before that is kept too, in case the last file is damaged.
"""

from collections.abc import Iterator
from typing import NamedTuple

from unskew.spark.streaming.side_folder import SideFolder
from unskew.spark.tasks import this_batch

KEPT = 2  # files of a name before this micro-batch


class Left(NamedTuple):
    """What a task left."""

    batch: int
    data: bytes


class BatchFiles(NamedTuple):
    """Where they are: `kind` is a folder in a side folder. Travels with tasks."""

    checkpoint: str
    name: str
    kind: str

    def left(self, name: str) -> Iterator[Left]:
        """What was left under this name in micro-batches before this one, the latest first."""
        folder = self._folder()
        for batch in self._before(folder, name):
            data = folder.read_bytes(self._path(batch, name))
            if data is not None:
                yield Left(batch, data)

    def leave(self, name: str, data: bytes) -> None:
        """Leave this to the micro-batches after this one, and take away what none of them will read."""
        folder = self._folder()
        folder.write_bytes(self._path(this_batch(), name), data)
        for old in self._before(folder, name)[KEPT:]:
            folder.remove(self._path(old, name))
            if not folder.names(f"{self.kind}/{old}"):
                folder.remove_folder(f"{self.kind}/{old}")

    def _before(self, folder: SideFolder, name: str) -> list[int]:
        """The micro-batches before this one in which something was left under this name, the latest first."""
        batches = sorted((int(each) for each in folder.folders(self.kind) if each.isdigit()), reverse=True)
        here = this_batch()
        return [each for each in batches if each < here and folder.has(self._path(each, name))]

    def _path(self, batch: int, name: str) -> str:
        return f"{self.kind}/{batch}/{name}"

    def _folder(self) -> SideFolder:
        return SideFolder(self.checkpoint, self.name)
