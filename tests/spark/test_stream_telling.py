"""What the workers of a micro-batch tell reaches the sources of the next: `Feedback` and `Conversation` on streams."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from streams import Feed, process, results, start, wait_until, words

from unskew import InputError, Router, key_ids, make
from unskew.aggregates import Count
from unskew.schemes.posg import RUN
from unskew.spark import Adaptive, Conversation, Feedback, aggregate, apply_split, repartition, watch
from unskew.spark.tasks import task_number

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers cannot import this file
W = 4
SCHEMA = "word string, v bigint"
Batches = Iterator[pa.RecordBatch]


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "rows", SCHEMA)


def slow_on_worker_0(batches: Batches) -> Batches:
    for batch in batches:
        time.sleep(batch.num_rows * (1e-3 if task_number() == 0 else 1e-4))
        yield batch


def routers_in(checkpoint: Path, name: str, batch: int) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (checkpoint / f"unskew/{name}/routers/{batch}").iterdir()}


def even(seed: int) -> pa.Table:
    """2,000 rows of 500 words, all as frequent."""
    return pa.table({"word": [f"word-{i % 500}" for i in range(2000)], "v": np.arange(2000) + 2000 * seed})


def test_a_slow_worker_gets_fewer_rows_from_one_micro_batch_to_the_next_and_after_a_restart(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    """Ten times as slow as the others, so it hands over one of its ten virtual workers in each micro-batch."""
    checkpoint = tmp_path / "checkpoint"
    found = []
    for tables in ([even(0), even(1), even(2)], [even(3), even(4)]):
        feedback = Feedback(make("cg", W))
        placed = repartition(feed.stream(), "word", W, feedback, plan=Adaptive(checkpoint))
        query = start(feedback.timed(placed, slow_on_worker_0, SCHEMA), checkpoint)
        found = process(query, feed, checkpoint, *tables)
        query.stop()
    assert [record["load"][0] for record in found] == pytest.approx([500, 450, 400, 350, 300], abs=20)
    assert all(sum(record["load"]) == 2000 for record in found)
    assert results(spark, checkpoint).agg(F.count("v"), F.count_distinct("v")).collect() == [(10_000, 10_000)]


@pytest.mark.parametrize("scheme", ["cg", "fish"])
def test_aggregates_tell_what_their_first_phase_took_and_count_as_a_batch_does(
    spark: SparkSession, feed: Feed, tmp_path: Path, scheme: str
) -> None:
    checkpoint = tmp_path / "checkpoint"
    counts = aggregate(feed.stream(), "word", {"n": Count()}, W, Feedback(make(scheme, W)), plan=Adaptive(checkpoint))
    query = start(counts, checkpoint, "update")
    process(query, feed, checkpoint, *(words(seed, 2000) for seed in range(3)))
    query.stop()
    last = results(spark, checkpoint).groupBy("word").agg(F.max_by("n", "batch").alias("n"))
    assert sorted(map(tuple, last.collect())) == sorted(map(tuple, feed.batch().groupBy("word").count().collect()))
    # the second batch heard of the first: a router that did not would have another state
    heard = Router.from_bytes(make(scheme, W), routers_in(checkpoint, "route", 2)["newcomer.npz"])
    assert heard.to_bytes() != Router(make(scheme, W)).to_bytes()


def test_windows_of_apply_split_are_timed_too(spark: SparkSession, feed: Feed, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"

    def partial(rows: pa.Table) -> pa.Table:
        return pa.table({"n": [len(rows)]})

    def merge(parts: pa.Table) -> pa.Table:
        return pa.table({"n": [sum(parts["n"].to_pylist())]})

    timed = feed.stream().withColumn("ts", F.timestamp_seconds("v"))
    windows = {"time": "ts", "window": "1 hour", "watermark": "1 minute"}
    plan = Adaptive(checkpoint)
    counted = apply_split(
        timed, "word", partial, merge, "word string, n bigint", W, Feedback(make("cg", W)), plan=plan, **windows
    )
    query = start(counted, checkpoint, "update")
    process(query, feed, checkpoint, even(0), even(1))
    query.stop()
    assert [*checkpoint.rglob("newcomer.npz")]  # the second batch heard of the first
    last = results(spark, checkpoint).groupBy("window", "word").agg(F.max_by("n", "batch").alias("n"))
    assert last.agg(F.sum("n")).collect() == [(4000,)]


def same(batches: Batches) -> Batches:
    yield from batches


def test_posg_on_a_stream_is_what_it_is_from_run_to_run_and_goes_on_after_a_restart(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    """One source, so that rows come to workers in a known order. Costs are told, so that they are the same."""
    scheme = make("posg", W, window=150, tolerance=0.3, columns=200, count_idle=True)
    checkpoint, tables = tmp_path / "checkpoint", [words(seed, 400) for seed in range(5)]
    cost = "1 + length(word) % 3"
    talk, expected = Conversation(scheme), []
    for table in tables:
        expected.append(talk.routers[0].to_bytes() if talk.routers else None)
        batch = spark.createDataFrame(table).coalesce(1)
        assert talk.map(batch, "word", same, SCHEMA, cost).count() == 400
        heard = talk.collect()

    found = []
    for some in (tables[:3], tables[3:]):
        placed = Conversation(scheme).map(feed.stream(), "word", same, SCHEMA, cost, checkpoint=checkpoint)
        query = start(placed.withColumn("worker", F.spark_partition_id()), checkpoint)
        for table in some:
            feed.put(table)
            query.processAllAvailable()
            (file,) = checkpoint.glob(f"unskew/conversation/schemes/*/routers/{len(found)}/0.npz")
            found.append(file.read_bytes())
        query.stop()
    for batch, state in enumerate(found):  # after the rows of the batch, as the run before it left the router
        router = Router(scheme) if expected[batch] is None else Router.from_bytes(scheme, expected[batch])
        router.route(key_ids(tables[batch]["word"].to_pylist()))
        assert state == router.to_bytes()
    assert int(Router.from_bytes(scheme, found[-1]).state.phase[0]) == RUN
    loads = results(spark, checkpoint).where("batch = 4").groupBy("worker").count().collect()
    assert tuple(dict(map(tuple, loads)).get(worker, 0) for worker in range(W)) == heard.rows
    assert results(spark, checkpoint).agg(F.count("v"), F.count_distinct("v")).collect() == [(2000, 2000)]


def test_the_loads_of_a_conversation_are_recorded(feed: Feed, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    talk = Conversation(make("posg", W, window=40))
    query = start(talk.map(feed.stream(), "word", same, SCHEMA, checkpoint=checkpoint), checkpoint)
    feed.put(even(0))
    query.processAllAvailable()
    wait_until(lambda: "posg, online · 4 workers" in str(watch(query)))
    query.stop()


def test_workers_know_their_numbers_behind_a_union_and_a_coalesce(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    others, checkpoint = Feed(spark, tmp_path / "others", SCHEMA), tmp_path / "checkpoint"
    talk = Conversation(make("posg", W, window=40))
    here = talk.map(feed.stream(), "word", same, SCHEMA, "1", checkpoint=checkpoint, name="here")
    there = Conversation(make("posg", W)).map(
        feed.stream(), "word", same, SCHEMA, "1", checkpoint=checkpoint, name="there"
    )
    for each in (feed, others):
        each.put(even(0))
    query = start(others.stream().union(here).union(there).coalesce(2), checkpoint)
    query.processAllAvailable()
    query.stop()
    for name in ("here", "there"):
        told = {path.name for path in checkpoint.glob(f"unskew/{name}/schemes/*/told/0/*.json")}
        assert told == {f"{worker}.json" for worker in range(W)}
    batch = Conversation(make("posg", W))
    both = feed.batch().union(batch.map(feed.batch(), "word", same, SCHEMA, "1"))
    assert both.coalesce(1).count() == 4000
    assert sum(batch.collect().rows) == 2000


def test_with_more_workers_sources_and_workers_start_anew_together(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    """Else a new worker, which has worked nothing yet, would get all rows."""
    checkpoint = tmp_path / "checkpoint"
    for workers, batches, in_all in ((2, 3, 3), (3, 5, 8)):
        talk = Conversation(make("posg", workers, window=40, tolerance=0.5, count_idle=True))
        query = start(talk.map(feed.stream(), "word", same, SCHEMA, "1", checkpoint=checkpoint), checkpoint)
        for seed in range(batches):
            feed.put(words(seed, 300))
            query.processAllAvailable()
        wait_until(lambda n=in_all: len([*checkpoint.glob("unskew/conversation/batches/*.json")]) == n)  # type: ignore[misc]
        query.stop()
    found = [json.loads(path.read_text())["load"] for path in sorted(checkpoint.glob("unskew/conversation/batches/*"))]
    assert all(max(load) < 1.5 * sum(load) / len(load) for load in found), found


def test_a_feedback_is_for_one_stream(feed: Feed, tmp_path: Path) -> None:
    feedback = Feedback(make("cg", W))
    for _ in range(2):
        repartition(feed.stream(), "word", W, feedback, plan=Adaptive(tmp_path / "one"))
    with pytest.raises(InputError, match=r"^scheme: this Feedback routes another stream already; make one for each"):
        repartition(feed.stream(), "word", W, feedback, plan=Adaptive(tmp_path / "another"))
