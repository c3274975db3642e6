"""Partitions that come back, on a cluster of two executors, one of which is slow.

Run as a script, this file is the driver of that cluster and prints a JSON of what it saw.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import InputError, make
from unskew.spark import Feedback, anchors, repartition
from unskew.spark.local import local_spark

ROWS, W, RUNS, SLOW = 8_000, 4, 3, 1
Batches = Iterator[pa.RecordBatch]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[int]]]:
    """Of each run the rows of each worker and the executor that it was on."""
    ran = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path_factory.mktemp("anchors"),  # Spark leaves files where it starts
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    found: list[dict[str, list[int]]] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_partitions_come_back_to_their_executors(runs: list[dict[str, list[int]]]) -> None:
    assert len(runs) == RUNS
    assert all(run["executor"] == runs[0]["executor"] for run in runs)
    assert sorted(runs[0]["executor"]) == [0, 0, 1, 1]


@pytest.mark.slow
def test_the_slow_executor_gets_fewer_rows(runs: list[dict[str, list[int]]]) -> None:
    slow = [sum(n for n, place in zip(run["rows"], run["executor"], strict=True) if place == SLOW) for run in runs]
    assert all(sum(run["rows"]) == ROWS for run in runs)
    assert slow[0] == pytest.approx(ROWS / 2, rel=0.05)
    assert slow[-1] < 0.95 * slow[0]


@pytest.fixture
def refusable(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """Sessions cannot change the setting that anchors need, so here they need another one."""
    monkeypatch.setattr(anchors, "LOCALITY", "spark.sql.ansi.enabled")
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "False")
    yield spark
    spark.conf.set("spark.sql.ansi.enabled", str(before))
    spark.catalog.clearCache()


def placed(df: DataFrame) -> list[str]:
    return sorted(map(str, df.withColumn("partition", F.spark_partition_id()).collect()))


def test_rows_are_where_they_would_be_without_anchors(
    refusable: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also when there are fewer of them than partitions of Spark's own choice, and the cache has been emptied."""
    usual = refusable.range(1000).withColumn("a.b", F.when(F.col("id") % 3 != 0, F.col("id") % 50))  # a third is null
    feedback = Feedback(make("cg", 3), anchored=True)
    for rows in (usual, usual.withColumn("__unskew_anchor", F.lit("mine"))):
        plain = repartition(rows, "a.b", 3, Feedback(make("cg", 3)))
        result = repartition(rows, "a.b", 3, feedback)
        assert result.columns == plain.columns
        assert placed(result) == placed(plain)
        refusable.catalog.clearCache()
        assert placed(result) == placed(plain)
        hinted = repartition(rows.hint("broadcast"), "a.b", 3, feedback)
        assert placed(hinted) == placed(plain)
        hinted.explain()
        assert "BroadcastHashJoin" not in capsys.readouterr().out
    feedback.router.change_workers([0, 1])
    assert len({row.split("partition=")[1] for row in placed(repartition(usual, "a.b", 2, feedback))}) == 2


def test_anchors_are_cached_once_for_all_who_have_as_many_workers(refusable: SparkSession) -> None:
    rows, workers = refusable.range(100), 13  # which no other test has
    cached = set(refusable.sparkContext._jsc.getPersistentRDDs())
    for _ in range(3):
        repartition(rows, "id", workers, Feedback(make("cg", workers), anchored=True)).count()
    assert len(set(refusable.sparkContext._jsc.getPersistentRDDs()) - cached) == 1


def test_a_spark_that_places_tasks_by_their_rows_is_refused(refusable: SparkSession) -> None:
    refusable.conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(InputError, match=r"^anchored: .* started with .*=false$"):
        repartition(refusable.range(9), "id", 7, Feedback(make("cg", 7), anchored=True))


# ---------------------------------------------------------------- on the cluster


def work(batches: Batches) -> Batches:
    """Sleeps for each row, six times as long on the slow executor."""
    context: Any = TaskContext.get()
    executor = int(Path.cwd().name)  # a local cluster gives each executor a folder of its own
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        time.sleep(batch.num_rows * (600e-6 if executor == SLOW else 100e-6))
    yield pa.RecordBatch.from_pydict({"worker": [context.partitionId()], "rows": [rows], "executor": [executor]})


def main(folder: Path) -> list[dict[str, list[int]]]:
    settings = {
        "spark.master": "local-cluster[2,2,1024]",
        "spark.executor.memory": "1g",
        "spark.cores.max": "4",  # this and the next: nothing starts before both executors are there
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # they do not live long
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.shuffle.reduceLocality.enabled": "false",
    }
    found = []
    with local_spark(folder, settings) as spark:
        df = spark.range(ROWS, numPartitions=2).withColumn("key", F.col("id") % 500)
        feedback = Feedback(make("cg", W), anchored=True)
        for _ in range(RUNS):
            placed = repartition(df, "key", W, feedback)
            done = feedback.timed(placed, work, "worker long, rows long, executor long").toArrow()
            feedback.collect()
            found.append(done.sort_by("worker").to_pydict())
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as spark_files:
        print(json.dumps(main(Path(spark_files))))
