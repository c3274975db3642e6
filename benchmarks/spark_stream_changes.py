"""Streams whose hot keys change: how many micro-batches until the workers are balanced again, by scheme.

(d) Every scheme that works on streams, in every mode: Zipf 1.0; from batch 3 on a new key has a tenth of all rows, in
    batch 6 all keys are ranked anew. Keys may be split.
(e) Keys that must not be split, in windows (`apply_whole`): Zipf 0.8; from window 3 on a new key has a twentieth of all
    rows, in window 6 all keys are ranked anew. The busiest worker is compared with what it must have at least: the
    mean, or the hottest key.

Batches are counted until the first that is balanced: 0 means that the change did no harm, 1 that one batch was uneven.
Each plan is waited for before the next batch comes, and all numbers are counts of rows: no clock changes them.

    python benchmarks/spark_stream_changes.py [--quick] [--only SCHEME] [d] [e]
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rich.table import Table

from micro_batches import SETTINGS, Build, Query, W, zipf
from timing import console
from unskew import SCHEMES, Hash, Router, key_ids
from unskew.batch_records import read_records
from unskew.partitioning import ALGORITHMS
from unskew.partitioning.function import PLANNER
from unskew.spark import Adaptive, apply_whole, repartition
from unskew.spark.local import local_spark

BALANCED = 1.2  # max/mean, or over what it must be, from which on a batch counts as balanced; written down beforehand
HOT, ANEW, BATCHES = 3, 6, 9
PATIENCE = 120.0  # seconds
ROWS, KEYS = {True: 20_000, False: 100_000}, {True: 2_000, False: 20_000}  # by --quick
Keys = np.ndarray[Any, np.dtype[np.int64]]


def changing(batch: int, quick: bool, z: float, share: float) -> Keys:
    """The keys of a micro-batch."""
    keys = zipf(batch, ROWS[quick], KEYS[quick], z)
    if batch >= HOT:
        keys[np.random.default_rng(batch).random(len(keys)) < share] = KEYS[quick] + 1
    return 2 * KEYS[quick] - keys if batch >= ANEW else keys


def until_balanced(uneven: list[float]) -> str:
    """How many batches were uneven before the first even one."""
    return next((str(i) for i, each in enumerate(uneven) if each <= BALANCED), "-")


def add_line(table: Table, uneven: list[float], *cells: str) -> None:
    after = [until_balanced(part) for part in (uneven[:HOT], uneven[HOT:ANEW], uneven[ANEW:])]
    line = " ".join(f"{each:.2f}" for each in uneven)
    table.add_row(*cells, line, *after)
    console.print(f"[dim]{', '.join(cells)}: {line}")


def run(spark: SparkSession, folder: Path, build: Build, batches: list[Keys], late: int = 0) -> list[tuple[int, ...]]:
    """The rows of each worker in each micro-batch, or window; its rows are placed so many batches later."""
    query, checkpoint = Query(spark, folder, build, "append"), folder / "checkpoint"
    for number, keys in enumerate(batches):
        query.take(keys)
        until = time.monotonic() + PATIENCE
        while len(read_records(checkpoint, "route")) < number + 1 - late and time.monotonic() < until:
            time.sleep(0.1)
    query.query.stop()
    return [record.load for record in read_records(checkpoint, "route")]


def part_d(folder: Path, quick: bool, only: str | None = None) -> Table:
    heads = ("max/mean by batch", "from the start", "new hot key", "ranked anew")
    table = Table("scheme", "mode", *heads, title=f"(d) {ROWS[quick]:,} rows per batch, W={W}")
    names = [(name, mode) for name, entry in SCHEMES.items() for mode in entry.modes if only in (None, name)]
    batches = [changing(batch, quick, 1.0, 0.1) for batch in range(BATCHES)]
    with local_spark(folder, SETTINGS) as spark:
        for number, (name, mode) in enumerate(names):

            def build(stream: DataFrame, chk: str, name: str = name, mode: str = mode) -> DataFrame:
                return repartition(stream, "key", W, name, mode=mode, plan=Adaptive(chk))

            loads = run(spark, folder / str(number), build, batches)
            add_line(table, [max(load) * W / sum(load) for load in loads], name, mode)
    return table


def count_rows(rows: pa.Table) -> pa.Table:
    return pa.table({"n": [len(rows)]})


def part_e(folder: Path, quick: bool, only: str | None = None) -> Table:
    heads = ("max/least possible by window", "from the start", "new hot key", "ranked anew")
    table = Table("placed", *heads, title=f"(e) {ROWS[quick]:,} rows per window, whole keys, W={W}")
    batches = [changing(batch, quick, 0.8, 0.05) for batch in range(BATCHES)]
    least = [max(len(keys) / W, float(np.unique(keys, return_counts=True)[1].max())) for keys in batches]
    by_hash = [np.bincount(Router(Hash(W)).route(key_ids(keys)), minlength=W).max() for keys in batches]
    add_line(table, [most / must for most, must in zip(by_hash, least, strict=True)], "hash")
    with local_spark(folder, SETTINGS) as spark:
        for name in (each for each in (PLANNER, *ALGORITHMS) if only in (None, each)):

            def build(stream: DataFrame, chk: str, name: str = name) -> DataFrame:
                windows = {"time": "ts", "window": "1 minute", "watermark": "0 seconds"}
                timed = stream.withColumn("ts", F.timestamp_seconds(F.col("round") * 60))
                scheme = None if name == PLANNER else name
                return apply_whole(
                    timed, "key", count_rows, "key bigint, n bigint", W, scheme, plan=Adaptive(chk), **windows
                )

            last = batches[-1][:1]  # ends the window before it
            loads = run(spark, folder / name, build, [*batches, last], late=1)
            add_line(table, [max(load) / must for load, must in zip(loads, least, strict=True)], name)
    return table


PARTS = {"d": part_d, "e": part_e}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="one scheme")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    chosen = parser.parse_args(arguments)
    for name in chosen.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            console.print(PARTS[name](Path(folder), chosen.quick, chosen.only))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
