"""Micro-batches of Structured Streaming on a local Spark, side by side; what adapting costs, and what it gains.

(a) Counting: Spark's own count; hash, `mapInArrow` and a merge; the same with a fixed plan and routed adaptively;
    states that Python merges; and one group per key, as users write it today.
(b) Expensive rows (they sleep, on more task threads than cores), Zipf 1.2: time per batch by hash, by random salts,
    adaptively, and the ideal: all workers busy to the end, plus what a batch costs whose rows cost nothing.
(c) Growth with the keys in state, and with the number of workers.

`spark_stream_changes.py` measures how soon a stream is balanced again when its hot keys change.

Every query has a folder of its own. In each round each of them gets one batch, one after the other, so that noise hits
all alike. The time is Spark's own for the batch (`triggerExecution`). Rounds before the first counted one warm up.

    python benchmarks/spark_stream.py [--quick] [--warm ROUNDS] [a] [b] [c]
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StatefulProcessor
from rich.table import Table

from timing import console
from unskew import Plan
from unskew.aggregates import Count
from unskew.spark import Adaptive, aggregate, plan_for, repartition
from unskew.spark.local import local_spark
from unskew.spark.streaming.merging import PROVIDER, ROCKS

W, FILES = 16, 4
SCHEMA = "key bigint, v bigint, round bigint"
ROW_COST = 60e-6  # seconds that an expensive row sleeps
SETTINGS = {
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.streaming.pollingDelay": "500ms",  # queries that have nothing to do stay quiet
    PROVIDER: ROCKS,
}
# What is aimed at; written down before any measurement of this file.
MOST_OVER_HASH = 1.10  # (a) time of the adaptive count over that of hash, mapInArrow and merge
LEAST_GAIN = 3.0  # (a) time of one group per key over that of the states that Python merges
MOST_OF_LOOP = (0.05, 0.250)  # (a) of a batch with a fixed plan, and seconds: what adapting adds
MOST_OVER_IDEAL = 1.10  # (b) time of an adaptive batch over the ideal


class Size(NamedTuple):
    rows: int = 500_000
    keys: int = 20_000
    rounds: int = 5
    slow_rounds: int = 1  # of one group per key, which takes very long
    warm: int = 2  # times still fall for ten more, while Java compiles what is hot
    states: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    workers: tuple[int, ...] = (4, 16, 64)
    sleeping: int = 400_000


FULL = Size()
QUICK = Size(50_000, 2_000, 2, 1, 1, (1_000, 10_000), (4, 16), 100_000)
Build = Callable[[DataFrame, str], DataFrame]  # from a stream and the address of its checkpoint
Sink = Callable[[DataFrame, int], None]


class Query:
    """A running query and its own folder of rows."""

    def __init__(self, spark: SparkSession, folder: Path, build: Build, mode: str, sink: str | Sink = "noop") -> None:
        self._rows, self._number = folder / "rows", 0
        self._rows.mkdir(parents=True)
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES)
        built = build(reader.parquet(f"{self._rows}/*"), str(folder / "checkpoint"))
        writer = built.writeStream.outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
        writer = writer.foreachBatch(sink) if callable(sink) else writer.format(sink)
        self.query = writer.start()

    def take(self, keys: np.ndarray[Any, np.dtype[np.int64]]) -> float:
        """Seconds of a micro-batch with these keys."""
        before = self._batches()
        unfinished = self._rows.parent / "unfinished"
        unfinished.mkdir()
        for part, some in enumerate(np.array_split(keys, FILES)):
            path = unfinished / f"{part}.parquet"
            columns = {"key": some, "v": np.arange(len(some)) + self._number, "round": np.full(len(some), self._number)}
            pq.write_table(pa.table(columns), path)
        os.rename(unfinished, self._rows / f"{self._number:06d}")  # all at once
        self._number += 1
        self.query.processAllAvailable()
        time.sleep(0.3)  # for the listener, whose plan the next batch uses
        return sum(
            p["durationMs"]["triggerExecution"] / 1000 for p in self.query.recentProgress[before:] if p["numInputRows"]
        )

    def _batches(self) -> int:
        return len(self.query.recentProgress)


def zipf(seed: int, rows: int, keys: int, z: float) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Keys by rank."""
    weights = 1.0 / np.arange(1, keys + 1) ** z
    return np.random.default_rng(seed).choice(keys, rows, p=weights / weights.sum()).astype(np.int64)


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
        return lambda stream, chk: aggregate(
            stream,
            "key",
            {"n": Count()},
            W,
            **{**options, **({"plan": Adaptive(chk)} if "plan" not in options else {})},
        )

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


def part_a(folder: Path, size: Size) -> None:
    with local_spark(folder, SETTINGS) as spark:
        sample = spark.createDataFrame(pa.table({"key": zipf(0, 100_000, size.keys, 1.2)}))
        builds = counting(plan_for(sample, "key", W))
        queries = {
            name: Query(spark, folder / str(i), build, "update") for i, (name, build) in enumerate(builds.items())
        }
        seconds: dict[str, list[float]] = {name: [] for name in queries}
        for turn in range(size.warm + size.rounds):
            keys = zipf(turn, size.rows, size.keys, 1.2)
            for name, query in queries.items():
                slow = name.startswith("per key")
                if slow and turn not in range(size.warm - 1, size.warm + size.slow_rounds):  # one round of warm-up
                    continue
                took = query.take(keys)
                if turn >= size.warm:
                    seconds[name].append(took)
                console.print(f"[dim]round {turn}, {name}: {took:.2f} s")
    show(f"(a) {size.rows:,} rows, {size.keys:,} keys per batch, W={W}", seconds, "hash")
    median = {name: statistics.median(times) for name, times in seconds.items()}
    verdict("adaptive / hash", median["adaptive"] / median["hash"], MOST_OVER_HASH)
    share, fixed = MOST_OF_LOOP
    verdict(
        "adaptive less a fixed plan, seconds",
        median["adaptive"] - median["fixed plan"],
        share * median["fixed plan"] + fixed,
    )
    per_key = min(value for name, value in median.items() if name.startswith("per key"))
    verdict("merged by Python / one group per key", median["adaptive, merged by Python"] / per_key, 1 / LEAST_GAIN)


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
        queries = {
            name: Query(spark, folder / str(i), build, "append") for i, (name, build) in enumerate(builds.items())
        }
        seconds: dict[str, list[float]] = {name: [] for name in queries}
        for turn in range(size.warm + size.rounds):
            for name, query in queries.items():
                took = query.take(zipf(turn, size.sleeping, size.keys, 1.2))
                if turn >= size.warm:
                    seconds[name].append(took)
                console.print(f"[dim]round {turn}, {name}: {took:.2f} s")
    ideal = size.sleeping * ROW_COST / W + statistics.median(seconds[free])
    seconds["the ideal"] = [ideal]
    show(f"(b) {size.sleeping:,} rows of {ROW_COST * 1e6:.0f} us, Zipf 1.2, W={W}", seconds, "the ideal")
    verdict("adaptive / the ideal", statistics.median(seconds["adaptive"]) / ideal, MOST_OVER_IDEAL)


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
    with local_spark(folder, SETTINGS) as spark:
        queries = {
            name: Query(spark, folder / str(i), build, "update") for i, (name, build) in enumerate(builds.items())
        }
        seconds: dict[str, list[float]] = {name: [] for name in queries}
        for query in queries.values():
            query.take(np.arange(keys))
        for turn in range(1 + size.rounds):
            some = np.random.default_rng(turn).integers(0, keys, size.rows)
            for name, query in queries.items():
                took = query.take(some)
                if turn:
                    seconds[name].append(took)
    show(title, seconds, "Spark's own count")


def show(title: str, seconds: dict[str, list[float]], baseline: str) -> None:
    table = Table("case", "median s", f"/ {baseline}", "raw seconds", title=title, title_justify="left")
    base = statistics.median(seconds[baseline])
    for name, times in seconds.items():
        median = statistics.median(times)
        table.add_row(name, f"{median:.2f}", f"{median / base:.2f}", " ".join(f"{each:.2f}" for each in times))
    console.print(table)


def verdict(what: str, measured: float, limit: float) -> None:
    console.print(f"{what}: {measured:.3f}, aimed at at most {limit:.3f}: {'held' if measured <= limit else 'MISSED'}")


PARTS = {"a": part_a, "b": part_b, "c": part_c}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--warm", type=int, help="rounds before the first that counts; Java compiles what is hot")
    chosen = parser.parse_args(arguments)
    size = QUICK if chosen.quick else FULL
    if chosen.warm is not None:
        size = size._replace(warm=chosen.warm)
    for name in chosen.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            PARTS[name](Path(folder), size)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
