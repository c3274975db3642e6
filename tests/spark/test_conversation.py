"""Schemes with a worker half on Spark: what workers learn in one run reaches the sources of the next."""

import sys
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import InputError, Router, key_ids, make
from unskew.errors import InputTypeError
from unskew.schemes.posg import ROUND_ROBIN, RUN
from unskew.spark import Conversation, Feedback, Heard
from unskew.worker_half import WorkerHalf

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers cannot import this file
W = 4
Batches = Iterator[pa.RecordBatch]
PARAMETERS = {"window": 150, "tolerance": 0.3, "columns": 200, "count_idle": True}


def same(batches: Batches) -> Batches:
    yield from batches


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Round robin over four workers gives one of them twice as many expensive rows as the others, by source."""
    key = F.when((F.col("id") % 12).isin(1, 2, 3, 4, 8), 1000).otherwise(F.col("id") % 7)
    return spark.range(400, numPartitions=2).select(
        key.alias("key"), F.when(key == 1000, 10.0).otherwise(1.0).alias("c")
    )


def run(talk: Conversation, df: DataFrame, cost: str | None = "c") -> Heard:
    got = talk.map(df, "key", same, df.schema, cost).collect()
    assert len(got) == df.count()
    return talk.collect()


def phases(talk: Conversation) -> set[int]:
    return {int(router.state.phase[0]) for router in talk.routers.values()}


def test_posg_reaches_run(rows: DataFrame) -> None:
    """A worker tells its tables after 300 rows, that is, at the end of the third run. The fourth asks, and hears."""
    talk, heard, seen = Conversation(make("posg", W, **PARAMETERS)), [], []
    for _ in range(4):
        heard.append(run(talk, rows))
        seen.append(phases(talk))
    assert seen[:2] == [{ROUND_ROBIN}] * 2
    assert sorted(heard[2].told) == list(range(W))
    assert heard[3].replies == 2 * W  # each of two sources asks each worker
    assert seen[3] == {RUN}
    assert all(sum(each.rows) == 400 for each in heard)


@pytest.mark.slow
def test_posg_evens_out_the_work_of_a_source(rows: DataFrame) -> None:
    talk = Conversation(make("posg", W, **PARAMETERS))
    heard = [run(talk, rows.coalesce(1)) for _ in range(5)]
    assert heard[0].seconds == (694.0, 406.0, 406.0, 406.0)
    assert phases(talk) == {RUN}
    assert max(heard[4].seconds) < 1.02 * np.mean(heard[4].seconds)


def test_every_message_arrives_as_if_halves_and_routers_talked_directly(spark: SparkSession) -> None:
    """One source, so that rows come to workers in a known order: the same again without Spark, run by run."""
    scheme = make("posg", W, **PARAMETERS | {"window": 20})
    numbers = np.arange(300) ** 2 % 23
    costs = 1.0 + numbers % 3
    df = spark.createDataFrame(list(zip(numbers.tolist(), costs.tolist(), strict=True)), "key long, c double").coalesce(
        1
    )
    talk, router, halves = Conversation(scheme), Router(scheme), [WorkerHalf(scheme) for _ in range(W)]
    idle, asked = np.zeros(W), 0
    for _ in range(4):
        heard = run(talk, df)
        chosen, tickets = router.send(key_ids(numbers))
        messages = []
        for worker, half in enumerate(halves):
            mine = chosen == worker
            waited = np.zeros(mine.sum())
            waited[:1] = idle[worker]
            done = half.execute(key_ids(numbers)[mine], costs[mine], tickets=tickets[mine], waited=waited)
            at = np.cumsum(costs[mine])
            messages += [(at[message.position], worker, message.content) for message in done]
        for _, worker, content in sorted(messages, key=lambda message: message[:2]):
            router.hear(worker, content)
        seconds = np.bincount(chosen, costs, minlength=W)
        idle = seconds.max() - seconds
        asked += int((tickets > 0).sum())
        assert heard.rows == tuple(np.bincount(chosen, minlength=W).tolist())
        assert heard.seconds == tuple(seconds.tolist())
        assert (heard.replies + len(heard.told), heard.replies) == (len(messages), int((tickets > 0).sum()))
        assert talk.routers[0].to_bytes() == router.to_bytes()
    assert asked >= 2 * W


def test_without_a_cost_the_rows_of_a_key_are_timed(spark: SparkSession) -> None:
    df = spark.range(120, numPartitions=1).select((F.col("id") % 2).alias("key"))

    def work(batches: Batches) -> Batches:
        for batch in batches:
            assert len(set(batch["key"].to_pylist())) == 1
            time.sleep(0.004 * batch.num_rows * batch["key"][0].as_py())
            yield batch

    talk = Conversation(make("posg", 2, window=10, tolerance=5.0))
    talk.map(df, "key", work, df.schema).collect()
    heard = talk.collect()
    assert sum(heard.seconds) >= 60 * 0.004
    assert sorted(set(heard.told)) == [0, 1]
    router = talk.routers[0]
    cheap, dear = ([router.state.seconds[w].sum() / router.state.counts[w].sum() for w in range(2)][i] for i in (0, 1))
    assert dear > 4 * cheap  # round robin: worker 0 had all rows of key 0, worker 1 those of key 1


def test_a_source_that_is_new_knows_what_workers_told_all(rows: DataFrame) -> None:
    talk = Conversation(make("posg", W, **PARAMETERS | {"window": 40}))
    run(talk, rows)
    assert set(talk.routers) == {0, 1}
    more = rows.repartition(3).cache()
    heard = run(talk, more)
    assert set(talk.routers) == {0, 1, 2}
    assert ROUND_ROBIN not in phases(talk)
    assert heard.replies == 3 * W


def test_a_run_that_is_cut_short_teaches_nothing(rows: DataFrame) -> None:
    talk = Conversation(make("posg", W, **PARAMETERS))
    talk.map(rows, "key", same, rows.schema, "c").take(1)
    with pytest.warns(UserWarning, match=r"^conversation: heard of \d of 4 workers, so nothing was learnt: "):
        assert talk.collect() == Heard((), (), 0, ())
    assert talk.routers == {}


def test_odd_names_keys_of_several_columns_and_workers_without_rows(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, "x", None), (2, None, 3.0)], "`a.b` long, `c``d` string, cost double").coalesce(1)
    talk = Conversation(make("posg", W))
    got = talk.map(df, ["a.b", "c`d"], same, df.schema, "cost").collect()
    assert sorted(got, key=lambda row: row[0]) == df.collect()
    heard = talk.collect()
    assert sorted(heard.rows) == [0, 0, 1, 1]
    assert sum(heard.seconds) == 3.0  # null is the mean of the others in its batch at its worker, where it is alone


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf")])
def test_costs_that_cannot_be_end_the_run(rows: DataFrame, cost: float) -> None:
    talk = Conversation(make("posg", W))
    with pytest.raises(PythonException, match="cost: must be finite numbers from 0 on, not "):
        talk.map(rows, "key", same, rows.schema, F.lit(cost)).collect()


def test_a_function_that_fails_tells_the_row(rows: DataFrame) -> None:
    def failing(batches: Batches) -> Batches:
        for batch in batches:
            raise ValueError("no")
            yield batch

    with pytest.raises(PythonException, match="raised ValueError: no, for the row "):
        Conversation(make("posg", W)).map(rows, "key", failing, rows.schema, "c").collect()


def test_what_cannot_be_is_refused(rows: DataFrame) -> None:
    talk = Conversation(make("posg", W))
    for call, error, rule in (
        (lambda: Conversation("posg"), InputTypeError, r"scheme: must be an object such as make\('posg', 16\), not a"),
        (lambda: Conversation(make("pkg", W)), InputError, "scheme: pkg has no worker half; posg has one"),
        (
            lambda: Feedback(make("posg", W)),
            InputError,
            "scheme: posg does not listen to workers; it has a",
        ),
        (talk.collect, InputError, "conversation: there is no run to learn from"),
        (lambda: talk.map(rows, "key", "work", rows.schema), InputTypeError, "function: must be a function of batches"),
        (lambda: talk.map(rows, "none", same, rows.schema), InputError, "keys: 'none' is not a column"),
        (
            lambda: talk.map(rows, "key", same, rows.schema, "key || ''"),
            InputError,
            "cost: must be a number, not s",
        ),
    ):
        with pytest.raises(error, match=f"^{rule}"):
            call()


def test_what_has_not_run_can_still_be_run_and_heard(rows: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Conversation(make("posg", W, **PARAMETERS))
    placed = talk.map(rows, "key", same, rows.schema, "c")
    monkeypatch.setattr("unskew.spark.telling.PATIENCE", 0.1)
    with pytest.raises(InputError, match=r"^conversation: what map returned has not run; write or collect it first"):
        talk.collect()
    placed.collect()
    monkeypatch.setattr("unskew.spark.telling.PATIENCE", 60.0)
    assert sum(talk.collect().rows) == 400
