"""What Spark and Python cost besides the work on the rows: the constants of `unskew.report.costs`, measured here.

CPU seconds of all processes, the user's function doing nothing: ``groupBy(keys).applyInArrow`` beside `apply_split` and
its plan, and `apply_whole`, which counts the keys first, for few and many rows, few and many keys. Other work on the
machine hardly disturbs CPU seconds.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.table import Table

from timing import console
from unskew.report.costs import ENTIRE, SPLIT, TODAY
from unskew.spark import apply_split, apply_whole, local_spark, plan_for

WORKERS, ROUNDS = 8, 3
SIZES = ((20_000, 100), (1_000_000, 100), (1_000_000, 20_000), (200_000, 20_000))  # rows, keys


def cpu_seconds() -> float:
    """Of this process and all that it has started, directly or not."""
    parents, ticks = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # has ended
            continue
        parents[int(folder.name)], ticks[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(ticks.get(process, 0) for process in ours) / os.sysconf("SC_CLK_TCK")


def count_rows(rows: pa.Table) -> pa.Table:
    return pa.table({"key": rows["key"].slice(0, 1), "n": pa.array([rows.num_rows])})


def partial(rows: pa.Table) -> pa.Table:
    return pa.table({"n": pa.array([rows.num_rows])})


def merge(parts: pa.Table) -> pa.Table:
    return pa.table({"n": pa.array([sum(parts["n"].to_pylist())])})


def cost(run: Callable[[], object]) -> float:
    started = cpu_seconds()
    run()
    return cpu_seconds() - started


def run(df) -> None:
    df.write.format("noop").mode("overwrite").save()


def main() -> None:
    console.rule("Spark and Python besides the work: CPU seconds")
    settings = {"spark.sql.shuffle.partitions": str(WORKERS), "spark.sql.adaptive.coalescePartitions.enabled": "false"}
    names = ("today: applyInArrow", "plan", "apply_split", "apply_whole, counting included")
    table = Table("rows", "keys", *names, "least of 3 rounds, raw")
    rows_of_fit: list[tuple[float, ...]] = []
    with tempfile.TemporaryDirectory() as folder, local_spark(Path(folder), settings) as spark:
        for rows, keys in SIZES:
            data = f"{folder}/{rows}-{keys}"
            drawn = spark.range(rows).selectExpr(f"cast(pow({keys}, rand(1)) AS bigint) AS key", "id AS v")
            drawn.write.parquet(data)
            df = spark.read.parquet(data)
            distinct = df.select("key").distinct().count()
            plan = plan_for(df, "key", WORKERS, names=False)
            split = apply_split(df, "key", partial, merge, "key bigint, n bigint", WORKERS, plan=plan)
            cases = {
                "today": lambda df=df: run(df.groupBy("key").applyInArrow(count_rows, "key bigint, n bigint")),
                "plan": lambda df=df: plan_for(df, "key", WORKERS, names=False),
                "split": lambda split=split: run(split),
                "whole": lambda df=df: run(apply_whole(df, "key", count_rows, "key bigint, n bigint", WORKERS)),
            }
            seconds = {name: [cost(case) for _ in range(ROUNDS)] for name, case in cases.items()}
            least = {name: min(each) for name, each in seconds.items()}
            raw = "; ".join(" ".join(f"{s:.2f}" for s in each) for each in seconds.values())
            table.add_row(f"{rows:,}", f"{distinct:,}", *(f"{least[name]:.2f}" for name in cases), raw)
            rows_of_fit.append((rows, distinct, least["today"], least["plan"] + least["split"], least["whole"]))
    console.print(table)
    sizes = np.array(rows_of_fit)
    for name, assumed, column, calls in (("today", TODAY, 2, 1), ("split", SPLIT, 3, 2), ("whole", ENTIRE, 4, 1)):
        known = np.column_stack([np.ones(len(sizes)), sizes[:, 0], calls * sizes[:, 1]])
        start, row, call = np.linalg.lstsq(known, sizes[:, column], rcond=None)[0]
        console.print(f"{name}: start {start:.2f} s, {row:.2e} s per row, {call:.2e} s per call; assumed {assumed}")


if __name__ == "__main__":
    main()
