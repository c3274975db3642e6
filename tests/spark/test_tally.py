"""What workers tell of the keys of a micro-batch."""

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery
from streams import Feed, process, records, results, start, wait_until, words

from unskew import Plan, key_ids
from unskew.aggregates import Count
from unskew.hashing import candidates_of
from unskew.spark import Adaptive, aggregate, apply_split
from unskew.spark.keys import key_id, shown_key
from unskew.spark.mapping import arrow_schema
from unskew.spark.streaming.accumulated_tally import (
    UNKNOWN,
    ToldByStage,
    ToldParam,
    WorkersStage,
    accumulator_for,
    take_told,
    told_of,
)
from unskew.spark.streaming.observed_tally import TOLD, told_in, told_rows
from unskew.spark.streaming.seen import Seen
from unskew.spark.streaming.tally import Tally, Told, seen_by_workers

W, ROWS = 8, 20_000
KIND = pa.struct({"rows": pa.int64(), "key": pa.struct({"0": pa.string()}), "named": pa.bool_()})
Listed = tuple[int, dict[str, int], list[str]]  # rows, those of the listed keys, and the keys that are named


def told_by(words: list[str], workers: int = W, panes: int = 1) -> Listed:
    """What a task tells. It is the same in an accumulator and as an observed metric."""
    tally = Tally(["word"], workers)
    for pane in range(panes):
        found = Counter(words[pane::panes])
        keys = pa.table({"word": pa.array(list(found), pa.large_string()), "pane": [pane] * len(found)})
        tally.add(keys, np.array([*found.values()], np.int64))
    told, accumulated = told_rows(tally, KIND), told_of(tally)
    assert told is not None
    assert told.type == KIND
    first, *others = told.to_pylist()
    assert (first["key"], first["named"]) == (None, False)
    names = [row["key"]["0"] for row in others if row["named"]]
    listed = {row["key"]["0"]: row["rows"] for row in others}
    assert (accumulated.rows, accumulated.counts) == (first["rows"], [*listed.values()])
    assert accumulated.ids == [*map(key_of, listed)]
    assert accumulated.names == {int(key_ids([name])[0]): name for name in names}
    return first["rows"], listed, names


def seen_in(told: list[dict[str, Any]] | None, workers: int, most: int, plans: dict[int, Plan]) -> Seen:
    """What the driver reads in an observed metric."""
    by_worker, version = told_in({TOLD: told}, workers)
    return seen_by_workers(by_worker, version, workers, most, plans)


def row_of(worker: int, rows: int, key: str | None = None, workers: int = W) -> dict[str, Any]:
    """As the driver gets it."""
    if key is None:
        return {"worker": worker, "workers": workers, "version": 3, "rows": rows, "id": None, "key": None}
    return {"worker": worker, "workers": None, "version": None, "rows": rows, "id": key_of(key), "key": key}


def key_of(word: str) -> int:
    return int(key_ids([word]).view(np.int64)[0])


@pytest.mark.parametrize("panes", [1, 7])
def test_a_task_tells_its_rows_and_the_keys_that_are_not_rare(panes: int) -> None:
    some = [f"word-{rank}" for rank in np.random.default_rng(0).zipf(1.2, 6000).clip(max=2000).tolist()]
    rows, listed, names = told_by(some, panes=panes)
    assert rows == 6000
    assert listed == {word: count for word, count in Counter(some).items() if count > 6000 / 160}
    assert len(listed) > 100 // W
    assert list(listed.values()) == sorted(listed.values(), reverse=True)
    assert names == list(listed)[: 100 // W]


def test_a_key_that_is_dealt_over_very_many_workers_is_listed_and_what_is_told_stays_small() -> None:
    others = [f"word-{i}" for i in range(200) for _ in range(10)]  # are frequent on this worker
    words = ["spread"] * 20 + others + [f"rare-{i}" for i in range(20_000)]
    few, many, very_many = (told_by(words, workers) for workers in (4, 256, 10_000))
    assert few[1] == {}  # with few workers it would not be hot
    assert next(iter(many[1].items())) == ("spread", 20)
    assert len(many[1]) == 2**13 // 256
    assert (len(very_many[1]), len(very_many[2])) == (8, 1)


def test_keys_that_are_all_different_are_not_frequent() -> None:
    assert told_by([f"word-{i}" for i in range(1000)]) == (1000, {}, [])
    seen = seen_in([row_of(0, 1000)], W, 160, {})
    assert seen.frequencies is not None
    assert (seen.rows, len(seen.frequencies.key_ids)) == (1000, 0)


def test_keys_that_come_one_by_one_are_told_as_those_that_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unskew.spark.streaming.tally.MOST_HELD", 10)
    words = ["the", "a", "the", "cat"] * 50 + [f"word-{i}" for i in range(200)]
    assert told_by(words, panes=len(words)) == told_by(words) == (400, {"the": 100, "a": 50, "cat": 50}, ANY)


def test_a_task_without_rows_tells_no_key() -> None:
    assert told_rows(Tally(["word"], W), KIND) is None
    assert told_of(Tally(["word"], W)) == Told(0, [], [], {})
    assert seen_by_workers({0: told_of(Tally(["word"], W))}, 0, W, 20, {}) == Seen(0, None)


def test_the_driver_knows_the_load_and_where_rows_would_be_at_home() -> None:
    words = [f"word-{i}" for i in range(50)]
    homes = candidates_of(key_ids(words), 0, W)
    rng, told, at_home, load = np.random.default_rng(1), [], np.zeros(W, np.int64), np.zeros(W, np.int64)
    totals = Counter[str]()
    for word, home in zip(words, homes.tolist(), strict=True):
        for worker in {home, int(rng.integers(W))}:  # some keys are split, over their home and another worker
            rows = int(rng.integers(1, 100))
            told.append(row_of(worker, rows, word))
            at_home[home] += rows
            load[worker] += rows
            totals[word] += rows
    told = [*(row_of(worker, load[worker]) for worker in range(W)), *told]
    failed = [row_of(0, 10_000), row_of(0, 9000, "other")]  # was retried: the last one counts
    seen = seen_in([*failed, *told], W, 20, {3: Plan("fanout", W)})
    assert seen.frequencies is not None
    assert seen.frequencies.home_load is not None
    assert (seen.rows, seen.version) == (load.sum(), 3)
    assert seen.load.tolist() == load.tolist()  # type: ignore[union-attr]
    assert seen.frequencies.home_load.tolist() == at_home.tolist()
    assert len(seen.frequencies.key_ids) == 20
    assert seen.frequencies.counts.tolist() == [rows for _, rows in totals.most_common(20)]
    assert {seen.names[int(key)] for key in seen.frequencies.key_ids} <= set(words)
    elsewhere = seen_in(told, W, 20, {3: Plan("hash", W, cold_salt=1)})
    assert elsewhere.frequencies is not None
    assert elsewhere.frequencies.home_load is None  # cold keys were not at home
    assert seen_in(None, W, 20, {}).rows == 0
    assert seen_in(told, W + 1, 20, {}).rows == 0  # of a query before, with fewer workers


def test_keys_that_share_an_id_are_counted_as_one() -> None:
    same = {**row_of(0, 3, "rare"), "id": key_of("frequent")}  # as (null, "a") and ("a", null) do
    seen = seen_in([row_of(0, 100), row_of(0, 90, "frequent"), same], W, 20, {})
    assert seen.frequencies is not None
    assert seen.frequencies.counts.tolist() == [93]
    assert list(seen.names.values()) == ["frequent"]


def test_more_workers_than_are_counted_have_no_load() -> None:
    seen = seen_in([row_of(7, 5, workers=20_001), row_of(7, 5, "the")], 20_001, 160, {})
    assert seen.frequencies is not None
    assert (seen.rows, seen.load, seen.frequencies.counts.tolist()) == (5, None, [5])


def heard_from(*told: tuple[str | None, int, int, dict[int, int]]) -> ToldByStage:
    """What tasks of a query, batch and stage told one after the other: how many rows each worker had."""
    param = ToldParam()
    heard = param.zero({})
    for query, batch, stage, rows in told:
        each = {worker: Told(count, [], [], {}) for worker, count in rows.items()}
        assert param.addInPlace(heard, {WorkersStage(query, batch, stage, W): each}) is heard
    return heard


def rows_in(heard: ToldByStage, batch: int, workers: int = W) -> dict[int, int] | None:
    told = take_told(heard, "this", batch, workers)
    return None if told is None else {worker: each.rows for worker, each in told.items()}


def test_what_is_told_in_an_accumulator_is_taken_once_and_only_by_its_query() -> None:
    before, later = ("this", 3, 8, {0: 5}), ("this", 5, 14, {0: 6})
    heard = heard_from(before, ("this", 4, 10, {0: 1, 1: 2}), ("another", 4, 11, {0: 9}), later)
    assert rows_in(heard, 4) == {0: 1, 1: 2}
    assert [run.stage for run in heard] == [11, 14]
    assert rows_in(heard, 4) is None
    assert rows_in(heard, 5, workers=W + 1) == {}  # was told by a query with fewer workers


def test_of_a_worker_that_told_several_times_the_last_time_counts() -> None:
    retried, in_part = ("this", 4, 10, {1: 3}), ("this", 4, 12, {0: 4})
    assert rows_in(heard_from(in_part, ("this", 4, 10, {0: 1, 1: 2}), retried), 4) == {0: 4, 1: 3}
    failed, again = ("this", 4, 10, {0: 4, 1: 2}), ("this", 4, 13, {0: 6, 1: 0})  # by another plan
    assert rows_in(heard_from(failed, again), 4) == {0: 6, 1: 0}


def test_tasks_that_do_not_know_their_micro_batch_tell_of_the_one_that_ends_next() -> None:
    assert rows_in(heard_from((None, UNKNOWN, 10, {0: 1})), 4) == {0: 1}


def test_what_nobody_takes_is_forgotten() -> None:
    heard = heard_from(*(("this", batch, batch, {0: 1}) for batch in range(100)))
    assert [run.batch for run in heard] == [*range(84, 100)]


def test_keys_of_plain_types_have_the_ids_and_names_that_spark_gives_them(spark: SparkSession) -> None:
    columns = {
        "flag boolean": [True, False, None],
        "small smallint": [-3, None, 7],
        "whole int": [2**31 - 1, -(2**31), None],
        "large bigint": [2**63 - 1, None, -(2**63)],
        "day date": [date(1, 1, 1), date(9999, 12, 31), None],
        "text string": ["ä, ö\u2028" * 100, "", None],
        "raw binary": [b"\xff\x00" * 300, None, b"caf\xc3\xa9"],
    }
    df = spark.createDataFrame([*zip(*columns.values(), strict=True)], ", ".join(columns))
    keys = df.toArrow()
    for names in (*([name] for name in df.columns), df.columns):
        assert accumulator_for(df, names, "test") is not None
        tally = Tally(names, W)
        tally.add(keys, np.array([3, 2, 1]))
        found, each = told_of(tally), [F.col(name) for name in names]
        expected = df.select(key_id(*each).alias("id"), shown_key(each).alias("key")).collect()
        assert found.ids == [row["id"] for row in expected]
        assert [found.names[key % 2**64] for key in found.ids] == [row["key"] for row in expected]
    assert accumulator_for(df.select(F.lit(1.5).alias("key")), ["key"], "test") is None  # only Spark hashes these


@pytest.fixture(params=["accumulated", "observed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How tasks tell. On Spark Connect it is always observed."""
    if request.param == "observed":
        monkeypatch.setattr("unskew.spark.streaming.adaptive.accumulator_for", lambda df, keys, name: None)
    return str(request.param)


def test_workers_that_aggregate_tell_and_are_even_from_the_second_batch_on(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    feed, checkpoint = Feed(spark, tmp_path / "rows", "word string, v bigint"), tmp_path / "checkpoint"
    query = start(aggregate(feed.stream(), "word", {"n": Count()}, W, plan=Adaptive(checkpoint)), checkpoint, "update")
    tables = [words(seed, ROWS) for seed in range(3)]
    found = process(query, feed, checkpoint, *tables)
    plan = query._jsq.explainInternal(False)  # of the last batch
    query.stop()
    homes = candidates_of(key_ids(tables[0]["word"].to_pylist()), 0, W)
    assert found[0]["load"] == np.bincount(homes, minlength=W).tolist()
    assert [sum(record["load"]) for record in found] == [ROWS] * 3
    assert [record["max_over_mean"] < 1.1 for record in found] == [False, True, True]
    assert [record["plan"] for record in found] == [0, 1, 2]
    assert [record["hot_keys"][0]["key"] for record in found[1:]] == ["word-1"] * 2
    assert "approx_top_k" not in plan
    assert ("__unskew_done" in plan) == (way == "observed")
    assert plan.count("FileScan text") == 1  # the plan is read once, however often it is used
    assert last_counts(spark, checkpoint) == counts_of(tables)


def last_counts(spark: SparkSession, checkpoint: Path) -> dict[str, int]:
    """The count of each word, as it was put out last."""
    rows = results(spark, checkpoint).groupBy("word").agg(F.max("n").alias("n")).collect()
    return {row["word"]: row["n"] for row in rows}


def counts_of(tables: list[pa.Table]) -> dict[str, int]:
    """How often each word is in all of them."""
    return {each["values"]: each["counts"] for each in pa.concat_tables(tables)["word"].value_counts().to_pylist()}


def test_a_stream_that_is_built_again_hears_the_query_that_runs(spark: SparkSession, tmp_path: Path, way: str) -> None:
    """As when a cell of a notebook is run once more."""
    feed, checkpoint = Feed(spark, tmp_path / "rows", "word string, v bigint"), tmp_path / "checkpoint"

    def built() -> DataFrame:
        return aggregate(feed.stream(), "word", {"n": Count()}, W, plan=Adaptive(checkpoint))

    query = start(built(), checkpoint, "update")
    process(query, feed, checkpoint, words(0, 2000))
    built()
    found = process(query, feed, checkpoint, words(1, 2000), words(2, 2000))
    query.stop()
    assert [sum(record["load"]) for record in found] == [2000] * 3
    if way == "accumulated":
        accumulator = accumulator_for(feed.stream(), ["word"], Adaptive(checkpoint).folder().address)
        assert accumulator is not None
        assert accumulator.value == {}  # nothing is left of what was told


def test_where_workers_tell_a_damaged_or_missing_plan_costs_balance_only(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    feed, checkpoint = Feed(spark, tmp_path / "rows", "word string, v bigint"), tmp_path / "checkpoint"
    file = checkpoint / "unskew/route/plan.txt"
    query = start(aggregate(feed.stream(), "word", {"n": Count()}, W, plan=Adaptive(checkpoint)), checkpoint, "update")
    tables = [words(seed, ROWS) for seed in range(5)]
    process(query, feed, checkpoint, tables[0])
    file.write_text(file.read_text()[:-100])
    with pytest.warns(UserWarning, match=r"^plan: batch 1 found .*plan.txt damaged or missing"):
        process(query, feed, checkpoint, tables[1])
    process(query, feed, checkpoint, tables[2])
    file.unlink()
    with pytest.warns(UserWarning, match=r"^plan: batch 3 found"):
        process(query, feed, checkpoint, tables[3])
    found = process(query, feed, checkpoint, tables[4])
    query.stop()
    assert [record["max_over_mean"] < 1.1 for record in found] == [False, False, True, False, True]
    assert [record["plan"] == -1 for record in found] == [False, True, False, True, False]
    assert last_counts(spark, checkpoint) == counts_of(tables)


def test_a_batch_that_is_used_twice_or_runs_again_after_an_error_is_counted_once(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    feed, checkpoint = Feed(spark, tmp_path / "rows", "word string, v bigint"), tmp_path / "checkpoint"
    broken = False

    def use_twice(batch: DataFrame, number: int) -> None:
        assert batch.count() == batch.count()
        if broken:
            raise RuntimeError("the sink is full")

    def started() -> StreamingQuery:
        counts = aggregate(feed.stream(), "word", {"n": Count()}, W, plan=Adaptive(checkpoint))
        writer = counts.writeStream.foreachBatch(use_twice).outputMode("update")
        return writer.option("checkpointLocation", str(checkpoint)).start()

    query = started()
    process(query, feed, checkpoint, words(0, 2000), words(1, 2000))
    broken = True
    feed.put(words(2, 2000))
    with pytest.raises(StreamingQueryException, match="the sink is full"):
        query.processAllAvailable()
    broken = False
    plan_before = (checkpoint / "unskew/route/plan.txt").read_text()
    query = started()
    assert (checkpoint / "unskew/route/plan.txt").read_text() == plan_before
    wait_until(lambda: len(records(checkpoint)) == 3)
    query.stop()
    assert [sum(record["load"]) for record in records(checkpoint)] == [2000] * 3


def test_workers_that_are_not_heard_are_a_warning(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark ends all accumulators of Python when one of them fails, and says so in its log only."""
    feed, checkpoint = Feed(spark, tmp_path / "rows", "word string, v bigint"), tmp_path / "checkpoint"
    query = start(aggregate(feed.stream(), "word", {"n": Count()}, W, plan=Adaptive(checkpoint)), checkpoint, "update")
    process(query, feed, checkpoint, words(0, 2000))
    monkeypatch.setattr("unskew.spark.streaming.adaptive.take_told", lambda *arguments: None)
    said = r"^plan: nothing was heard from the workers of a micro-batch, so the plan stays"
    feed.put(words(1, 2000))
    with pytest.warns(UserWarning, match=said) as warned:  # when the batch is over
        wait_until(lambda: list(warned))
    monkeypatch.undo()
    found = process(query, feed, checkpoint, words(2, 2000))
    query.stop()
    assert [record["batch"] for record in found] == [0, 2]


def test_texts_that_are_no_utf_8_are_keys_as_all_others(spark: SparkSession, tmp_path: Path, way: str) -> None:
    feed, checkpoint = Feed(spark, tmp_path / "rows", "raw binary, v bigint"), tmp_path / "checkpoint"
    stream = feed.stream().withColumn("key", F.col("raw").cast("string"))
    query = start(aggregate(stream, "key", {"n": Count()}, W, plan=Adaptive(checkpoint)), checkpoint, "update")
    rows = pa.table({"raw": pa.array([b"\xff\xfe", b"fine"] * 500), "v": range(1000)})
    found = process(query, feed, checkpoint, rows, rows)
    query.stop()
    assert sorted(hot["key"] for hot in found[1]["hot_keys"]) == ["fine", "\ufffd\ufffd"]


def test_keys_of_any_type_are_told_by_name(spark: SparkSession, tmp_path: Path) -> None:
    """Also those that Python has no value for, such as a time in the year 199,989."""
    schema = "t timestamp, d decimal(20,3), s struct<a: array<int>, b: binary>, v bigint"
    feed, checkpoint = Feed(spark, tmp_path / "rows", schema), tmp_path / "checkpoint"
    keys = ["t", "d", "s"]
    query = start(aggregate(feed.stream(), keys, {"n": Count()}, W, plan=Adaptive(checkpoint)), checkpoint, "update")
    kind = arrow_schema(feed.stream().schema)
    far = 6_248_880_000_000_000_000  # microseconds
    columns = {
        "t": pa.array([far, None] * 500).cast(pa.timestamp("us", "UTC")),
        "d": pa.array([None, 1] * 500, pa.int32()).cast(kind.field("d").type),
        "s": pa.array([{"a": [1, None], "b": b"\xff"}, None] * 500, kind.field("s").type),
        "v": pa.array(range(1000)),
    }
    found = process(query, feed, checkpoint, *[pa.table(columns, kind)] * 2)
    query.stop()
    names = sorted(hot["key"] for hot in found[1]["hot_keys"])
    assert names[0].startswith("+199989-02-15 00:00:00, null, ")
    assert names[1] == "null, 1.000, null"
    rows = results(spark, checkpoint).groupBy(*keys).agg(F.max("n").alias("n")).select("n").collect()
    assert [row["n"] for row in rows] == [1000, 1000]


LONG = "x" * 100_000


@pytest.mark.parametrize(
    ("kind", "hot", "name"),
    [
        ("double", [0.0, -0.0], "0.0"),
        ("double", [float("nan")], "NaN"),
        ("string", [None], "null"),
        ("string", [""], ""),
        ("string", [LONG], LONG[:200]),
    ],
)
def test_odd_keys_are_found_and_dealt(
    spark: SparkSession, tmp_path: Path, kind: str, hot: list[Any], name: str
) -> None:
    feed, checkpoint = Feed(spark, tmp_path / "rows", f"key {kind}, v bigint"), tmp_path / "checkpoint"
    query = start(aggregate(feed.stream(), "key", {"n": Count()}, W, plan=Adaptive(checkpoint)), checkpoint, "update")
    cold = [i / 7 for i in range(1, 1001)] if kind == "double" else [f"word-{i}" for i in range(1000)]
    keys = pa.array([*cold, *(hot * (1000 // len(hot)))], pa.float64() if kind == "double" else pa.string())
    found = process(query, feed, checkpoint, *[pa.table({"key": keys, "v": np.arange(2000)})] * 2)
    query.stop()
    assert [record["max_over_mean"] < 1.2 for record in found] == [False, True]
    assert [each["key"] for each in found[1]["hot_keys"]] == [name]
    rows = results(spark, checkpoint).groupBy("key").agg(F.max("n").alias("n")).select("n").collect()
    assert sorted(row["n"] for row in rows) == [2] * 1000 + [2000]


def test_a_split_function_gets_the_users_columns_and_its_workers_tell(spark: SparkSession, tmp_path: Path) -> None:
    schema = "`a.b` string, __unskew_done bigint, ts timestamp"
    feed, checkpoint = Feed(spark, tmp_path / "rows", schema), tmp_path / "checkpoint"
    stream = feed.stream().withColumn("a.b", F.coalesce("`a.b`", F.lit("none")))  # cannot be null
    windows = {"time": "ts", "window": "1 minute", "watermark": "1 hour"}

    def count(rows: pa.Table) -> pa.Table:
        assert rows.column_names == ["__unskew_done", "ts", "a.b"]
        return pa.table({"n": [len(rows)]})

    def total(parts: pa.Table) -> pa.Table:
        return pa.table({"n": [pc.sum(parts["n"]).as_py()]})

    def split(**plan: Any) -> DataFrame:
        rows = stream.select("__unskew_done", "ts", "`a.b`")
        return apply_split(rows, "a.b", count, total, "n bigint, `a.b` string", W, **plan, **windows)

    adaptive = split(plan=Adaptive(checkpoint))
    assert adaptive.schema == split(plan=Plan("fanout", W)).schema
    query = start(adaptive, checkpoint, "update")
    rows = ["the", None, "the", "the"] * 100
    times = pa.array(range(0, 400 * 10**6, 10**6), pa.timestamp("us", "UTC"))  # of 7 windows
    table = pa.table({"a.b": rows, "__unskew_done": range(400), "ts": times})
    found = process(query, feed, checkpoint, table, table)
    query.stop()
    assert [sum(record["load"]) for record in found] == [400, 400]
    assert [each["key"] for each in found[1]["hot_keys"]] == ["the", "none"]
    assert found[1]["max_over_mean"] < 1.5 < found[0]["max_over_mean"]
    last = results(spark, checkpoint).groupBy("window", "`a.b`").agg(F.max("n").alias("n"))
    sums = last.groupBy("`a.b`").agg(F.count("n"), F.sum("n")).collect()
    assert sorted(map(tuple, sums)) == [("none", 7, 200), ("the", 7, 600)]
