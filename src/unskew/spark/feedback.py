"""What workers really did in one run, for the routers of the next: schemes that listen (`cg`, `fish`) on Spark."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DoubleType, IntegerType, LongType, StructField, StructType

from unskew.checks import require_bool
from unskew.contract import Scheme
from unskew.errors import InputError, InputTypeError
from unskew.registry import registration_of
from unskew.router import Router
from unskew.spark.frames import free_name, require_frame, warn
from unskew.spark.mapping import Batches, arrow_schema, map_in_arrow, result_schema
from unskew.spark.streaming.router_files import RouterFiles
from unskew.spark.streaming.told_files import ToldByWorker, ToldFiles
from unskew.spark.telling import DONE, UNHEARD, and_tell, hear, observe, with_done, without_done
from unskew.spark.working import run_by_batch
from unskew.worker_report import WorkerReport

WORKER = "__unskew_worker"  # number of the partition, for functions that run in it
DONE_TYPE = StructType(
    [StructField("worker", IntegerType()), StructField("rows", LongType()), StructField("busy", DoubleType())]
)
END = object()


class Feedback:
    """A scheme that listens, with what the workers have told it so far. Give it where a scheme is asked for.

    Worker w is partition w. What is measured is the time that its task spent in your function, without the time that it
    waited for rows, in the last run. A run counts as one window, as long as the longest task worked: that one's
    utilisation is 1, and with `cg` it hands a virtual worker to one that worked less than 0.75 times as long.

    Each task's router starts from what was told before its DataFrame was made; the loads that it balances start at 0.
    To go on in another process, keep ``feedback.router.to_bytes()`` and start with ``Feedback(Router.from_bytes(scheme,
    kept))``.

    On a stream a micro-batch is such a run. Give `repartition`, `aggregate` or `apply_split` also
    ``plan=Adaptive(checkpoint)``: routers and what workers tell are kept there, and there is nothing to collect.

    Parameters
    ----------
    scheme
        A scheme that listens, such as ``make("cg", 16)``, or a `Router` of one that has learnt already.
    anchored
        Whether partitions come back to the executors where they were (see `anchors`). Work that is dearer for some keys
        is evened out wherever it runs, but a slow executor can only be avoided if its partitions come back to it. Spark
        must have been started with ``spark.shuffle.reduceLocality.enabled=false``.

    Examples
    --------
    >>> from unskew import make
    >>> from unskew.spark import Feedback, repartition
    >>> feedback = Feedback(make("cg", 4, virtual=50))
    >>> def work(batches):
    ...     yield from batches
    >>> for batch in (df, df):
    ...     placed = repartition(batch, "word", 4, feedback)
    ...     rows = feedback.timed(placed, work, "word string, v bigint").collect()
    ...     report = feedback.collect()
    >>> int(report.tuples.sum())
    1000

    `aggregate` and `apply_split` time their first phase themselves; `collect` is still to be called after their run.
    """

    def __init__(self, scheme: Scheme | Router, *, anchored: bool = False) -> None:
        if isinstance(scheme, str):
            raise InputTypeError(f"scheme: must be an object such as make({scheme!r}, 16), not a name")
        require_bool("anchored", anchored)
        self._router = scheme if isinstance(scheme, Router) else Router(scheme)
        if not self._router.listens:
            name = registration_of(self._router.scheme).name
            hint = "; it has a worker half: see Conversation" if self._router.converses else "; cg and fish do"
            raise InputError(f"scheme: {name} does not listen to workers{hint}")
        self.anchored = anchored
        self._observation: Observation | None = None
        self._files: ToldFiles | None = None  # of the stream that it routes
        self._runs = 0

    @property
    def router(self) -> Router:
        """What the next run's routers start as."""
        return self._router

    def timed(self, df: DataFrame, function: Callable[[Batches], Batches], schema: str | StructType) -> DataFrame:
        """``df.mapInArrow(function, schema)``, timed in each task. Nothing runs now.

        Parameters
        ----------
        df
            With the partitions that `repartition` made, one per worker; of a stream, with this Feedback.
        function
            Gets an iterator of record batches, and yields others.
        schema
            Of what it yields: a DDL string or a StructType. All columns may be null.
        """
        require_frame(df)
        if not callable(function):
            raise InputTypeError(f"function: must be a function of batches, not {type(function).__name__}")
        return self.time_phase(df, partial(run_by_batch, function), schema)

    def time_phase(self, df: DataFrame, function: Callable[[Batches], Batches], schema: StructType | str) -> DataFrame:
        """As `timed`, for a function of ours, which itself says on which row the user's fails."""
        result = result_schema(df, schema)
        nullable = with_done(df, result, DONE_TYPE)
        files = self._files if df.isStreaming else None
        if df.isStreaming and files is None:
            raise InputError("df: must be a stream that repartition placed by this Feedback, with plan=Adaptive(...)")
        numbered = df.withColumn(free_name(df, WORKER), F.spark_partition_id())
        done = map_in_arrow(numbered, _timing(function, arrow_schema(nullable), files), nullable)
        if files is not None:
            return without_done(done)
        rows, self._observation = observe(done)
        return rows

    def router_files(self, checkpoint: str, name: str) -> RouterFiles:
        """Where the routers of a stream go on, and hear what `timed` measured in the micro-batches before."""
        files = ToldFiles(checkpoint, name, self._router.scheme.workers, _hear_report)
        if self._files not in (None, files):
            raise InputError("scheme: this Feedback routes another stream already; make one for each stream")
        self._files = files
        return RouterFiles(checkpoint, name, self._router.to_bytes(), files)

    def collect(self) -> WorkerReport:
        """Tell the scheme what the workers did in the run of what `timed` returned last. Returns what was told.

        Call it after the first action on that DataFrame, such as ``collect`` or a write: only that one is measured.
        ``show``, ``take`` and ``isEmpty`` end before all workers got to the end of their rows: as with a run that
        failed, nothing is learnt then, and a warning says so. ``rdd``, ``foreach``, ``foreachPartition`` and
        ``toLocalIterator`` are not measured at all. Workers without rows tell nothing. One run at a time: not for
        several threads.
        """
        if self._observation is None:
            raise InputError("feedback: there is no run to learn from; first call timed and run what it returns")
        rows = hear(self._observation, "feedback: what timed returned has not run; write or collect it first")
        self._observation = None
        done = {row["worker"]: row for row in rows if row["rows"]}  # each once, also if it was retried
        empty = sum(not row["rows"] for row in rows)
        everyone = self._router.scheme.workers
        if max(done, default=0) >= everyone:
            raise InputError(
                f"feedback: timed must get the {everyone} partitions that repartition made, not {max(done) + 1} or more"
            )
        if len(done) + empty < everyone:
            warn(
                f"feedback: heard of {len(done) + empty} of {everyone} workers, so nothing was learnt: it has not run, "
                "or was cut short (take, show, isEmpty), or failed, or had no rows, or timed did not get what "
                f"repartition returned; {UNHEARD}"
            )
            done = {}
        self._runs += 1
        report = _report_of(done, self._runs)
        if done:
            self._router.observe(report)
        return report


def _report_of(done: dict[int, Any], run: int) -> WorkerReport:
    workers = np.array(sorted(done), np.int64)
    rows = np.array([done[worker]["rows"] for worker in workers.tolist()], np.int64)
    busy = np.array([done[worker]["busy"] for worker in workers.tolist()], np.float64)
    return WorkerReport(workers, rows, rows, busy, np.zeros_like(rows), float(busy.max(initial=1e-9)), float(run))


def _hear_report(router: Router, source: int | None, batch: int, told: ToldByWorker) -> bool:
    """Let a router of a stream hear what workers did in a micro-batch."""
    if told:
        router.observe(_report_of(told, batch))
    return bool(told)


def _timing(
    function: Callable[[Batches], Batches], schema: pa.Schema, files: ToldFiles | None
) -> Callable[[Batches], Batches]:
    """`function`, for rows that have the worker's number too. A column of nulls is added, and a row at the end
    that tells the driver what was measured; on a stream, files tell it to the sources of the next micro-batch."""

    def work(batches: Batches) -> Batches:
        rows, busy, worker = 0, 0.0, None

        def fed() -> Batches:
            nonlocal rows, busy, worker
            while True:
                began = time.perf_counter()
                batch = next(batches, None)
                busy -= time.perf_counter() - began  # the caller's clock runs meanwhile
                if batch is None:
                    return
                rows += batch.num_rows
                worker = batch.columns[-1][0].as_py() if batch.num_rows else worker
                yield batch.select(list(range(batch.num_columns - 1)))

        def results() -> Iterator[Any]:
            nonlocal busy
            made = iter(function(fed()))
            while True:
                began = time.perf_counter()
                result = next(made, END)
                busy += time.perf_counter() - began
                if result is END:
                    return
                yield result

        def done() -> pa.StructArray | None:
            told = {"worker": worker, "rows": rows, "busy": max(0.0, busy)}
            if files is None:
                return pa.array([told], schema.field(DONE).type)
            if worker is not None:
                files.tell(worker, told)
            return None

        yield from and_tell(results(), schema, done)

    return work
