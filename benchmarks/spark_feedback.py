"""One executor of two is three times as slow: how soon `cg` with `Feedback` evens out the work.

A local cluster of two executors with four cores each; the work is emulated by sleeping, so that eight tasks at a time
are real on any machine. Spark gives a partition to any executor that is free, so that in the next run it may be on the
other one. Hence two settings: *placed anew*, as Spark does it, and *bound*, where each partition is treated as if it
stayed on one executor: the odd ones are the slow ones. Beside it hash and round robin.

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
SECONDS_A_ROW, SLOWER = 60e-6, 3
EVEN = 1.25  # longest over mean task from which on it counts as recovered
Batches = Iterator[pa.RecordBatch]
Place = Callable[[DataFrame, Feedback], DataFrame]  # puts rows on workers


def working(bound: bool) -> Callable[[Batches], Batches]:
    """Sleeps for each row, three times as long on the slow executor; puts out which executor it was."""

    def work(batches: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None
        executor = int(Path.cwd().name)  # a local cluster gives each executor a folder of its own
        slow = context.partitionId() % 2 if bound else executor % 2
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            time.sleep(batch.num_rows * SECONDS_A_ROW * (SLOWER if slow else 1))
        yield pa.RecordBatch.from_pydict({"rows": [rows], "executor": [executor], "worker": [context.partitionId()]})

    return work


def series(df: DataFrame, place: Place, runs: int, bound: bool) -> list[list[float]]:
    """Of each run: longest over mean task, seconds of the longest, partitions that changed their executor."""
    feedback = Feedback(make("cg", W))
    before: dict[int, int] = {}
    found = []
    for _ in range(runs):
        done = feedback.timed(place(df, feedback), working(bound), "rows long, executor long, worker long").toArrow()
        report = feedback.collect()
        now = dict(zip(done["worker"].to_pylist(), done["executor"].to_pylist(), strict=True))
        moved = sum(before.get(worker, executor) != executor for worker, executor in now.items())
        before = now
        found.append([report.busy.max() / report.busy.mean(), report.busy.max(), moved])
    return found


WAYS: dict[str, Place] = {
    "hash": lambda df, _: df.repartition(W, "key"),
    "round robin": lambda df, _: df.repartition(W),
    "unskew: cg with feedback": lambda df, feedback: repartition(df, "key", W, feedback),
}


def even_after(ratio: np.ndarray) -> str:
    uneven = np.flatnonzero(ratio > EVEN)
    runs = uneven[-1] + 1 if len(uneven) else 0
    return "never" if runs == len(ratio) else f"{runs} runs"


def main(rows: int = 100_000, runs: int = 15) -> None:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {"spark.master": f"local-cluster[2,{W // 2},1024]", "spark.executor.memory": "1g"}
    keys = np.concatenate([chunk.keys for chunk in Zipf(1.2, KEYS, rows).chunks()])
    with tempfile.TemporaryDirectory(prefix="unskew-bench-") as folder, local_spark(Path(folder), settings) as spark:
        df = spark.createDataFrame(pa.table({"key": keys})).repartition(4).cache()
        for place in WAYS.values():
            series(df, place, 1, bound=True)  # Python and compiled kernels start
        for bound in (True, False):
            title = f"{'bound' if bound else 'placed anew'}: {rows:,} rows, W = {W}, half of the workers 3 x slower"
            columns = ("even after", "max / mean, first", "last 5", "longest s, first", "last 5", "moved a run", "all")
            table = Table("way", *columns, title=title, title_justify="left")
            for name, place in WAYS.items():
                console.print(f"  {name}")
                ratio, longest, moved = np.array(series(df, place, runs, bound)).T
                means = f"{ratio[-5:].mean():.2f}", f"{longest[0]:.2f}", f"{longest[-5:].mean():.2f}"
                shown = " ".join(f"{each:.2f}" for each in ratio)
                table.add_row(name, even_after(ratio), f"{ratio[0]:.2f}", *means, f"{moved[1:].mean():.1f}", shown)
            console.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows and runs")
    main(*((40_000, 10) if parser.parse_args().quick else ()))
