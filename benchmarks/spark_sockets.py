"""Small tasks of Python on a local Spark: what they wait for, and what spares them that.

Rows go to Python and back through a socket. By default Spark writes 64 KB at a time. Linux holds back the last piece of
a message until what came before is acknowledged, and acknowledges small pieces 40 ms late (Nagle's algorithm, delayed
acknowledgements). So many tasks wait 40 ms, with an idle core. And after each task, Spark collects garbage, for which
Python goes through all that is loaded.

Each case is a Spark of its own, since these are settings of a process; they are run in turn, several times. The
function reads its rows and puts out as many bytes as asked for.

    python benchmarks/spark_sockets.py [--quick]
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from rich.table import Table

from timing import console
from unskew.spark.local import local_spark
from unskew.spark.mapping import map_in_arrow

TASKS = 16
SIZES = ((1_000, 8), (31_000, 8), (31_000, 80_000))  # rows in, bytes out
UNIX_SOCKETS = {"spark.python.unix.domain.socket.enabled": "true"}
Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def as_users_call(df: DataFrame, function: Function, schema: str) -> DataFrame:
    return df.mapInArrow(function, schema)


CASES: dict[str, tuple[dict[str, str], Callable[[DataFrame, Function, str], DataFrame]]] = {
    "Spark's defaults": ({}, as_users_call),
    "buffers of 1 MB": ({"spark.buffer.size": str(2**20)}, as_users_call),
    "unix domain sockets": (UNIX_SOCKETS, as_users_call),
    "unix domain sockets, as unskew calls functions": (UNIX_SOCKETS, map_in_arrow),
}


def reading(bytes_out: int) -> Function:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.record_batch({"x": np.zeros(bytes_out // 8, np.int64)})

    return read


def times_of(case: str, rounds: int) -> list[float]:
    """Median seconds of a stage of such tasks, for each size."""
    settings, call = CASES[case]
    found = []
    with tempfile.TemporaryDirectory() as folder, local_spark(Path(folder), settings) as spark:
        for rows, bytes_out in SIZES:
            df = spark.range(0, TASKS * rows, 1, TASKS).cache()
            df.count()
            stage = call(df, reading(bytes_out), "x bigint")
            times = []
            for _ in range(2 * rounds):  # half of them warm up
                began = time.perf_counter()
                stage.write.format("noop").mode("overwrite").save()
                times.append(time.perf_counter() - began)
            found.append(statistics.median(times[rounds:]))
    return found


def main(arguments: list[str] | None = None) -> None:
    sparks, rounds = (1, 2) if "--quick" in (arguments or []) else (3, 9)
    seconds: dict[str, list[list[float]]] = {case: [] for case in CASES}
    for _ in range(sparks):
        for case in CASES:
            seconds[case].append(times_of(case, rounds))
    titles = [f"{rows:,} rows in, {size:,} bytes out" for rows, size in SIZES]
    table = Table("case", *titles, title=f"{TASKS} tasks: median s, / Spark's defaults (raw)", title_justify="left")
    for case, times in seconds.items():
        cells = []
        for each, default in zip(zip(*times, strict=True), zip(*seconds["Spark's defaults"], strict=True), strict=True):
            median, raw = statistics.median(each), " ".join(f"{one:.2f}" for one in each)
            cells.append(f"{median:.2f}, {median / statistics.median(default):.2f} ({raw})")
        table.add_row(case, *cells)
    console.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
