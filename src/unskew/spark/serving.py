"""A deployment in small, on one machine: source tasks, a shuffle, and workers that serve rows in real time.

It is what `unskew reproduce deployments` measures. Every worker is a task of its own. Tasks of a stage do not start at
the same moment, so they wait for each other; what they share is a file that all processes of this machine map into
their memory. How long it took until all had started is told beside what was measured.
"""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.errors import InputError
from unskew.partitioning import PartitionFunction
from unskew.service import Floats, Ints, Others, Service, Work, work_through
from unskew.spark.anchors import numbers_of
from unskew.spark.feedback import Feedback
from unskew.spark.frames import context_of
from unskew.spark.lots import packed_at
from unskew.spark.mapping import Batches
from unskew.spark.placing import place_by

ROWS = "row bigint, key bigint, cost double, worker int"
DONE = "row bigint, worker int, finished double, late double, held bigint, sent bigint"
STARTED, COUNT = 0, 1  # columns of the shared file
PATIENCE = 120.0  # seconds that tasks wait for each other
LOOK = 0.1  # seconds between two looks at who has started
MAKING = threading.Lock()  # DataFrames are made one at a time: no two threads may pickle Numba's functions at once
AHEAD = 0.2  # seconds from the moment when all have started to the first row


class Served(NamedTuple):
    """What became of all rows, in the order in which they came. Moments are seconds from the start of the work."""

    worker: Ints
    finished: Floats
    late: Floats
    held: Ints
    sent: Ints
    starting: float  # seconds from the submission of the job until all workers had started: routing, shuffle, tasks
    wall: float  # seconds of the whole job


def source_rows(
    spark: SparkSession, keys: Ints, costs: Floats, sources: int, workers: npt.NDArray[np.int32] | None = None
) -> DataFrame:
    """Rows that are made by `sources` tasks, which take turns; with the worker of each, where it is already known."""

    def make(batches: Batches) -> Batches:
        for batch in batches:
            for source in batch.column(0).to_pylist():
                rows = np.arange(source, len(keys), sources)
                chosen = np.full(len(rows), -1, np.int32) if workers is None else workers[rows]
                columns = {"row": rows, "key": keys[rows], "cost": costs[rows], "worker": chosen}
                yield pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})

    return spark.range(0, sources, 1, sources).mapInArrow(make, ROWS)


def place_at(rows: DataFrame, workers: int) -> DataFrame:
    """The rows on the workers that they name."""
    number = packed_at(numbers_of(workers), F.col("worker"))
    return rows.withColumn("number", number).repartition(workers, "number").drop("number")


def place_whole_keys(rows: DataFrame, function: PartitionFunction) -> DataFrame:
    """The rows on the workers of their keys."""
    return place_by(rows, [F.col("key")], function)


def serve(place: Callable[[], DataFrame], service: Service, folder: Path) -> Served:
    """Let workers serve the rows of their partitions, all at the same time. `folder` is for the file that they share.

    `place` makes the DataFrame, with a partition per worker. The Spark must be of this machine, with a task thread for
    each worker. Several threads may serve at once.
    """
    sheet = folder / f"sheet-{time.monotonic_ns()}"
    np.memmap(sheet, np.float64, "w+", shape=(service.workers, 2))
    began = time.monotonic()
    with MAKING:
        made = place().mapInArrow(_serving(service, str(sheet)), DONE)
    done = made.toArrow()
    wall = time.monotonic() - began
    started = np.array(np.memmap(sheet, np.float64, "r", shape=(service.workers, 2))[:, STARTED])
    sheet.unlink()
    order = np.argsort(done["row"].to_numpy())
    worker, finished, late, held, sent = (done[name].to_numpy()[order] for name in done.schema.names[1:])
    start = float(started.max()) + AHEAD
    return Served(worker, finished - start, late, held, sent, float(started.max()) - began, wall)


def serve_timed(place: Callable[[], DataFrame], service: Service, feedback: Feedback) -> None:
    """Let workers serve the rows of their partitions, all there at once, and tell `feedback` how long each took."""

    def napping(batches: Batches) -> Batches:
        speed = service.speed(_worker())
        for batch in batches:
            time.sleep(float(np.sum(batch["cost"].to_numpy())) / speed)
            yield batch.slice(0, 0)

    with MAKING:
        made = feedback.timed(place(), napping, ROWS)
    made.toArrow()
    feedback.collect()


def require_task_threads(spark: SparkSession, task_threads: int) -> None:
    """InputError unless the session is of this machine and runs so many tasks at the same time."""
    context = context_of(spark)
    if context is None:
        raise InputError("master: workers share a file, so Spark must be local, not Spark Connect")
    if not context.master.startswith("local[") or context.defaultParallelism < task_threads:
        raise InputError(
            f"master: must be local[{task_threads}] or more, a task thread per worker, not {context.master}"
        )


def _serving(service: Service, path: str) -> Callable[[Batches], Batches]:
    """The function that a worker applies to its partition."""

    def serving(batches: Batches) -> Batches:
        worker = _worker()
        sheet = np.memmap(path, np.float64, "r+", shape=(service.workers, 2))
        rows, keys, costs = _columns(list(batches))
        others = Others(lambda: float(sheet[:, COUNT].sum()), lambda count: sheet.__setitem__((worker, COUNT), count))
        sheet[worker, STARTED] = time.monotonic()
        start = _wait_for_all(sheet) + AHEAD
        made = work_through(service, worker, start, rows, keys, costs, others)
        yield _told(rows, worker, made)

    return serving


def _worker() -> int:
    """The number of this task's partition."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _columns(batches: Sequence[pa.RecordBatch]) -> tuple[Ints, Ints, Floats]:
    """Number, key and cost of a worker's rows, in the order in which they come."""
    if not batches:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    table = pa.Table.from_batches(batches)
    rows, keys, costs = (table[name].to_numpy() for name in ("row", "key", "cost"))
    order = np.argsort(rows)
    return rows[order], keys[order], costs[order]


def _wait_for_all(sheet: npt.NDArray[np.float64]) -> float:
    """The moment when the last worker started; the same for all."""
    deadline = time.monotonic() + PATIENCE
    while not sheet[:, STARTED].all():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all workers started within {PATIENCE:.0f} s; Spark needs a task thread for each")
        time.sleep(LOOK)
    return float(sheet[:, STARTED].max())


def _told(rows: Ints, worker: int, made: Work) -> pa.RecordBatch:
    names = [part.split()[0] for part in DONE.split(", ")]
    columns = (rows, np.full(len(rows), worker, np.int32), made.finished, made.late, made.held, made.sent)
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names)
