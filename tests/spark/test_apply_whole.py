"""Keys that cannot be split: placed evenly, each key's rows come to the function once and together."""

import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import Frequencies, InputError, Plan, key_ids
from unskew.partitioning import PartitionFunction
from unskew.spark import apply_whole, measure_balance, plan_for, rebalance, repartition
from unskew.spark.cost_dealing import CostDealing
from unskew.spark.placing import place_by, worker_of

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers cannot import this file
W, ROWS = 8, 30_000


@pytest.fixture(scope="module")
def flights(spark: SparkSession) -> Iterator[DataFrame]:
    """229 airports, the busiest with 9.6 % of the rows: by plain hash one of 8 workers has twice the mean."""
    share = np.arange(1, 230) ** -0.8
    airports = np.random.default_rng(0).choice(229, ROWS, p=share / share.sum())
    table = pa.table({"airport": [f"A{each}" for each in airports], "delay": np.arange(ROWS) * 7919 % 1000})
    df = spark.createDataFrame(table).repartition(3).cache()
    df.count()
    yield df
    df.unpersist()


def median(rows: pa.Table) -> pa.Table:
    return pa.table({"median": [float(np.median(rows["delay"]))], "n": [rows.num_rows]})


SCHEMA = "airport string, median double, n bigint"
WAYS: dict[str, dict[str, Any]] = {"level": {}, "scan": {"scheme": "scan"}, "readj": {"scheme": "readj"}}


@pytest.mark.parametrize("way", ["level", "scan", pytest.param("readj", marks=pytest.mark.slow)])
def test_the_results_are_those_of_a_plain_group_by(flights: DataFrame, way: str) -> None:
    done = apply_whole(flights, "airport", median, SCHEMA, W, **WAYS[way])
    assert done.columns == ["airport", "median", "n"]
    expected = flights.groupBy("airport").agg(F.median("delay"), F.count("*")).collect()
    assert sorted(done.collect()) == sorted(expected)


def whole(df: DataFrame, keys: str) -> bool:
    """Whether each key is on one worker."""
    placed = df.withColumn("worker", F.spark_partition_id())
    return placed.groupBy(keys).agg(F.count_distinct("worker").alias("workers")).where("workers > 1").isEmpty()


def test_workers_are_as_level_as_whole_keys_can_be(flights: DataFrame) -> None:
    assert measure_balance(flights.repartition(W, "airport")).max_over_mean > 1.5
    level = CostDealing(flights, F.lit(1), W, keys=[F.col("airport")]).place()
    assert measure_balance(level).max_over_mean < 1.02
    assert whole(level, "airport")
    hottest = flights.groupBy("airport").count().agg(F.max("count")).first()[0]
    many = CostDealing(flights, F.lit(1), 32, keys=[F.col("airport")]).place()
    assert max(measure_balance(many).rows) < 1.02 * max(hottest, ROWS / 32)


def test_rows_of_the_hottest_key_stay_together_however_many_they_are(spark: SparkSession) -> None:
    df = spark.range(5000).selectExpr("if(id % 10 < 9, 0, id) AS k", "id")
    level = CostDealing(df, F.lit(1), W, keys=[F.col("k")])
    assert not level.dealt.lots.by_position
    assert max(measure_balance(level.place()).rows) == 4500


@pytest.mark.parametrize("scheme", ["readj", *(pytest.param(n, marks=pytest.mark.slow) for n in ("redist", "scan"))])
def test_repartition_by_a_construction_splits_no_key(flights: DataFrame, scheme: str) -> None:
    placed = repartition(flights, "airport", W, scheme)
    assert whole(placed, "airport")
    plan = placed._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in plan
    by_hash = measure_balance(flights.repartition(W, "airport")).max_over_mean
    assert measure_balance(placed).max_over_mean < by_hash
    assert Plan.from_json(plan_for(flights, "airport", W, scheme).to_json()).workers == W


@pytest.mark.parametrize("cold", ["home", "arcs"])
def test_spark_places_keys_where_the_function_does(flights: DataFrame, cold: str) -> None:
    names = [f"A{number}" for number in range(229)]
    ids = key_ids(names)
    function = PartitionFunction(W, ids[:20], np.arange(20) % W, cold=cold)
    expected = dict(zip(names, function.look_up(ids).tolist(), strict=True))
    rows = flights.select("airport", worker_of([F.col("airport")], function).alias("worker")).distinct().collect()
    assert dict(map(tuple, rows)) == expected
    placed = place_by(flights, [F.col("airport")], function)
    landed = placed.select("airport", F.spark_partition_id()).distinct().collect()
    assert dict(map(tuple, landed)) == expected
    done = apply_whole(flights, "airport", median, SCHEMA, W, plan=function)
    assert done.agg(F.sum("n")).first()[0] == ROWS


def test_rows_are_sorted_if_asked(flights: DataFrame) -> None:
    def check(rows: pa.Table) -> pa.Table:
        delays = rows["delay"].to_pylist()
        return pa.table({"right": [delays == sorted(delays, reverse=True)]})

    done = apply_whole(flights, "airport", check, "airport string, right boolean", W, sort="-delay")
    assert done.where("right").count() == 229


def ranked(rows: pa.Table) -> pa.Table:
    """What ``rank() over (partition by airport order by delay)`` and the like give."""
    delays = rows["delay"].to_numpy()
    changed = np.diff(delays, prepend=delays[0] - 1) != 0
    rank = np.maximum.accumulate(np.where(changed, np.arange(1, len(delays) + 1), 0))
    return pa.table(
        {"id": rows["id"], "rank": rank, "lag": pa.array([None, *delays[:-1]]), "sum": pc.cumulative_sum(rows["delay"])}
    )


def test_windows_over_a_key(flights: DataFrame) -> None:
    from pyspark.sql import Window

    df = flights.withColumn("id", F.monotonically_increasing_id()).cache()
    over = Window.partitionBy("airport").orderBy("delay", "id")
    ranks = Window.partitionBy("airport").orderBy("delay")
    expected = df.select("airport", "id", F.rank().over(ranks), F.lag("delay").over(over), F.sum("delay").over(over))
    schema = "airport string, id bigint, rank bigint, lag bigint, sum bigint"
    done = apply_whole(df, "airport", ranked, schema, W, sort=["delay", "id"])
    assert sorted(map(str, map(tuple, done.collect()))) == sorted(map(str, map(tuple, expected.collect())))


def test_keys_of_all_kinds(spark: SparkSession) -> None:
    df = spark.createDataFrame(
        [
            (0.0, "a", 1),
            (-0.0, "a", 2),
            (float("nan"), None, 3),
            (float("nan"), None, 4),
            (None, "a", 5),
            (1.5, "b", 6),
        ],
        "x double, y string, v int",
    )

    def collected(rows: pa.Table) -> pa.Table:
        return pa.table({"vs": [sorted(rows["v"].to_pylist())]})

    done = apply_whole(df, ["x", "y"], collected, "x double, y string, vs array<int>", W).collect()
    assert sorted(row["vs"] for row in done) == [[1, 2], [3, 4], [5], [6]]
    nested = df.selectExpr("struct(y) AS s", "array(y, y) AS t", "v")
    done = apply_whole(nested, ["s", "t"], collected, "vs array<int>", W).collect()
    assert sorted(row["vs"] for row in done) == [[1, 2, 5], [3, 4], [6]]


@pytest.mark.parametrize("rows", [0, 1])
def test_no_row_and_one_row(spark: SparkSession, rows: int) -> None:
    done = apply_whole(spark.range(rows), "id", lambda table: table, "id bigint", W)
    assert [row["id"] for row in done.collect()] == list(range(rows))


def test_names_that_repeat(spark: SparkSession) -> None:
    df = spark.range(100).selectExpr("id % 3 AS k", "id AS x", "-id AS x")

    def widths(rows: pa.Table) -> pa.Table:
        return pa.table({"columns": [rows.num_columns], "n": [rows.num_rows]})

    done = apply_whole(df, "k", widths, "k bigint, columns int, n int", 2).collect()
    assert sorted(map(tuple, done)) == [(0, 3, 34), (1, 3, 33), (2, 3, 33)]


def test_a_function_that_returns_something_else_is_told_so(flights: DataFrame) -> None:
    with pytest.raises(PythonException, match=r"function: must return a pyarrow\.Table, not int"):
        apply_whole(flights, "airport", len, SCHEMA, W).collect()
    with pytest.raises(PythonException, match=r"function: must return the columns \['airport', 'm'\], not "):
        apply_whole(flights, "airport", median, "airport string, m double", W).collect()


def refused_options(spark: SparkSession) -> dict[str, tuple[dict[str, Any], str]]:
    split = Plan("fanout", W, plan_for(spark.range(90).selectExpr("0 AS k"), "k", W).hot_keys)
    return {
        "key": ({"keys": "nobody"}, "keys: 'nobody' is not a column"),
        "function": ({"function": 7}, "function: must be a function of a table, not int"),
        "scheme": ({"scheme": "pkg"}, "scheme: must be one of scan, redist, readj, or left out, not 'pkg'"),
        "both": (
            {"scheme": "scan", "plan": PartitionFunction(W, cold="home")},
            "scheme: must be left out where a plan",
        ),
        "workers": ({"plan": PartitionFunction(3, cold="home")}, "workers: must be the plan's own 3, not 8"),
        "ring": ({"plan": PartitionFunction(W)}, "plan: the hash must be 'arcs' or 'home', which Spark has too"),
        "split": ({"plan": split}, "plan: must keep every key whole, but splits "),
        "no plan": ({"plan": "plan.json"}, "plan: must be a Plan or a PartitionFunction, not str"),
        "sort": ({"sort": "nobody"}, "sort: 'nobody' is not a column; allowed are airport, delay"),
        "sorts": ({"sort": 3}, "sort: must be the name of a column or a list of names, not 3"),
        "no workers": ({"workers": 0}, "workers: must be an integer from 1 to"),
    }


def test_mistakes_are_refused_in_one_sentence(spark: SparkSession, flights: DataFrame) -> None:
    usual: dict[str, Any] = {"keys": "airport", "function": median, "schema": SCHEMA, "workers": W}
    for case, (changed, message) in refused_options(spark).items():
        with pytest.raises(InputError, match=f"^{re.escape(message)}"):
            apply_whole(flights, **(usual | changed))
        assert case


# ---------------------------------------------------------------- rebalance


def test_a_worker_more_moves_little(flights: DataFrame) -> None:
    first = rebalance(flights, "airport", 16)
    assert len(first.moves) == 0
    assert first.after is not None
    assert first.after.max_over_mean < 1.65  # the hottest key alone is 1.5
    more = rebalance(flights, "airport", 17, previous=first.plan)
    assert isinstance(more.plan, PartitionFunction)
    assert more.rows_moved is not None
    assert more.rows_moved < 0.2 * ROWS
    by_hash = flights.where(F.expr("pmod(hash(airport), 16) != pmod(hash(airport), 17)")).count()
    assert by_hash > 0.8 * ROWS
    placed = place_by(flights, [F.col("airport")], more.plan)
    assert more.after is not None
    assert measure_balance(placed).rows == more.after.rows


def test_moves_are_exact_and_come_as_a_data_frame(spark: SparkSession, flights: DataFrame) -> None:
    plan = Plan("partitioner", W)
    found = rebalance(flights, "airport", W, previous=plan, algorithm="scan")
    assert isinstance(found.plan, Plan)
    after = PartitionFunction.from_plan(found.plan)
    before = PartitionFunction(W, cold="home")
    names = [f"A{number}" for number in range(229)]
    ids = key_ids(names)
    moved = {n for n, a, b in zip(names, before.look_up(ids), after.look_up(ids), strict=True) if a != b}
    rows = found.to_df(spark).collect()
    assert {row["key"] for row in rows} == moved
    counts = {row["airport"]: row["count"] for row in flights.groupBy("airport").count().collect()}
    assert {row["key"]: row["state"] for row in rows} == {name: counts[name] for name in moved}
    assert found.cost == found.rows_moved == sum(counts[name] for name in moved)
    assert found.before is not None
    assert found.after is not None
    assert found.after.max_over_mean < found.before.max_over_mean
    assert f"{len(moved)} of the keys" in found.verdict
    assert found.to_dict()["rows_moved"] == found.rows_moved


def test_frequencies_will_do_and_nothing_to_move_is_no_row(spark: SparkSession) -> None:
    frequencies = Frequencies(key_ids(np.arange(100)), np.full(100, 10), tuples=1000)
    found = rebalance(frequencies, "k", 4)
    assert found.to_df(spark).columns == ["key", "key_id", "from", "to", "state"]
    assert found.to_df(spark).count() == 0
    again = rebalance(frequencies, "k", 5, previous=found.plan, algorithm="redist")
    assert again.plan.workers == 5
    assert again.rows_moved is None
    assert set(again.moves.to.tolist()) <= set(range(5))
    assert rebalance(frequencies, "k", 4, previous=found.plan).plan == found.plan  # it is even: nothing moves


def test_what_rebalance_refuses(flights: DataFrame) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"algorithm": "best"}, "algorithm: must be one of scan, redist, readj, not 'best'"),
        ({"workers": 0}, "workers: must be an integer from 1 to 10000, not 0"),
        ({"source": 3}, "df: must be a Spark DataFrame, not int"),
        ({"keys": "nobody"}, "keys: 'nobody' is not a column"),
        ({"previous": "plan.json"}, "previous: must be a Plan or a PartitionFunction, not str"),
        ({"objective": "LLL"}, "objective: must be an Objective, not str"),
    ]
    for changed, message in cases:
        with pytest.raises(InputError, match=f"^{re.escape(message)}"):
            rebalance(**({"source": flights, "keys": "airport", "workers": W} | changed))
