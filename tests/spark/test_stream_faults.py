"""Streams whose processes die: results stay exact. And one that runs for long.

Run as a script, this file is the driver of a query that counts words, from a checkpoint, until all files are read; the
queries are those in `QUERIES`.
"""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from streams import records, words

from unskew import make
from unskew.aggregates import Aggregate, Count, Sum, TopK
from unskew.spark import PROVIDER, ROCKS, Adaptive, Conversation, Feedback, aggregate

SCHEMA, W, ROWS = "word string, v bigint", 4, 2_000
PATIENCE = 600.0  # seconds


def counts_in(folder: Path) -> dict[str, tuple[int, int]]:
    """The last result of each word in what the driver wrote: a folder per batch."""
    found: dict[str, tuple[int, int]] = {}
    for batch in sorted((folder / "results").iterdir(), key=lambda path: int(path.name)):
        for row in pq.read_table(batch).to_pylist():
            found[row["word"]] = (row["n"], row["total"])
    return found


def expected_in(folder: Path) -> dict[str, tuple[int, int]]:
    rows = pq.read_table(folder / "rows").group_by("word").aggregate([("v", "count"), ("v", "sum")]).to_pylist()
    return {row["word"]: (row["v_count"], row["v_sum"]) for row in rows}


@contextmanager
def driver_of(folder: Path, master: str, query: str = "native", soak: float = 0.0) -> Iterator[subprocess.Popen[bytes]]:
    """A driver, which is killed in the end if it still runs, with its JVM and all workers."""
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    with (folder / "log.txt").open("ab") as log:
        driver = subprocess.Popen(
            [sys.executable, __file__, str(folder), master, query, str(soak)],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,  # so that the JVM and its workers can be killed with it
        )
    try:
        yield driver
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()


def run_to_the_end(folder: Path, master: str, query: str = "native", soak: float = 0.0) -> None:
    with driver_of(folder, master, query, soak) as driver:
        end(driver, folder, soak)


def end(driver: subprocess.Popen[bytes], folder: Path, soak: float = 0.0) -> None:
    """Wait for the end of a driver that succeeds."""
    assert driver.wait(soak + PATIENCE) == 0, (folder / "log.txt").read_text()[-5000:]


def wait_for_commits(driver: subprocess.Popen[bytes], folder: Path, number: int) -> None:
    """Wait until so many batches are committed, or the driver is done."""
    until = time.monotonic() + PATIENCE
    while commits(folder) < number and driver.poll() is None:
        assert time.monotonic() < until, (folder / "log.txt").read_text()[-5000:]
        time.sleep(0.02)


def commits(folder: Path) -> int:
    return len([path for path in (folder / "checkpoint/commits").glob("*") if path.name.isdigit()])


LEFT = {"listening": "route/gathered/*.json", "conversing": "conversation/schemes/*/halves/*"}  # so it went on


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("query", "kills"), [("native", 1), ("native", 10), ("python", 3), ("listening", 3), ("conversing", 3)]
)
def test_a_driver_that_is_killed_again_and_again_still_counts_exactly(tmp_path: Path, query: str, kills: int) -> None:
    chance = random.Random(kills)
    (tmp_path / "rows").mkdir()
    for batch in range(3 * kills + 2):
        pq.write_table(words(batch, ROWS, shift=batch // 3), tmp_path / "rows" / f"{batch:03d}.parquet")
    killed = 0
    while killed < kills:
        before = commits(tmp_path)
        with driver_of(tmp_path, "local[2]", query) as driver:
            wait_for_commits(driver, tmp_path, before + 1)
            time.sleep(chance.uniform(0.0, 1.0))
            assert driver.poll() is None, "it was done before it could be killed"
        killed += 1
    run_to_the_end(tmp_path, "local[2]", query)
    assert counts_in(tmp_path) == expected_in(tmp_path)
    assert commits(tmp_path) > 2 * kills  # a batch that was cut short may be one with the next
    assert list((tmp_path / "checkpoint/unskew").glob(LEFT.get(query, "route/batches/*.json")))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("where", ["before the workers", "at the last worker"])
def test_an_executor_that_dies_in_mid_stream_changes_no_count(tmp_path: Path, where: str) -> None:
    """While hot keys are dealt by a plan. At the last worker, the others are done and have told what they had."""
    (tmp_path / "rows").mkdir()
    for batch in range(8):
        pq.write_table(words(batch, ROWS), tmp_path / "rows" / f"{batch:03d}.parquet")
    with driver_of(tmp_path, "local-cluster[2,1,1024]", where) as driver:
        wait_for_commits(driver, tmp_path, 2)
        (tmp_path / "kill").touch()
        end(driver, tmp_path)
    assert not (tmp_path / "kill").exists()
    assert counts_in(tmp_path) == expected_in(tmp_path)
    found = records(tmp_path / "checkpoint")
    assert [sum(record["load"]) for record in found] == [ROWS] * 8  # nobody told twice
    assert all(record["hot_keys"] for record in found[2:])


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_twenty_minutes_of_small_batches_take_no_more_memory_and_no_more_files(tmp_path: Path) -> None:
    """Of the driver, the JVM and the Python workers together; means of the second and of the last quarter."""
    (tmp_path / "rows").mkdir()
    seconds = float(os.environ.get("UNSKEW_SOAK_SECONDS", "1200"))
    run_to_the_end(tmp_path, "local[2]", soak=seconds)
    samples = json.loads((tmp_path / "samples.json").read_text())
    quarter = len(samples) // 4
    print(f"{commits(tmp_path)} commits kept; every tenth sample: {samples[:: max(1, len(samples) // 10)]}")
    for what in ("driver", "jvm", "workers", "files"):
        second, last = (
            statistics.mean(sample[what] for sample in part)
            for part in (samples[quarter : 2 * quarter], samples[-quarter:])
        )
        assert last <= 1.2 * second + (30 if what != "files" else 20), (what, second, last)
    assert max(sample["ours"] for sample in samples) <= 100 + 10 + 5  # records, plans, and one of each other kind


# ---------------------------------------------------------------- the driver


def kill_executor(marker: Path) -> None:
    """Kill the executor of this task if the marker is there, which is then taken away."""
    if marker.exists():
        marker.unlink()
        daemon = os.getppid()
        executor = int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(daemon)]))
        os.kill(executor, signal.SIGKILL)


def killing(marker: Path) -> Callable[[Any], Any]:
    """A function that passes rows on, and kills its executor."""

    def work(batches: Any) -> Any:
        for batch in batches:
            if batch.num_rows:
                kill_executor(marker)
            yield batch

    return work


class Killing(Aggregate):
    """The number of rows; kills the executor of the last worker."""

    columns = ("word",)
    type = pa.int64()

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def zero(self) -> Any:
        return 0

    def add(self, state: Any, batch: pa.RecordBatch) -> Any:
        task = TaskContext.get()
        assert task is not None
        if task.partitionId() == W - 1:
            kill_executor(self.marker)
        return state + batch.num_rows

    def merge(self, a: Any, b: Any) -> Any:
        return a + b

    def finish(self, state: Any) -> Any:
        return state


def counting(folder: Path, rows: DataFrame, more: Mapping[str, Aggregate], **options: Any) -> DataFrame:
    results = {"n": Count(), "total": Sum("v"), **more}
    return aggregate(rows, "word", results, W, plan=Adaptive(folder / "checkpoint"), **options)


def conversing(folder: Path, rows: DataFrame) -> DataFrame:
    """The counts of rows that went through the workers of `posg`."""
    talk = Conversation(make("posg", W, window=64))
    worked = talk.map(rows, "word", lambda batches: batches, SCHEMA, cost="1", checkpoint=folder / "checkpoint")
    return worked.groupBy("word").agg(F.count("v").alias("n"), F.sum("v").alias("total"))


QUERIES: dict[str, Callable[[Path, DataFrame], DataFrame]] = {
    "native": lambda folder, rows: counting(folder, rows, {}),
    "python": lambda folder, rows: counting(folder, rows, {"top": TopK("v")}),
    "listening": lambda folder, rows: counting(folder, rows, {}, scheme=Feedback(make("cg", W))),
    "conversing": conversing,
    "before the workers": lambda folder, rows: counting(folder, rows.mapInArrow(killing(folder / "kill"), SCHEMA), {}),
    "at the last worker": lambda folder, rows: counting(folder, rows, {"rows": Killing(folder / "kill")}),
}


def descendants(process: int) -> dict[int, str]:
    """Command lines of all processes that come from this one, by their numbers."""
    lines = subprocess.check_output(["ps", "-eo", "pid=,ppid=,args="], text=True).splitlines()
    rows = [line.split(None, 2) for line in lines]
    found: dict[int, str] = {process: ""}
    for _ in range(5):  # generations
        found |= {int(pid): args for pid, parent, args in rows if int(parent) in found}
    return found


def megabytes(process: int) -> float:
    """What a process has in memory; 0 if it is gone."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def soak(folder: Path, query: Any, seconds: float) -> None:
    """Feed small files one by one for so long, and take samples."""
    samples, until, number, checkpoint = [], time.monotonic() + seconds, 0, folder / "checkpoint"
    while time.monotonic() < until:
        if number >= 20:
            (folder / "rows" / f"{number - 20:06d}.parquet").unlink()
        pq.write_table(words(number, 300, shift=number // 50), folder / "unfinished")
        (folder / "unfinished").rename(folder / "rows" / f"{number:06d}.parquet")
        number += 1
        query.processAllAvailable()
        if number % 10 == 0:
            running = descendants(os.getpid())
            jvm = [pid for pid, args in running.items() if "org.apache.spark.deploy.SparkSubmit" in args]
            workers = [pid for pid, args in running.items() if "pyspark.worker" in args]
            files, ours = (
                sum(len(names) for _, _, names in os.walk(each)) for each in (checkpoint, checkpoint / "unskew")
            )
            samples.append(
                {
                    "batch": number,
                    "driver": megabytes(os.getpid()),
                    "jvm": sum(map(megabytes, jvm)),
                    "workers": sum(map(megabytes, workers)),
                    "files": files,
                    "ours": ours,
                }
            )
    (folder / "samples.json").write_text(json.dumps(samples))


def main(folder: Path, master: str, how: str, seconds: float) -> None:
    settings = {
        **({PROVIDER: ROCKS} if how in ("python", "at the last worker") else {}),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": folder / "spark",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.sql.shuffle.partitions": 2,
        "spark.executor.memory": "1g",
        "spark.driver.memory": "1g",
        "spark.shuffle.io.maxRetries": 1,
        "spark.shuffle.io.retryWait": "100ms",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # it does not live long
    }
    if seconds:
        settings |= {
            "spark.sql.streaming.minBatchesToRetain": 10,
            "spark.sql.streaming.fileSource.log.cleanupDelay": "10s",  # by default Spark keeps its own for ten minutes
            "spark.sql.streaming.stateStore.maintenanceInterval": "10s",  # or it keeps all states of a minute
            "spark.driver.memory": "600m",
        }
    builder = SparkSession.builder.master(master).config(map={name: str(value) for name, value in settings.items()})
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
    counted = QUERIES[how](folder, rows)

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(folder / "results" / str(number)))  # again if the batch runs again

    writer = counted.writeStream.outputMode("update").option("checkpointLocation", str(folder / "checkpoint"))
    if seconds:
        query = writer.format("noop").start()
        soak(folder, query, seconds)
        query.stop()
    else:
        writer.foreachBatch(write).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]))
