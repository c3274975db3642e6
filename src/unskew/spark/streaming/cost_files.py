"""What rows of a stream cost, learnt from one micro-batch for the next: small files in the side folder.

Each worker leaves what its rows took. The tasks that deal the rows of the next micro-batch add that to what was known
before, and the first of them leaves the sum. All read only what earlier batches left, so a task that runs again reads
the same. Tasks that start when the sum is there read that one file; those that start together with the first one, as
many as there are task threads, read one file per worker each.

Each cost key has a folder of its own, since key ids of other columns or types are other hashes.
"""

import hashlib
import json
from typing import NamedTuple

from unskew.plan import KeyColumn
from unskew.sketches.mean_costs import MeanCosts
from unskew.spark.frames import warn
from unskew.spark.streaming.side_folder import SideFolder
from unskew.spark.tasks import this_batch
from unskew.spark.timed_costs import add_up, learnt, packed

NAME = "costs"
KEYS, KEY = "keys", "key.json"  # keys/<cost key> is a folder, and says which key it is of
TOLD, KNOWN = "told", "known"  # folders in there: told/<batch>/<worker>, known/<batch>


class CostFiles(NamedTuple):
    """Where they are. Travels with tasks."""

    checkpoint: str
    cost_key: tuple[KeyColumn, ...]
    workers: int

    def known(self, source: int, start: MeanCosts | None, keep: float) -> MeanCosts | None:
        """What is known before this micro-batch; `start` if there is nothing."""
        folder, batch = self._folder(), this_batch()
        ready = _read(folder, [self._path(KNOWN, batch)])
        if ready is not None:
            return ready
        before = [int(name) for name in folder.names(self._path(KNOWN)) if name.isdigit() and int(name) < batch]
        last = max(before, default=-1)
        found = (None if last < 0 else _read(folder, [self._path(KNOWN, last)])) or start
        told = [int(name) for name in folder.folders(self._path(TOLD)) if name.isdigit()]
        for number in sorted(number for number in told if last <= number < batch):
            # If the batch ran before with more workers, files of workers that are gone are still there. Their rows are
            # in the other files now, and would count twice.
            new = _read(folder, [self._path(TOLD, number, worker) for worker in range(self.workers)])
            if new is not None and new.counts.cells.any():
                found = learnt(found, new, keep)
        if source == 0:
            self._leave(folder, found, [old for old in before if old < last], [old for old in told if old < last])
        return found

    def tell(self, worker: int, sketches: bytes) -> None:
        """Leave what the rows of a worker took."""
        self._folder().write_bytes(self._path(TOLD, this_batch(), worker), sketches)

    def warn_of_other_keys(self) -> None:
        """A warning if costs were learnt here by other keys, and none by this one."""
        folder = self._folder()
        others = folder.folders(KEYS)
        if others and self._own not in others:
            texts = (folder.read(f"{KEYS}/{other}/{KEY}") for other in sorted(others))
            warn(
                f"cost_key: this stream learns costs by {self._described} anew, since what its checkpoint has was "
                f"learnt by {' and by '.join(text or 'another key' for text in texts)}"
            )

    def _leave(self, folder: SideFolder, found: MeanCosts | None, sums: list[int], told: list[int]) -> None:
        """Write what is known, and take away what is too old."""
        if folder.read(self._path(KEY)) is None:
            folder.write(self._path(KEY), self._described)
        if found is None:
            return
        folder.write_bytes(self._path(KNOWN, this_batch()), packed(found))
        for old in sums:
            folder.remove(self._path(KNOWN, old))
        for old in told:
            folder.remove_folder(self._path(TOLD, old))

    @property
    def _described(self) -> str:
        return json.dumps({column.name: column.type for column in self.cost_key})

    @property
    def _own(self) -> str:
        return hashlib.sha256(self._described.encode()).hexdigest()[:16]

    def _path(self, *names: str | int) -> str:
        return "/".join([KEYS, self._own, *map(str, names)])

    def _folder(self) -> SideFolder:
        return SideFolder(self.checkpoint, NAME)


def _read(folder: SideFolder, names: list[str]) -> MeanCosts | None:
    """What is in these files together; None where there are none, or one cannot be read."""
    parts = [data for name in names if (data := folder.read_bytes(name)) is not None]
    try:
        return add_up(parts) if parts else None
    except ValueError as error:
        warn(f"costs: {names[0]} and the files beside it are damaged, and left out: {error}")
        return None
