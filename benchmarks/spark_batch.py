"""Batch jobs on a local Spark, side by side with hash, round robin, salts by hand, AQE and groupBy().applyInArrow.

Three questions: what a routed shuffle costs where nothing is skewed, what it gains where the work per row is expensive
and the keys are skewed, and how much later the first job of a session is done. Expensive work is emulated by sleeping,
so that 16 tasks at a time are real on any machine. Times are only good for the ratios within one run.

    python benchmarks/spark_batch.py [--quick]
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import IntegerType
from rich.table import Table

from timing import Case, console, interleaved, show
from unskew import key_ids
from unskew.plan import HotKey, Plan
from unskew.spark import plan_for, repartition
from unskew.spark.local import local_spark
from unskew.streams import Zipf

W, KEYS, FILES = 16, 10_000, 16
IDLE = "Python that does nothing"
Way = Callable[[DataFrame], DataFrame]  # puts rows on workers
PARTIAL = "key bigint, n bigint, busy double"  # schema of partial counts; busy: seconds, in one row per task
Batches = Iterator[pa.RecordBatch]
SETTINGS = {"spark.driver.memory": "3g", "spark.sql.files.minPartitionNum": str(FILES)}


class Size(NamedTuple):
    """How much is run. Sleeping takes `rows` x 60 us / 16 at best."""

    overhead_rows: int = 20_000_000
    rows: int = 1_000_000
    grouped_rows: int = 100_000  # for groupBy().applyInArrow, which costs a millisecond a group besides
    rounds: int = 5


FULL, QUICK = Size(), Size(2_000_000, 200_000, 20_000, rounds=2)


class Target(NamedTuple):
    what: str
    limit: float
    measured: float
    unit: str = "x"


# ---------------------------------------------------------------- what a routed shuffle costs


def overhead(folder: Path, size: Size) -> list[Target]:
    """Shuffles into nowhere. Zipf 1.0: a few hot keys for the plans, little skew for two cores."""
    write(Zipf(1.0, KEYS, size.overhead_rows), folder / "rows")
    with local_spark(folder, SETTINGS) as spark:
        df = spark.read.parquet(str(folder / "rows"))
        few = plan_for(df, "key", W)
        many = with_hot_keys(few, 500)
        literal, joined = (f"planned, {len(plan.hot_keys)} hot keys" for plan in (few, many))
        seconds = told(
            {
                "hash": lambda: drain(df.repartition(W, "key")),
                "round robin": lambda: drain(df.repartition(W)),
                literal: lambda: drain(repartition(df, "key", W, plan=few)),
                joined: lambda: drain(repartition(df, "key", W, plan=many)),
                "online, pkg": lambda: drain(repartition(df, "key", W, "pkg", mode="online")),
                IDLE: lambda: drain(with_idle_python(df)),
                "making the plan": lambda: plan_for(df, "key", W, names=False),
                "making the plan, 10 % sampled": lambda: plan_for(df, "key", W, sample=0.1, names=False),
            },
            size.rounds,
        )
    show(f"overhead: {size.overhead_rows:,} rows of two longs, W = {W}", seconds, size.overhead_rows, "hash")
    ratio = {name: median / medians(seconds)["hash"] for name, median in medians(seconds).items()}
    limits = {literal: 1.15, joined: 1.15, "online, pkg": 1.6}
    return [Target(f"overhead over hash: {name}", limit, ratio[name]) for name, limit in limits.items()]


def with_hot_keys(plan: Plan, number: int) -> Plan:
    """The plan with further keys, the next hottest, each dealt over two workers."""
    known = {hot.key_id for hot in plan.hot_keys}
    further = [int(i) for i in key_ids(np.arange(1, number + 1)) if int(i) not in known]
    return replace(plan, hot_keys=plan.hot_keys + tuple(HotKey(i, 0.0, (0, 1)) for i in further))


def with_idle_python(df: DataFrame) -> DataFrame:
    """What any routing in Python costs at least: the key goes to a function that does nothing, a salt comes back."""

    def zeros(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for batch in batches:
            yield pa.array(np.zeros(len(batch), np.int32))

    salt = arrow_udf(zeros, IntegerType()).asNondeterministic()("key")
    return df.withColumn("salt", salt).repartition(W, "key", "salt").drop("salt")


def drain(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


# ---------------------------------------------------------------- what it gains


@dataclass
class Run:
    """What one run of a skewed job gave, besides its time."""

    busy: list[float]  # seconds that each task worked
    partials: int  # (worker, key) pairs
    correct: bool

    @property
    def longest_over_mean(self) -> float:
        return max(self.busy) / statistics.mean(self.busy)


def skewed(folder: Path, size: Size) -> list[Target]:
    """60 us of work a row, Zipf 1.2: the hottest key has 21 % of the rows."""
    settings = SETTINGS | {"spark.master": f"local[{W}]", "spark.sql.shuffle.partitions": str(W)}
    runs: dict[str, Run] = {}
    with local_spark(folder, settings) as spark:

        def job(name: str, rows: str, partials: Way, merge: bool = True) -> Case:
            def case() -> None:
                runs[name] = run(partials(spark.read.parquet(str(folder / rows))), expected[rows], merge)

            return case

        def by_partition(place: Way) -> Way:
            return lambda df: place(df).mapInArrow(working(60e-6), PARTIAL)

        def by_group(df: DataFrame) -> DataFrame:
            return df.groupBy("key").applyInArrow(working_on_a_group(60e-6), PARTIAL)

        def random_salts(df: DataFrame, salts: int) -> DataFrame:
            return df.withColumn("salt", (F.rand(seed=1) * salts).cast("int")).repartition(W, "key", "salt")

        expected = {
            rows: write(Zipf(1.2, KEYS, count), folder / rows)
            for rows, count in {"many": size.rows, "few": size.grouped_rows}.items()
        }
        plan = plan_for(spark.read.parquet(str(folder / "many")), "key", W)
        ours = "unskew: fanout planned"
        ways: dict[str, Way] = {
            "hash": lambda df: df.repartition(W, "key"),
            "round robin": lambda df: df.repartition(W),
            "random salts x8": lambda df: random_salts(df, 8),
            "random salts x16": lambda df: random_salts(df, 16),
            "AQE: rebalance by key": lambda df: df.hint("rebalance", "key"),
            ours: lambda df: repartition(df, "key", W, plan=plan),
            f"{ours}, plan made now": lambda df: repartition(df, "key", W),
            "unskew: pkg online": lambda df: repartition(df, "key", W, "pkg", mode="online"),
        }
        many = told({name: job(name, "many", by_partition(way)) for name, way in ways.items()}, size.rounds)
        show_runs(f"{size.rows:,} rows, 60 us each; ideal {size.rows * 60e-6 / W:.2f} s", many, runs, "hash")
        grouped, again = "groupBy().applyInArrow", f"{ours}, few rows"
        jobs = job(grouped, "few", by_group, merge=False), job(again, "few", by_partition(ways[ours]))
        few = told(dict(zip((grouped, again), jobs, strict=True)), min(2, size.rounds))
        show_runs(f"{size.grouped_rows:,} rows: group by group costs a millisecond a group", few, runs, grouped)
    best = min(median for name, median in medians(many).items() if not name.startswith("unskew"))
    return [
        Target(f"{ours}: time over the best of the others", 1.05, medians(many)[ours] / best),
        Target(f"{ours}: partials over hash", 1.15, runs[ours].partials / runs["hash"].partials),
        Target("runs with wrong counts", 0, sum(not each.correct for each in runs.values()), ""),
    ]


def working(seconds_per_row: float) -> Callable[[Batches], Batches]:
    """Counts the keys of a partition, sleeping for each row."""

    def work(batches: Batches) -> Batches:
        busy, counts = 0.0, []
        for batch in batches:
            started = time.perf_counter()
            time.sleep(batch.num_rows * seconds_per_row)
            counts.append(pa.table(dict(zip(("key", "n"), batch["key"].value_counts().flatten(), strict=True))))
            busy += time.perf_counter() - started
        if counts:
            total = pa.concat_tables(counts).group_by("key", use_threads=False).aggregate([("n", "sum")])
            told_once = np.zeros(len(total))
            told_once[0] = busy
            yield from total.rename_columns(["key", "n"]).append_column("busy", pa.array(told_once)).to_batches()

    return work


def working_on_a_group(seconds_per_row: float) -> Callable[[pa.Table], pa.Table]:
    def work(rows: pa.Table) -> pa.Table:
        started = time.perf_counter()
        time.sleep(rows.num_rows * seconds_per_row)
        return pa.table({"key": [rows["key"][0]], "n": [len(rows)], "busy": [time.perf_counter() - started]})

    return work


def run(partials: DataFrame, expected: dict[int, int], merge: bool) -> Run:
    """One job: the partial results, observed in passing, and merged by a second small shuffle."""
    seen = Observation()
    busy = [F.sum(F.when(F.spark_partition_id() == w, F.col("busy")).otherwise(0.0)).alias(str(w)) for w in range(W)]
    observed = partials.observe(seen, F.count("*").alias("partials"), *busy)
    result = (observed.groupBy("key").agg(F.sum("n").alias("n")) if merge else observed).toArrow()
    counts = dict(zip(result["key"].to_pylist(), result["n"].to_pylist(), strict=True))
    return Run([seen.get[str(w)] for w in range(W)], seen.get["partials"], counts == expected)


def show_runs(title: str, seconds: dict[str, list[float]], runs: dict[str, Run], baseline: str) -> None:
    columns = ("seconds", "ratio", "longest / mean task", "partials", "correct", "raw seconds")
    table = Table("way", *columns, title=title, title_justify="left")
    for name, median in medians(seconds).items():
        ratio, each = median / medians(seconds)[baseline], runs[name]
        shown = f"{median:.2f}", f"{ratio:.2f}", f"{each.longest_over_mean:.2f}", f"{each.partials:,}"
        raw = " ".join(f"{t:.2f}" for t in seconds[name])
        table.add_row(name, *shown, "yes" if each.correct else "NO", raw)
    console.print(table)


# ---------------------------------------------------------------- the first job of a session


def cold_start(folder: Path, size: Size) -> list[Target]:
    """The same job, first in a fresh process. Imports and starting Spark are not counted: see cold_start.py."""
    write(Zipf(1.2, KEYS, size.rows), folder / "rows")
    seconds: dict[str, list[float]] = {"hash": [], "planned": [], "online": [], IDLE: []}
    for _ in range(min(3, size.rounds)):
        for name in seconds:
            seconds[name].append(in_fresh_process(first_job, name, folder))
            console.print(f"  {name}: {seconds[name][-1]:.2f} s")
    show("cold start: the first job, plan made in it", seconds, size.rows, "hash")
    slower = {name: median - medians(seconds)["hash"] for name, median in medians(seconds).items()}
    return [Target(f"cold start: {name} slower than hash by", 3.0, slower[name], "s") for name in ("planned", "online")]


def first_job(name: str, folder: Path) -> float:
    with tempfile.TemporaryDirectory() as own, local_spark(Path(own), SETTINGS) as spark:
        df = spark.read.parquet(str(folder / "rows"))
        started = time.perf_counter()
        if name == "hash":
            drain(df.repartition(W, "key"))
        elif name == IDLE:
            drain(with_idle_python(df))
        else:
            drain(repartition(df, "key", W, "fanout" if name == "planned" else "pkg", mode=name))
        return time.perf_counter() - started


def write(stream: Zipf, folder: Path) -> dict[int, int]:
    """The stream as Parquet files with the columns key and value; returns how often each key occurs."""
    folder.mkdir()
    counts = np.zeros(KEYS + 1, np.int64)
    step = -(-stream.tuples // FILES)
    for number, chunk in enumerate(stream.chunks(step)):
        values = np.arange(number * step, number * step + len(chunk.keys))
        pq.write_table(pa.table({"key": chunk.keys, "value": values}), folder / f"{number}.parquet")
        counts += np.bincount(chunk.keys, minlength=KEYS + 1)
    return {int(key): int(counts[key]) for key in np.flatnonzero(counts)}


def told(cases: dict[str, Case], rounds: int) -> dict[str, list[float]]:
    """`interleaved`, with a line of progress a run."""

    def telling(name: str) -> None:
        console.print(f"  {name}")
        cases[name]()

    return interleaved({name: partial(telling, name) for name in cases}, rounds)


def medians(seconds: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(times) for name, times in seconds.items()}


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """A Spark for itself: one process can only ever have one."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


PARTS = {"overhead": overhead, "skewed": skewed, "cold": cold_start}


def main(size: Size = FULL, parts: tuple[str, ...] = tuple(PARTS)) -> None:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    targets: list[Target] = []
    for name in parts:
        console.rule(f"Spark, batch: {name}")
        with tempfile.TemporaryDirectory(prefix="unskew-bench-") as folder:
            targets += in_fresh_process(PARTS[name], Path(folder), size)
    table = Table("what", "target", "measured", "", title="Spark, batch", title_justify="left")
    for what, limit, measured, unit in targets:
        table.add_row(what, f"at most {limit:g} {unit}", f"{measured:.2f}", "ok" if measured <= limit else "MISSED")
    console.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, two rounds")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this part; can be repeated")
    options = parser.parse_args()
    main(QUICK if options.quick else FULL, tuple(options.part or PARTS))
