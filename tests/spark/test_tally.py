"""What workers tell of the keys of a micro-batch."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from streams import Feed, process, results, start, words

from unskew import Plan, key_ids
from unskew.aggregates import Count
from unskew.hashing import candidates_of
from unskew.spark import Adaptive, aggregate, apply_split
from unskew.spark.mapping import arrow_schema
from unskew.spark.streaming.tally import MOST_NAME_BYTES, TOLD, Tally, seen_by_workers

W, ROWS = 8, 20_000
KIND = pa.struct(
    {
        "rows": pa.int64(),
        "pairs": pa.binary(),
        "named": pa.list_(pa.struct({"id": pa.int64(), "key": pa.struct({"0": pa.string()})})),
    }
)


def rows_of(keys: list[str]) -> pa.RecordBatch:
    ids = key_ids(keys).view(np.int64)
    return pa.record_batch({"word": pa.array(keys), "v": np.arange(len(keys)), "id": pa.array(ids)})


def told_by(batches: list[pa.RecordBatch], workers: int = W) -> dict[str, Any] | None:
    tally = Tally(["word"], KIND, workers)
    for batch in batches:
        tally.add(batch)
    told = tally.told()
    return None if told is None else told.to_pylist()[0]


def row_of(worker: int, told: dict[str, Any], workers: int = W) -> dict[str, Any]:
    """As the driver gets it."""
    return {"worker": worker, "workers": workers, "version": 3, "names": None, **told}


def key_of(word: str) -> int:
    return int(key_ids([word]).view(np.int64)[0])


def test_a_task_tells_its_rows_and_the_keys_that_are_not_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unskew.spark.streaming.tally.ROWS", 1000)  # counted in several goes
    some = [f"word-{rank}" for rank in np.random.default_rng(0).zipf(1.2, 6000).clip(max=2000).tolist()]
    told = told_by([rows_of(some[i : i + 700]) for i in range(0, 6000, 700)])
    assert told is not None
    assert told["rows"] == 6000
    pairs = np.frombuffer(told["pairs"], np.int64).reshape(-1, 2)
    counts = {key_of(word): some.count(word) for word in set(some)}
    assert dict(pairs.tolist()) == {key: count for key, count in counts.items() if count > 6000 / 160}
    assert len(pairs) > 10
    assert len(told["named"]) == 100 // W
    hottest = max(set(some), key=some[:700].count)  # of the first batch
    assert told["named"][0] == {"id": key_of(hottest), "key": {"0": hottest}}


def test_a_key_that_is_dealt_over_very_many_workers_is_listed_and_what_is_told_stays_small() -> None:
    others = [f"word-{i}" for i in range(200) for _ in range(10)]  # are frequent on this worker
    rows = ["spread"] * 20 + others + [f"rare-{i}" for i in range(20_000)]
    few, many, very_many = (told_by([rows_of(rows)], workers) for workers in (4, 256, 10_000))
    assert few is not None
    assert many is not None
    assert very_many is not None
    assert len(few["pairs"]) == 0  # with few workers it would not be hot
    listed = np.frombuffer(many["pairs"], np.int64).reshape(-1, 2)
    assert listed[0].tolist() == [key_of("spread"), 20]
    assert len(listed) == 2**15 // 256
    assert (len(very_many["pairs"]), len(very_many["named"])) == (8 * 16, 1)


def test_keys_that_are_all_different_are_not_frequent() -> None:
    told = told_by([rows_of([f"word-{i}" for i in range(1000)])])
    assert told is not None
    seen = seen_by_workers({TOLD: [row_of(0, told)]}, W, 160, {})
    assert seen.frequencies is not None
    assert (seen.rows, len(told["pairs"]), len(seen.frequencies.key_ids)) == (1000, 0, 0)


def test_a_task_without_rows_tells_nothing_and_very_long_keys_are_not_named() -> None:
    assert told_by([]) is None
    assert told_by([rows_of([])]) is None
    long = told_by([rows_of(["x" * (MOST_NAME_BYTES + 1)] * 3 + ["short", "short", "shorter"])])
    assert long is not None
    assert [each["key"]["0"] for each in long["named"]] == ["short", "shorter"]


def test_nothing_of_a_batch_is_kept(tmp_path: Path) -> None:
    """Its columns share memory: who keeps one of them keeps all."""
    batch = rows_of(["x" * 1000] * 1000)
    with pa.ipc.new_stream(tmp_path / "rows", batch.schema) as writer:
        writer.write_batch(batch)
    tally, before = Tally(["word"], KIND, W), pa.total_allocated_bytes()
    for _ in range(20):
        with pa.OSFile(str(tmp_path / "rows")) as file, pa.ipc.open_stream(file) as reader:
            tally.add(reader.read_next_batch())
    assert pa.total_allocated_bytes() - before < 300_000  # twenty batches have 20 MB


def test_the_driver_knows_the_load_and_where_rows_would_be_at_home() -> None:
    ids = key_ids([f"word-{i}" for i in range(50)])
    homes = candidates_of(ids, 0, W)
    rng, told, at_home, load = np.random.default_rng(1), [], np.zeros(W, np.int64), np.zeros(W, np.int64)
    pairs: dict[int, list[tuple[int, int]]] = {worker: [] for worker in range(W)}
    for key, home in zip(ids.view(np.int64).tolist(), homes.tolist(), strict=True):
        for worker in {home, int(rng.integers(W))}:  # some keys are split, over their home and another worker
            rows = int(rng.integers(1, 100))
            pairs[worker].append((key, rows))
            at_home[home] += rows
            load[worker] += rows
    for worker in range(W):
        listed = np.array(pairs[worker], np.int64).tobytes()
        data = listed if worker % 2 else base64.b64encode(listed).decode()  # as Connect tells it
        told.append(row_of(worker, {"rows": load[worker], "pairs": data}))
    failed = {**told[0], "rows": 7}  # was retried: the last one counts
    seen = seen_by_workers({TOLD: [failed, *told]}, W, 20, {3: Plan("fanout", W)})
    assert seen.frequencies is not None
    assert seen.frequencies.home_load is not None
    assert (seen.rows, seen.version) == (load.sum(), 3)
    assert seen.load.tolist() == load.tolist()  # type: ignore[union-attr]
    assert seen.frequencies.home_load.tolist() == at_home.tolist()
    assert len(seen.frequencies.key_ids) == 20
    totals = [sum(rows for each in pairs.values() for one, rows in each if one == key) for key in ids.view(np.int64)]
    assert seen.frequencies.counts.tolist() == sorted(totals, reverse=True)[:20]
    elsewhere = seen_by_workers({TOLD: told}, W, 20, {3: Plan("hash", W, cold_salt=1)})
    assert elsewhere.frequencies is not None
    assert elsewhere.frequencies.home_load is None  # cold keys were not at home
    assert seen_by_workers({TOLD: None}, W, 20, {}).rows == 0
    assert seen_by_workers({TOLD: told}, W + 1, 20, {}).rows == 0  # of a query before, with fewer workers


def test_more_workers_than_are_counted_have_no_load() -> None:
    pairs = np.array([[key_of("the"), 5]]).tobytes()
    seen = seen_by_workers({TOLD: [row_of(7, {"rows": 5, "pairs": pairs}, 20_001)]}, 20_001, 160, {})
    assert seen.frequencies is not None
    assert (seen.rows, seen.load, seen.frequencies.counts.tolist()) == (5, None, [5])


def test_workers_that_aggregate_tell_and_are_even_from_the_second_batch_on(spark: SparkSession, tmp_path: Path) -> None:
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
    assert plan.count("ReusedSubquery") >= 1  # two uses, one reading
    rows = results(spark, checkpoint).groupBy("word").agg(F.max("n").alias("n")).collect()
    expected = pa.concat_tables(tables)["word"].value_counts().to_pylist()
    assert {row["word"]: row["n"] for row in rows} == {each["values"]: each["counts"] for each in expected}


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


def test_a_split_function_gets_the_users_columns_and_its_workers_tell(spark: SparkSession, tmp_path: Path) -> None:
    schema = "`a.b` string, __unskew_id bigint, ts timestamp"
    feed, checkpoint = Feed(spark, tmp_path / "rows", schema), tmp_path / "checkpoint"
    stream = feed.stream().withColumn("a.b", F.coalesce("`a.b`", F.lit("none")))  # cannot be null
    windows = {"time": "ts", "window": "1 hour", "watermark": "1 hour"}

    def count(rows: pa.Table) -> pa.Table:
        assert rows.column_names == ["__unskew_id", "ts", "a.b"]
        return pa.table({"n": [len(rows)]})

    def total(parts: pa.Table) -> pa.Table:
        return pa.table({"n": [pc.sum(parts["n"]).as_py()]})

    def split(**plan: Any) -> DataFrame:
        rows = stream.select("__unskew_id", "ts", "`a.b`")
        return apply_split(rows, "a.b", count, total, "n bigint, `a.b` string", W, **plan, **windows)

    adaptive = split(plan=Adaptive(checkpoint))
    assert adaptive.schema == split(plan=Plan("fanout", W)).schema
    query = start(adaptive, checkpoint, "update")
    rows = ["the", None, "the", "the"] * 100
    times = pa.array([0] * 400, pa.timestamp("us", "UTC"))
    table = pa.table({"a.b": rows, "__unskew_id": range(400), "ts": times})
    found = process(query, feed, checkpoint, table)
    query.stop()
    assert sum(found[0]["load"]) == 400
    results_of = results(spark, checkpoint).select("`a.b`", "n").collect()
    assert sorted(map(tuple, results_of)) == [("none", 100), ("the", 300)]
