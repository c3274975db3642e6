"""The states of live routers, from one micro-batch to the next: each task leaves its own in the side folder.

A task knows its micro-batch, reads what the task of its number left last before it, and leaves its own at its end. Not
every micro-batch has a task of every number: one without rows may have none. A batch that runs again reads the same and
writes the same, as long as its rows come in the same order.
"""

import warnings
from typing import NamedTuple

from pyspark import TaskContext

from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.router import Router
from unskew.spark.streaming.side_folder import SideFolder

BATCH_ID = "streaming.sql.batchId"
FOLDER = "routers"


class RouterFiles(NamedTuple):
    """Where routers leave their states. Travels with tasks."""

    checkpoint: str
    name: str

    def router(self, scheme: Scheme, source: int) -> Router:
        """The router of a source, as it was at the end of its last micro-batch before this one; empty in the first."""
        folder = self._folder()
        before = self._before(folder, source)
        data = folder.read_bytes(_name(before[0], source)) if before else None
        if data is not None:
            try:
                return Router.from_bytes(scheme, data)
            except InputError as error:
                warnings.warn(
                    f"routers: source {source} starts empty, since its file is no state of it: {error}", stacklevel=2
                )
        return Router(scheme, source=source)

    def keep(self, router: Router, source: int) -> None:
        """Leave the state of a router to the next micro-batch, and take away what is too old."""
        folder, batch = self._folder(), this_batch()
        folder.write_bytes(_name(batch, source), router.to_bytes())
        for old in self._before(folder, source)[1:]:  # this one goes on from the latest of them
            folder.remove(_name(old, source))
            if not folder.names(f"{FOLDER}/{old}"):
                folder.remove_folder(f"{FOLDER}/{old}")

    def _before(self, folder: SideFolder, source: int) -> list[int]:
        """The micro-batches before this one in which the source left its state, the latest first."""
        batches = sorted((int(name) for name in folder.folders(FOLDER) if name.isdigit()), reverse=True)
        here = this_batch()
        return [each for each in batches if each < here and f"{source}.npz" in folder.names(f"{FOLDER}/{each}")]

    def _folder(self) -> SideFolder:
        return SideFolder(self.checkpoint, self.name)


def _name(batch: int, source: int) -> str:
    return f"{FOLDER}/{batch}/{source}.npz"


def this_batch() -> int:
    """The number of the micro-batch that this task is of."""
    task = TaskContext.get()
    found = None if task is None else task.getLocalProperty(BATCH_ID)
    if found is None:
        raise InputError("checkpoint: the task does not know its micro-batch, so it cannot go on from the last one")
    return int(found)
