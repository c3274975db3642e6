"""One executor of two is three times as slow: how soon `cg` with `Feedback` evens out the work.

A local cluster of two executors with four cores each; the work is emulated by sleeping, so that eight tasks at a time
are real on any machine. Spark gives a partition to any executor that is free, so that in the next run it may be on the
other one: what was learnt of it is then of no use. Anchored partitions come back. Beside both, hash and round robin.

    python benchmarks/spark_feedback.py [--quick]
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from rich.table import Table

from timing import console
from unskew import make
from unskew.spark import Feedback, repartition
from unskew.spark.local import local_spark
from unskew.streams import Zipf

W, KEYS = 8, 10_000
SECONDS_PER_ROW, SLOWER, SLOW = 60e-6, 3, 1
EVEN = 1.25  # longest over mean task, within which it is even: cg leaves alone what is over 3/4 of the longest
Batches = Iterator[pa.RecordBatch]
Place = Callable[[DataFrame, Feedback], DataFrame]  # puts rows on workers


def work(batches: Batches) -> Batches:
    """Sleeps for each row, three times as long on the slow executor; puts out which executor it was."""
    context = TaskContext.get()
    assert context is not None
    executor = int(Path.cwd().name)  # a local cluster gives each executor a folder of its own
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        time.sleep(batch.num_rows * SECONDS_PER_ROW * (SLOWER if executor == SLOW else 1))
    yield pa.RecordBatch.from_pydict({"rows": [rows], "executor": [executor], "worker": [context.partitionId()]})


def series(df: DataFrame, place: Place, anchored: bool, runs: int) -> list[list[float]]:
    """Of each run: longest over mean task, seconds of the longest, partitions that changed their executor."""
    feedback = Feedback(make("cg", W), anchored=anchored)
    before: dict[int, int] = {}
    found = []
    for _ in range(runs):
        done = feedback.timed(place(df, feedback), work, "rows long, executor long, worker long").toArrow()
        report = feedback.collect()
        now = dict(zip(done["worker"].to_pylist(), done["executor"].to_pylist(), strict=True))
        moved = sum(before.get(worker, executor) != executor for worker, executor in now.items())
        before = now
        found.append([report.busy.max() / report.busy.mean(), report.busy.max(), moved])
    return found


def with_feedback(df: DataFrame, feedback: Feedback) -> DataFrame:
    return repartition(df, "key", W, feedback)


WAYS: dict[str, tuple[Place, bool]] = {
    "hash": (lambda df, _: df.repartition(W, "key"), False),
    "round robin": (lambda df, _: df.repartition(W), False),
    "unskew: cg with feedback, placed anew": (with_feedback, False),
    "unskew: cg with feedback, anchored": (with_feedback, True),
}


def recovered(ratio: np.ndarray, longest: np.ndarray) -> str:
    """When the longest task has come to stay within `EVEN` of the mean."""
    uneven = np.flatnonzero(ratio > EVEN)
    runs = uneven[-1] + 1 if len(uneven) else 0
    return "never" if runs == len(ratio) else f"{runs} runs, {longest[:runs].sum():.0f} s"


def main(rows: int = 100_000, runs: int = 15) -> None:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.master": f"local-cluster[2,{W // 2},1024]",
        "spark.executor.memory": "1g",
        "spark.cores.max": str(W),  # this and the next: nothing starts before both executors are there
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.shuffle.reduceLocality.enabled": "false",
    }
    keys = np.concatenate([chunk.keys for chunk in Zipf(1.2, KEYS, rows).chunks()])
    with tempfile.TemporaryDirectory(prefix="unskew-bench-") as folder, local_spark(Path(folder), settings) as spark:
        df = spark.createDataFrame(pa.table({"key": keys})).repartition(4).cache()
        for place, anchored in WAYS.values():
            series(df, place, anchored, 1)  # Python and compiled kernels start
        title = f"{rows:,} rows, W = {W}, one of two executors {SLOWER} x slower"
        columns = ("even after", "max / mean, first", "last 5", "longest s, first", "last 5", "moved a run", "all")
        table = Table("way", *columns, title=title, title_justify="left")
        for name, (place, anchored) in WAYS.items():
            console.print(f"  {name}")
            ratio, longest, moved = np.array(series(df, place, anchored, runs)).T
            means = f"{ratio[-5:].mean():.2f}", f"{longest[0]:.2f}", f"{longest[-5:].mean():.2f}"
            shown = " ".join(f"{each:.2f}" for each in ratio)
            table.add_row(name, recovered(ratio, longest), f"{ratio[0]:.2f}", *means, f"{moved[1:].mean():.1f}", shown)
        console.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows and runs")
    main(*((40_000, 10) if parser.parse_args().quick else ()))
