"""Micro-batches of several streaming queries, timed side by side.

Every query has a folder of its own. In each round each of them gets one batch, one after the other, so that noise hits
all alike; each round begins with another one. The time is Spark's own for the batch (`triggerExecution`). Rounds before
the first counted one warm up.
"""

import os
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from rich.table import Table

from spark_sockets import UNIX_SOCKETS
from timing import console
from unskew.spark.streaming.merging import PROVIDER, ROCKS

W, FILES = 16, 4
SCHEMA = "key bigint, v bigint, round bigint"
SETTINGS = {
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.streaming.pollingDelay": "500ms",  # queries that have nothing to do stay quiet
    PROVIDER: ROCKS,
    # By default Spark keeps 100 pieces of compiled code, enough for one query. Side by side, queries would push each
    # other's out, and each batch would be compiled anew.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # By default some tasks wait 40 ms for an acknowledgement, by chance (see `spark_sockets.py`): more than what is
    # compared here.
    **UNIX_SOCKETS,
}
Keys = np.ndarray[Any, np.dtype[np.int64]]
Seconds = dict[str, list[float]]  # of the batches of each query
Build = Callable[[DataFrame, str], DataFrame]  # from a stream and the address of its checkpoint


class Size(NamedTuple):
    rows: int = 500_000
    keys: int = 20_000
    rounds: int = 9
    slow_rounds: int = 1  # of one group per key, which takes very long
    warm: int = 16  # times fall fast for so long, while Java compiles what is hot
    states: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    workers: tuple[int, ...] = (4, 16, 64)
    sleeping: int = 400_000
    sparks: int = 3  # in which hash and adaptive are compared: Java compiles each otherwise, which is worth 5 % or more
    steady_warm: int = 60  # there: times fall a little for so long, and a query runs for hours
    steady_rounds: int = 15


class Query:
    """A running query and its own folder of rows."""

    def __init__(self, spark: SparkSession, folder: Path, build: Build, mode: str) -> None:
        self._rows, self._number = folder / "rows", 0
        self._rows.mkdir(parents=True)
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES)
        built = build(reader.parquet(f"{self._rows}/*"), str(folder / "checkpoint"))
        writer = built.writeStream.outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
        self.query = writer.format("noop").start()

    def take(self, keys: Keys) -> float:
        """Seconds of a micro-batch with these keys; with a watermark, of the batch after it, which ends windows."""
        unfinished = self._rows.parent / "unfinished"
        unfinished.mkdir()
        for part, some in enumerate(np.array_split(keys, FILES)):
            path = unfinished / f"{part}.parquet"
            columns = {"key": some, "v": np.arange(len(some)) + self._number, "round": np.full(len(some), self._number)}
            pq.write_table(pa.table(columns), path, use_dictionary=["key", "round"])  # as Spark would write them
        arrived = self._rows / f"{self._number:06d}"
        os.rename(unfinished, arrived)  # all at once
        self.query.processAllAvailable()
        time.sleep(0.3)  # for the listener, whose plan the next batch uses
        shutil.rmtree(arrived)  # Spark lists more than 32 folders by a job, also while other queries are timed
        progress = self.query.lastProgress  # all of `recentProgress` would be converted anew each time, by Java
        assert progress is not None
        self._number += 1
        return float(progress["durationMs"]["triggerExecution"]) / 1000


def zipf(seed: int, rows: int, keys: int, z: float) -> Keys:
    """Keys by rank."""
    weights = 1.0 / np.arange(1, keys + 1) ** z
    return np.random.default_rng(seed).choice(keys, rows, p=weights / weights.sum()).astype(np.int64)


def race(
    spark: SparkSession, folder: Path, builds: dict[str, Build], mode: str, size: Size, keys_of: Callable[[int], Keys]
) -> Seconds:
    """The seconds of each query in the rounds that count. One group per key takes part in few of them."""
    queries = {name: Query(spark, folder / str(i), build, mode) for i, (name, build) in enumerate(builds.items())}
    seconds: Seconds = {name: [] for name in queries}
    for turn in range(size.warm + size.rounds):
        keys, names = keys_of(turn), list(queries)
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            slow = name.startswith("per key")
            if slow and turn not in range(size.warm - 1, size.warm + size.slow_rounds):  # one round of warm-up
                continue
            took = queries[name].take(keys)
            if turn >= size.warm:
                seconds[name].append(took)
            console.print(f"[dim]round {turn}, {name}: {took:.2f} s")
    for query in queries.values():
        query.query.stop()
    return seconds


def medians(seconds: Seconds) -> dict[str, float]:
    return {name: statistics.median(times) for name, times in seconds.items()}


def show(title: str, seconds: Seconds, baseline: str) -> None:
    table = Table("case", "median s", f"/ {baseline}", "raw seconds", title=title, title_justify="left")
    for name, median in medians(seconds).items():
        ratio = median / statistics.median(seconds[baseline])
        table.add_row(name, f"{median:.2f}", f"{ratio:.2f}", " ".join(f"{each:.2f}" for each in seconds[name]))
    console.print(table)


def verdict(what: str, measured: float, limit: float) -> None:
    console.print(f"{what}: {measured:.3f}, aimed at at most {limit:.3f}: {'held' if measured <= limit else 'MISSED'}")
