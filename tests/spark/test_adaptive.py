"""Plans that follow a stream from one micro-batch to the next."""

import base64
import json
import warnings
import zlib
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from streams import Feed, process, records, results, start, wait_until, words

from unskew import Frequencies, PartialKey, Router, key_ids
from unskew.aggregates import Count
from unskew.errors import InputError
from unskew.plan import HotKey, Plan
from unskew.spark import Adaptive, add_salt, aggregate, repartition, watch
from unskew.spark.streaming.fading import FadingCounts
from unskew.spark.streaming.loop import Loop
from unskew.spark.streaming.merging import PROVIDER, ROCKS
from unskew.spark.streaming.plan_file import cells_for, cut_to_fit, line_of, version_in, with_planned_salt
from unskew.spark.streaming.router_files import RouterFiles
from unskew.spark.streaming.side_folder import SideFolder
from unskew.spark.worker_counts import _numbers, count_workers, load_in

W, ROWS = 8, 20_000
SCHEMA = "word string, v bigint"


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "rows", SCHEMA)


def test_hot_keys_are_dealt_from_the_second_batch_on_and_soon_again_when_others_become_hot(
    spark: SparkSession, feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "checkpoint"
    placed = repartition(feed.stream(), "word", W, plan=Adaptive(checkpoint))
    assert placed.columns == ["word", "v"]
    query = start(placed.withColumn("worker", F.spark_partition_id()), checkpoint)
    tables = [words(seed, ROWS, shift=0 if seed < 3 else 5000) for seed in range(6)]
    found = process(query, feed, checkpoint, *tables)
    rows = results(spark, checkpoint).groupBy("batch", "worker").count().collect()
    plan = query._jsq.explainInternal(False)  # of the last batch
    watched = watch(query)
    query.stop()
    with monkeypatch.context() as idle:  # a query that has had nothing to do for long tells of no metrics
        idle.setattr(type(query), "recentProgress", [{"observedMetrics": {}}])
        assert str(watch(query)) == str(watched)

    uneven = [record["max_over_mean"] for record in found]
    assert [uneven[0] > 2, uneven[3] > 2] == [True, True]
    assert max(uneven[1], uneven[2], uneven[5]) < 1.1
    assert uneven[4] < 1.4  # a fifth of the weight is still on the words of the batches before
    assert [record["plan"] for record in found] == [0, 1, 2, 3, 4, 5]
    loads = np.zeros((6, W), np.int64)
    for batch, worker, count in rows:
        loads[batch, worker] = count
    assert loads.tolist() == [record["load"] for record in found]
    assert plan.count("ReusedSubquery") >= 1  # two uses, one reading
    assert "Python" not in plan
    assert [record.load for record in watched.records()["route"]] == list(map(tuple, loads.tolist()))
    assert "batch 5 · 20,000 rows in" in str(watched)
    assert [record["hot_keys"][0]["key"] for record in found[1:]] == ["word-1"] * 3 + ["word-5001"] * 2


def test_a_plan_that_comes_late_is_used_one_batch_later_and_records_say_which_one_it_was(
    spark: SparkSession, feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, tables = tmp_path / "checkpoint", [words(seed, ROWS) for seed in range(3)]
    take, second_is_done = Loop.take, Event()

    def take_late(loop: Loop, progress: Any, metrics: Any) -> None:
        assert second_is_done.wait(60)
        take(loop, progress, metrics)

    monkeypatch.setattr(Loop, "take", take_late)
    query = start(repartition(feed.stream(), "word", W, plan=Adaptive(checkpoint)), checkpoint)
    for table in tables[:2]:
        feed.put(table)
        query.processAllAvailable()
    second_is_done.set()
    wait_until(lambda: len(records(checkpoint)) == 2)
    found = process(query, feed, checkpoint, tables[2])
    query.stop()
    assert [record["plan"] for record in found] == [0, 0, found[1]["next_plan"]]
    for record, table in zip(found, tables, strict=True):
        plan = Plan.load(checkpoint / f"unskew/route/plans/{record['plan']:012d}.json")
        placed = repartition(spark.createDataFrame(table), "word", W, plan=plan)
        counts = placed.groupBy(F.spark_partition_id().alias("worker")).count().orderBy("worker").collect()
        assert [row["count"] for row in counts] == record["load"]


def test_a_restart_goes_on_with_the_last_plan_and_a_damaged_or_missing_file_costs_balance_only(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    tables = [words(seed, ROWS) for seed in range(6)]
    query = start(repartition(feed.stream(), "word", W, plan=Adaptive(checkpoint)), checkpoint)
    process(query, feed, checkpoint, tables[0])
    query.stop()

    query = start(repartition(feed.stream(), "word", W, plan=Adaptive(checkpoint, keep=3)), checkpoint)
    file = checkpoint / "unskew/route/plan.txt"

    def go_on(batch: int) -> None:
        feed.put(tables[batch])
        query.processAllAvailable()
        wait_until(lambda: records(checkpoint)[-1]["batch"] == batch)

    go_on(1)
    file.write_text(file.read_text()[:-100])
    with pytest.warns(UserWarning, match=r"^plan: batch 2 found .*plan.txt damaged or missing, and balanced its rows"):
        go_on(2)
    file.unlink()
    with pytest.warns(UserWarning, match=r"^plan: batch 3 found"):
        go_on(3)
    go_on(4)
    file.write_text("not\na\nplan\n")
    with pytest.warns(UserWarning, match=r"^plan: batch 5 found"):
        go_on(5)
    query.stop()
    assert {record["batch"]: record["max_over_mean"] < 1.1 for record in records(checkpoint)} == {
        3: False,
        4: True,
        5: False,
    }
    assert results(spark, checkpoint).agg(F.count("v"), F.count_distinct("v")).collect() == [(6 * ROWS, 6 * ROWS)]

    file.write_text("nonsense")
    (checkpoint / "unskew/route/counts.json").write_text("nonsense")
    with pytest.warns(UserWarning, match="damaged") as warned:
        repartition(feed.stream(), "word", W, plan=Adaptive(checkpoint))
    assert len(warned) == 2
    assert version_in(file.read_text()) == records(checkpoint)[-1]["next_plan"] + 1  # no number is given twice


def test_another_number_of_workers_or_scheme_goes_on_from_the_counts(feed: Feed, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    query = start(repartition(feed.stream(), "word", W, plan=Adaptive(checkpoint)), checkpoint)
    process(query, feed, checkpoint, words(0, ROWS))
    query.stop()
    balanced = repartition(feed.stream(), "word", 5, "w_choices", plan=Adaptive(checkpoint))
    query = start(balanced, checkpoint)
    found = process(query, feed, checkpoint, words(1, ROWS), words(2, ROWS))
    query.stop()
    assert (len(found[1]["load"]), found[1]["scheme"]) == (5, "w_choices")
    assert max(record["max_over_mean"] for record in found[1:]) < 1.1
    assert [record["rows"] for record in found] == [sum(record["load"]) for record in found] == [ROWS] * 3
    faded = json.loads((checkpoint / "unskew/route/counts.json").read_text())
    assert faded["tuples"] == pytest.approx((1 + 0.2 + 0.04) * ROWS)
    hottest = max(faded["counts"].values()) / faded["tuples"]
    assert hottest == pytest.approx(np.mean([w == "word-1" for w in words(2, ROWS)["word"].to_pylist()]), rel=0.1)


def test_every_worker_has_a_number_of_its_own_to_be_counted_by() -> None:
    for workers in [*range(1, 200), 1000, 4096, 10_000]:
        assert len(set(_numbers(workers))) == workers


@pytest.mark.parametrize("workers", [1, 5, 64, 10_000])
def test_rows_per_worker_are_counted_exactly(spark: SparkSession, workers: int) -> None:
    worker = F.expr(f"CAST(id * id % {workers} AS INT)")
    ((sketch,),) = spark.range(20_000).agg(count_workers(worker, workers)).collect()
    expected = np.bincount(np.arange(20_000) ** 2 % workers, minlength=workers)
    assert load_in(sketch, workers).tolist() == expected.tolist()  # type: ignore[union-attr]
    assert load_in(base64.b64encode(sketch).decode(), workers).sum() == 20_000  # type: ignore[union-attr]


def test_online_routers_go_on_from_batch_to_batch_as_one_router_would(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    checkpoint, tables = tmp_path / "checkpoint", [words(seed, 2000) for seed in range(3)]
    placed = repartition(feed.stream(), "word", W, "pkg", mode="online", plan=Adaptive(checkpoint))
    query = start(placed.withColumn("worker", F.spark_partition_id()), checkpoint)
    recorded = process(query, feed, checkpoint, *tables)  # a file is one task
    watched = str(watch(query))
    query.stop()
    found = [row["worker"] for row in results(spark, checkpoint).orderBy("v").collect()]
    ids = key_ids([word for table in tables for word in table["word"].to_pylist()])
    assert found == Router(PartialKey(W)).route(ids).tolist()
    assert {path.name for path in (checkpoint / "unskew/route/routers").iterdir()} == {"0", "1", "2"}
    assert [record["load"] for record in recorded] == np.stack(
        [np.bincount(some, minlength=W) for some in np.split(np.array(found), 3)]
    ).tolist()
    assert "pkg, online · 8 workers" in watched


def test_a_router_goes_on_from_its_last_micro_batch_though_some_had_no_task_of_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, scheme = RouterFiles(str(tmp_path), "route"), PartialKey(W)

    def run_batch(batch: int, sources: int) -> list[int]:
        """Each source routes a word more. Returns how many each has routed so far."""
        monkeypatch.setattr("unskew.spark.streaming.batch_files.this_batch", lambda: batch)
        routers = [files.router(scheme, source) for source in range(sources)]
        for source, router in enumerate(routers):
            router.route(key_ids(["word"]))
            files.keep(router, source)
        return [int(router.state.load.sum()) for router in routers]

    assert run_batch(0, 2) == [1, 1]
    assert run_batch(1, 1) == [2]
    assert run_batch(4, 2) == [3, 2]  # batches 2 and 3 had no rows
    assert run_batch(4, 2) == [3, 2]  # runs again
    assert run_batch(5, 1) == [4]
    kept = {str(path.relative_to(tmp_path / "unskew/route/routers")) for path in tmp_path.rglob("*.npz")}
    assert kept == {"0/1.npz", "1/0.npz", "4/0.npz", "4/1.npz", "5/0.npz"}  # the oldest is gone


def test_keys_that_must_not_be_split_are_placed_whole_and_evenly(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    placed = repartition(feed.stream(), "word", 4, "partitioner", plan=Adaptive(checkpoint))
    query = start(placed.withColumn("worker", F.spark_partition_id()), checkpoint)
    names = [f"word-{i % 8}" for i in range(ROWS)]  # eight of them: by hash never two on each of four workers
    found = process(query, feed, checkpoint, *[pa.table({"word": names, "v": range(ROWS)})] * 2)
    query.stop()
    spread = results(spark, checkpoint).groupBy("batch", "word").agg(F.count_distinct("worker").alias("workers"))
    assert {row["workers"] for row in spread.collect()} == {1}
    assert found[0]["max_over_mean"] >= 1.5
    assert found[1]["max_over_mean"] == 1.0


def test_counts_fade_by_alpha_and_survive_as_json() -> None:
    counts = FadingCounts(0.5)
    first = Frequencies(np.array([1, 2], np.uint64), np.array([80, 8]), 100, home_load=np.array([60, 40]))
    second = Frequencies(np.array([2, 3], np.uint64), np.array([50, 10]), 60, home_load=np.array([10, 50]))
    counts.add(first)
    counts.add(second)
    faded = counts.frequencies()
    assert dict(zip(faded.key_ids.tolist(), faded.counts.tolist(), strict=True)) == {2: 54_000, 1: 40_000, 3: 10_000}
    assert (faded.tuples, faded.home_load.tolist()) == (110_000, [40_000, 70_000])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"counts": {"x": 1}, "tuples": 1, "home": null}',
        '{"counts": {"1": 1e300}, "tuples": 1, "home": null}',
        '{"counts": {"-1": 1}, "tuples": 1, "home": null}',
        '{"counts": {"1": 1}, "tuples": 4, "home": [9, 9, 9, 9]}',
        '{"counts": {"1": 1}, "tuples": 4, "home": [NaN, 1, 1, 1]}',
    ],
)
def test_damaged_counts_are_not_loaded(damaged: str) -> None:
    assert not FadingCounts(0.5).load(damaged, 4)


def test_a_plan_that_is_too_large_loses_its_coldest_keys() -> None:
    many = tuple(HotKey(i << 32, 0.0, tuple(range(200))) for i in range(150))  # 30,000 places
    kept = cut_to_fit(Plan("fanout", 8, many), cells_for(200))
    assert kept.hot_keys == many[:75]
    assert version_in(line_of(kept, 7, cells_for(200))) == 7


def with_crc(body: str, cells: int = cells_for(100)) -> str:
    return f"{zlib.crc32(body.encode())} {cells} {body}"


@pytest.mark.parametrize("line", [None, "", "7", "123 {}", "damaged", with_crc('{"version":7}'), with_crc("")])
def test_a_damaged_line_has_no_version(line: str | None) -> None:
    assert version_in(line) is None


def test_what_is_no_plan_of_ours_places_all_keys_at_home(spark: SparkSession, tmp_path: Path) -> None:
    folder, cells = SideFolder(tmp_path, "route"), cells_for(100)
    word = int(key_ids(["the"])[0])
    good = line_of(Plan("fanout", 2, (HotKey(word, 1.0, (1, 2, 3)),)), 7, cells)
    others = [with_crc(body) for body in ('{"version":7,"places":[1,2,3]}', "seven,1,2,3", ",")]
    others.append(line_of(Plan("fanout", 2), 7, 2 * cells))  # a table of another size
    df = spark.createDataFrame([("the", turn) for turn in range(6)], "word string, turn int")

    def found(line: str) -> tuple[set[int], set[int]]:
        folder.write("plan.txt", line)
        planned = with_planned_salt(df, [F.col("word")], F.col("turn"), folder, cells, "salt")
        rows = planned.df.select("salt", planned.version).collect()
        return {salt for salt, _ in rows}, {version for _, version in rows}

    assert found(good) == ({1, 2, 3}, {7})
    damaged = [f"{good}\nmore", good[:-9], "", "nonsense"]
    assert [found(line) for line in [*others, *damaged]] == [({0}, {-1})] * 8


def test_mistakes_are_refused(spark: SparkSession, feed: Feed, tmp_path: Path) -> None:
    rows, adaptive = feed.stream(), Adaptive(tmp_path)
    with pytest.raises(InputError, match=r"^plan: Adaptive is for streams; leave it out for a batch"):
        repartition(spark.range(3), "id", W, plan=adaptive)
    with pytest.raises(InputError, match=r"^sample: must be left out with Adaptive"):
        repartition(rows, "word", W, plan=adaptive, sample=0.5)
    with pytest.raises(InputError, match=r"^alpha: must be a number from 0 to 1, not 2"):
        Adaptive(tmp_path, alpha=2)
    with pytest.raises(InputError, match=r"^checkpoint: must have no '\*' in its address"):
        Adaptive("folder/*")
    with pytest.raises(InputError, match=r"^df: is a stream, whose keys cannot be counted beforehand; give plan="):
        add_salt(rows, "word", W)
    with pytest.raises(InputError, match=r"^checkpoint: Arrow cannot open 'nowhere://x'"):
        Adaptive("nowhere://x")
    with pytest.raises(InputError, match=r"^checkpoint: must have a path behind its scheme, not 's3://'"):
        Adaptive("s3://")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"^checkpoint: file://.*/file must be a folder that can be written; .*Not a"):
        repartition(rows, "word", W, plan=Adaptive(tmp_path / "file"))


def test_rows_without_content_are_dealt_in_turn(spark: SparkSession, feed: Feed, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        placed = repartition(feed.stream().select("word"), "word", W, plan=Adaptive(checkpoint))
    query = start(placed, checkpoint)
    one = pa.table({"word": ["the"] * ROWS, "v": range(ROWS)})
    found = process(query, feed, checkpoint, one, one)
    query.stop()
    assert (found[0]["max_over_mean"], results(spark, checkpoint).count()) == (W, 2 * ROWS)
    assert found[1]["max_over_mean"] < 1.1


@pytest.mark.parametrize("how", ["content", "position", "aggregate", "ttl"])
def test_stages_are_compiled_once_and_not_anew_in_each_micro_batch(
    spark: SparkSession, feed: Feed, tmp_path: Path, how: str
) -> None:
    """A seed of ``rand``, or the time, in the code would be another one in each micro-batch."""
    checkpoint = tmp_path / "checkpoint"
    stream, adaptive = feed.stream(), Adaptive(checkpoint)
    before = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, ROCKS)
    if how in ("content", "position"):
        query = start(repartition(stream, "word", W, plan=adaptive, deal=how), checkpoint)
    else:
        ttl = "1 day" if how == "ttl" else None
        query = start(aggregate(stream, "word", {"n": Count()}, W, plan=adaptive, ttl=ttl), checkpoint, "update")
    spark.conf.set(PROVIDER, before)
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    process(query, feed, checkpoint, words(0, ROWS), words(1, ROWS))
    count = compiled.getCount()
    found = process(query, feed, checkpoint, words(2, ROWS))
    query.stop()
    assert found[-1]["max_over_mean"] < 1.1
    assert compiled.getCount() == count


def test_however_counts_are_rounded_a_plan_can_be_made_of_them() -> None:
    """Parts of rows at each worker never add up to more than all rows."""
    fading, chance = FadingCounts(0.3), np.random.default_rng(0)
    for _ in range(50):
        home = chance.integers(0, 1000, 64)
        fading.add(Frequencies(key_ids(["the"]), [int(home[0])], tuples=int(home.sum()), home_load=home))
        load = fading.frequencies().home_load
        assert load is not None
        assert 0 <= fading.frequencies().tuples - load.sum() <= len(home)
