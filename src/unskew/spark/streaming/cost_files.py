"""What rows of a stream cost, learnt from one micro-batch for the next: small files in the side folder.

Each worker leaves what its rows took. The tasks that deal the rows of the next micro-batch add that to what was known
before, and the first of them leaves the sum. All read only what earlier batches left, so a task that runs again reads
the same.
"""

from typing import NamedTuple

from unskew.sketches.mean_costs import MeanCosts
from unskew.spark.frames import warn
from unskew.spark.streaming.router_files import this_batch
from unskew.spark.streaming.side_folder import SideFolder
from unskew.spark.timed_costs import add_up, learnt, packed

NAME = "costs"
TOLD, KNOWN = "told", "known"  # folders: told/<batch>/<worker>, known/<batch>


class CostFiles(NamedTuple):
    """Where they are. Travels with tasks."""

    checkpoint: str

    def known(self, source: int, start: MeanCosts | None, keep: float) -> MeanCosts | None:
        """What is known before this micro-batch; `start` if there is nothing."""
        folder, batch = SideFolder(self.checkpoint, NAME), this_batch()
        before = [int(name) for name in folder.names(KNOWN) if name.isdigit() and int(name) < batch]
        last = max(before, default=-1)
        found = start if last < 0 else _read(folder, [f"{KNOWN}/{last}"], start)
        told = [int(name) for name in folder.folders(TOLD) if name.isdigit()]
        for number in sorted(number for number in told if last <= number < batch):
            new = _read(folder, [f"{TOLD}/{number}/{name}" for name in folder.names(f"{TOLD}/{number}")], None)
            if new is not None and new.counts.cells.any():
                found = learnt(found, new, keep)
        if source == 0 and found is not None:
            folder.write_bytes(f"{KNOWN}/{batch}", packed(found))
            for old in before:
                if old < last:
                    folder.remove(f"{KNOWN}/{old}")
            for number in told:
                if number < last:
                    folder.remove_folder(f"{TOLD}/{number}")
        return found

    def tell(self, worker: int, sketches: bytes) -> None:
        """Leave what the rows of a worker took."""
        SideFolder(self.checkpoint, NAME).write_bytes(f"{TOLD}/{this_batch()}/{worker}", sketches)


def _read(folder: SideFolder, names: list[str], otherwise: MeanCosts | None) -> MeanCosts | None:
    """What is in these files together; `otherwise` where that cannot be read."""
    parts = [data for name in names if (data := folder.read_bytes(name)) is not None]
    try:
        return add_up(parts) if parts else otherwise
    except ValueError as error:
        warn(f"costs: {names[0]} and the files beside it are damaged, and left out: {error}")
        return otherwise
