"""Streams whose functions fail, and whose queries change: an error says what to do, and nothing is lost or mixed."""

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from streams import Feed, results, start, words

from unskew import make
from unskew.aggregates import Aggregate, Count, Max, TopK
from unskew.errors import InputError
from unskew.spark import (
    PROVIDER,
    ROCKS,
    Adaptive,
    Conversation,
    Feedback,
    aggregate,
    apply_split,
    apply_whole,
    map_balanced,
    repartition,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers cannot import this file
W, ROWS, SCHEMA = 4, 2_000, "word string, v bigint"


class Longest(Aggregate):
    """The longest word, found by a function that fails on one."""

    columns = ("word",)
    type = pa.int64()

    def __init__(self, poison: str = "") -> None:
        self.poison = poison

    def __repr__(self) -> str:
        return "Longest()"

    def zero(self) -> Any:
        return 0

    def add(self, state: Any, batch: pa.RecordBatch) -> Any:
        for word in batch["word"].to_pylist():
            if word == self.poison:
                raise ValueError("cannot read it")
            state = max(state, len(word))
        return state

    def merge(self, a: Any, b: Any) -> Any:
        return max(a, b)

    def finish(self, state: Any) -> Any:
        return state


@pytest.mark.slow
def test_a_poison_row_is_named_with_its_function_and_a_restart_after_a_fix_loses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    feed = Feed(spark, tmp_path / "rows", SCHEMA)
    feed.put(pa.table({"word": ["a", "bb"] * 50, "v": range(100)}))
    feed.put(pa.table({"word": ["bb", "poison", "a"] * 30, "v": range(90)}))
    feed.put(pa.table({"word": ["a"] * 30, "v": range(30)}))
    spark.conf.set(PROVIDER, ROCKS)

    def query(poison: str) -> Any:
        results = {"n": Count(), "longest": Longest(poison)}
        stream = aggregate(feed.stream(), "word", results, W, plan=Adaptive(tmp_path / "checkpoint"))
        return start(stream, tmp_path / "checkpoint", "update")

    with pytest.raises(
        StreamingQueryException, match=r"Longest\(\) failed on the row \{'word': 'poison'\}: ValueError"
    ):
        query("poison").processAllAvailable()
    mended = query("")
    mended.processAllAvailable()
    mended.stop()
    spark.conf.unset(PROVIDER)
    rows = results(spark, tmp_path / "checkpoint").groupBy("word").agg(F.max("n"), F.max("longest")).collect()
    assert {tuple(row) for row in rows} == {("a", 110, 1), ("bb", 80, 2), ("poison", 30, 6)}


def careful(rows: pa.Table | pa.RecordBatch) -> None:
    if "poison" in rows["word"].to_pylist():
        raise ValueError("cannot read it")


def careful_batches(batches: Any) -> Any:
    for batch in batches:
        careful(batch)
        yield batch


def careful_table(rows: pa.Table) -> pa.Table:
    careful(rows)
    return rows


def poisoned(feed: Feed, checkpoint: Path, way: str) -> DataFrame:
    """A stream with a function that fails on a word."""
    rows, adaptive = feed.stream(), Adaptive(checkpoint)
    timed: dict[str, Any] = {"time": "ts", "window": "1 minute", "watermark": "0 seconds"}
    if way == "apply_split":
        parts = ("word", careful_table, lambda parts: parts.select(["word"]), "word string", W)
        return apply_split(rows, *parts, plan=adaptive, **timed)
    if way == "apply_whole":
        return apply_whole(
            rows, "word", careful_table, "word string, v bigint, ts timestamp", W, plan=adaptive, **timed
        )
    if way == "map_balanced":
        return map_balanced(rows, careful_batches, rows.schema, W, "v")
    if way == "Conversation":
        return Conversation(make("posg", W)).map(rows, "word", careful_batches, rows.schema, checkpoint=checkpoint)
    feedback = Feedback(make("cg", W))
    return feedback.timed(repartition(rows, "word", W, feedback, plan=adaptive), careful_batches, rows.schema)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["apply_split", "apply_whole", "map_balanced", "Conversation", "Feedback"])
def test_a_function_that_fails_is_named_with_the_row(spark: SparkSession, tmp_path: Path, way: str) -> None:
    feed = Feed(spark, tmp_path / "rows", "word string, v bigint, ts timestamp")
    for second, found in ((0, ["a", "poison", "b"]), (1000, ["c"])):  # the second ends the windows of the first
        times = pa.array([second * 10**6] * len(found), pa.timestamp("us", "UTC"))
        feed.put(pa.table({"word": found, "v": range(len(found)), "ts": times}))
    query = start(poisoned(feed, tmp_path / "checkpoint", way), tmp_path / "checkpoint")
    said = rf"careful_{'table' if 'apply' in way else 'batches'}.*ValueError: cannot read it"
    with pytest.raises(StreamingQueryException, match=said) as failed:
        query.processAllAvailable()
    assert "{'word': 'poison', 'v': 1," in str(failed.value)


def test_other_aggregates_or_windows_are_refused_and_other_workers_go_on(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "rows", SCHEMA)

    def query(results: dict[str, Aggregate], workers: int, scheme: str) -> DataFrame:
        return aggregate(feed.stream(), "word", results, workers, scheme, plan=Adaptive(tmp_path / "checkpoint"))

    feed.put(words(0, ROWS))
    running = start(query({"n": Count()}, 4, "fanout"), tmp_path / "checkpoint", "update")
    running.processAllAvailable()
    running.stop()
    with pytest.raises(
        InputError, match=r"holds states whose 'aggregates' is .*Count.*not .*Max.*start anew with another checkpoint"
    ):
        query({"n": Max("v")}, 4, "fanout")
    feed.put(words(1, ROWS))
    running = start(query({"rows": Count()}, 3, "w_choices"), tmp_path / "checkpoint", "update")
    running.processAllAvailable()
    running.stop()
    second = spark.read.parquet(f"{tmp_path}/checkpoint-results/batch=1")
    found = {row["word"]: row["rows"] for row in second.collect()}
    whole = {row["word"]: row["count"] for row in feed.batch().groupBy("word").count().collect()}
    assert found == {word: whole[word] for word in found}
    assert "word-1" in found


def test_states_with_a_ttl_are_others_than_those_without(spark: SparkSession, tmp_path: Path) -> None:
    feed, adaptive = Feed(spark, tmp_path / "rows", SCHEMA), Adaptive(tmp_path / "checkpoint")
    before = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, ROCKS)
    try:
        aggregate(feed.stream(), "word", {"top": TopK("v")}, 4, plan=adaptive)
        (tmp_path / "checkpoint" / "offsets").mkdir()
        (tmp_path / "checkpoint" / "offsets" / "0").touch()  # as if it had begun
        aggregate(feed.stream(), "word", {"top": TopK("v")}, 4, plan=adaptive)
        with pytest.raises(
            InputError, match=r"^checkpoint: .* holds states whose 'ttl' is false, not true; go on with"
        ):
            aggregate(feed.stream(), "word", {"top": TopK("v")}, 4, plan=adaptive, ttl="1 hour")
    finally:
        spark.conf.set(PROVIDER, before)


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("names of keys", {}, {"keys": "other"}),
        ("names of keys", {"keys": ["word", "other"]}, {"keys": ["other", "word"]}),
        ("keys", {}, {"keys": "v"}),
        ("time", {}, {"time": "later"}),
        ("window", {}, {"slide": "5 minutes"}),
    ],
)
def test_other_keys_or_times_are_refused_also_of_the_same_type(
    spark: SparkSession, tmp_path: Path, field: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    """Spark compares types only: it would go on, and mix the states of two columns."""
    feed = Feed(spark, tmp_path / "rows", "word string, other string, v bigint, ts timestamp, later timestamp")
    asked = {"keys": "word", "time": "ts", "window": "10 minutes", **before}

    def query(options: dict[str, Any]) -> None:
        aggregate(feed.stream(), aggregates={"n": Count()}, workers=4, plan=Adaptive(tmp_path), **options)

    query(asked)
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").touch()  # as if it had begun
    query(asked)
    with pytest.raises(InputError, match=rf"^checkpoint: .* holds states whose '{field}' is .*start anew with another"):
        query(asked | after)


def test_other_columns_are_refused_where_whole_rows_are_in_the_state(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "rows", "word string, v bigint, w bigint, ts timestamp")

    def query(*columns: str) -> None:
        arguments = ("word", lambda rows: rows, "word string", 4)
        windows = {"time": "ts", "window": "1 hour"}
        apply_whole(feed.stream().select(*columns), *arguments, plan=Adaptive(tmp_path), **windows)  # type: ignore[arg-type]

    query("word", "v", "w", "ts")
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").touch()  # as if it had begun
    with pytest.raises(InputError, match=r"^checkpoint: .* holds states whose 'columns' is .*\"v\", \"w\""):
        query("word", "w", "v", "ts")


def test_other_windows_than_those_of_the_checkpoint_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "rows", "word string, ts timestamp")

    def split(window: str) -> None:
        adaptive = Adaptive(tmp_path, name="split")
        arguments = ("word", lambda rows: rows, lambda parts: parts, "word string", 4)
        apply_split(feed.stream(), *arguments, plan=adaptive, time="ts", window=window)

    def whole(window: str) -> None:
        adaptive = Adaptive(tmp_path, name="whole")
        arguments = ("word", lambda rows: rows, "word string", 4)
        apply_whole(feed.stream(), *arguments, plan=adaptive, time="ts", window=window)

    for call in (split, whole):
        call("10 minutes")
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").touch()  # as if it had begun
    for call in (split, whole):
        call("600 seconds")
        message = r"^checkpoint: .* holds states whose 'window' is .*\"600000000 us\".* not .*\"3600000000 us\""
        with pytest.raises(InputError, match=message):
            call("1 hour")
    with pytest.raises(
        InputError, match=r"holds the states of an Adaptive called 'split', not 'other'; go on with name="
    ):
        aggregate(feed.stream(), "word", {"n": Count()}, 4, plan=Adaptive(tmp_path, name="other"))
