"""What the workers of a stream tell its sources: a small file per worker and micro-batch, in the side folder.

Sources read what was told in the micro-batches before their own. Those are over, so all tasks of a micro-batch read the
same, also when they run again. The first of them puts what the workers of a batch told into one file, for the others.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from unskew.router import Router
from unskew.spark.frames import warn
from unskew.spark.streaming.side_folder import SideFolder
from unskew.spark.tasks import this_batch

TOLD, GATHERED = "told", "gathered"  # told/<batch>/<worker>.json, gathered/<batch>.json
KEPT = 10  # micro-batches in which something was told: what is older is not heard any more
ToldByWorker = dict[int, Any]
# Lets a router hear what was told in a micro-batch, and returns whether there was anything to hear. The source is None
# for a router that stands for sources to come.
Hear = Callable[[Router, int | None, int, ToldByWorker], bool]


class ToldFiles(NamedTuple):
    """Where the files are. Travels with tasks."""

    checkpoint: str
    name: str
    workers: int
    hear: Hear

    def tell(self, worker: int, told: Any) -> None:
        """Leave what a worker tells in this micro-batch."""
        self._folder().write(f"{TOLD}/{this_batch()}/{worker}.json", json.dumps(told))

    def of(self, batch: int) -> ToldByWorker:
        """What workers told in a micro-batch that is over."""
        folder = self._folder()
        gathered = _read(folder, f"{GATHERED}/{batch}.json")
        if not isinstance(gathered, dict):
            names = [name for name in folder.names(f"{TOLD}/{batch}") if name.removesuffix(".json").isdigit()]
            gathered = {name.removesuffix(".json"): _read(folder, f"{TOLD}/{batch}/{name}") for name in names}
        # Files of workers that are gone may be there, if the batch ran before with more of them.
        return {int(each): told for each, told in sorted(gathered.items()) if told and int(each) < self.workers}

    def catch_up(self, router: Router, source: int | None, first: int) -> bool:
        """Let a router hear what was told from micro-batch `first` on, before this one. Whether there was anything."""
        heard = False
        for batch in self._before(self._folder())[-KEPT:]:
            if batch >= first:
                try:
                    heard |= self.hear(router, source, batch, self.of(batch))
                except Exception as error:  # a damaged file may hold anything, and must not end the query
                    warn(f"told: what workers told in micro-batch {batch} is left out, as it does not fit: {error}")
        return heard

    def gather(self) -> None:
        """Put what was told before this micro-batch into one file per micro-batch, and take away what is too old."""
        folder = self._folder()
        gathered = folder.names(GATHERED)
        before = self._before(folder)
        for batch in before[-KEPT:]:
            if f"{batch}.json" in gathered:  # also for tasks that began before this one
                folder.remove_folder(f"{TOLD}/{batch}")
            else:
                folder.write(f"{GATHERED}/{batch}.json", json.dumps(self.of(batch)))
        for batch in before[:-KEPT]:
            folder.remove_folder(f"{TOLD}/{batch}")
            folder.remove(f"{GATHERED}/{batch}.json")

    def _before(self, folder: SideFolder) -> list[int]:
        """The micro-batches before this one of which something is known, the oldest first."""
        names = [*folder.folders(TOLD), *(name.removesuffix(".json") for name in folder.names(GATHERED))]
        return sorted(each for each in {int(name) for name in names if name.isdigit()} if each < this_batch())

    def _folder(self) -> SideFolder:
        return SideFolder(self.checkpoint, self.name)


def _read(folder: SideFolder, name: str) -> Any:
    """What is in a file; None where there is none, or it cannot be read."""
    text = folder.read(name)
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        warn(f"told: {folder.address_of(name)} is damaged, and left out")
        return None
