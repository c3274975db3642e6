"""The public API on Spark Connect, where there is no sparkContext: in a process of its own, as Spark wants it.

Run as a script, this file is the client of a Connect server, whose port it is given, and prints a JSON of what it got.
The server is in the process of the other tests' Spark, where Java has compiled already what is hot.
"""

import importlib.util
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from streams import Feed, process, records, results, start, wait_until

from unskew import PartialKey, Plan, make
from unskew.aggregates import Count, Sum, TopK
from unskew.plan import HotKey
from unskew.spark import (
    PROVIDER,
    ROCKS,
    SALT,
    Adaptive,
    Conversation,
    Decay,
    Feedback,
    LearnedCosts,
    add_salt,
    aggregate,
    apply_split,
    apply_whole,
    cost_report,
    map_balanced,
    plan_for,
    rebalance,
    repartition,
    skew_report,
    watch,
)

ROWS, W = 20_000, 8
NUMBERS = np.minimum(np.random.default_rng(1).zipf(1.3, ROWS), 500)
TABLE = pa.table({"word": [f"word-{number}" for number in NUMBERS], "row": range(ROWS)})


@pytest.fixture(scope="module")
def got(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    missing = [name for name in ("grpc", "grpc_status", "google.rpc") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"Spark Connect needs pyspark[connect]: {', '.join(missing)} is not installed")
    java: Any = spark._jvm
    java.org.apache.spark.sql.connect.service.SparkConnectService.start(spark._jsc.sc())
    ran = subprocess.run(
        [sys.executable, __file__, spark.sparkContext.getConf().get("spark.connect.grpc.binding.port")],
        cwd=tmp_path_factory.mktemp("connect"),  # Spark leaves files where it starts
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    answers: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answers


@pytest.mark.parametrize("way", ["planned", "online", "planned, many hot keys", "fish, fading counts"])
def test_repartition_keeps_every_row_and_balances(got: dict[str, Any], way: str) -> None:
    loads = got[way]
    assert sum(loads) == ROWS
    assert max(loads) / (ROWS / W) < 1.15
    assert max(got["hash"]) / (ROWS / W) > 2


def test_planned_and_online_salts_are_the_named_column(got: dict[str, Any]) -> None:
    assert got["columns"] == [["word", "row", SALT], ["word", "row", "mine"]]


def test_names_of_columns_may_repeat(got: dict[str, Any]) -> None:
    assert got["repeated names"] == [["word", "row", "row"], 500]


def test_aggregates_equal_those_of_a_plain_group_by(got: dict[str, Any]) -> None:
    assert got["aggregate"] == got["plain"]
    assert got["apply_split"] == got["plain"]
    assert got["aggregate, with feedback"] == got["plain"]


def test_feedback_hears_of_every_row(got: dict[str, Any]) -> None:
    assert sum(got["feedback"]) == ROWS


def test_a_stream_adapts_and_counts_as_a_batch_does(got: dict[str, Any]) -> None:
    before, after, *_ = got["stream"]["balance"]
    assert before > 2
    assert after < 1.2
    assert got["stream"]["hottest"] == "word-1"
    assert [unaccounted for _, unaccounted in got["stream"]["placed"]] == [0, 0]
    assert [uneven > 1.2 for uneven, _ in got["stream"]["placed"]] == [True, False]
    assert got["stream"]["counts"] == got["stream"]["plain"]
    assert got["stream"]["watched"] == got["stream"]["balance"][:2]


def test_a_stream_goes_on_with_its_plan_after_a_restart_or_damage(got: dict[str, Any]) -> None:
    assert got["stream"]["plans"] == [0, 1, 1, -1]  # the rows are the same
    assert [uneven > 1.2 for uneven in got["stream"]["balance"]] == [True, False, False, True]


def test_states_that_python_merges_are_those_of_a_batch(got: dict[str, Any]) -> None:
    assert got["merged by Python"] == [["word-1", [[1, 2 * int((NUMBERS == 1).sum())]]]]


def test_windows_of_a_stream_end_by_their_watermark(got: dict[str, Any]) -> None:
    expected = [[span, word, n] for span, word, n in got["windows"]["plain"] if span < 9]  # the last is not over
    assert {way: rows for way, rows in got["windows"].items() if way != "plain"} == {
        "aggregate": expected,
        "apply_split": expected,
        "apply_whole": expected,
    }


def test_what_tasks_learn_goes_on_from_one_micro_batch_to_the_next(got: dict[str, Any]) -> None:
    learnt = got["learning"]
    assert [sum(load) for load in learnt["load"]] == [ROWS, ROWS]
    assert max(max(load) for load in learnt["load"]) < 1.2 * ROWS / W
    assert learnt["rows"] == [2 * ROWS] * 4
    assert learnt["left"] == [["routers/0", "routers/1"], ["halves/0", "halves/1"], ["told/0", "told/1"]]
    # Written by those who read what was told in batch 0:
    assert learnt["heard"] == [["gathered/0.json"], ["known/1"], ["gathered/0.json"]]


def test_tasks_that_do_not_know_their_micro_batch_say_so(got: dict[str, Any]) -> None:
    said = "checkpoint: the task does not know its micro-batch, so it cannot go on from the last one. On Spark Connect"
    assert f"{said} that is so with foreachBatch" in got["learning"]["failed"]


def test_the_report_counts_every_row(got: dict[str, Any]) -> None:
    assert (got["report"]["tuples"], got["report"]["keys"]) == (ROWS, len(set(NUMBERS)))


def test_work_is_balanced_whether_its_cost_is_told_or_learnt(got: dict[str, Any]) -> None:
    assert got["told"][0] == ROWS
    assert got["told"][1] < 1.05
    assert got["learnt"] == [ROWS, ROWS]
    assert got["collected"] == [ROWS - 2, 2]
    assert got["cost report"]["rows"] == ROWS


def test_keys_stay_whole_however_they_are_placed(got: dict[str, Any]) -> None:
    assert got["apply_whole"] == got["plain"]
    assert got["apply_whole, rebalanced"] == got["plain"]
    assert 0 < got["moved"] < ROWS / 2


def test_nothing_warns(got: dict[str, Any]) -> None:
    assert got["warned"] == []


# ---------------------------------------------------------------- the client


def part(rows: pa.Table) -> pa.Table:
    return pa.table({"n": [rows.num_rows], "total": [pc.sum(rows["row"])]})


def merged(parts: pa.Table) -> pa.Table:
    return pa.table({"n": [pc.sum(parts["n"])], "total": [pc.sum(parts["total"])]})


def same(batches: Any) -> Any:
    yield from batches


def failing(batches: Any) -> Any:
    for batch in batches:
        if {7, 77} & set(batch["row"].to_pylist()):
            raise ValueError("no")
        yield batch


def work_answers(df: Any) -> dict[str, Any]:
    """Of `map_balanced` and `cost_report`."""
    costs = LearnedCosts("word")
    told = map_balanced(df, same, df.schema, W, "row")
    loads = [row["cost"] for row in told.groupBy(F.spark_partition_id()).agg(F.sum("row").alias("cost")).collect()]
    learnt = []
    for _ in range(2):
        map_balanced(df, same, df.schema, W, costs).collect()
        learnt.append(sum(costs.collect().rows))
    collected = map_balanced(df, failing, df.schema, W, "row", on_error="collect")
    failed = sorted(row["error"]["row"]["row"] for row in collected.where("error is not null").collect())
    return {
        "told": [told.count(), max(loads) * W / sum(loads)],
        "learnt": learnt,
        "collected": [collected.where("error is null").count(), len(failed)],
        "cost report": cost_report(df, "row", W).to_dict(),
    }


def streamed(spark: SparkSession) -> dict[str, Any]:
    """Two micro-batches of the same rows."""
    feed, checkpoint = Feed(spark, Path("rows"), "word string, row bigint"), Path("checkpoint").absolute()
    counts = aggregate(feed.stream(), "word", {"n": Count()}, W, plan=Adaptive(checkpoint))
    query = start(counts, checkpoint, "complete")
    found = process(query, feed, checkpoint, TABLE, TABLE)
    watched = [record.max_over_mean for record in watch(query).records()["route"]]
    query.stop()
    others, elsewhere = Feed(spark, Path("others"), "word string, row bigint"), Path("placed").absolute()
    placing = start(repartition(others.stream(), "word", W, plan=Adaptive(elsewhere), deal="position"), elsewhere)
    placed = process(placing, others, elsewhere, TABLE, TABLE)
    placing.stop()
    counted = results(spark, checkpoint).where("batch = 1").drop("batch").collect()
    plain = feed.batch().groupBy("word").count().collect()
    again = aggregate(feed.stream(), "word", {"n": Count()}, W, plan=Adaptive(checkpoint))
    query = start(again, checkpoint, "complete")
    process(query, feed, checkpoint, TABLE)
    (checkpoint / "unskew/route/plan.txt").write_text("damaged")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = process(query, feed, checkpoint, TABLE)
    query.stop()
    return {
        "balance": [record["max_over_mean"] for record in found],
        "plans": [record["plan"] for record in found],
        "watched": watched,
        "hottest": found[1]["hot_keys"][0]["key"],
        "placed": [[record["max_over_mean"], sum(record["load"]) - record["rows"]] for record in placed],
        "counts": sorted(map(list, counted)),
        "plain": sorted(map(list, plain)),
    }


def merged_by_python(spark: SparkSession) -> list[Any]:
    """Which numbers the word "word-1" has how often, after two micro-batches."""
    feed, checkpoint = Feed(spark, Path("merged"), "word string, number bigint"), Path("python").absolute()
    spark.conf.set(PROVIDER, ROCKS)
    stream = aggregate(feed.stream(), "word", {"top": TopK("number", k=1)}, W, plan=Adaptive(checkpoint))
    query = start(stream, checkpoint, "update")
    table = pa.table({"word": TABLE["word"], "number": NUMBERS})
    process(query, feed, checkpoint, table, table)
    query.stop()
    spark.conf.unset(PROVIDER)
    found = results(spark, checkpoint).where("batch = 1 AND word = 'word-1'").collect()
    return [[row["word"], [[top["value"], top["count"]] for top in row["top"]]] for row in found]


def learning(spark: SparkSession) -> dict[str, Any]:
    """Two micro-batches of the same rows, by what goes on from one to the next: routers, worker halves, costs."""
    feed, schema = Feed(spark, Path("learnt"), "word string, row bigint"), "word string, row bigint"
    routers, halves, costs, listened = folders = [
        Path(name).absolute() for name in ("routers", "halves", "costs", "listened")
    ]
    for _ in range(2):
        feed.put(TABLE)

    def converse(checkpoint: Path) -> Any:
        return Conversation(make("posg", W)).map(feed.stream(), "word", same, schema, checkpoint=checkpoint)

    feedback = Feedback(make("cg", W))
    listening = repartition(feed.stream(), "word", W, feedback, plan=Adaptive(listened))
    ways = {
        listened: feedback.timed(listening, same, schema),
        routers: repartition(feed.stream(), "word", W, "cg", plan=Adaptive(routers)),
        halves: converse(halves),
        costs: map_balanced(feed.stream(), same, schema, W, LearnedCosts("word"), checkpoint=costs),
    }
    for folder, rows in ways.items():
        writer = rows.writeStream.option("checkpointLocation", str(folder)).format("parquet")
        query = writer.start(f"{folder}-results")
        query.processAllAvailable()
        query.stop()
    wait_until(lambda: len(records(routers)) == 2)
    lost = Path("lost").absolute()
    try:
        start(converse(lost), lost).processAllAvailable()  # by foreachBatch
        failed = ""
    except Exception as error:
        failed = str(error)

    def left(folder: Path, kind: str) -> list[str]:
        found = sorted((folder / "unskew").glob(f"{kind}/*"))
        return [f"{each.parent.name}/{each.name}" for each in found]

    of_schemes, of_keys = "conversation/schemes/*", "costs/keys/*"
    return {
        "load": [record["load"] for record in records(routers)],
        "rows": [results(spark, folder).count() for folder in folders],
        "left": [left(routers, "route/routers"), left(halves, f"{of_schemes}/halves"), left(costs, f"{of_keys}/told")],
        "heard": [
            left(halves, f"{of_schemes}/gathered"),
            left(costs, f"{of_keys}/known"),
            left(listened, "route/gathered"),
        ],
        "failed": failed,
    }


def windowed(spark: SparkSession) -> dict[str, list[Any]]:
    """Rows per window and word by three functions in one query: 1000 rows, one per second, windows of 100 seconds."""
    feed, checkpoint = Feed(spark, Path("timed"), "word string, row bigint"), Path("windows").absolute()
    feed.put(TABLE.slice(0, 1000))
    timed = feed.stream().withColumn("ts", F.timestamp_seconds("row"))
    windows: dict[str, Any] = {"time": "ts", "window": "100 seconds", "watermark": "0 seconds"}
    schema = "word string, n long, total long"
    plans = {name: Adaptive(checkpoint, name=name) for name in ("aggregate", "apply_split", "apply_whole")}
    ways = {
        "aggregate": aggregate(timed, "word", {"n": Count()}, W, plan=plans["aggregate"], **windows),
        "apply_split": apply_split(timed, "word", part, merged, schema, W, plan=plans["apply_split"], **windows),
        "apply_whole": apply_whole(timed, "word", part, schema, W, plan=plans["apply_whole"], **windows),
    }
    span = (F.unix_seconds("window.start") / 100).cast("int")
    rows = [found.select(F.lit(way).alias("way"), span.alias("span"), "word", "n") for way, found in ways.items()]
    query = start(rows[0].union(rows[1]).union(rows[2]), checkpoint)
    query.processAllAvailable()
    query.stop()
    found = results(spark, checkpoint).select("way", "span", "word", "n").collect()
    plain = feed.batch().groupBy((F.col("row") / 100).cast("int").alias("span"), "word").count().collect()
    counts = {way: sorted(list(row)[1:] for row in found if row["way"] == way) for way in ways}
    return counts | {"plain": sorted(map(list, plain))}


def whole_answers(df: Any, sorted_rows: Any) -> dict[str, Any]:
    """Of `apply_whole` and `rebalance`."""
    schema = "word string, n long, total long"
    first = rebalance(df, "word", W)
    more = rebalance(df, "word", W + 1, previous=first.plan)
    return {
        "apply_whole": sorted_rows(apply_whole(df, "word", part, schema, W, sort="row")),
        "apply_whole, rebalanced": sorted_rows(apply_whole(df, "word", part, schema, W + 1, plan=more.plan)),
        "moved": more.rows_moved,
    }


def main(port: str) -> dict[str, Any]:
    builder = SparkSession.builder.remote(f"sc://127.0.0.1:{port}")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    df = spark.createDataFrame(TABLE)

    def loads(placed: Any) -> list[int]:
        return [row["count"] for row in placed.groupBy(F.spark_partition_id().alias("worker")).count().collect()]

    def sorted_rows(result: Any) -> list[Any]:
        return sorted(map(list, result.select("word", "n", "total").collect()))

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        plan = plan_for(df, "word", W)
        feedback = Feedback(make("cg", W))
        large = Plan(plan.scheme, W, plan.hot_keys + tuple(HotKey(i, 0.0, (0,) * 400) for i in range(60)))  # a join
        twice = repartition(df.join(df, "word").limit(500), "word", W, plan=plan)
        answers = {
            "hash": loads(df.repartition(W, "word")),
            "planned": loads(repartition(df, "word", W, plan=plan)),
            "planned, many hot keys": loads(repartition(df, "word", W, plan=large)),
            "online": loads(repartition(df, "word", W, PartialKey(W, choices=5), mode="online")),
            "columns": [
                add_salt(df, "word", W, plan=plan).columns,
                add_salt(df, "word", W, "pkg", mode="online", salt="mine").columns,
            ],
            "repeated names": [twice.columns, twice.count()],
            "aggregate": sorted_rows(aggregate(df, "word", {"n": Count(), "total": Sum("row")}, W, plan=plan)),
            "apply_split": sorted_rows(
                apply_split(df, "word", part, merged, "word string, n long, total long", W, plan=plan)
            ),
            "aggregate, with feedback": sorted_rows(
                aggregate(df, "word", {"n": Count(), "total": Sum("row")}, W, feedback)
            ),
            "feedback": feedback.collect().tuples.tolist(),
            "plain": sorted_rows(df.groupBy("word").agg(F.count("*").alias("n"), F.sum("row").alias("total"))),
            "fish, fading counts": loads(
                repartition(df, "word", W, plan=plan_for(df, "word", W, "fish", decay=Decay("row", ROWS)))
            ),
            "stream": streamed(spark),
            "merged by Python": merged_by_python(spark),
            "learning": learning(spark),
            "windows": windowed(spark),
            "report": skew_report(df, "word", W).to_dict(),
            **work_answers(df),
            **whole_answers(df, sorted_rows),
            "warned": [str(w.message) for w in warned if w.filename == __file__],
        }
    spark.stop()
    return answers


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
