"""Records of micro-batches, written by the driver: one JSON line per batch, in a file of its own."""

from typing import Any

from unskew.batch_records import BATCHES, BatchRecord
from unskew.spark.streaming.seen import Seen, seen_in_load
from unskew.spark.streaming.side_folder import SideFolder


class Recording:
    """Writes the records of the batches of one query."""

    def __init__(self, folder: SideFolder, scheme: str, workers: int, keep: int) -> None:
        self.workers = workers
        self._folder, self._scheme, self._keep = folder, scheme, keep
        self._last: tuple[str, int] | None = None

    def is_new(self, progress: Any, seen: Seen) -> bool:
        """Whether it is a batch with rows that was not told of before."""
        batch = (str(progress.runId), int(progress.batchId))
        if batch == self._last or not seen.rows:
            return False
        self._last = batch
        return True

    def write(self, progress: Any, seen: Seen, **of_plan: Any) -> None:
        """Record a batch; `of_plan` is what only batches with a plan have. The oldest record goes, and those of later
        batches, which are of a query that was there before."""
        record = BatchRecord(
            batch=progress.batchId,
            time=progress.timestamp,
            query=str(progress.id),
            scheme=self._scheme,
            workers=self.workers,
            rows=seen.rows,
            seconds=progress.durationMs.get("triggerExecution", 0) / 1000,
            load=() if seen.load is None else tuple(seen.load.tolist()),
            **of_plan,
        )
        self._folder.write(record.file_name, record.to_json() + "\n")
        found = sorted(f"{BATCHES}/{name}" for name in self._folder.names(BATCHES))
        kept = [name for name in found if name <= record.file_name][-self._keep :]
        for name in {*found} - {*kept}:
            self._folder.remove(name)


class OnlineRecords:
    """Records batches whose rows are placed by live routers. There is no plan to make."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def take(self, progress: Any, metrics: Any) -> None:
        seen = seen_in_load(metrics, self._recording.workers)
        if self._recording.is_new(progress, seen):
            self._recording.write(progress, seen)
