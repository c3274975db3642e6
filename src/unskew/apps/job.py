"""What a run of an application is given: Spark, rows, workers, a scheme, and a folder for what it writes."""

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from unskew.apps.samples import Sample
from unskew.apps.source import Source
from unskew.batch_records import BatchRecord, read_records
from unskew.contract import Scheme
from unskew.errors import InputError

RESULT, MODEL, PAGE, CHECKPOINT = OUTPUTS = ("result.parquet", "model.parquet", "page.html", "checkpoint")
FAR_AWAY = 10**9  # the number of the first row of a second sample
PATIENCE = 5.0  # seconds until the last micro-batch is recorded: Spark tells of it shortly after its end


@dataclass
class Job:
    """One run. `say` tells people what is being done; `scratch` is a folder that is gone afterwards.

    Spark is started when it is used first, so that an application can refuse bad options before that.
    """

    start: Callable[[], SparkSession]
    source: Source
    workers: int
    scheme: str | Scheme | None
    out: Path
    scratch: Path
    say: Callable[[str], None] = lambda step: None
    batches_done: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.out = self.out.absolute()  # Spark may have another working directory
        self._require_elsewhere("path", self.source.path)

    @cached_property
    def spark(self) -> SparkSession:
        self.say("starting a local Spark")
        return self.start()

    @property
    def checkpoint(self) -> Path:
        """Of the stream: ``unskew top`` shows it while it runs."""
        return self.out / CHECKPOINT

    def read(self, sample: Sample, infer: bool = False) -> DataFrame:
        """The rows; where none are given, those of `sample`. See `Source.read`."""
        spark = self.spark
        self.say("reading the rows" if self.source.path else "making the rows")
        df = self.source.read(spark, sample, self.scratch / "sample", infer=infer)
        self._clear()
        return df

    def more(self, path: str | None) -> Source | None:
        """Other rows, to try what was learnt on: of `path`; without one, more of the sample; None if there is none."""
        if path is None and self.source.path is not None:
            return None
        self._require_elsewhere("classify", path)
        return Source(path, rows=max(1, self.source.rows // 4), seed=self.source.seed)

    def read_more(self, more: Source, sample: Sample, infer: bool = False) -> DataFrame:
        """These rows, as a batch. See `Source.read`."""
        return more.read(self.spark, sample, self.scratch / "more", first=FAR_AWAY, infer=infer, as_batch=True)

    def each_batch(self, df: DataFrame, work: Callable[[DataFrame, int], None], mode: str = "append") -> None:
        """``work(rows, number)`` for each micro-batch of a stream that has rows; for a batch, once."""
        if not df.isStreaming:
            self.say("working through the rows")
            if df.persist().isEmpty():
                raise InputError(f"path: {self.source.path!r} has no rows to read")
            work(df, 0)
            df.unpersist()
            return
        failed: list[Exception] = []
        at_work, ended = threading.Lock(), threading.Event()

        def taking_note(rows: DataFrame, number: int) -> None:
            with at_work:
                if not ended.is_set():
                    take(rows)

        def take(rows: DataFrame) -> None:
            of = f" of {self.source.batches}" if self.source.batches else ""
            try:
                if not rows.persist().isEmpty():
                    self.say(f"micro-batch {self.batches_done + 1}{of}")
                    work(rows, self.batches_done)
                    self.batches_done += 1
            except Exception as error:  # Spark would wrap it in a stack of its own
                failed.append(error)
                raise
            finally:
                rows.unpersist()

        writer = df.writeStream.foreachBatch(taking_note).outputMode(mode)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        lasting = self.source.rate is not None
        query = (writer if lasting else writer.trigger(availableNow=True)).start()
        try:
            query.awaitTermination(self.source.seconds if lasting else None)
            while query.isActive and not self.batches_done:  # a slow machine gets its first micro-batch too
                query.awaitTermination(1)
        except Exception:  # after Ctrl-C, nothing more is said to Spark
            query.stop()
            if failed:
                raise failed[0] from None
            raise
        with at_work:  # a micro-batch that has begun is finished, another one is not begun
            ended.set()
        query.stop()
        if failed:  # in the one that had begun
            raise failed[0]
        if not self.batches_done:
            raise InputError(f"path: {self.source.path!r} has no rows to read")

    def records(self) -> list[BatchRecord]:
        """What was recorded of the micro-batches of a stream that was routed with ``Adaptive(job.checkpoint)``."""
        until = time.monotonic() + PATIENCE
        while len(found := read_records(self.checkpoint, "route")) < self.batches_done and time.monotonic() < until:
            time.sleep(0.05)
        return found

    def write(self, rows: DataFrame | pa.Table, name: str = RESULT, batch: int | None = None) -> Path:
        """Put a result into the folder; of a stream that writes in each batch, the part of that batch."""
        path = self.out / name if batch is None else self.out / name / f"batch={batch}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(rows, pa.Table):
            pq.write_table(rows, path)
        else:
            rows.write.mode("overwrite").parquet(str(path))  # a batch that runs again writes the same again
        return path

    def _require_elsewhere(self, name: str, path: str | None) -> None:
        """InputError where rows would be read from what an earlier run wrote to this folder, which is taken away."""
        if path is None or "://" in path:
            return
        for mine in (self.out / output for output in OUTPUTS):
            if Path(path).absolute().is_relative_to(mine):
                raise InputError(f"{name}: {path!r} is what this run would replace; write to another folder with --out")

    def _clear(self) -> None:
        """Take away what an earlier run wrote, which the user has agreed to. Nothing else in the folder is touched."""
        for path in (self.out / name for name in OUTPUTS):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
