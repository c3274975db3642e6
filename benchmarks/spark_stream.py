"""Micro-batches of Structured Streaming on a local Spark, side by side; what adapting costs, and what it gains.

(a) Counting: Spark's own count; hash, `mapInArrow` and a merge; the same with a fixed plan and routed adaptively;
    states that Python merges; and one group per key, as users write it today. Hash and adaptive are compared in
    several Sparks of their own, after a longer warm-up; the median of their ratios decides.
(r) `repartition` alone, whose rows Spark counts on the way: by hash, with a fixed plan and adaptively, dealt by content
    and by position.
(b) Expensive rows (they sleep, on more task threads than cores), Zipf 1.2: time per batch by hash, by random salts,
    adaptively, and the ideal: all workers busy to the end, plus what a batch costs whose rows cost nothing.
(c) Growth with the keys in state, and with the number of workers.

`spark_stream_changes.py` measures how soon a stream is balanced again when its hot keys change.

`micro_batches.py` tells how times are taken.

    python benchmarks/spark_stream.py [--quick] [--warm ROUNDS] [--rows ROWS] [--sparks N] [a] [r] [b] [c]
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StatefulProcessor

from micro_batches import SCHEMA, SETTINGS, Build, Keys, Size, W, medians, race, show, verdict, zipf
from unskew import Plan
from unskew.aggregates import Count
from unskew.spark import Adaptive, aggregate, plan_for, repartition
from unskew.spark.local import local_spark

ROW_COST = 60e-6  # seconds that an expensive row sleeps
# What is aimed at; written down before any measurement of this file.
MOST_OVER_HASH = 1.10  # (a) time of the adaptive count over that of hash, mapInArrow and merge
LEAST_GAIN = 3.0  # (a) time of one group per key over that of the states that Python merges
MOST_OF_LOOP = (0.05, 0.250)  # (a), (r) of a batch with a fixed plan, and seconds: what adapting may add
MOST_OVER_IDEAL = 1.10  # (b) time of an adaptive batch over the ideal

FULL = Size()
QUICK = Size(50_000, 2_000, 2, 1, 1, (1_000, 10_000), (4, 16), 100_000, 2, 1, 2)


# ---------------------------------------------------------------- (a) counting


class CountKey(StatefulProcessor):
    """One group per key: its count."""

    def init(self, handle: Any) -> None:
        self._n = handle.getValueState("n", "n bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        import pandas as pd

        n = sum(map(len, rows)) + (self._n.get()[0] if self._n.exists() else 0)
        self._n.update((n,))
        yield pd.DataFrame({"key": [key[0]], "n": [n]})

    def close(self) -> None:
        pass


def count_group(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """The same for ``applyInPandasWithState``."""
    import pandas as pd

    n = sum(map(len, frames)) + (state.get[0] if state.exists else 0)
    state.update((n,))
    yield pd.DataFrame({"key": [key[0]], "n": [n]})


def counting(fixed: Plan) -> dict[str, Build]:
    def count(**options: Any) -> Build:
        return lambda stream, chk: aggregate(stream, "key", {"n": Count()}, W, **{"plan": Adaptive(chk), **options})

    def per_key_pandas(stream: DataFrame, chk: str) -> DataFrame:
        groups = stream.groupBy("key")
        return groups.applyInPandasWithState(count_group, "key bigint, n bigint", "n bigint", "update", "NoTimeout")

    def per_key_state(stream: DataFrame, chk: str) -> DataFrame:
        return stream.groupBy("key").transformWithStateInPandas(CountKey(), "key bigint, n bigint", "Update", "None")

    return {
        "Spark's own count": lambda stream, chk: stream.groupBy("key").count(),
        "hash": count(plan=Plan("fanout", W)),
        "fixed plan": count(plan=fixed),
        "adaptive": count(),
        "adaptive, merged by Python": count(ttl="100 days"),
        "per key, applyInPandasWithState": per_key_pandas,
        "per key, transformWithState": per_key_state,
    }


def routing(fixed: Plan) -> dict[str, Build]:
    """Those whose ratio is aimed at."""
    return {name: build for name, build in counting(fixed).items() if name in ("hash", "adaptive")}


def part_a(folder: Path, size: Size) -> None:
    median = compare(folder / "all", size, counting, "update", "(a) counting")
    steady = size._replace(warm=size.steady_warm, rounds=size.steady_rounds)
    runs = [compare(folder / str(i), steady, routing, "update", "(a) running for long") for i in range(size.sparks)]
    ratios = sorted(each["adaptive"] / each["hash"] for each in runs)
    said = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    verdict(f"adaptive / hash, median of {said}", statistics.median(ratios), MOST_OVER_HASH)
    judge_loop(median, "")
    per_key = min(value for name, value in median.items() if name.startswith("per key"))
    verdict("merged by Python / one group per key", median["adaptive, merged by Python"] / per_key, 1 / LEAST_GAIN)


def compare(
    folder: Path, size: Size, builds: Callable[[Plan], dict[str, Build]], mode: str, title: str
) -> dict[str, float]:
    """Median seconds, by name, of queries that are made with a plan that fits their keys."""
    folder.mkdir(exist_ok=True)
    with local_spark(folder, SETTINGS) as spark:
        sample = spark.createDataFrame(pa.table({"key": zipf(0, 100_000, size.keys, 1.2)}))
        made = builds(plan_for(sample, "key", W))
        seconds = race(spark, folder, made, mode, size, lambda turn: zipf(turn, size.rows, size.keys, 1.2))
    show(f"{title}, {size.rows:,} rows, {size.keys:,} keys per batch, W={W}", seconds, "hash")
    return medians(seconds)


def judge_loop(median: dict[str, float], how: str) -> None:
    share, seconds = MOST_OF_LOOP
    adaptive, fixed = median[f"adaptive{how}"], median[f"fixed plan{how}"]
    verdict(f"adaptive less a fixed plan{how}, seconds", adaptive - fixed, share * fixed + seconds)


# ---------------------------------------------------------------- (r) repartition alone


def placing(fixed: Plan) -> dict[str, Build]:
    def place(**options: Any) -> Build:
        return lambda stream, chk: repartition(stream, "key", W, **{"plan": Adaptive(chk), **options})

    return {
        "hash": lambda stream, chk: stream.repartition(W, "key"),
        "fixed plan": place(plan=fixed),
        "adaptive": place(),
        "fixed plan, by position": place(plan=fixed, deal="position"),
        "adaptive, by position": place(deal="position"),
    }


def part_r(folder: Path, size: Size) -> None:
    median = compare(folder, size, placing, "append", "(r) repartition")
    for how in ("", ", by position"):
        judge_loop(median, how)


# ---------------------------------------------------------------- (b) expensive rows


def sleep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(batch.num_rows * ROW_COST)
        yield batch.slice(0, 0)


def pass_by(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, 0)


def part_b(folder: Path, size: Size) -> None:
    ways: dict[str, Build] = {
        "hash": lambda stream, chk: stream.repartition(W, "key"),
        "random salts": lambda stream, chk: (
            stream.withColumn("salt", (F.rand(1) * W).cast("int")).repartition(W, "key", "salt").drop("salt")
        ),
        "adaptive": lambda stream, chk: repartition(stream, "key", W, plan=Adaptive(chk)),
    }
    free = "adaptive, rows that cost nothing"

    def working(way: Build, work: Any) -> Build:
        return lambda stream, chk: way(stream, chk).mapInArrow(work, SCHEMA)

    builds = {name: working(way, sleep) for name, way in ways.items()} | {free: working(ways["adaptive"], pass_by)}
    with local_spark(folder, {**SETTINGS, "spark.master": f"local[{W}]"}) as spark:
        seconds = race(spark, folder, builds, "append", size, lambda turn: zipf(turn, size.sleeping, size.keys, 1.2))
    ideal = size.sleeping * ROW_COST / W + medians(seconds)[free]
    seconds["the ideal"] = [ideal]
    show(f"(b) {size.sleeping:,} rows of {ROW_COST * 1e6:.0f} us, Zipf 1.2, W={W}", seconds, "the ideal")
    verdict("adaptive / the ideal", medians(seconds)["adaptive"] / ideal, MOST_OVER_IDEAL)


# ---------------------------------------------------------------- (c) growth


def part_c(folder: Path, size: Size) -> None:
    for keys in size.states:
        grow(folder / f"keys-{keys}", size, keys, W, f"(c) {keys:,} keys in state, W={W}")
    for workers in size.workers:
        grow(folder / f"workers-{workers}", size, size.keys, workers, f"(c) {size.keys:,} keys in state, W={workers}")


def grow(folder: Path, size: Size, keys: int, workers: int, title: str) -> None:
    """Batches of rows over uniform keys, after one that brings all keys into the state."""
    folder.mkdir(parents=True)
    builds: dict[str, Build] = {
        "Spark's own count": lambda stream, chk: stream.groupBy("key").count(),
        "adaptive": lambda stream, chk: aggregate(stream, "key", {"n": Count()}, workers, plan=Adaptive(chk)),
        "adaptive, merged by Python": lambda stream, chk: aggregate(
            stream, "key", {"n": Count()}, workers, plan=Adaptive(chk), ttl="100 days"
        ),
    }

    def keys_of(turn: int) -> Keys:
        return np.random.default_rng(turn).integers(0, keys, size.rows) if turn else np.arange(keys)

    with local_spark(folder, SETTINGS) as spark:
        seconds = race(spark, folder, builds, "update", size._replace(warm=2, rounds=5), keys_of)
    show(title, seconds, "Spark's own count")


PARTS = {"a": part_a, "r": part_r, "b": part_b, "c": part_c}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--warm", type=int, help="rounds before the first that counts; Java compiles what is hot")
    parser.add_argument("--rows", type=int, help="rows per micro-batch of (a), (r) and (c)")
    parser.add_argument("--sparks", type=int, help="in how many Sparks (a) compares hash and adaptive")
    chosen = parser.parse_args(arguments)
    size = QUICK if chosen.quick else FULL
    asked = {"warm": chosen.warm, "steady_warm": chosen.warm, "rows": chosen.rows, "sparks": chosen.sparks}
    size = size._replace(**{name: value for name, value in asked.items() if value is not None})
    for name in chosen.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            PARTS[name](Path(folder), size)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
