"""Counting with decay: recent rows count more, as in FISH's epochs."""

from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import InputError, candidate, key_ids
from unskew.plan import Plan
from unskew.spark import Decay, plan_for, repartition
from unskew.spark.counting import MOST_COUNTERS, count_keys, count_keys_with_decay

W = 4


@pytest.fixture(scope="module")
def drifting(spark: SparkSession) -> DataFrame:
    """Ten hours: "old" has 1,000 rows in each of the first nine, "new" 500 in the last, other keys one each. `day` has
    a day for each hour."""
    hours = [*np.repeat(np.arange(9), 1000), *[9] * 500, *np.arange(500) % 10]
    keys = [*["old"] * 9000, *["new"] * 500, *(f"rare-{i}" for i in range(500))]
    start = datetime(2026, 1, 1)
    table = pa.table({"key": keys, "hour": pa.array([float(h) for h in hours])})
    df = spark.createDataFrame(table)
    seconds = F.expr("make_interval(0, 0, 0, 0, cast(hour as int), 30)")
    day = F.date_add(F.lit(date(2026, 1, 1)), F.col("hour").cast("int"))
    return df.withColumn("ts", F.lit(start) + seconds).withColumn("day", day).cache()


def shares(df: DataFrame, decay: Decay) -> dict[str, float]:
    frequencies = count_keys_with_decay(df, "key", W, decay)
    names = {int(i): name for i, name in zip(key_ids(pa.array(["old", "new"])), ["old", "new"], strict=True)}
    found = zip(frequencies.key_ids.tolist(), frequencies.counts.tolist(), strict=True)
    return {names[i]: count / frequencies.tuples for i, count in found if i in names}


@pytest.mark.parametrize("workers", [1, 7, 300])
def test_what_all_keys_do_to_their_homes_is_counted(drifting: DataFrame, workers: int) -> None:
    keys = drifting.select("key").toArrow()["key"]
    home = [int(candidate(key, 0, workers)) for key in key_ids(keys)]
    expected = np.bincount(home, minlength=workers).tolist()
    assert count_keys(drifting, "key", workers).home_load.tolist() == expected
    in_thousandths = count_keys_with_decay(drifting, "key", workers, Decay("hour", 1, alpha=1)).home_load
    assert (in_thousandths / 1000).tolist() == expected
    assert count_keys(drifting, "key", MOST_COUNTERS + 1).home_load is None


def test_a_plan_evens_out_keys_too_rare_to_be_measured(spark: SparkSession) -> None:
    """4,000 keys with 100 rows each, on 40 workers: 100 keys each, give or take 10. None is hot; half are measured."""
    df = spark.range(400_000).select((F.col("id") % 4_000).alias("k"), F.col("id").alias("v"))
    rows = [
        repartition(df, "k", 40, plan=plan).groupBy(F.spark_partition_id()).count() for plan in (None, Plan("hash", 40))
    ]
    planned, hashed = ([row["count"] for row in each.collect()] for each in rows)
    assert max(planned) / 10_000 <= 1.01 < 1.1 < max(hashed) / 10_000


@pytest.mark.parametrize("by", ["hour", "ts"])
@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0])
def test_an_epochs_rows_count_alpha_times_as_much_in_the_next(drifting: DataFrame, by: str, alpha: float) -> None:
    epoch = 1 if by == "hour" else 3600
    weights = [alpha**age for age in range(10)]
    old, new, rare = 1000 * sum(weights[1:]), 500 * weights[0], 50 * sum(weights)
    found = shares(drifting, Decay(by, epoch, alpha))
    assert found["new"] == pytest.approx(new / (old + new + rare), rel=1e-3)
    assert found.get("old", 0.0) == pytest.approx(old / (old + new + rare), rel=1e-3)


def test_the_plan_is_for_what_is_hot_now(drifting: DataFrame) -> None:
    assert plan_for(drifting, "key", W).hot_keys[0].key == "old"
    assert plan_for(drifting, "key", W, decay=Decay("ts", 3600)).hot_keys[0].key == "new"
    assert [hot.key for hot in plan_for(drifting, "key", W, decay=Decay("ts", 3600, alpha=0)).hot_keys] == ["new"]


def test_rows_without_a_time_do_not_count(drifting: DataFrame) -> None:
    odd = drifting.withColumn("hour", F.when(F.col("key") != "old", F.col("hour")))
    assert "old" not in [hot.key for hot in plan_for(odd, "key", W, decay=Decay("hour", 1)).hot_keys]
    nan = drifting.withColumn("hour", F.when(F.col("key") != "old", F.col("hour")).otherwise(float("nan")))
    assert "old" not in [hot.key for hot in plan_for(nan, "key", W, decay=Decay("hour", 1)).hot_keys]
    assert plan_for(drifting.limit(0), "key", W, decay=Decay("hour", 1)).hot_keys == ()


@pytest.mark.parametrize("time", ["null", "nan", "inf", "-inf"])
def test_a_column_without_any_time_is_refused_since_its_plan_would_be_empty(drifting: DataFrame, time: str) -> None:
    timeless = drifting.withColumn("hour", F.lit(None if time == "null" else float(time)).cast("double"))
    with pytest.raises(InputError, match=r"^decay: 'hour' has no time in any of 10,000 rows: all are null, NaN or inf"):
        plan_for(timeless, "key", W, decay=Decay("hour", 1))


def test_days_can_be_epochs(drifting: DataFrame) -> None:
    days = Decay("day", timedelta(days=1).total_seconds())
    assert plan_for(drifting, "key", W, decay=days).hot_keys[0].key == "new"
    weeks = Decay("day", timedelta(weeks=2).total_seconds())
    assert plan_for(drifting, "key", W, decay=weeks).hot_keys[0].key == "old", "all rows are of one epoch"


@pytest.mark.parametrize(
    ("decay", "message"),
    [
        (Decay("when", 1), "decay: 'when' is not a column; allowed are key, hour, ts, day"),
        (Decay(["hour"], 1), r"decay: \['hour'\] is not a column"),  # type: ignore[arg-type]
        (Decay("key", 1), "decay: 'key' must hold timestamps, dates or numbers, not string"),
        (Decay("hour", 0), "decay: epoch must be a number above 0, not 0"),
        (Decay("hour", 1, 1.5), "decay: alpha must be a number from 0 to 1, not 1.5"),
    ],
    ids=str,
)
def test_bad_decays_are_refused(drifting: DataFrame, decay: Decay, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_for(drifting, "key", W, decay=decay)
