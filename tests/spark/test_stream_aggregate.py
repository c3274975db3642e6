"""Aggregates of streams: what a finished stream gives is what a batch of the same rows gives."""

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from streams import Feed, results, start

from unskew import SCHEMES, Frequencies, key_ids, make_plan
from unskew.aggregates import Aggregate, Count, DistinctCount, Max, Mean, Min, Quantiles, StdDev, Sum, TopK, Variance
from unskew.errors import InputError
from unskew.partitioning import ALGORITHMS
from unskew.spark import Adaptive, aggregate, apply_split, apply_whole, repartition
from unskew.spark.apply_whole import sort_as_spark
from unskew.spark.streaming.merging import PROVIDER, ROCKS
from unskew.spark.windows import microseconds

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers cannot import this file
W = 4
SCHEMA = "word string, v bigint, x double, ts timestamp"
BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
NATIVE = {
    "n": Count(),
    "nx": Count("x"),
    "total": Sum("v"),
    "least": Min("x"),
    "most": Max("word"),
    "mean": Mean("x"),
    "spread": Variance("x"),
    "deviation": StdDev("x", sample=False),
}


class Texts(Aggregate):
    """All different values, as one text."""

    columns = ("v",)
    type = pa.string()

    def zero(self) -> Any:
        return set()

    def add(self, state: Any, batch: pa.RecordBatch) -> Any:
        return state | {value % 7 for value in batch["v"].to_pylist()}

    def merge(self, a: Any, b: Any) -> Any:
        return a | b

    def finish(self, state: Any) -> Any:
        return " ".join(map(str, sorted(state)))


@dataclass(frozen=True)
class Applied(Aggregate):
    """The sum of what a function makes of the values."""

    function: Callable[[int], int]
    columns = ("v",)
    type = pa.int64()

    def zero(self) -> Any:
        return 0

    def add(self, state: Any, batch: pa.RecordBatch) -> Any:
        return state + sum(map(self.function, batch["v"].to_pylist()))

    def merge(self, a: Any, b: Any) -> Any:
        return a + b

    def finish(self, state: Any) -> Any:
        return state


PYTHON = {"n": Count(), "top": TopK("v", k=2), "texts": Texts()}


def table(minutes: list[float], words: list[str | None], seed: int = 0) -> pa.Table:
    """Rows whose times are so many minutes after the beginning."""
    rows = len(minutes)
    return pa.table(
        {
            "word": pa.array(words, pa.string()),
            "v": pa.array([(i * 7919 + seed) % 101 for i in range(rows)], pa.int64()),
            "x": pa.array([None if i % 11 == 0 else math.sin(i + seed) for i in range(rows)], pa.float64()),
            "ts": pa.array([BEGIN + timedelta(minutes=m) for m in minutes], pa.timestamp("us", "UTC")),
        }
    )


def hot(seed: int, rows: int = 600, minutes: float = 0.0) -> pa.Table:
    """Half of the rows are of one word, some have none; times go over 30 minutes from `minutes` on."""
    words = ["the" if i % 2 else None if i % 10 == 0 else f"word-{(i + seed) % 23}" for i in range(rows)]
    return table([minutes + 30 * i / rows for i in range(rows)], words, seed)


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "rows", SCHEMA)


@pytest.fixture
def rocks(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(PROVIDER, ROCKS)
    yield
    spark.conf.unset(PROVIDER)


def run(df: DataFrame, checkpoint: Path, mode: str) -> list[tuple[Any, ...]]:
    """All rows that came out; in complete mode those of the last batch."""
    query = start(df, checkpoint, mode)
    query.processAllAvailable()
    query.stop()
    found = results(df.sparkSession, checkpoint)
    if mode == "complete":
        found = found.where(found.batch == found.agg(F.max("batch")).collect()[0][0])
    return rows_of(found.drop("batch"))


def rows_of(df: DataFrame) -> list[tuple[Any, ...]]:
    """The rows in order, floating point numbers rounded: sums of them depend on the order in the last digits."""
    return sorted((tuple(map(_plain, row)) for row in df.collect()), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    return tuple(map(_plain, value)) if isinstance(value, tuple | list) else value


def latest(rows: list[tuple[Any, ...]], count: int) -> list[tuple[Any, ...]]:
    """The last row of each key: that of the highest count, which is column number `count`; before it are the keys."""
    found: dict[Any, Any] = {}
    for row in rows:
        if row[:count] not in found or found[row[:count]][count] < row[count]:
            found[row[:count]] = row
    return sorted(found.values(), key=repr)


def plain_aggregates() -> list[Column]:
    """What Spark itself calls `NATIVE`."""
    counts = [F.count("*"), F.count("x"), F.sum("v"), F.min("x"), F.max("word")]
    return [*counts, F.avg("x"), F.var_samp("x"), F.stddev_pop("x")]


def test_native_aggregates_in_update_and_complete_mode_are_those_of_a_batch(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    for each in (hot(1), table([1.0] * 50, ["one"] * 50), table([], []), hot(3)):
        feed.put(each)
    stream = aggregate(feed.stream(), "word", NATIVE, W, plan=Adaptive(tmp_path / "update"))
    updated = run(stream, tmp_path / "update", "update")
    whole = run(
        aggregate(feed.stream(files=2), "word", NATIVE, W, plan=Adaptive(tmp_path / "complete")),
        tmp_path / "complete",
        "complete",
    )
    batch = rows_of(aggregate(feed.batch(), "word", NATIVE, W))
    assert batch == rows_of(feed.batch().groupBy("word").agg(*plain_aggregates()))
    assert latest(updated, 1) == batch
    assert whole == batch
    assert aggregate(feed.batch(), "word", NATIVE, W).schema.simpleString() == stream.schema.simpleString()


@pytest.mark.parametrize("mode", ["append", *(pytest.param(m, marks=pytest.mark.slow) for m in ("update", "complete"))])
def test_windows_are_those_of_spark_also_for_late_rows(
    spark: SparkSession, feed: Feed, tmp_path: Path, mode: str
) -> None:
    late = table([2.0, 40.0, 52.0], ["the", "late", "the"])
    for each in (hot(1), hot(2, minutes=25), late, table([200.0], ["end"])):
        feed.put(each)
    windows = {"time": "ts", "window": "10 minutes", "slide": "4 minutes", "watermark": "5 minutes"}
    ours = aggregate(feed.stream(), "word", NATIVE, W, plan=Adaptive(tmp_path / "ours"), **windows)  # type: ignore[arg-type]
    span = F.window("ts", "10 minutes", "4 minutes")
    theirs = feed.stream().withWatermark("ts", "5 minutes").groupBy(span, "word").agg(*plain_aggregates())
    found = run(ours, tmp_path / "ours", mode)
    expected = run(theirs, tmp_path / "theirs", mode)
    assert found == expected
    assert len(found) > 100
    everything = rows_of(aggregate(feed.batch(), "word", NATIVE, W, **windows))  # type: ignore[arg-type]
    if mode == "complete":
        assert found == everything
    if mode == "append":  # without late rows, and windows that are not over
        assert {row[:2] for row in found} < {row[:2] for row in everything}


def test_states_that_python_merges_are_those_of_a_batch(
    spark: SparkSession, feed: Feed, tmp_path: Path, rocks: None
) -> None:
    for each in (hot(1), table([1.0] * 50, ["one"] * 50), hot(2)):
        feed.put(each)
    every = {**PYTHON, "different": DistinctCount("v"), "quartiles": Quantiles("x", [0.25, 0.75], k=1000)} | NATIVE
    stream = aggregate(feed.stream(), "word", every, W, plan=Adaptive(tmp_path / "python"))
    updated = run(stream, tmp_path / "python", "update")
    assert latest(updated, 1) == rows_of(aggregate(feed.batch(), "word", every, W))


def top_two(values: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """What `TopK` finds of them, where it has a counter for each."""
    counts = sorted(Counter(values).items(), key=lambda each: (-each[1], each[0]))
    return tuple((value, count, 0) for value, count in counts[:2])


@pytest.mark.parametrize("mode", ["append", "update"])
def test_windows_that_python_merges_end_as_those_of_spark_also_for_late_rows(
    spark: SparkSession, feed: Feed, tmp_path: Path, rocks: None, mode: str
) -> None:
    before_the_watermark = table([2.0, 3.0], ["the", "first"])  # in the second batch nothing is late yet
    out_of_order = table([22.0, 22.5, 40.0, 2.0], ["open", "the", "the", "late"])  # some of their windows are over
    for each in (hot(1), before_the_watermark, out_of_order, table([200.0], ["end"])):
        feed.put(each)
    windows = {"time": "ts", "window": "10 minutes", "slide": "4 minutes", "watermark": "5 minutes"}
    adaptive = Adaptive(tmp_path / "ours")
    ours = aggregate(feed.stream(), "word", PYTHON, W, plan=adaptive, output_mode=mode, **windows)  # type: ignore[arg-type]
    span = F.window("ts", "10 minutes", "4 minutes")
    values = F.concat_ws(" ", F.array_sort(F.collect_set(F.col("v") % 7)))
    theirs = feed.stream().withWatermark("ts", "5 minutes").groupBy(span, "word")
    plain = theirs.agg(F.count("*"), F.collect_list("v"), values)
    found = run(ours, tmp_path / "ours", mode)
    expected = run(plain, tmp_path / "theirs", mode)
    assert found == sorted(((*row[:3], top_two(row[3]), row[4]) for row in expected), key=repr)
    assert len(found) > 100
    assert {"open", "first"} <= {row[1] for row in found}
    assert "late" not in {row[1] for row in found}


def test_names_for_columns_on_the_way_are_refused(feed: Feed, tmp_path: Path) -> None:
    rows = feed.stream().withColumn("__unskew_pane", F.col("v"))
    for aggregates in ({"__unskew_time": Count()}, {"most": Max("__unskew_pane")}):
        with pytest.raises(InputError, match=r"^aggregates: '__unskew_(time|pane)' must be renamed: "):
            aggregate(rows, "word", aggregates, W, plan=Adaptive(tmp_path))


def test_a_key_without_rows_is_forgotten_after_its_ttl(
    spark: SparkSession, feed: Feed, tmp_path: Path, rocks: None
) -> None:
    stream = aggregate(feed.stream(), "word", {"n": Count()}, W, plan=Adaptive(tmp_path / "ttl"), ttl="8 seconds")
    query = start(stream, tmp_path / "ttl", "update")
    for seconds in (0, 0, 9):  # after which the next rows come
        time.sleep(seconds)
        feed.put(table([0.0] * 10, ["seldom"] * 10))
        query.processAllAvailable()
    query.stop()
    found = results(spark, tmp_path / "ttl").orderBy("batch").collect()
    assert [(row["word"], row["n"]) for row in found] == [("seldom", 10), ("seldom", 20), ("seldom", 10)]


WAYS = [(name, mode) for name, entry in SCHEMES.items() for mode in entry.modes] + [
    (name, "planned") for name in ALGORITHMS
]


@pytest.mark.slow
def test_every_scheme_brings_every_row_to_one_worker(spark: SparkSession, feed: Feed, tmp_path: Path) -> None:
    for seed in range(2):
        feed.put(hot(seed))
    parts = []
    for name, mode in WAYS:
        plan = Adaptive(tmp_path / "checkpoint", name=f"{name}_{mode}")
        part = repartition(feed.stream(), "word", W, name, mode=mode, plan=plan)
        parts.append(part.withColumn("way", F.lit(f"{name} {mode}")))
    together = parts[0]
    for part in parts[1:]:
        together = together.unionByName(part)
    counted = run(together.groupBy("way", "word").count(), tmp_path / "checkpoint", "complete")
    expected = rows_of(feed.batch().groupBy("word").count())
    assert counted == sorted(((f"{name} {mode}", *row) for name, mode in WAYS for row in expected), key=repr)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "mode"), WAYS)
def test_aggregates_are_those_of_a_batch_by_every_scheme(
    spark: SparkSession, feed: Feed, tmp_path: Path, rocks: None, scheme: str, mode: str
) -> None:
    for seed in range(3):
        feed.put(hot(seed))

    def streamed(results: dict[str, Aggregate], name: str, output_mode: str) -> list[tuple[Any, ...]]:
        plan = Adaptive(tmp_path / name)
        stream = aggregate(feed.stream(), "word", results, W, scheme, mode=mode, plan=plan)
        return run(stream, tmp_path / name, output_mode)

    assert streamed(NATIVE, "native", "complete") == rows_of(aggregate(feed.batch(), "word", NATIVE, W))
    assert latest(streamed(PYTHON, "python", "update"), 1) == rows_of(aggregate(feed.batch(), "word", PYTHON, W))


def best(rows: pa.Table) -> pa.Table:
    return rows.select(["v"]).sort_by([("v", "descending")]).slice(0, 3)


def mean(parts: pa.Table) -> pa.Table:
    return pa.table({"mean": [pc.mean(best(parts)["v"])]})


def rows_that_count(feed: Feed, mode: str) -> DataFrame:
    """Those that come out of a stream which ends with a row that is late, and a row whose window is not over."""
    left_out = {"append": ["late", "end"], "update": ["late"], "complete": []}[mode]
    return feed.batch().where(~F.coalesce(F.col("word"), F.lit("")).isin(left_out))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_apply_split_gives_for_each_window_what_a_batch_gives(
    spark: SparkSession, feed: Feed, tmp_path: Path, mode: str
) -> None:
    for each in (hot(1), hot(2, minutes=20), table([2.0], ["late"]), table([200.0], ["end"])):
        feed.put(each)
    windows = {"time": "ts", "window": "10 minutes", "watermark": "5 minutes"}
    arguments = ("word", best, mean, "word string, mean double", W)
    stream = apply_split(feed.stream(), *arguments, plan=Adaptive(tmp_path / "split"), **windows)  # type: ignore[arg-type, misc]
    found = run(stream, tmp_path / "split", mode)
    batch = rows_of(apply_split(rows_that_count(feed, mode), *arguments, **windows))  # type: ignore[arg-type, misc]
    if mode == "update":  # windows come out again when rows are added
        assert {*batch} < {*found}
        assert {row[:2] for row in batch} == {row[:2] for row in found}
    else:
        assert found == batch
    assert len(found) > 50
    with pytest.raises(InputError, match=r"^window: a stream needs it"):
        apply_split(feed.stream(), *arguments, plan=Adaptive(tmp_path / "split"))  # type: ignore[arg-type]


def first_and_last(rows: pa.Table) -> pa.Table:
    return pa.table({"rows": [len(rows)], "first": [rows["x"][0].as_py()], "last": [rows["x"][-1].as_py()]})


@pytest.mark.parametrize("mode", ["append", *(pytest.param(m, marks=pytest.mark.slow) for m in ("update", "complete"))])
def test_apply_whole_gives_for_each_window_what_a_batch_gives(
    spark: SparkSession, feed: Feed, tmp_path: Path, mode: str
) -> None:
    for each in (hot(1), hot(2, minutes=20), table([2.0], ["late"]), table([200.0], ["end"])):
        feed.put(each)
    windows = {"time": "ts", "window": "10 minutes", "slide": "5 minutes", "watermark": "5 minutes"}
    arguments = ("word", first_and_last, "word string, rows bigint, first double, last double", W)
    adaptive = Adaptive(tmp_path / "whole")
    stream = apply_whole(feed.stream(), *arguments, plan=adaptive, sort=["-x", "v"], **windows)  # type: ignore[arg-type, misc]
    found = run(stream, tmp_path / "whole", mode)
    batch = rows_of(apply_whole(rows_that_count(feed, mode), *arguments, sort=["-x", "v"], **windows))  # type: ignore[arg-type, misc]
    assert (latest(found, 2) if mode == "update" else found) == batch
    assert len(found) > 100
    with pytest.raises(InputError, match=r"^window: a stream needs it"):
        apply_whole(feed.stream(), *arguments, plan=adaptive)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^plan: a stream needs it"):
        apply_whole(feed.stream(), *arguments, **windows)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^plan: Adaptive is for streams"):
        apply_whole(feed.batch(), *arguments, plan=adaptive)  # type: ignore[arg-type]


@pytest.mark.slow
def test_apply_whole_by_a_plan_that_stays_gives_what_a_batch_gives(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    for each in (hot(1), hot(2, minutes=20), table([200.0], ["end"])):
        feed.put(each)
    windows = {"time": "ts", "window": "10 minutes", "slide": "5 minutes", "watermark": "5 minutes"}
    arguments = ("word", first_and_last, "word string, rows bigint, first double, last double", W)
    plan = make_plan("scan", W, Frequencies(key_ids(["the"]), [1], tuples=1))
    stream = apply_whole(feed.stream(), *arguments, plan=plan, sort=["-x", "v"], **windows)  # type: ignore[arg-type, misc]
    rows = feed.batch().where("word <> 'end' OR word IS NULL")
    batch = apply_whole(rows, *arguments, sort=["-x", "v"], **windows)  # type: ignore[arg-type, misc]
    assert run(stream, tmp_path / "fixed", "append") == rows_of(batch)


def test_rows_are_sorted_as_spark_does(spark: SparkSession) -> None:
    rows = [(i, [None, math.nan, 1.0, -1.0, math.inf][i % 5], "ab"[i % 2]) for i in range(20)]
    df = spark.createDataFrame(rows, "i int, x double, s string")
    for order in ([("x", False), ("i", True)], [("s", True), ("x", True), ("i", False)]):
        by = [F.col(name).desc() if down else F.col(name).asc() for name, down in order]
        ours = sort_as_spark(df.toArrow(), order)
        assert ours["i"].to_pylist() == [row["i"] for row in df.orderBy(*by).collect()]


def test_mistakes_are_refused(spark: SparkSession, feed: Feed, tmp_path: Path) -> None:
    def refused(message: str, results: Any = None, **options: Any) -> None:
        with pytest.raises(InputError, match=message):
            aggregate(feed.stream(), "word", results or {"n": Count()}, W, plan=Adaptive(tmp_path), **options)

    refused("^time: must be the name of the column that windows go by", window="1 hour")
    refused("^slide: is for windows only", slide="1 hour")
    refused("^time: 'v' must hold timestamps, not bigint", window="1 hour", time="v")
    refused("^window: must be a time such as '10 minutes'", window="soon", time="ts")
    refused("^slide: must not be longer than the window", window="1 hour", slide="2 hours", time="ts")
    refused("^ttl: is for streams without windows", window="1 hour", time="ts", ttl="1 day")
    refused("^spark.sql.streaming.stateStore.providerClass: must be org.apache", ttl="1 day")
    refused("^spark.sql.streaming.stateStore.providerClass: must be org.apache", {"top": TopK("v")})
    refused("^output_mode: is for states that Python merges; here", output_mode="update")
    with pytest.raises(InputError, match=r"^ttl: is for streams, which"):
        aggregate(feed.batch(), "word", {"n": Count()}, W, ttl="1 day")
    with pytest.raises(InputError, match=r"^output_mode: is for streams; leave it out for a batch"):
        aggregate(feed.batch(), "word", {"n": Count()}, W, output_mode="append")
    windows = {"time": "ts", "window": "1 hour", "watermark": "1 hour"}
    for df, message in (
        (
            feed.stream().withWatermark("ts", "1 hour"),
            r"^watermark: df has one already, on 'ts', and a stream can have",
        ),
        (feed.stream().withColumn("ts", F.col("ts").cast("timestamp_ntz")), r"^time: 'ts' must be a timestamp where"),
    ):
        with pytest.raises(InputError, match=message):
            aggregate(df, "word", {"n": Count()}, W, plan=Adaptive(tmp_path), **windows)  # type: ignore[arg-type]


def test_output_modes_that_cannot_be_are_refused(feed: Feed, tmp_path: Path, rocks: None) -> None:
    for options, message in (
        ({"output_mode": "append"}, r"^output_mode: must be 'update' here, since append needs windows and a watermark"),
        ({"output_mode": "complete", "ttl": "1 day"}, r"^output_mode: must be 'update' here"),
        ({"output_mode": "append", "time": "ts", "window": "1 hour"}, r"^output_mode: must be 'update' here"),
        (
            {"output_mode": "complete", "time": "ts", "window": "1 hour", "watermark": "1 hour"},
            r"^output_mode: must be 'append' or 'update' here, not 'complete'$",
        ),
    ):
        with pytest.raises(InputError, match=message):
            aggregate(feed.stream(), "word", {"top": TopK("v")}, W, plan=Adaptive(tmp_path), **options)  # type: ignore[arg-type]


def test_an_aggregate_that_prints_an_address_can_be_restarted(feed: Feed, tmp_path: Path, rocks: None) -> None:
    for _ in range(2):
        applied = Applied(lambda value: value + 1)  # another object in each process
        aggregate(feed.stream(), "word", {"n": applied}, W, plan=Adaptive(tmp_path))
        (tmp_path / "offsets").mkdir(exist_ok=True)
        (tmp_path / "offsets" / "0").touch()  # as if it had begun


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("10 minutes", 600_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1 SECOND", 1_000_000),
        ("2 weeks", 1_209_600_000_000),
    ],
)
def test_lengths_of_time_are_read(text: str, length: int) -> None:
    assert microseconds("window", text) == length


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "minutes",
        "10 minutes ago",
        "0 seconds",
        "1 month",
        "-1 day",
        "9999999999 hours",
        "\uff11\uff10 minutes",
        "10\u00a0minutes",
        None,
    ],
)
def test_other_texts_are_no_lengths_of_time(text: Any) -> None:
    with pytest.raises(InputError, match=r"^window: must be a time such as"):
        microseconds("window", text)
