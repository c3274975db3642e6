"""`measure_balance` tells how many rows, and how many seconds, each partition really has."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import InputError, Plan
from unskew.spark import Balance, measure_balance, plan_for, repartition

W = 8


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(40_000, numPartitions=2).selectExpr("if(id % 2 = 0, -1, id) key", "id", "map(id, id) m").cache()


def test_achieved_rows_stand_beside_planned_ones(rows: DataFrame) -> None:
    plan = plan_for(rows, "key", W)
    routed = repartition(rows, "key", W, plan=plan, deal="position")
    found = measure_balance(routed, plan)
    counted = {row["w"]: row["count"] for row in routed.groupBy(F.spark_partition_id().alias("w")).count().collect()}
    assert found.rows == tuple(counted[w] for w in range(W))
    assert found.planned == tuple(40_000 * share for share in plan.predicted_load)
    assert found.max_over_mean == max(found.rows) / 5000
    assert found.planned_max_over_mean == pytest.approx(plan.predicted_max_over_mean)
    assert found.seconds == ()
    assert "That is more than planned" not in found.verdict


def test_what_went_wrong_is_said(rows: DataFrame) -> None:
    plan = plan_for(rows, "key", W)
    found = measure_balance(rows.repartition(W, "key"), plan)
    assert found.verdict.startswith(
        f"The busiest of 8 workers has {found.max_over_mean:.2f} times the mean of the rows; "
    )
    assert "That is more than planned" in found.verdict


def test_partitions_without_rows_count(spark: SparkSession) -> None:
    found = measure_balance(spark.range(10).select(F.lit(1).alias("k")).repartition(5, "k"))
    assert sorted(found.rows) == [0, 0, 0, 0, 10]
    assert found.max_over_mean == 5
    assert measure_balance(spark.range(0).repartition(3, "id")).max_over_mean == 1


def test_seconds_are_those_of_the_work_since_the_shuffle(rows: DataFrame) -> None:
    def slow(batches: Any) -> Any:
        from pyspark import TaskContext

        for batch in batches:
            time.sleep(3.0 if TaskContext.get().partitionId() == 2 else 0.0)
            yield batch.select(["id"])

    worked = rows.drop("m").repartition(4, "key").mapInArrow(slow, "id bigint")
    found = measure_balance(worked, timed=True)
    assert found.seconds.index(max(found.seconds)) == 2
    assert "The slowest takes" in found.verdict
    twice = rows.toDF("key", "x", "x")
    assert sum(measure_balance(twice, timed=True).rows) == 40_000


def test_it_prints_and_is_json() -> None:
    few = Balance((5, 9, 1), (5.0, 5.0, 5.0), (0.5, 0.9, 0.1))
    lines = str(few).splitlines()
    assert lines[0].startswith(
        "The busiest of 3 workers has 1.80 times the mean of the rows; 1.00 were planned. The slow"
    )
    assert [line.split()[:4] for line in lines[-3:]] == [
        ["1", "9", "5", "0.90"],
        ["0", "5", "5", "0.50"],
        ["2", "1", "5", "0.10"],
    ]
    assert json.loads(json.dumps(few.to_dict()))["rows"] == [5, 9, 1]
    many = str(Balance(tuple(range(1000))))
    assert "(980 more)" in many
    assert len(many.splitlines()) < 30
    assert "<pre" in few._repr_html_()


def test_it_is_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    Balance((5, 9, 1), (5.0, 5.0, 5.0), (0.5, 0.9, 0.1)).plot(tmp_path / "balance.svg")
    drawn = (tmp_path / "balance.svg").read_text()
    assert "<svg" in drawn
    Balance((5, 9, 1)).plot(str(tmp_path / "rows.png"))
    with pytest.raises(InputError, match=r"must end in one of \.png, \.svg, \.pdf"):
        Balance((1,)).plot("balance.txt")
    with pytest.raises(InputError, match=r"^path: .*nowhere.* cannot be written: No such file or directory$"):
        Balance((1,)).plot(tmp_path / "nowhere" / "rows.png")


def test_what_cannot_be_counted(spark: SparkSession, rows: DataFrame) -> None:
    with pytest.raises(InputError, match=r"^df: is a stream, whose rows cannot be counted; "):
        measure_balance(spark.readStream.format("rate").load())
    with pytest.raises(InputError, match=r"^df: must be a Spark DataFrame, not NoneType$"):
        measure_balance(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^plan: must be a Plan, such as Plan.load\('plan.json'\), not str$"):
        measure_balance(rows, "plan.json")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^plan: is for 3 workers, and df has 2 partitions$"):
        measure_balance(rows.repartition(2, "key"), Plan("fanout", 3))
