"""Keys that must stay whole, on Spark: the exact median per key, by hash and placed whole; a count that can be split.

A median cannot be merged, so that its keys cannot be split. Beside it is a count of the same cost, which can: by
`apply_split`. The work is emulated by sleeping, so that 16 tasks at a time are real on any machine. Each row has an
airport, as skewed as real flights (229 keys, the hottest with 5.5 % of the rows). And how many keys, and rows, change
their worker when there are 17 instead of 16: by Spark's own hash, and by `rebalance`.

Verdict, written down before the first run: placed whole, the busiest worker is within 1.05 of the larger of the mean
and the hottest key, and the stage is faster than by hash; going to 17 workers moves less than a third of what it moves
by hash.

    python benchmarks/spark_whole_keys.py [--quick]
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from rich.table import Table

from timing import console
from unskew.partitioning import PartitionFunction
from unskew.spark import apply_split, apply_whole, measure_balance, rebalance
from unskew.spark.cost_dealing import CostDealing
from unskew.spark.local import local_spark
from unskew.spark.placing import worker_of

W, KEYS, EXPONENT = 16, 229, 0.63  # the hottest of 229 keys has 5.5 % of the rows
SECONDS_PER_ROW = 0.4e-3


def median(rows: pa.Table) -> pa.Table:
    time.sleep(rows.num_rows * SECONDS_PER_ROW)
    return pa.table({"key": rows["key"][:1], "n": [rows.num_rows], "median": [float(np.median(rows["v"]))]})


def part(rows: pa.Table) -> pa.Table:
    time.sleep(rows.num_rows * SECONDS_PER_ROW)
    return pa.table({"n": [rows.num_rows]})


def merged(parts: pa.Table) -> pa.Table:
    return pa.table({"n": [sum(parts["n"].to_pylist())]})


SCHEMA = "key bigint, n bigint, median double"


def main(rows: int = 200_000, rounds: int = 3) -> None:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {"spark.master": f"local[{W}]", "spark.sql.shuffle.partitions": str(W)}
    share = np.arange(1, KEYS + 1) ** -EXPONENT
    keys = np.random.default_rng(0).choice(KEYS, rows, p=share / share.sum()).astype(np.int64)
    with tempfile.TemporaryDirectory(prefix="unskew-bench-") as folder, local_spark(Path(folder), settings) as spark:
        df = spark.createDataFrame(pa.table({"key": keys, "v": np.arange(rows)})).repartition(4).cache()
        df.count()
        hottest = np.bincount(keys).max()
        at_best = max(rows / W, hottest) * SECONDS_PER_ROW
        jobs: dict[str, tuple[Callable[[], DataFrame], DataFrame | None]] = {
            "median: groupBy.applyInArrow, by hash": (
                lambda: df.groupBy("key").applyInArrow(median, SCHEMA),
                df.repartition(W, "key"),
            ),
            "median: apply_whole": (
                lambda: apply_whole(df, "key", median, SCHEMA, W),
                CostDealing(df, F.lit(1), W, keys=[F.col("key")]).place(),
            ),
            "count: apply_split": (lambda: apply_split(df, "key", part, merged, "key bigint, n bigint", W), None),
        }
        moves(df)
        for job, _ in jobs.values():
            job().where("key = 0").collect()  # Python starts
        title = f"{rows:,} rows, {KEYS} keys, p1 {hottest / rows:.1%}, W = {W}; whole keys at best {at_best:.2f} s"
        console.print(title)
        for name, (job, placed) in jobs.items():
            seconds = []
            for _ in range(rounds):
                started = time.perf_counter()
                assert job().agg(F.sum("n")).first()[0] == rows
                seconds.append(time.perf_counter() - started)
            ratio = "-" if placed is None else f"{measure_balance(placed).max_over_mean:.2f}"
            shown = " ".join(f"{each:.1f}" for each in sorted(seconds))
            console.print(f"  {name}: longest / mean task {ratio}, wall {shown} s")


def moves(df: DataFrame) -> None:
    """From 16 to 17 workers."""
    first = rebalance(df, "key", W)
    more = rebalance(df, "key", W + 1, previous=first.plan)
    functions = [PartitionFunction(workers, cold="home") for workers in (W, W + 1)]
    pairs = {"Spark's own hash": functions, "unskew: rebalance": [first.plan, more.plan]}
    table = Table("placement", "keys that move", "rows that move", "max/mean at 16", "at 17", title="16 to 17 workers")
    counted = df.groupBy("key").count().cache()
    for name, (old, new) in pairs.items():
        columns = [worker_of([F.col("key")], each) for each in (old, new)]  # type: ignore[arg-type]
        moved = counted.where(columns[0] != columns[1])
        found = moved.agg(F.count("*"), F.sum("count")).first()
        loads = [
            counted.groupBy(c.alias("w")).agg(F.sum("count").alias("n")).agg(F.max("n")).first()[0] for c in columns
        ]
        ratios = [load * workers / df.count() for load, workers in zip(loads, (W, W + 1), strict=True)]
        table.add_row(name, str(found[0]), f"{found[1] / df.count():.1%}", *(f"{ratio:.2f}" for ratio in ratios))
    console.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds")
    main(*((80_000, 1) if parser.parse_args().quick else ()))
