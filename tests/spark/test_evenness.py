"""Rows that are equal are not left on one worker: dealing by content is checked where the keys are counted."""

import warnings

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import Plan
from unskew.spark import measure_balance, plan_for, repartition
from unskew.spark.dealing import dealing
from unskew.spark.evenness import looks_uneven

W = 16


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """40,000 rows; one key has half of them. Columns of 1, 3, 100 and 40,000 values."""
    values = [f"id % {n} of_{n}" for n in (1, 3, 100, 40_000)]
    return spark.range(40_000, numPartitions=2).selectExpr("if(id % 2 = 0, -1, id % 1999) key", *values).cache()


@pytest.mark.parametrize("column", ["of_3", *(pytest.param(n, marks=pytest.mark.slow) for n in ("of_1", "of_100"))])
def test_rows_with_few_contents_are_dealt_by_position(rows: DataFrame, column: str) -> None:
    few = rows.select("key", column)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measure_balance(repartition(few, "key", W)).max_over_mean < 1.1
    with pytest.warns(
        UserWarning, match=r"^deal: by content the busiest worker gets \d\.\d\d times the mean, by pos"
    ) as w:
        uneven = repartition(few, "key", W, deal="content")
    assert w[0].filename == __file__
    found = measure_balance(uneven).max_over_mean
    assert found > 1.2
    assert f"gets {found:.2f} times" in str(w[0].message)


def test_only_what_is_dealt_by_position_warns_without_the_retry_net(spark: SparkSession, rows: DataFrame) -> None:
    few, setting = rows.select("key", "of_3"), "spark.sql.shuffle.orderIndependentChecksum.enabled"
    spark.conf.set(setting, "false")
    try:
        with pytest.warns(UserWarning, match="^deal: ") as by_content:
            repartition(few, "key", W, deal="content")
        with pytest.warns(UserWarning, match=setting) as by_position:
            repartition(few, "key", W)
    finally:
        spark.conf.unset(setting)
    assert [str(warning.message).split(":")[0] for warning in by_content] == ["deal"]
    assert [str(warning.message).split(":")[0] for warning in by_position] == [setting]


def test_keys_that_come_in_a_rhythm_are_even_by_position(spark: SparkSession) -> None:
    rhythm = spark.range(8000, numPartitions=2).selectExpr("id % 2 key")
    assert measure_balance(repartition(rhythm, "key", 8)).max_over_mean < 1.2


def test_a_column_with_few_values_is_warned_about(rows: DataFrame) -> None:
    with pytest.warns(
        UserWarning, match=r"^deal: by of_3 the busiest worker gets .*; use deal='position', or name a co"
    ):
        repartition(rows, "key", W, deal="of_3")


@pytest.mark.slow
def test_contents_that_differ_enough_stay_as_they_are(rows: DataFrame) -> None:
    plan = plan_for(rows, "key", W)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        routed = repartition(rows, "key", W)
    assert measure_balance(routed).rows == measure_balance(repartition(rows, "key", W, plan=plan, deal="content")).rows
    assert not looks_uneven([F.col("key")], plan, dealing(rows, ["key"], "of_40000"))
    assert looks_uneven([F.col("key")], plan, dealing(rows, ["key"], "of_100"))
    assert not looks_uneven([F.col("key")], Plan("fanout", W), dealing(rows, ["key"], "of_1"))


def test_with_a_plan_nothing_is_counted_so_nothing_is_noticed(rows: DataFrame) -> None:
    few = rows.select("key", "of_1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        routed = repartition(few, "key", W, plan=plan_for(few, "key", W))
    assert measure_balance(routed).max_over_mean > 5


@pytest.mark.slow
def test_large_plans_are_checked_too(rows: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unskew.spark.plan_column.MOST_CONSTANTS", 1)
    assert measure_balance(repartition(rows.select("key", "of_1"), "key", W)).max_over_mean < 1.1
