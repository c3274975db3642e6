"""What workers really did in one run, for the routers of the next: schemes that listen (`cg`, `fish`) on Spark."""

import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DoubleType, IntegerType, LongType, StructField, StructType

from unskew.contract import Scheme
from unskew.errors import InputError, InputTypeError
from unskew.registry import registration_of
from unskew.router import Router
from unskew.spark.keys import as_compared, free_name
from unskew.spark.mapping import Batches, arrow_schema, mapped, parsed_schema
from unskew.worker_report import WorkerReport

WORKER = "__unskew_worker"  # number of the partition, for functions that run in it
DONE = "__unskew_done"  # what a task did, in one row a task, which is taken out again
DONE_TYPE = StructType(
    [StructField("worker", IntegerType()), StructField("rows", LongType()), StructField("busy", DoubleType())]
)
END = object()
PATIENCE = 60.0  # seconds: Spark tells of a run shortly after its end
UNHEARD = "rdd, foreach, foreachPartition and toLocalIterator are not heard of"


class Feedback:
    """A scheme that listens, with what the workers have told it so far. Stands where a scheme does:

        feedback = Feedback(make("cg", 16, virtual=50))
        for df in batches:
            placed = repartition(df, "word", 16, feedback)
            feedback.timed(placed, work, "word string, n long").write...
            feedback.collect()

    or ``aggregate(df, "word", {"n": Count()}, 16, feedback)``, or `apply_split`, whose first phase is then timed.

    Each task's router starts from what was told until its DataFrame was made; the loads that it balances start at 0.
    Within ``foreachBatch`` a micro-batch is such a run. What was learnt outlives the process: keep
    ``feedback.router.to_bytes()``, and go on with ``Feedback(Router.from_bytes(scheme, kept))``.

    Worker w is partition w. What is measured is the time in which its task was in `work`, without waiting for rows, in
    the last run. A run counts as one window, as long as the longest task worked: that one's utilisation is 1, and
    with `cg` it hands a virtual worker to one that worked less than 0.75 times as long.

    Work that is dearer for some keys than for others is evened out wherever it runs. A slow executor can be avoided
    only if partitions come back to the same executors, and Spark gives them to any that is free. With ``anchored=True``
    they come back (see `anchors`); Spark must have been started with ``spark.shuffle.reduceLocality.enabled=false``.
    """

    def __init__(self, scheme: Scheme | Router, *, anchored: bool = False) -> None:
        if isinstance(scheme, str):
            raise InputTypeError(f"scheme: must be an object such as make({scheme!r}, 16), not a name")
        self._router = scheme if isinstance(scheme, Router) else Router(scheme)
        if not self._router.listens:
            name = registration_of(self._router.scheme).name
            raise InputError(f"scheme: {name} does not listen to workers; cg and fish do")
        self.anchored = anchored
        self._observation: Observation | None = None
        self._runs = 0

    @property
    def router(self) -> Router:
        """What the next run's routers start as."""
        return self._router

    def timed(self, df: DataFrame, function: Callable[[Batches], Batches], schema: str | StructType) -> DataFrame:
        """``df.mapInArrow(function, schema)``, with a look at the clock in each task. Nothing runs now.

        `df` must have the partitions that `repartition` made, one a worker. All columns of the result may be null.
        """
        if not callable(function):
            raise InputTypeError(f"function: must be a function of batches, not {type(function).__name__}")
        if not isinstance(schema, str | StructType):
            raise InputTypeError(f"schema: must be a StructType or a DDL string, not {type(schema).__name__}")
        result = parsed_schema(df, schema) if isinstance(schema, str) else schema
        names = as_compared(df.sparkSession, [DONE, *result.names])
        if len(set(names)) < len(names):
            raise InputError(f"schema: must have different columns, none called {DONE}, not {', '.join(result.names)}")
        nullable = StructType([*(StructField(f.name, f.dataType) for f in result), StructField(DONE, DONE_TYPE)])
        self._observation = Observation()
        numbered = df.withColumn(free_name(df, WORKER), F.spark_partition_id())
        done = mapped(numbered, _timing(function, arrow_schema(nullable)), nullable)
        seen = done.observe(self._observation, F.collect_list(DONE).alias(DONE))
        return seen.where(F.col(DONE).isNull()).drop(DONE)

    def collect(self) -> WorkerReport:
        """Tell the scheme what the workers did in the run that `timed` was last called for; also returned.

        Call it after the first action on that DataFrame, which is the run that counts: ``show`` or ``isEmpty`` use it
        up; ``rdd``, ``foreach``, ``foreachPartition`` and ``toLocalIterator`` are none. Where not all workers got to
        the end of their rows (``show``, ``take``, a run that failed), nothing is learnt and a warning says so. Workers
        without rows tell nothing. One run at a time: not for several threads.
        """
        if self._observation is None:
            raise InputError("feedback: there is no run to learn from; first call timed and run what it returns")
        rows = _observed(self._observation)
        self._observation = None
        done = {row["worker"]: row for row in rows if row["rows"]}  # each once, also if it was retried
        empty = sum(not row["rows"] for row in rows)
        everyone = self._router.scheme.workers
        if max(done, default=0) >= everyone:
            raise InputError(
                f"feedback: timed must get the {everyone} partitions that repartition made, not {max(done) + 1} or more"
            )
        if len(done) + empty < everyone:
            warnings.warn(
                f"feedback: heard of {len(done) + empty} of {everyone} workers, so nothing was learnt: it has not run, "
                "or was cut short (take, show, isEmpty), or failed, or had no rows, or timed did not get what "
                f"repartition returned; {UNHEARD}",
                stacklevel=2,
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


def _observed(observation: Observation) -> list[Any]:
    """What the tasks told. Spark waits for a run without end, so this gives up some time after it should be over."""
    outcome: dict[str, Any] = {}

    def wait() -> None:
        try:
            outcome["rows"] = observation.get.get(DONE, [])
        except Exception as error:
            outcome["error"] = error

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        raise InputError(f"feedback: what timed returned has not run; write or collect it first; {UNHEARD}")
    if "AssertionError" in str(outcome.get("error")):  # of a stage that Spark left out, since it would get no rows
        return []
    if "error" in outcome:
        raise outcome["error"]
    rows: list[Any] = outcome["rows"]
    return rows


def _timing(function: Callable[[Batches], Batches], schema: pa.Schema) -> Callable[[Batches], Batches]:
    """`function`, for rows that have the worker's number too; a column of nulls is added, and a row at the end."""

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

        def clocked(step: Callable[[], Any]) -> Any:
            nonlocal busy
            began = time.perf_counter()
            done = step()
            busy += time.perf_counter() - began
            return done

        results = iter(clocked(lambda: function(fed())))  # which may do all of its work now, or batch by batch
        types = schema
        while (result := clocked(lambda: next(results, END))) is not END:
            batch = _with_column(result, schema)
            types = batch.schema  # Spark takes others than it declares, such as large_string, but the same in all
            yield batch
        done = {DONE: {"worker": worker, "rows": rows, "busy": max(0.0, busy)}}
        yield pa.RecordBatch.from_pylist([done], types)

    return work


def _with_column(batch: Any, schema: pa.Schema) -> pa.RecordBatch:
    if not isinstance(batch, pa.RecordBatch):
        raise InputTypeError(f"function: must yield a pyarrow.RecordBatch, not {type(batch).__name__}")
    names = schema.names[:-1]
    if sorted(batch.schema.names) != sorted(names):
        raise InputError(f"function: must yield the columns {names}, not {batch.schema.names}")
    nothing = pa.nulls(batch.num_rows, schema.field(DONE).type)
    return pa.RecordBatch.from_arrays([*(batch[name] for name in names), nothing], schema.names)
