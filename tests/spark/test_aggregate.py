"""`aggregate` and `apply_split` on a real Spark: results of a plain groupBy, two exchanges, odd input, refusals."""

import datetime as dt
import math
import re
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from jobs import no_job
from pyspark import TaskContext, cloudpickle
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from test_aggregates import class_of_the_docstring
from unskew import InputError, PartialKey, Plan
from unskew.aggregates import (
    Aggregate,
    Count,
    DistinctCount,
    Max,
    Mean,
    Min,
    Quantiles,
    StdDev,
    Sum,
    TopK,
    Variance,
)
from unskew.spark import SALT, add_salt, aggregate, apply_split

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers cannot import this file
WORKERS = 5
ROWS = 4000


def _mixed(values: list[Any], kind: pa.DataType, rng: np.random.Generator) -> pa.Array:
    """Values with a few nulls among them; the first is hot."""
    return pa.array([None if i == 99 else values[min(i % 50, len(values) - 1)] for i in rng.zipf(1.5, ROWS) - 1], kind)


@pytest.fixture(scope="module")
def mixed(spark: SparkSession) -> DataFrame:
    """Key columns of many types, and values that sum up without rounding."""
    rng = np.random.default_rng(3)
    days = [dt.date(1969, 12, 31), dt.date(2024, 2, 29), None]
    times = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.timezone.utc), None]
    table = pa.table(
        {
            "text": _mixed(["a", "", None, "ö", "a,b", '"a"', "'", "A", "\0"], pa.string(), rng),
            "int": _mixed([7, -1, None, 0, *range(20, 60)], pa.int32(), rng),
            "double": _mixed([0.0, -0.0, float("nan"), None, math.inf, 1.5], pa.float64(), rng),
            "price": _mixed([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(12, 2), rng),
            "day": _mixed(days, pa.date32(), rng),
            "time": _mixed(times, pa.timestamp("us", "UTC"), rng),
            "bytes": _mixed([b"", b"\xff\0", None], pa.binary(), rng),
            "flag": _mixed([True, False, None], pa.bool_(), rng),
            "pair": _mixed(
                [{"a": 1, "b": None}, {"a": None, "b": "x"}, None], pa.struct({"a": "int32", "b": "string"}), rng
            ),
            "list": _mixed([["a", "b"], [], [None], ["ab"], None], pa.list_(pa.string()), rng),
            "i": pa.array(rng.integers(-1000, 1000, ROWS), pa.int16(), mask=rng.random(ROWS) < 0.3),
            "v": pa.array(rng.integers(-1000, 1000, ROWS) / 4, mask=rng.random(ROWS) < 0.3),
        }
    )
    return spark.createDataFrame(table).repartition(3).cache()


def _by_key(df: DataFrame, keys: list[str]) -> dict[str, dict[str, Any]]:
    rows = [row.asDict() for row in df.collect()]
    found = {repr([row.pop(key) for key in keys]): row for row in rows}
    assert len(found) == len(rows), "a key has more than one row"
    return found


def _close(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)


def _text(row: dict[str, Any]) -> str:
    """A row in which NaN is equal to NaN, and -0.0 to 0.0: of these, Spark's min and max may give either."""
    return repr(row).replace("-0.0,", "0.0,")


CASES: list[tuple[list[str], Any, dict[str, Any]]] = [
    (["text"], "fanout", {}),
    (["int"], "pkg", {"mode": "online"}),
    (["double"], "pkg", {"deal": "v"}),
    (["pair", "list"], "fanout", {"deal": "position"}),
    (["text", "int", "double", "price", "day", "time", "bytes", "flag"], "shuffle", {}),
    (["time"], PartialKey(WORKERS, choices=3), {}),
    (["price"], "fish", {"mode": "online"}),
]
MORE_CASES: list[tuple[list[str], Any, dict[str, Any]]] = [
    (["text"], "d_choices", {}),
    (["int"], "w_choices", {}),
    (["day"], "fish", {}),
    (["flag"], "d_choices", {"mode": "online"}),
    (["bytes"], "w_choices", {"mode": "online"}),
]


@pytest.mark.parametrize(
    ("keys", "scheme", "routing"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE_CASES)],
    ids=lambda each: str(each),
)
def test_the_result_is_that_of_a_plain_group_by(
    mixed: DataFrame, keys: list[str], scheme: Any, routing: dict[str, Any]
) -> None:
    chosen = {
        "n": Count(),
        "known": Count("v"),
        "total": Sum("i"),
        "amount": Sum("price"),
        "sum": Sum("v"),
        "mean": Mean("i"),
        "least": Min("v"),
        "longest": Max("text"),
        "last": Max("time"),
        "first": Min("double"),
        "kinds": DistinctCount("int"),
        "median": Quantiles("i", [0, 0.5, 1], k=2000),
        "spread": Variance("v"),
        "deviation": StdDev("i", sample=False),
    }
    ours = aggregate(mixed, keys, chosen, WORKERS, scheme, **routing)
    plain = mixed.groupBy(*keys).agg(
        F.count("*").alias("n"),
        F.count("v").alias("known"),
        F.sum("i").alias("total"),
        F.sum("price").alias("amount"),
        F.sum("v").alias("sum"),
        F.avg("i").alias("mean"),
        F.min("v").alias("least"),
        F.max("text").alias("longest"),
        F.max("time").alias("last"),
        F.min("double").alias("first"),
        F.count_distinct("int").alias("kinds"),
        F.percentile_approx("i", [0.0, 0.5, 1.0], 100_000).cast("array<double>").alias("median"),
        F.var_samp("v").alias("spread"),
        F.stddev_pop("i").alias("deviation"),
    )
    types = {field.name: field.dataType for field in plain.schema}
    assert {field.name: field.dataType for field in ours.schema} == types
    assert ours.columns == plain.columns
    found, expected = _by_key(ours, keys), _by_key(plain, keys)
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        for name in ("spread", "deviation"):
            assert _close(found[key].pop(name), row.pop(name)), (key, name)
        assert _text(found[key]) == _text(row), key


def test_both_exchanges_are_in_the_final_plan(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    rows = spark.range(1000).selectExpr("string(id % 9) text", "id i", "id unused")
    df = aggregate(rows, "text", {"n": Count(), "total": Sum("i")}, 16, "pkg", mode="online")
    assert len(df.collect()) == 9
    df.explain()
    plan = capsys.readouterr().out
    assert "isFinalPlan=true" in plan
    final = plan.split("== Initial Plan ==")[0]
    exchanges = [line for line in final.splitlines() if "Exchange" in line]
    assert len(exchanges) == 2, final
    assert "hashpartitioning(text#" in exchanges[0]
    assert SALT not in exchanges[0]
    assert SALT in exchanges[1]
    assert all(", 16), REPARTITION_BY_NUM" in line for line in exchanges)
    assert "AQEShuffleRead" not in final
    assert final.count("MapInArrow") == 2


def test_only_the_columns_in_use_are_shuffled(mixed: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    aggregate(mixed, "text", {"total": Sum("i")}, 4, "pkg").explain()  # dealt by content, that is by all columns
    lines = capsys.readouterr().out.splitlines()
    (phase_1,) = [i for i, line in enumerate(lines) if "MapInArrow phase_1(" in line]
    assert re.search(r"phase_1\(column_0#\d+, column_1#\d+\)", lines[phase_1])
    routed = next(line for line in lines[phase_1 + 2 :] if "Project [" in line)  # below the exchange
    assert re.search(r"Project \[text#\d+, i#\d+, [^\]]*", routed)


class Workers(Aggregate):
    """The workers that had rows of a key."""

    type = pa.list_(pa.int32())

    def zero(self) -> set[int]:
        return set()

    def add(self, state: set[int], batch: pa.RecordBatch) -> set[int]:
        return state | {TaskContext.get().partitionId()} if batch.num_rows else state

    def merge(self, a: set[int], b: set[int]) -> set[int]:
        return a | b

    def finish(self, state: set[int]) -> list[int]:
        return sorted(state)


def test_rows_are_added_where_the_plan_puts_them(mixed: DataFrame) -> None:
    plan = Plan("fanout", 16)
    found = _by_key(aggregate(mixed, "int", {"at": Workers()}, 16, "fanout"), ["int"])
    placed = add_salt(mixed, "int", 16, "fanout").repartition(16, "int", SALT)
    placed = placed.select("int", F.spark_partition_id().alias("worker"))
    expected = placed.groupBy("int").agg(F.sort_array(F.collect_set("worker")).alias("at"))
    assert found == _by_key(expected, ["int"])
    assert len(found["[7]"]["at"]) > 1
    whole = _by_key(aggregate(mixed, "int", {"at": Workers()}, 16, plan=plan), ["int"])
    assert all(len(row["at"]) == 1 for row in whole.values())


def test_the_class_of_the_docstring(spark: SparkSession) -> None:
    df = spark.createDataFrame([("x", "a b"), ("x", "b c"), ("y", None), ("x", "a")] * 50, "author string, text string")
    found = aggregate(df, "author", {"vocabulary": class_of_the_docstring()}, workers=3).collect()
    assert sorted(map(tuple, found)) == [("x", 3), ("y", 0)]


ODD: dict[str, tuple[str, int]] = {
    "empty": ("select string(id) k, id v from range(0)", 4),
    "single key": ("select 'k' k, id v from range(2000)", 4),
    "all keys null": ("select cast(null as string) k, id v from range(100)", 4),
    "single partition": ("select string(id % 9) k, id v from range(0, 500, 1, 1)", 4),
    "a thousand partitions": ("select string(id % 9) k, id v from range(0, 3000, 1, 1000)", 4),
    "more workers than rows": ("select string(id) k, id v from range(3)", 20),
    "a megabyte": ("select repeat(string(id % 3), 1048576) k, id v from range(12)", 2),
    "odd texts": (
        "select k, id v from range(99) lateral view "
        "explode(array('a,b', '\"', '''', 'ö', 'o\u0308', '', ' ', '\\n')) as k",
        4,
    ),
}


LONG = "a thousand partitions"


@pytest.mark.parametrize("case", [pytest.param(c, marks=pytest.mark.slow if c == LONG else ()) for c in ODD])
def test_odd_input(spark: SparkSession, case: str) -> None:
    query, workers = ODD[case]
    df = spark.sql(query)
    plan = Plan("fanout", workers) if case == LONG else None  # counting first would take three times as long
    ours = aggregate(df, "k", {"n": Count(), "total": Sum("v"), "top": TopK("v", 1)}, workers, plan=plan).drop("top")
    plain = df.coalesce(2).groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("total"))
    assert _by_key(ours, ["k"]) == _by_key(plain, ["k"])


def test_names_that_need_quotes_and_transform(spark: SparkSession) -> None:
    df = spark.range(10).select((F.col("id") % 2).alias("a.b `c`"), F.col("id").alias("x.y"))
    found = df.transform(aggregate, "a.b `c`", {"n.m": Sum("x.y")}, 3)
    assert found.columns == ["a.b `c`", "n.m"]
    assert sorted(map(tuple, found.collect())) == [(0, 20), (1, 25)]


def test_a_sum_that_does_not_fit_fails_the_job(spark: SparkSession) -> None:
    df = spark.range(2).select(F.lit("k").alias("k"), F.lit(2**62).alias("v"))
    with pytest.raises(PythonException, match="a sum does not fit into int64"):
        aggregate(df, "k", {"total": Sum("v")}, 2).collect()


def _best(scores: pa.Table) -> pa.Table:
    return scores.select(["v"]).drop_null().sort_by([("v", "descending")]).slice(0, 3)


def _mean(parts: pa.Table) -> pa.Table:
    return pa.table({"mean": [pc.mean(_best(parts)["v"])]})


@pytest.mark.parametrize(("keys", "scheme"), [(["text"], "fanout"), (["double", "pair", "list"], "pkg")], ids=str)
def test_a_split_function_gives_what_the_whole_would(mixed: DataFrame, keys: list[str], scheme: str) -> None:
    result = mixed.select(*keys).schema.add("mean", "double")
    ours = apply_split(mixed, keys, _best, _mean, result, WORKERS, scheme)
    best = F.slice(F.sort_array(F.collect_list("v"), asc=False), 1, 3)
    mean = F.aggregate(best, F.lit(0.0), lambda a, b: a + b, lambda total: F.try_divide(total, F.size(best)))
    plain = mixed.groupBy(*keys).agg(mean.alias("mean"))
    found, expected = _by_key(ours, keys), _by_key(plain, keys)
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        assert _close(found[key]["mean"], row["mean"]), key


def test_a_split_has_two_exchanges(mixed: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    apply_split(mixed, "text", _best, _mean, "text string, mean double", 16, "pkg", mode="online").explain()
    plan = capsys.readouterr().out
    exchanges = [line for line in plan.splitlines() if "Exchange hashpartitioning(text#" in line]
    assert [SALT in line for line in exchanges] == [False, True]


def test_a_split_may_change_columns_and_rows(spark: SparkSession) -> None:
    df = spark.range(0, 1000, 1, 4).select((F.col("id") % 3).alias("k"), F.col("id").alias("v"))
    found = apply_split(
        df,
        "k",
        lambda rows: pa.table({"k": rows["k"][:1], "n": [len(rows)], "odd": pa.array([{"x": [1]}])}),
        lambda parts: pa.table({"n": [pc.sum(parts["n"]).as_py(), -1], "word": ["a", None]}),
        "word string, n long",
        4,
    )
    assert sorted(map(tuple, found.collect()), key=str) == sorted(
        [("a", 334), ("a", 333), ("a", 333), *[(None, -1)] * 3], key=str
    )
    empty = apply_split(df.limit(0), "k", _best, _mean, "k long, mean double", 4)
    assert empty.collect() == []


@pytest.mark.parametrize(
    ("partial", "merge", "message"),
    [
        (lambda rows: 7, _mean, "partial: must return a pyarrow.Table, not int"),
        (_best, lambda parts: parts, r"merge: must return the columns \['mean'\], not \['v', 'k'\]"),
    ],
)
def test_functions_that_return_something_else(spark: SparkSession, partial: Any, merge: Any, message: str) -> None:
    df = spark.range(3).select(F.lit("k").alias("k"), F.col("id").alias("v"))
    with pytest.raises(PythonException, match=message):
        apply_split(df, "k", partial, merge, "mean double", 2, plan=Plan("fanout", 2)).collect()


class OneName(Workers):
    columns = "text"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no aggregates": ({"aggregates": {}}, r'aggregates: must be a mapping such as \{"n": Count\(\)\}, not \{\}'),
    "no mapping": ({"aggregates": Count()}, "aggregates: must be a mapping"),
    "not an aggregate": ({"aggregates": {"n": "count"}}, "aggregates: 'n' must be an Aggregate such as Count"),
    "a class": ({"aggregates": {"n": Count}}, "aggregates: 'n' must be an Aggregate"),
    "name of a key": ({"aggregates": {"TEXT": Count()}}, "aggregates: 'TEXT' must be a new name .*; taken are text"),
    "names that clash": ({"aggregates": {"n": Count(), "N": Count()}}, "aggregates: 'N' must be a new name"),
    "no name": ({"aggregates": {"": Count()}}, "aggregates: '' must be a new name"),
    "missing column": (
        {"aggregates": {"n": Sum("vv")}},
        "aggregates: 'n': 'vv' is not a column; allowed are text, int",
    ),
    "wrong type": ({"aggregates": {"n": Sum("text")}}, "cannot take a column of type string; allowed are integers"),
    "columns as text": ({"aggregates": {"n": OneName()}}, "aggregates: 'n': columns must be a list .* not 'text'"),
    "missing key": ({"keys": "word"}, "keys: 'word' is not a column"),
    "no workers": ({"workers": 0}, "workers: must be an integer from 1"),
    "unknown scheme": ({"scheme": "pgk"}, "scheme: 'pgk' is not known"),
    "other workers": ({"scheme": PartialKey(8)}, "workers: must be the scheme's own 8"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_before_any_job(spark: SparkSession, mixed: DataFrame, case: str) -> None:
    arguments, message = REFUSED[case]
    with no_job(spark), pytest.raises(InputError, match=message):
        aggregate(mixed, **{"keys": "text", "workers": 16, "aggregates": {"n": Count()}, **arguments})


def test_other_frames_are_refused(mixed: DataFrame) -> None:
    with pytest.raises(InputError, match="'text' has collation UTF8_LCASE"):
        aggregate(mixed.select("int", F.collate("text", "UTF8_LCASE").alias("text")), "int", {"m": Max("text")}, 4)
    with pytest.raises(InputError, match="'n': 'v' names 2 columns; rename all but one"):
        aggregate(mixed.select("int", "v", F.col("i").alias("v")), "int", {"n": Sum("v")}, 4)
    with pytest.raises(InputError, match="merge: must be a function of a table, not str"):
        apply_split(mixed, "int", _best, "mean", "mean double", 4)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="schema: must be a StructType or a DDL string, not list"):
        apply_split(mixed, "int", _best, _mean, ["mean"], 4)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="schema: must be as in 'player string, mean double', not 'n nonsense'"):
        apply_split(mixed, "text", lambda rows: rows, lambda rows: rows, "n nonsense", 2)
    months = mixed.select("text").withColumn("months", F.expr("make_ym_interval(1, 2)"))
    with pytest.raises(InputError, match="cannot hand to Python: months interval year to month; cast or drop it"):
        aggregate(months, "months", {"n": Count()}, 2, scheme="hash")
    with pytest.raises(InputError, match="'__unskew_state_0' must be renamed"):
        aggregate(mixed.withColumnRenamed("text", "__unskew_state_0"), "__unskew_state_0", {"n": Count()}, 2)
