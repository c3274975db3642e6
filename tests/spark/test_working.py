"""A user's function is timed: each piece of rows by itself, and no second is lost."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from unskew import Posg
from unskew.sketches.mean_costs import mean_costs_of
from unskew.spark import LearnedCosts
from unskew.spark.letters import Notebook, Start, _Letter
from unskew.spark.timed_costs import add_up, sketching
from unskew.spark.working import Function, Piece, run_collecting, run_through, warn_if_late

Batches = Iterator[pa.RecordBatch]


class Time:
    """A clock that stands still while nobody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


TIME = Time()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unskew.spark.working.time", TIME)


def piece(key: int, rows: int = 1) -> Piece:
    return Piece(pa.RecordBatch.from_pydict({"cost": [key] * rows}), key)


def one_by_one(batches: Batches) -> Batches:
    for batch in batches:
        TIME.sleep(sum(batch["cost"].to_pylist()))
        yield batch


def read_ahead(batches: Batches) -> Batches:
    yield from one_by_one(iter(list(batches)))


def only_the_first(batches: Batches) -> Batches:
    yield from one_by_one(iter([next(batches)]))


def timed(function: Function, pieces: list[Piece]) -> list[tuple[int | None, float]]:
    found: list[tuple[int | None, float]] = []
    list(run_through(function, iter(pieces), lambda each, took: found.append((each.key if each else None, took))))
    return found


def test_a_piece_takes_until_the_next_one_is_asked_for() -> None:
    assert timed(one_by_one, [piece(30), piece(5)]) == [(30, 30.0), (5, 5.0), (None, 0.0)]


def test_what_is_done_after_the_last_piece_was_asked_for_is_told_too() -> None:
    assert timed(read_ahead, [piece(30), piece(5)]) == [(30, 0.0), (5, 0.0), (None, 35.0)]


def test_a_function_that_asks_for_no_more_is_timed_to_its_end() -> None:
    assert timed(only_the_first, [piece(30), piece(5)]) == [(30, 30.0)]


@pytest.mark.parametrize("function", [one_by_one, read_ahead])
def test_the_time_in_which_results_wait_to_be_taken_is_nobodys(function: Function) -> None:
    found: list[float] = []
    for _ in run_through(function, iter([piece(1), piece(2)]), lambda _, took: found.append(took)):
        TIME.sleep(50)
    assert sum(found) == 3


def test_work_after_the_last_piece_counts_for_all_rows_alike() -> None:
    told, done = sketching()
    told(piece(1, rows=3), 0.3)
    told(piece(2), 0.1)
    told(None, 4.0)
    (row,) = done()
    assert (row["rows"], row["seconds"], row["late"]) == (4, pytest.approx(4.4), 4.0)
    costs = mean_costs_of(add_up([row["sketches"]]), np.array([1, 2], np.uint64))
    assert costs.tolist() == pytest.approx([0.1 + 1.0, 0.1 + 1.0])


def test_a_conversation_charges_rows_for_work_after_the_last_piece_too() -> None:
    notebook = Notebook(Posg(2), Start(None, 0.0, 1))
    for key, took in ((1, 0.3), (2, 0.1)):
        notebook.note(_Letter(np.zeros(2, np.int64), np.zeros(2, np.int64), None, np.full(2, key, np.uint64)), took)
    with pytest.warns(
        UserWarning, match=r"^function: 4\.0 of 4\.4 s were worked after it had asked for all of its rows"
    ):
        notebook.note_late(4.0)
    told = notebook.close()
    assert (told["rows"], told["seconds"]) == (4, pytest.approx(4.4))


def test_work_after_the_last_piece_counts_for_rows_that_were_taken_in_before() -> None:
    notebook, rows = Notebook(Posg(2), Start(None, 0.0, 1)), 65_536 + 64
    keys = np.arange(rows, dtype=np.uint64)
    for some in (keys[:65_536], keys[65_536:]):  # the first are taken in at once
        notebook.note(_Letter(np.zeros(len(some), np.int64), np.zeros(len(some), np.int64), None, some), 1.0)
    with pytest.warns(UserWarning, match=r"^function: "):
        notebook.note_late(rows / 64)
    charged = [each for _, costs in notebook._pages for each in costs.tolist()]
    assert charged == pytest.approx([1 / 64 + 1 / 64] * 64)
    assert notebook.close()["seconds"] == pytest.approx(2.0 + rows / 64)


def test_who_reads_ahead_is_warned_if_that_is_most_of_the_work(recwarn: pytest.WarningsRecorder) -> None:
    warn_if_late(0.09, 0.09)
    warn_if_late(4.0, 10.0)
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"^function: 6\.0 of 10\.0 s were worked after it had asked for all of its"):
        warn_if_late(6.0, 10.0)


def test_a_sample_is_timed_rightly_also_if_the_function_reads_ahead(spark: SparkSession) -> None:
    df = spark.createDataFrame([(20,), (1,)], "cost int")
    costs = LearnedCosts("cost")
    assert costs.time_sample(df, read_ahead, seconds=1) == 2
    found = {row["cost"]: row["e"] for row in df.select("cost", costs.estimate(df).alias("e")).collect()}
    assert found == {20: 20.0, 1: 1.0}


def test_rows_that_are_done_again_one_by_one_are_not_charged_for_the_attempt_that_failed() -> None:
    def slow_to_fail(batches: Batches) -> Batches:
        for batch in batches:
            if batch.num_rows > 1:
                TIME.sleep(4)
                raise ValueError("too many")
            TIME.sleep(0.25)
            yield batch

    took: list[float] = []
    list(run_collecting(slow_to_fail, iter([piece(1), piece(1, rows=2)]), lambda _, seconds: took.append(seconds)))
    assert took == [0.25, 0.5]
