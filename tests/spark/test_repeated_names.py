"""Columns whose names repeat, as after a join, or differ in case only: all is as with other names."""

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import InputError, Plan
from unskew.aggregates import Count, Sum
from unskew.plan import HotKey
from unskew.spark import SALT, Decay, add_salt, aggregate, apply_split, plan_for, repartition, skew_report

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers cannot import this file
W = 4


@pytest.fixture(scope="module")
def other_names(spark: SparkSession) -> DataFrame:
    rows = spark.range(3000).selectExpr("if(id % 3 = 0, 7, id % 100) i", "id x", "id % 11 y", "map(id, id) m")
    return rows.cache()


OTHERS = [["i", "x", "X", "m"], ["i", "m", "m", "M"]]


@pytest.fixture(params=[["i", "x", "x", "m"], *(pytest.param(n, marks=pytest.mark.slow) for n in OTHERS)], ids=str)
def df(other_names: DataFrame, request: pytest.FixtureRequest) -> DataFrame:
    return other_names.toDF(*request.param)


def landed(df: DataFrame) -> list[str]:
    rows = df.toDF("i", "x", "y", "m").withColumn("worker", F.spark_partition_id()).withColumn("m", F.map_keys("m"))
    return sorted(map(str, rows.collect()))


@pytest.mark.parametrize("deal", ["content", "position", None])
def test_rows_land_where_they_would_with_other_names(df: DataFrame, other_names: DataFrame, deal: str | None) -> None:
    routed = repartition(df, "i", W, deal=deal)
    assert routed.columns == df.columns
    assert landed(routed) == landed(repartition(other_names, "i", W, deal=deal))


def test_a_large_plan_which_is_joined_places_them_so_too(df: DataFrame, other_names: DataFrame) -> None:
    plan = plan_for(other_names, "i", W)
    never_met = tuple(HotKey(i, 0.0, (0,) * 400) for i in range(60))
    large = Plan(plan.scheme, W, plan.hot_keys + never_met)
    routed = repartition(df, "i", W, plan=large)
    assert routed.columns == df.columns
    assert landed(routed) == landed(repartition(other_names, "i", W, plan=plan))


@pytest.mark.parametrize("mode", ["planned", "online"])
def test_only_the_salt_is_added(df: DataFrame, mode: str) -> None:
    assert add_salt(df, "i", W, "pkg", mode=mode).columns == [*df.columns, SALT]


def test_columns_of_a_join_can_still_be_told_apart_by_their_frames(spark: SparkSession) -> None:
    left, right = spark.range(50).selectExpr("id i", "id x"), spark.range(50).selectExpr("id i", "-id x")
    routed = repartition(left.join(right, "i"), "i", W)
    assert routed.select(F.sum(left["x"]), F.sum(right["x"])).first() == (1225, -1225)


def part(rows: pa.Table) -> pa.Table:
    return pa.table({"n": [rows.num_rows], "columns": [rows.num_columns]})


def merged(parts: pa.Table) -> pa.Table:
    return pa.table({"n": [sum(parts["n"].to_pylist())], "columns": parts["columns"][:1]})


def test_aggregates_and_functions_get_the_rows(df: DataFrame, other_names: DataFrame) -> None:
    expected = {row["i"]: row["count"] for row in other_names.groupBy("i").count().collect()}
    counted = aggregate(df, "i", {"n": Count()}, W)
    assert dict(map(tuple, counted.collect())) == expected
    applied = apply_split(df, "i", part, merged, "i bigint, n bigint, columns bigint", W).collect()
    assert {row["i"]: row["n"] for row in applied} == expected
    assert {row["columns"] for row in applied} == {4}
    assert skew_report(df, "i", W).tuples == 3000


REFUSED: dict[str, tuple[Callable[[DataFrame], Any], str]] = {
    "key": (lambda df: repartition(df, "x", W), "keys: 'x' names 2 columns; rename all but one"),
    "aggregate": (lambda df: aggregate(df, "i", {"t": Sum("x")}, W), "aggregates: 't': 'x' names 2 columns"),
    "deal": (lambda df: repartition(df, "i", W, deal="x"), "deal: must be 'content', 'position' or one of -, not 'x'"),
    "decay": (lambda df: plan_for(df, "i", W, decay=Decay("x", 1)), "decay: 'x' names 2 columns; rename all but one"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_name_that_repeats_cannot_be_meant(other_names: DataFrame, case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        call(other_names.toDF("i", "x", "X", "m"))
