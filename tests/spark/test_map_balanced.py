"""Expensive functions of rows: each worker gets as much work as the others, and every row is done once."""

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import InputError
from unskew.longest_first import longest_first
from unskew.spark import LearnedCosts, map_balanced, measure_balance
from unskew.spark.cost_dealing import CostDealing, Deal, Measured, _split
from unskew.spark.lots import Lots, Split
from unskew.spark.working import by_cost_key

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers cannot import this file
W = 4
Batches = Iterator[pa.RecordBatch]


@pytest.fixture(scope="module")
def documents(spark: SparkSession) -> Iterator[DataFrame]:
    """2,000 documents whose costs span three orders of magnitude."""
    costs = np.exp(np.random.default_rng(0).uniform(0, np.log(1000), 2000))
    df = spark.createDataFrame(pa.table({"id": np.arange(2000), "cost": costs})).repartition(3).cache()
    df.count()
    yield df
    df.unpersist()


def same(batches: Batches) -> Batches:
    yield from batches


def over_bound(placed: DataFrame, cost: str, workers: int) -> float:
    """The busiest worker's cost over what it must have: the mean, or the most expensive row."""
    found = placed.groupBy(F.spark_partition_id()).agg(F.expr(f"sum({cost})"), F.expr(f"max({cost})")).collect()
    loads, longest = [float(row[1]) for row in found], max(float(row[2]) for row in found)
    return max(loads) / max(sum(loads) / workers, longest)


@pytest.mark.parametrize("workers", [1, 16])
def test_every_row_is_done_once_on_its_worker(documents: DataFrame, workers: int) -> None:
    done = map_balanced(documents, same, documents.schema, workers, "cost").cache()
    assert over_bound(done, "cost", workers) < 1.05
    assert sorted(row["id"] for row in done.collect()) == list(range(2000))
    done.unpersist()


@pytest.mark.parametrize("workers", [16, *(pytest.param(workers, marks=pytest.mark.slow) for workers in (2, 100, 300))])
def test_the_busiest_worker_is_within_5_percent_of_the_lower_bound(documents: DataFrame, workers: int) -> None:
    placed = CostDealing(documents, F.col("cost"), workers, None).place()
    assert over_bound(placed, "cost", workers) < 1.05
    assert placed.rdd.getNumPartitions() == workers


def test_round_robin_and_hash_are_not(documents: DataFrame) -> None:
    assert over_bound(documents.repartition(16), "cost", 16) > 1.2
    assert over_bound(documents.repartition(16, "id"), "cost", 16) > 1.2


@pytest.mark.parametrize(
    ("rows", "cost", "workers"),
    [
        (100_000, "1", 16),  # all the same
        (100_000, "if(id % 1000 = 0, 500, 1)", 16),  # a few hundred expensive ones
        (100_000, "if(id = 5, 1e6, 1)", 16),  # one that is more than a worker's share
        (64, "if(id < 16, 1000, 1)", 16),  # one expensive row per worker
        pytest.param(50_000, "pow(2, id % 20)", 64, marks=pytest.mark.slow),  # classes of costs
    ],
)
def test_so_it_is_for_other_costs(spark: SparkSession, rows: int, cost: str, workers: int) -> None:
    df = spark.range(rows, numPartitions=3)
    assert over_bound(CostDealing(df, F.expr(cost), workers, None).place(), cost, workers) < 1.05


def test_each_class_of_costs_is_spread_evenly(spark: SparkSession) -> None:
    """Not only their sums: so it stays even where costs are off by what every row costs besides."""
    df = spark.range(64_000, numPartitions=3).withColumn("cost", F.expr("pow(4, id % 4)"))
    placed = CostDealing(df, F.col("cost"), 8, None).place()
    rows = placed.groupBy(F.spark_partition_id().alias("worker"), "cost").count().collect()
    assert len(rows) == 8 * 4
    assert all(row["count"] == pytest.approx(2000, rel=0.1) for row in rows)


def test_expensive_rows_that_share_a_lot_are_told_apart(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unskew.spark.lots.FEWEST_BITS", 6)
    monkeypatch.setattr("unskew.spark.lots.LOTS_PER_WORKER", 1)
    cost = "if(id < 16, 1000, 1)"
    dealing = CostDealing(spark.range(64), F.expr(cost), 16, None)
    assert {split.by_position for split in dealing.dealt.lots.splits} == {False}
    assert over_bound(dealing.place(), cost, 16) < 1.05


def test_rows_that_are_all_equal_are_dealt_by_position(spark: SparkSession) -> None:
    df = spark.range(1000, numPartitions=3).selectExpr("7 AS a", "1.5 AS cost")
    dealing = CostDealing(df, F.col("cost"), 16, None)
    assert dealing.dealt.lots.by_position
    rows = measure_balance(dealing.place()).rows
    assert (sum(rows), max(rows)) == (1000, 63)


@pytest.mark.parametrize(("most", "by_position"), [(2**17, [False, True, True]), (4500, [False, False, True])])
def test_where_there_is_no_room_lots_stay_split_as_they_are(
    monkeypatch: pytest.MonkeyPatch, most: int, by_position: list[bool]
) -> None:
    """Of three lots that are split by content, two are to be split by position: the larger one first."""
    monkeypatch.setattr("unskew.spark.cost_dealing.MOST_SPLIT", most)
    lots = Lots(6, tuple(Split(lot, 64, False) for lot in (3, 5, 9)))
    cost = np.zeros(lots.number)
    for split, each in zip(lots.splits, (1.0, 2.0, 0.5), strict=True):
        cost[list(lots.parts_of(split))] = each
    found = Deal(lots, Measured(np.ones(lots.number, np.int64), cost, cost, 0), longest_first(cost, 64))
    after = _split(found, [3, 5], by_position=True).splits
    assert sorted(split.lot for split in after) == [3, 5, 9]
    assert [split.by_position for split in after] == by_position


@pytest.mark.slow
def test_few_contents_are_dealt_by_position_where_they_must_be(spark: SparkSession) -> None:
    """A Zipf stream of entities, without any other column: the hottest are more than a worker's share."""
    entities = np.minimum(np.random.default_rng(0).zipf(1.5, 20_000), 500)
    df = spark.createDataFrame(pa.table({"entity": entities})).repartition(3).cache()
    cost = "if(entity % 3 = 0, 25, 1)"
    dealing = CostDealing(df, F.expr(cost), 8, None)
    assert over_bound(dealing.place(), cost, 8) < 1.05
    assert len(dealing.dealt.lots.splits) < 100  # the others stay whole, and need no position


def test_who_chooses_the_content_is_warned_where_it_is_not_even(spark: SparkSession) -> None:
    df = spark.range(1000).selectExpr("id % 3 AS a", "id")
    with pytest.warns(UserWarning, match=r"^deal: by a the busiest worker gets 5.34 times what it must: many rows are"):
        placed = map_balanced(df, same, df.schema, 16, "1", deal="a")
    assert placed.count() == 1000


def test_a_rows_worker_depends_on_the_row_alone(documents: DataFrame) -> None:
    """Neither on its place nor on its neighbours: so a task that runs again sends it to the same worker."""
    dealing = CostDealing(documents, F.col("cost"), 16, None)
    placed = dealing.place()
    first = dict(placed.select("id", F.spark_partition_id()).collect())
    again = CostDealing(documents.orderBy("cost").coalesce(2), F.col("cost"), 16, None)
    assert not again.dealt.lots.by_position
    assert dict(again.place().select("id", F.spark_partition_id()).collect()) == first


def test_rows_are_placed_without_python(documents: DataFrame) -> None:
    placed = CostDealing(documents, F.col("cost"), 16, None).place()
    plan = placed._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in plan
    assert plan.count("Exchange hashpartitioning") == 1


# ---------------------------------------------------------------- costs that are none


@pytest.mark.parametrize("wrong", ["-1.0", "double('nan')", "double('infinity')"])
def test_costs_that_are_none_are_refused(documents: DataFrame, wrong: str) -> None:
    shown = {"-1.0": "-1.0", "double('nan')": "NaN", "double('infinity')": "Infinity"}[wrong]
    said = rf"^cost: must be a finite number from 0 on, or null .*; it is not in 20 rows, such as {shown}$"
    with pytest.raises(InputError, match=said):
        map_balanced(documents, same, documents.schema, W, f"if(id % 100 = 7, {wrong}, 1.0)")


def test_null_costs_count_as_much_as_the_others_on_average(documents: DataFrame) -> None:
    cost = "if(id % 2 = 0, 3.0, null)"
    dealing = CostDealing(documents, F.expr(cost), W, None)
    assert dealing.dealt.measured.unknown == 1000
    assert dealing.dealt.measured.cost.sum() == pytest.approx(6000)
    assert measure_balance(dealing.place()).max_over_mean < 1.05


@pytest.mark.parametrize("cost", ["cast(null as double)", "0", "0.0"])
def test_rows_are_dealt_by_number_where_no_cost_is_known_or_all_cost_nothing(documents: DataFrame, cost: str) -> None:
    assert measure_balance(map_balanced(documents, same, documents.schema, W, cost)).max_over_mean < 1.02


def test_rows_that_cost_nothing_are_dealt_by_number_beside_those_that_do(spark: SparkSession) -> None:
    """As by cost="length(text)", where most texts are empty."""
    df = spark.range(4000, numPartitions=3)
    placed = CostDealing(df, F.expr("if(id % 10 = 0, 5, 0)"), W, None).place()
    assert over_bound(placed, "if(id % 10 = 0, 5, 0)", W) < 1.05
    free = placed.where("id % 10 != 0").groupBy(F.spark_partition_id()).count().collect()
    assert [row["count"] for row in free] == pytest.approx([900] * W, rel=0.05)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({"cost": "'long'"}, "cost: must be a number, not string; cast it, or take its length"),
    "no column": ({"cost": "size_of(x)"}, "cost: Spark cannot compute it for each row: "),
    "aggregate": ({"cost": "sum(cost)"}, "cost: Spark cannot compute it for each row: "),
    "several rows": ({"cost": "explode(array(1, 2))"}, "cost: Spark cannot compute it for each row: The generator is"),
    "division": ({"cost": "cost / (id - 5)"}, "cost: Spark cannot compute it, or the rows, in each row: Division by"),
    "no text of a number": ({"cost": "int(concat('x', id))"}, "cost: Spark cannot compute it, or the rows, in each "),
    "no columns": ({"schema": ""}, "schema: must have at least one column, as in 'player string, mean double', not"),
    "no cost": ({"cost": 3}, "cost: must be the name of a column, an SQL expression such as 'length(text)'"),
    "workers": ({"workers": 10_001}, "workers: must be an integer from 1 to 10000, not 10001"),
    "no workers": ({"workers": 0}, "workers: must be an integer from 1 to 10000, not 0"),
    "on_error": ({"on_error": "ignore"}, "on_error: must be one of raise, collect, not 'ignore'"),
    "function": ({"function": "same"}, "function: must be a function of batches, not str"),
    "schema": ({"schema": "id bigint, id bigint"}, "schema: must have different columns, and 'id' is there twice"),
    "error": ({"schema": "error int", "on_error": "collect"}, "schema: must have no column called error with on_"),
    "deal": ({"deal": "nobody"}, "deal: must be 'content', 'position' or one of id, cost, not 'nobody'"),
    "cost key": ({"cost": LearnedCosts("nobody")}, "cost_key: 'nobody' is not a column; allowed are id, cost"),
    "sum": ({"cost": "1e308"}, "cost: the sum of all costs must be a finite number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_mistakes_are_refused_in_one_sentence(documents: DataFrame, case: str) -> None:
    changed, message = REFUSED[case]
    options: dict[str, Any] = {"function": same, "schema": documents.schema, "workers": W, "cost": "cost"}
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        map_balanced(documents, **(options | changed))


STREAM_REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "deal": ({"deal": "content"}, "deal: must be left out on a stream"),
    "workers": ({"workers": 0}, "workers: must be an integer from 1"),
    "cost": ({"cost": "nothing"}, "cost: Spark cannot compute it for each row"),
    "checkpoint": ({"checkpoint": "here"}, "checkpoint: is for LearnedCosts"),
}


@pytest.mark.parametrize("case", STREAM_REFUSED)
def test_mistakes_with_streams_are_refused_in_one_sentence(spark: SparkSession, case: str) -> None:
    changed, message = STREAM_REFUSED[case]
    stream = spark.readStream.format("rate").load()
    options: dict[str, Any] = {"function": same, "schema": stream.schema, "workers": W, "cost": "value"}
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        map_balanced(stream, **(options | changed))
    with pytest.raises(InputError, match=r"^checkpoint: is for streams"):
        map_balanced(spark.range(3), same, "id bigint", W, LearnedCosts("id"), checkpoint="here")


# ---------------------------------------------------------------- frames of all kinds


@pytest.mark.parametrize("on_error", ["raise", "collect"])
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("rows", [0, 1])
def test_no_row_and_one_row(spark: SparkSession, rows: int, learned: bool, on_error: str) -> None:
    df = spark.range(rows)
    cost = LearnedCosts("id") if learned else "id"
    done = map_balanced(df, same, "id bigint", W, cost, on_error=on_error)
    assert [row["id"] for row in done.collect()] == list(range(rows))


def test_nested_columns_and_maps(spark: SparkSession) -> None:
    nested = "id", "struct(id AS a, array(id) AS b) AS s", "map(id, 'x') AS m", "array(named_struct('c', id)) AS t"
    df = spark.range(500).selectExpr(*nested)
    done = map_balanced(df, same, df.schema, W, "s.a + size(t)")
    assert sorted(row["s"]["b"][0] for row in done.collect()) == list(range(500))
    learned = map_balanced(df, same, df.schema, W, LearnedCosts(["s", "t"]), on_error="collect")
    assert learned.where("error is null").count() == 500


def other_way_round(batches: Batches) -> Batches:
    for batch in batches:
        yield batch.select(["b", "a"])


@pytest.mark.parametrize("on_error", ["raise", "collect"])
def test_columns_go_by_their_names_in_whatever_order_they_come(spark: SparkSession, on_error: str) -> None:
    df = spark.range(50).selectExpr("id AS a", "-id AS b")
    done = map_balanced(df, other_way_round, "a bigint, b bigint", W, "1", on_error=on_error)
    assert done.where("a >= 0 AND b = -a").count() == 50


@pytest.mark.parametrize("on_error", ["raise", "collect"])
def test_columns_of_other_types_are_refused_by_name(spark: SparkSession, on_error: str) -> None:
    df = spark.range(50).selectExpr("concat('k', id) AS a", "id AS b")
    with pytest.raises(Exception, match=r"function: must yield the types of the schema, a int64, b int64: "):
        map_balanced(df, other_way_round, "a bigint, b bigint", W, "1", on_error=on_error).collect()


def test_names_that_repeat(spark: SparkSession) -> None:
    df = spark.range(300).selectExpr("id", "id AS x", "-id AS x")

    def first(batches: Batches) -> Batches:
        for batch in batches:
            assert batch.schema.names == ["id", "x", "x"]
            if batch.num_rows == 1 and batch.columns[0][0].as_py() == 7:
                raise ValueError("seven")
            yield pa.RecordBatch.from_arrays([batch.columns[2]], ["y"])

    assert sorted(row["y"] for row in map_balanced(df, first, "y bigint", W, "id").collect())[0] == -299
    done = map_balanced(df, first, "y bigint", W, LearnedCosts("id"), on_error="collect")
    (failed,) = done.where("error is not null").select("error.row.*").collect()
    assert failed.asDict() == {"id": 7, "x": 7, "x_2": -7}


def test_only_maps_are_dealt_by_position(spark: SparkSession) -> None:
    df = spark.range(100).selectExpr("map(id, id) AS m")
    assert max(measure_balance(map_balanced(df, same, df.schema, W, "1")).rows) == 25


# ---------------------------------------------------------------- functions that fail


def failing(batches: Batches) -> Batches:
    for batch in batches:
        if {1234, 77} & set(batch["id"].to_pylist()):
            raise ValueError(f"cannot read one of {batch.num_rows}")
        yield batch.select(["id"])


def test_an_error_names_the_function_and_shows_the_row(documents: DataFrame) -> None:
    done = map_balanced(documents, failing, "id bigint", W, "cost")
    with pytest.raises(PythonException) as caught:
        done.collect()
    said = r"function: 'failing' raised ValueError: cannot read one of \d+, for the row \{'id': (77|1234), 'cost': \d"
    assert re.search(said, str(caught.value))


def test_an_error_before_the_first_row_says_so(documents: DataFrame) -> None:
    def broken(batches: Batches) -> Batches:
        raise KeyError("model")

    with pytest.raises(PythonException, match=r"function: 'broken' raised KeyError: 'model', before it asked for any"):
        map_balanced(documents, broken, "id bigint", W, "cost").collect()


@pytest.mark.parametrize("learned", [False, True])
def test_collected_errors_come_with_their_rows_and_nothing_else_is_lost(documents: DataFrame, learned: bool) -> None:
    cost = LearnedCosts("id") if learned else "cost"
    done = map_balanced(documents, failing, "id bigint", W, cost, on_error="collect").cache()
    failed = done.where("error is not null").collect()
    assert sorted(row["error"]["row"]["id"] for row in failed) == [77, 1234]
    assert {(row["id"], row["error"]["type"]) for row in failed} == {(None, "ValueError")}
    assert {row["error"]["message"] for row in failed} == {"cannot read one of 1"}
    good = [row["id"] for row in done.where("error is null").collect()]
    assert sorted(good) == [number for number in range(2000) if number not in (77, 1234)]


def test_an_error_may_say_what_is_no_text(spark: SparkSession) -> None:
    def reading(batches: Batches) -> Batches:
        raise FileNotFoundError("no \udc80 here")

    done = map_balanced(spark.range(1), reading, "id bigint", 1, "1", on_error="collect")
    assert [row["error"]["message"] for row in done.collect()] == ["no ? here"]


def test_what_is_yielded_is_checked(documents: DataFrame) -> None:
    done = map_balanced(documents, same, "id bigint", W, LearnedCosts("id"))
    with pytest.raises(PythonException, match=r"function: must yield the columns \['id'\], not \['id', 'cost'\]"):
        done.collect()


# ---------------------------------------------------------------- costs that are learnt


def napping(batches: Batches) -> Batches:
    """Rows of class 0 take 4 ms each, the others nothing."""
    for batch in batches:
        time.sleep(4e-3 * sum(each == 0 for each in batch["class"].to_pylist()))
        yield batch


@pytest.fixture(scope="module")
def classes(spark: SparkSession) -> DataFrame:
    """Every fourth of 800 rows is of class 0. Round robin, in a task of every fourth row, gives one worker all."""
    return spark.range(800, numPartitions=2).withColumn("class", F.col("id") % 4)


def test_the_second_run_is_dealt_by_what_the_first_took(classes: DataFrame) -> None:
    costs = LearnedCosts("class")
    assert not costs.known
    schema = classes.schema
    first = map_balanced(classes, napping, schema, W, costs)
    assert measure_balance(CostDealing(classes, costs.estimate(classes), W, None).place()).max_over_mean < 1.05
    assert first.count() == 800
    run = costs.collect()
    assert (sum(run.rows), len(run.seconds)) == (800, W)
    assert sum(run.seconds) >= 200 * 4e-3  # sleep never takes less
    assert costs.known
    estimated = {
        row["class"]: row["e"] for row in classes.select("class", costs.estimate(classes).alias("e")).collect()
    }
    assert estimated[0] >= 4e-3
    assert max(estimated[key] for key in (1, 2, 3)) < 2e-3
    placed = CostDealing(classes, costs.estimate(classes), W, None).place()
    expensive = placed.where("class = 0").groupBy(F.spark_partition_id()).count().collect()
    assert max(row["count"] for row in expensive) <= 53  # of 200, by estimates that are not all the same


@pytest.mark.slow
def test_costs_that_change_tenfold_are_learnt_anew(classes: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = LearnedCosts("class")

    def expensive_class(number: int) -> None:
        def work(batches: Batches) -> Batches:
            for batch in batches:
                time.sleep(2e-3 * sum(1 if each != number else 10 for each in batch["class"].to_pylist()) / 10)
                yield batch

        map_balanced(classes, work, classes.schema, W, costs).count()
        costs.collect()

    def ratio(one: int, other: int) -> float:
        found = classes.select("class", costs.estimate(classes).alias("e")).distinct().collect()
        by_class = {row["class"]: row["e"] for row in found}
        return by_class[one] / by_class[other]

    expensive_class(0)
    assert ratio(0, 1) > 3
    for _ in range(2):
        expensive_class(1)
    assert ratio(1, 0) > 3


def test_what_was_learnt_can_be_saved_and_loaded(classes: DataFrame, tmp_path: Path) -> None:
    costs = LearnedCosts("class", keep=0.5)
    path = tmp_path / "costs.json"
    with pytest.raises(InputError, match=r"^costs: nothing was learnt yet that could be saved"):
        costs.save(path)
    map_balanced(classes, napping, classes.schema, W, costs).count()
    costs.collect()
    costs.save(path)
    with pytest.raises(InputError, match=r"^path: .* exists and was kept; use force=True to replace it$"):
        costs.save(path)
    costs.save(path, force=True)
    assert [each.name for each in tmp_path.iterdir()] == ["costs.json"]
    again = LearnedCosts.load(path)
    assert (again.cost_key, again.keep, again.known) == (("class",), 0.5, True)
    both = classes.select(costs.estimate(classes).alias("a"), again.estimate(classes).alias("b"))
    assert both.where("a = b").count() == 800
    with pytest.raises(
        InputError, match=r"^cost_key: costs were learnt for the types bigint, not string, whose hashes"
    ):
        again.estimate(classes.withColumn("class", F.col("class").cast("string")))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", pytest.param("[" * 100_000, id="deep"), '{"unskew_costs": 1}', "no JSON"]
)
def test_files_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"^path: .*costs\.json' is not what LearnedCosts\.save wrote$"):
        LearnedCosts.load(path)
    with pytest.raises(InputError, match=r"^path: .*nothing.* cannot be read"):
        LearnedCosts.load(tmp_path / "nothing")


def test_a_sample_that_cannot_be_timed_is_refused(spark: SparkSession, documents: DataFrame) -> None:
    stream = spark.readStream.format("rate").load()
    calls: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((None, same), {}, "df: must be a Spark DataFrame, not NoneType"),
        ((stream, same), {}, "df: is a stream"),
        ((documents, "same"), {}, "function: must be a function of batches, not str"),
        ((documents, same), {"seconds": "5"}, "seconds: must be a number from 0 on, not '5'"),
        ((documents, same), {"seconds": float("nan")}, "seconds: must be a number from 0 on, not nan"),
    ]
    for arguments, options, message in calls:
        with pytest.raises(InputError, match=f"^{re.escape(message)}"):
            LearnedCosts("id").time_sample(*arguments, **options)


def test_a_run_that_was_cut_short_teaches_nothing(classes: DataFrame) -> None:
    costs = LearnedCosts("class")
    with pytest.raises(InputError, match=r"^costs: there is no run to learn from; first call map_balanced"):
        costs.collect()
    map_balanced(classes, same, classes.schema, W, costs).take(1)
    with pytest.warns(UserWarning, match=r"^costs: heard of \d of 4 workers, so nothing was learnt"):
        costs.collect()
    assert not costs.known


def test_a_batch_without_rows_has_no_cost_keys() -> None:
    columns = {name: pa.array([], pa.int64()) for name in ("row", "key")}
    assert list(by_cost_key(iter([pa.RecordBatch.from_pydict(columns)]))) == []


def test_a_sample_can_be_timed_first(classes: DataFrame) -> None:
    costs = LearnedCosts("class")
    assert costs.time_sample(classes, napping, seconds=0.5) > 20
    found = classes.select("class", costs.estimate(classes).alias("e")).distinct().collect()
    assert {row["class"] for row in found if row["e"] >= 4e-3} == {0}


def reading_ahead(batches: Batches) -> Batches:
    yield from napping(iter(list(batches)))


def test_a_function_that_reads_ahead_is_charged_for_all_its_work_and_warned_of(classes: DataFrame) -> None:
    costs = LearnedCosts("class")
    assert map_balanced(classes, reading_ahead, classes.schema, W, costs).count() == 800
    with pytest.warns(UserWarning, match=r"^function: .* s were worked after it had asked for all of its rows"):
        assert sum(costs.collect().seconds) >= 200 * 4e-3


def test_a_stream_is_dealt_by_the_costs_that_are_told(documents: DataFrame, tmp_path: Path) -> None:
    documents.coalesce(1).write.parquet(str(tmp_path / "rows"))
    rows = documents.sparkSession.readStream.schema(documents.schema).parquet(str(tmp_path / "rows"))
    done = map_balanced(rows, same, documents.schema, 16, "if(id % 100 = 0, null, cost)").withColumn(
        "worker", F.spark_partition_id()
    )
    found = finished(done, tmp_path)
    assert sorted(found["id"].to_pylist()) == list(range(2000))
    load = np.bincount(found["worker"].to_numpy(), found["cost"].to_numpy(), 16)
    assert load.max() / load.mean() < 1.05
    free = finished(map_balanced(rows, same, documents.schema, 16, "0").select(F.spark_partition_id()), tmp_path / "0")
    assert np.bincount(free[0].to_numpy(), minlength=16).tolist() == [125] * 16
    with pytest.raises(StreamingQueryException, match=r"cost: must be a finite number from 0 on, .* not -1\.0"):
        finished(map_balanced(rows, same, documents.schema, 4, "-1"), tmp_path / "wrong")


def finished(done: DataFrame, folder: Path) -> pa.Table:
    """All rows of a stream, when it has read all that there is."""
    options = {"checkpointLocation": f"{folder}/checkpoint", "path": f"{folder}/done"}
    writer = done.writeStream.format("parquet").options(**options).trigger(availableNow=True)
    writer.start().awaitTermination()
    return done.sparkSession.read.parquet(f"{folder}/done").toArrow()


def test_a_stream_learns_costs_from_one_micro_batch_for_the_next(classes: DataFrame, tmp_path: Path) -> None:
    for part in range(3):
        classes.withColumn("part", F.lit(part)).coalesce(1).write.mode("append").parquet(str(tmp_path / "rows"))
    reader = classes.sparkSession.readStream.schema(classes.withColumn("part", F.lit(0)).schema)
    rows = reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "rows"))
    work = map_balanced(rows, napping, rows.schema, W, LearnedCosts("class"), checkpoint=tmp_path / "checkpoint")
    found = finished(work.withColumn("worker", F.spark_partition_id()), tmp_path)
    assert len(found) == 3 * classes.count()
    parts, workers = found["part"].to_numpy(), found["worker"].to_numpy()
    slow = found["class"].to_numpy() == 0
    slowest = [np.bincount(workers[slow & (parts == part)], minlength=W).max() for part in range(3)]
    assert slowest[0] == slow.sum() // 3  # by number, and every fourth row is slow
    assert slowest[2] <= -(-slow.sum() // 3 // W) + 1
    (folder,) = (tmp_path / "checkpoint/unskew/costs/keys").iterdir()
    assert (folder / "key.json").read_text() == '{"class": "bigint"}'
    assert sorted(path.name for path in (folder / "told").iterdir()) == ["1", "2"]
    assert sorted(path.name for path in (folder / "known").iterdir()) == ["1", "2"]


def test_a_stream_that_starts_again_goes_on_with_its_costs(classes: DataFrame, tmp_path: Path) -> None:
    reader = classes.sparkSession.readStream.schema(classes.withColumn("part", F.lit(0)).schema)
    for part in range(2):
        classes.withColumn("part", F.lit(part)).coalesce(1).write.mode("append").parquet(str(tmp_path / "rows"))
        rows = reader.parquet(str(tmp_path / "rows"))
        work = map_balanced(rows, napping, rows.schema, W, LearnedCosts("class"), checkpoint=tmp_path / "checkpoint")
        found = finished(work.withColumn("worker", F.spark_partition_id()), tmp_path)
    workers = found["worker"].to_numpy()[(found["class"].to_numpy() == 0) & (found["part"].to_numpy() == 1)]
    assert (len(found), len(workers)) == (1600, 200)
    assert np.bincount(workers, minlength=W).max() <= 51
    with pytest.warns(UserWarning, match=r"^cost_key: this stream learns costs by .*id.* anew, since what .*class"):
        map_balanced(rows, same, rows.schema, W, LearnedCosts("id"), checkpoint=tmp_path / "checkpoint")


def test_a_stream_that_leaves_its_costs_nowhere_is_not_timed(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    work = map_balanced(stream, same, stream.schema, W, LearnedCosts("value"))
    plan = work._jdf.queryExecution().analyzed().toString()
    assert "telling" not in plan  # is called as the user's function is
    assert "same(" in plan
    assert "timed(" not in plan


def test_micro_batches_are_runs(classes: DataFrame, tmp_path: Path) -> None:
    classes.write.parquet(str(tmp_path / "rows"))
    stream = classes.sparkSession.readStream.schema(classes.schema).option("maxFilesPerTrigger", 1)
    costs, heard = LearnedCosts("class"), []

    def run(batch: DataFrame, _: int) -> None:
        done = map_balanced(batch, same, batch.schema, W, costs).count()
        heard.append((done, sum(costs.collect().rows)))

    query = stream.parquet(str(tmp_path / "rows")).writeStream.foreachBatch(run).trigger(availableNow=True).start()
    query.awaitTermination()
    assert heard == [(400, 400), (400, 400)]
