"""Counting words over W workers, where each row takes time: what `unskew demo` runs on a local Spark.

The way to run expensive work per row: the shuffle puts each row on its worker, the worker goes through its whole
partition (`mapInArrow`; calling Python group by group costs about a millisecond per group), and the partial results of
a key are merged in a second, small shuffle.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from unskew.spark.routing import repartition

PLANNED = ("fanout",)  # schemes that count before they send
NAP = 0.05  # seconds that a worker sleeps at a time: short enough to watch, long enough for the clock


class Timesheet:
    """What each worker has done so far: a file that all processes of this machine map into their memory."""

    def __init__(self, path: Path, workers: int) -> None:
        self.path, self.workers = path, workers
        self.began = time.time()
        self._written = np.memmap(path, np.float64, "w+", shape=(workers, 3))

    @property
    def age(self) -> float:
        """Seconds since the beginning of the job."""
        return time.time() - self.began

    @property
    def load(self) -> list[int]:
        """Rows that each worker has done."""
        return [int(rows) for rows in self._written[:, 0]]

    @property
    def started(self) -> list[float]:
        """Seconds from the beginning of the job until each worker started; 0 where it has not."""
        return [max(0.0, float(moment) - self.began) for moment in self._written[:, 1]]

    @property
    def ended(self) -> list[float]:
        """Seconds from the beginning of the job until each worker was done; 0 where it is not."""
        return [max(0.0, float(moment) - self.began) for moment in self._written[:, 2]]


class Counted(NamedTuple):
    """The counts of all words, and what it took to get them."""

    words: dict[str, int]
    replicas: int  # (worker, word) pairs that held a count
    planning: float  # seconds for counting the hot words and making the plan; 0 where none is made
    seconds: float  # of the whole job, from the first line to the merged counts


def place_rows(df: DataFrame, scheme: str, workers: int) -> DataFrame:
    """The rows of `df` on their workers: by Spark's own hash or round robin, or by an unskew scheme."""
    if scheme == "hash":
        return df.repartition(workers, "word")
    if scheme == "shuffle":
        return df.repartition(workers)
    return repartition(df, "word", workers, scheme, mode="online" if scheme == "pkg" else "auto")  # PKG as published


def count_words(df: DataFrame, scheme: str, row_cost: float, sheet: Timesheet) -> Counted:
    """Send the column ``word`` of `df` to the workers, count on each at `row_cost` seconds per row, merge. Timed.

    The workers are those of `sheet`, in which they write down what they do.
    """
    start = time.perf_counter()
    placed = place_rows(df.select("word"), scheme, sheet.workers)
    planning = time.perf_counter() - start if scheme in PLANNED else 0.0
    seen = Observation()  # counts the partial results while they pass
    partial = placed.mapInArrow(_working(sheet, row_cost), "word string, count bigint")
    partial = partial.observe(seen, F.count("*").alias("replicas"))
    merged = partial.groupBy("word").agg(F.sum("count").alias("count")).toArrow()
    seconds = time.perf_counter() - start
    words = dict(zip(merged["word"].to_pylist(), merged["count"].to_pylist(), strict=True))
    return Counted(words, seen.get["replicas"], planning, seconds)


def _working(sheet: Timesheet, row_cost: float) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that a worker applies to its partition. It sleeps as long as the rows take, then counts them."""
    path, workers = sheet.path, sheet.workers
    step = max(1, round(NAP / row_cost)) if row_cost else 2**31  # rows

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        line = np.memmap(path, np.float64, "r+", shape=(workers, 3))[_worker()]
        line[1] = time.time()
        counts = []
        for batch in batches:
            due = time.time()
            for first in range(0, len(batch), step):
                rows = min(step, len(batch) - first)
                due += rows * row_cost
                time.sleep(max(0.0, due - time.time()))  # a nap that took too long makes the next one shorter
                line[0] += rows
            counts.append(pa.table(dict(zip(["word", "count"], batch["word"].value_counts().flatten(), strict=True))))
        line[2] = time.time()
        if counts:
            total = pa.concat_tables(counts).group_by("word", use_threads=False).aggregate([("count", "sum")])
            yield from total.rename_columns({"count_sum": "count"}).to_batches()

    return work


def _worker() -> int:
    context = TaskContext.get()
    assert context is not None, "only within a task"
    return context.partitionId()
