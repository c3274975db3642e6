"""What workers did in one run decides where rows go in the next."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import InputError, Plan, Router, make
from unskew.aggregates import Count, Sum
from unskew.spark import Feedback, aggregate, apply_split, repartition
from unskew.worker_report import WorkerReport

W = 4
Batches = Iterator[pa.RecordBatch]
SCHEMA = "n long not null, worker int"
NOT_HEARD = r"^feedback: heard of \d of 4 workers, so nothing was learnt: "


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(4000, numPartitions=2).withColumn("key", F.col("id") % 500)


def sleeping(seconds_per_row: list[float]) -> Callable[[Batches], Batches]:
    """Counts the rows of a partition; worker w takes `seconds_per_row[w]` for each."""

    def work(batches: Batches) -> Batches:
        from pyspark import TaskContext  # a task of its own

        context = TaskContext.get()
        assert context is not None
        worker = context.partitionId()
        for batch in batches:
            time.sleep(batch.num_rows * seconds_per_row[worker])
            yield pa.RecordBatch.from_pydict(
                {"n": pa.array([batch.num_rows], pa.int64()), "worker": pa.array([worker], pa.int32())}
            )

    return work


def counts(done: DataFrame) -> list[int]:
    found = {row["worker"]: row["n"] for row in done.groupBy("worker").agg(F.sum("n").alias("n")).collect()}
    return [found.get(worker, 0) for worker in range(W)]


def as_if(rows: list[int], seconds_per_row: list[float]) -> WorkerReport:
    """What workers would tell that are exactly so fast: real ones are at the mercy of the machine."""
    tuples, busy = np.array(rows), np.array(rows) * seconds_per_row
    return WorkerReport(np.arange(W), tuples, tuples, busy, np.zeros_like(tuples), busy.max(), 0.0)


def test_a_report_tells_the_rows_and_the_seconds_of_each_worker(rows: DataFrame) -> None:
    feedback = Feedback(make("cg", W))
    placed = repartition(rows, "key", W, feedback)
    got = counts(feedback.timed(placed, sleeping([0.0, 0.0, 0.0, 2e-4]), SCHEMA))
    report = feedback.collect()
    assert sum(got) == 4000
    assert report.workers.tolist() == list(range(W))
    assert report.tuples.tolist() == got
    assert report.busy[3] >= got[3] * 2e-4  # sleep never takes less
    assert report.seconds == report.busy.max()


def test_a_slow_worker_hands_over_virtual_workers_run_by_run(rows: DataFrame) -> None:
    """Three times as slow: a tenth of the rows is its share. One virtual worker of 40 is handed over in each run."""
    feedback = Feedback(make("cg", W))
    got = []
    for _ in range(4):
        got.append(counts(feedback.timed(repartition(rows, "key", W, feedback), sleeping([0.0] * W), SCHEMA)))
        feedback.router.observe(as_if(got[-1], [3e-4, 1e-4, 1e-4, 1e-4]))
    assert [each[0] for each in got] == pytest.approx([1000, 900, 800, 700], abs=40)
    assert np.bincount(feedback.router.state.holder)[0] == 6


def test_fish_takes_the_pace_of_its_workers(rows: DataFrame) -> None:
    feedback = Feedback(make("fish", W))
    first = counts(feedback.timed(repartition(rows, "key", W, feedback), sleeping([1e-4] * W), SCHEMA))
    report = feedback.collect()
    assert feedback.router.state.pace == pytest.approx(report.busy / report.tuples)
    feedback.router.observe(as_if(first, [4e-4, 1e-4, 1e-4, 1e-4]))
    got = counts(feedback.timed(repartition(rows, "key", W, feedback), sleeping([0.0] * W), SCHEMA))
    assert got[0] < 700 < 1000 < min(got[1:])


def test_rows_and_schema_are_those_of_map_in_arrow(rows: DataFrame) -> None:
    feedback = Feedback(make("cg", W))
    odd = rows.withColumnRenamed("key", "a.b")

    def same(batches: Batches) -> Batches:
        yield from batches

    done = feedback.timed(repartition(odd, "a.b", W, feedback), same, odd.schema)
    assert done.dtypes == odd.dtypes
    assert sorted(done.collect()) == sorted(odd.collect())
    assert feedback.collect().tuples.sum() == 4000


def test_workers_without_rows_tell_nothing_and_no_rows_are_no_harm(rows: DataFrame) -> None:
    feedback = Feedback(make("cg", W))
    few = repartition(rows.where("id = 7"), "key", W, feedback)
    counts(feedback.timed(few, sleeping([0.0] * W), SCHEMA))
    assert feedback.collect().tuples.tolist() == [1]
    counts(feedback.timed(repartition(rows.where("id < 0"), "key", W, feedback), sleeping([0.0] * W), SCHEMA))
    with pytest.warns(UserWarning, match=NOT_HEARD):
        assert feedback.collect().tuples.tolist() == []
    assert np.bincount(feedback.router.state.holder).tolist() == [10] * W


def test_aggregates_tell_what_their_first_phase_took(rows: DataFrame) -> None:
    feedback = Feedback(make("cg", W))
    parts = []

    def part(table: pa.Table) -> pa.Table:
        return pa.table({"n": [len(table)]})

    def merged(table: pa.Table) -> pa.Table:
        return pa.table({"n": [sum(table["n"].to_pylist())]})

    for counted in (
        lambda: aggregate(rows, "key", {"n": Count()}, W, feedback),
        lambda: apply_split(rows, "key", part, merged, "key long, n long", W, feedback),
    ):
        assert sorted(map(tuple, counted().collect())) == [(key, 8) for key in range(500)]
        parts.append(feedback.collect())
        assert (parts[-1].tuples.sum(), len(parts[-1].workers)) == (4000, W)
        for _ in range(3):  # what really was told may have moved one virtual worker either way
            feedback.router.observe(as_if([1000] * W, [3e-4, 1e-4, 1e-4, 1e-4]))
    assert parts[1].tuples[0] < parts[0].tuples[0]  # the second starts from what the first, and we, told


def test_micro_batches_are_runs(rows: DataFrame, tmp_path: Path) -> None:
    rows.write.parquet(str(tmp_path / "rows"))
    stream = rows.sparkSession.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1)
    feedback = Feedback(make("cg", W))
    heard = []

    def run(batch: DataFrame, _: int) -> None:
        heard.append(counts(feedback.timed(repartition(batch, "key", W, feedback), sleeping([0.0] * W), SCHEMA)))
        assert feedback.collect().tuples.tolist() == heard[-1]

    query = stream.parquet(str(tmp_path / "rows")).writeStream.foreachBatch(run).trigger(availableNow=True).start()
    query.awaitTermination()
    assert len(heard) == 2
    assert sum(map(sum, heard)) == 4000


def test_work_is_timed_whether_it_is_done_at_once_or_batch_by_batch(rows: DataFrame) -> None:
    def at_once(batches: Batches) -> Batches:
        all_rows = list(batches)
        time.sleep(0.05)
        return iter(all_rows)

    feedback = Feedback(make("cg", W))
    assert feedback.timed(repartition(rows, "key", W, feedback), at_once, rows.schema).count() == 4000
    report = feedback.collect()
    assert (report.tuples.sum(), len(report.workers)) == (4000, W)
    assert (report.busy >= 0.05).all()


def test_arrow_types_that_spark_takes_for_those_declared_are_taken_here_too(rows: DataFrame) -> None:
    def large(batches: Batches) -> Batches:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"a": pa.array(["x"] * batch.num_rows, pa.large_string())})

    feedback = Feedback(make("cg", W))
    done = feedback.timed(repartition(rows, "key", W, feedback), large, "a string")
    assert done.groupBy("a").count().collect() == [("x", 4000)]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "function: must yield a pyarrow.RecordBatch, not NoneType"),
        (pa.table({"a": [1]}), "function: must yield a pyarrow.RecordBatch, not Table"),
        (pa.RecordBatch.from_pydict({"b": [1]}), r"function: must yield the columns \['a'\], not \['b'\]"),
        (
            pa.RecordBatch.from_pydict({"a": [1], "b": [1]}),
            r"function: must yield the columns \['a'\], not \['a', 'b'\]",
        ),
    ],
    ids=["none", "table", "other columns", "more columns"],
)
def test_what_a_function_may_not_yield(rows: DataFrame, result: object, message: str) -> None:
    def wrong(batches: Batches) -> Batches:
        yield result  # type: ignore[misc]

    with pytest.raises(PythonException, match=message):
        Feedback(make("cg", W)).timed(rows, wrong, "a long").collect()


def test_other_partitions_than_those_of_the_workers_are_refused(rows: DataFrame) -> None:
    feedback = Feedback(make("cg", W))
    counts(feedback.timed(rows.repartition(W + 3), sleeping([0.0] * (W + 3)), SCHEMA))
    with pytest.raises(
        InputError, match=r"^feedback: timed must get the 4 partitions that repartition made, not 7 or more"
    ):
        feedback.collect()
    counts(feedback.timed(rows.coalesce(2), sleeping([0.0] * W), SCHEMA))
    with pytest.warns(UserWarning, match=NOT_HEARD):
        feedback.collect()


def test_workers_are_known_whatever_becomes_of_their_partitions_afterwards(rows: DataFrame) -> None:
    feedback = Feedback(make("cg", W))
    expected = None
    for use in (
        lambda done: done.collect(),
        lambda done: done.coalesce(1).collect(),
        lambda done: rows.selectExpr("id AS n", "0 AS worker").union(done).collect(),
        lambda done: done.union(done).collect(),
    ):
        use(feedback.timed(repartition(rows, "key", W, feedback), sleeping([0.0] * 3 * W), SCHEMA))
        report = feedback.collect()
        expected = report.tuples.tolist() if expected is None else expected
        assert (report.workers.tolist(), report.tuples.tolist()) == (list(range(W)), expected)
        feedback = Feedback(make("cg", W))


def test_what_was_learnt_outlives_the_process(rows: DataFrame) -> None:
    feedback = Feedback(make("cg", W))
    for _ in range(3):
        feedback.router.observe(as_if([1000] * W, [3e-4, 1e-4, 1e-4, 1e-4]))
    kept = feedback.router.to_bytes()
    later = Feedback(Router.from_bytes(make("cg", W), kept))
    got = counts(later.timed(repartition(rows, "key", W, later), sleeping([0.0] * W), SCHEMA))
    assert got[0] == pytest.approx(700, abs=40)


def test_a_run_that_tells_nothing_moves_nothing(rows: DataFrame) -> None:
    """Worker 0 is left in the queue of the busy; with probe_capacity any report would serve it."""
    feedback = Feedback(make("cg", W, probe_capacity=True))
    for _ in range(2):
        feedback.router.observe(as_if([1000] * W, [1e-3, 0.99e-3, 0.98e-3, 0.8e-3]))
    before = feedback.router.to_bytes()
    feedback.timed(repartition(rows, "key", W, feedback), sleeping([0.0] * W), SCHEMA).take(1)
    with pytest.warns(UserWarning, match=NOT_HEARD):
        feedback.collect()
    assert feedback.router.to_bytes() == before


def test_a_run_that_failed_or_was_cut_short_tells_nothing(rows: DataFrame) -> None:
    feedback = Feedback(make("cg", W))

    def fails(batches: Batches) -> Batches:
        raise ValueError("of no use")

    with pytest.raises(PythonException, match="of no use"):
        feedback.timed(repartition(rows, "key", W, feedback), fails, SCHEMA).collect()
    with pytest.warns(UserWarning, match=NOT_HEARD):
        assert feedback.collect().tuples.tolist() == []
    feedback.timed(repartition(rows, "key", W, feedback), sleeping([0.0] * W), SCHEMA).take(1)
    with pytest.warns(UserWarning, match=NOT_HEARD):
        assert feedback.collect().tuples.tolist() == []
    assert np.bincount(feedback.router.state.holder).tolist() == [10] * W


def test_a_function_that_fails_says_on_which_row(rows: DataFrame) -> None:
    feedback = Feedback(make("cg", W))

    def careful(batches: Batches) -> Batches:
        for batch in batches:
            if 77 in batch["id"].to_pylist():
                raise ValueError("too odd")
            yield batch

    placed = repartition(rows, "key", W, feedback)
    with pytest.raises(
        PythonException, match=r"function: 'careful' raised ValueError: too odd, for the row \{'id': 77"
    ):
        feedback.timed(placed, careful, rows.schema).collect()
    huge = rows.withColumn("id", F.col("id") + 2**62)
    with pytest.raises(PythonException, match=r"InputError: aggregates: Sum\(.*a sum does not fit"):  # said once
        aggregate(huge, "key", {"total": Sum("id")}, W, feedback).collect()


def test_rows_that_nobody_asks_for_are_no_harm(rows: DataFrame) -> None:
    """Spark leaves out the work, since it knows that the join has no rows, and then cannot say what it observed."""
    feedback = Feedback(make("cg", W))
    done = feedback.timed(repartition(rows, "key", W, feedback), sleeping([0.0] * W), SCHEMA)
    assert done.crossJoin(rows.sparkSession.range(0)).collect() == []
    with pytest.warns(UserWarning, match=NOT_HEARD):
        assert feedback.collect().tuples.tolist() == []


def test_what_never_ran_is_not_waited_for_without_end(rows: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unskew.spark.telling.PATIENCE", 0.5)
    feedback = Feedback(make("cg", W))
    feedback.timed(repartition(rows, "key", W, feedback), sleeping([0.0] * W), SCHEMA)
    with pytest.raises(InputError, match=r"^feedback: what timed returned has not run; "):
        feedback.collect()


def test_what_cannot_be(rows: DataFrame) -> None:
    with pytest.raises(InputError, match=r"^scheme: pkg does not listen to workers; cg and fish do$"):
        Feedback(make("pkg", W))
    feedback = Feedback(make("cg", W))
    with pytest.raises(InputError, match=r"^feedback: there is no run to learn from; "):
        feedback.collect()
    with pytest.raises(InputError, match=r"^schema: must have different columns, and 'A' is there twice$"):
        feedback.timed(rows, sleeping([]), "a int, A int")
    with pytest.raises(InputError, match=r"^schema: must have no column called __unskew_done, which is ours$"):
        feedback.timed(rows, sleeping([]), "a int, __Unskew_done int")
    with pytest.raises(TypeError, match=r"^df: must be a Spark DataFrame, not NoneType$"):
        feedback.timed(None, sleeping([]), "a int")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^anchored: must be True or False, not 'yes'$"):
        Feedback(make("cg", W), anchored="yes")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^function: must be a function of batches, not int$"):
        feedback.timed(rows, 5, "a int")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^scheme: must be an object such as make\('cg', 16\), not a name$"):
        Feedback("cg")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^schema: must be a StructType or a DDL string, not NoneType$"):
        feedback.timed(rows, sleeping([]), None)  # type: ignore[arg-type]
    for refused in ({"mode": "planned"}, {"mode": "nonsense"}, {"plan": Plan("fanout", W, ())}):
        with pytest.raises(InputError, match=r"^mode: "):
            repartition(rows, "key", W, feedback, **refused)
    with pytest.raises(InputError, match=r"^workers: must be the scheme's own 4, not 5$"):
        repartition(rows, "key", 5, feedback)
