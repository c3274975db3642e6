"""What rows took: timed one by one here, or in tasks by cost key, and then sketched."""

import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, DoubleType, IntegerType, LongType, StructField, StructType

from unskew.sketches.mean_costs import MeanCosts, disagreement, learn, merge_faded, new_mean_costs
from unskew.spark.tasks import task_number
from unskew.spark.working import Function, Piece, Told, by_cost_key, run_through

MOST_TIMED = 1000  # rows of a sample
ROWS, COLUMNS = 4, 2**14  # of the sketches: the paper's delta of 0.1; an epsilon of 0.00017, where it has 0.05
CHANGED = 0.5  # of the costs of a run: what was learnt before is forgotten if it is off by more
DONE_TYPE = StructType(
    [
        StructField("worker", IntegerType()),
        StructField("rows", LongType()),
        StructField("seconds", DoubleType()),
        StructField("late", DoubleType()),  # of these, after the last rows were asked for
        StructField("sketches", BinaryType()),
    ]
)


def time_rows(df: DataFrame, function: Function, seconds: float) -> list[tuple[Piece, float]]:
    """Up to a thousand rows of `df` and the seconds that each takes here. The last column is the id of the cost key."""
    rows = df.count()
    some = df if rows <= MOST_TIMED else df.sample(min(1.0, 1.2 * MOST_TIMED / rows), seed=0).limit(MOST_TIMED)
    pieces = [
        Piece(each.rows.slice(number, 1), each.key)
        for each in by_cost_key(iter(some.toArrow().combine_chunks().to_batches()))
        for number in range(each.rows.num_rows)
    ]
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(pieces)).tolist()
    timed: list[tuple[Piece, float]] = []
    if pieces:
        _seconds_of(function, pieces[order[0]])  # imports and caches
    end = time.perf_counter() + seconds
    for number in order:
        timed.append((pieces[number], _seconds_of(function, pieces[number])))
        if time.perf_counter() > end:
            break
    return timed


def _seconds_of(function: Function, piece: Piece) -> float:
    """What a piece takes, also by a function that works on it only after it has asked for more."""
    took: list[float] = []
    list(run_through(function, iter([piece]), lambda _, seconds: took.append(seconds)))
    return sum(took)


def sketching() -> tuple[Told, Callable[[], Iterator[dict[str, Any]]]]:
    """For one task: what takes in the time of each piece, and what then makes the row that the task tells. What was
    done after the last piece was asked for counts for all rows alike."""
    sketches, rows, seconds, late = new_mean_costs(ROWS, COLUMNS), 0, 0.0, 0.0
    found: dict[int, list[float]] = {}  # key id -> rows and seconds

    def told(piece: Piece | None, took: float) -> None:
        nonlocal rows, seconds, late
        if piece is None:
            late += took
            return
        sums = found.setdefault(piece.key or 0, [0.0, 0.0])
        sums[0] += piece.rows.num_rows
        sums[1] += took
        rows, seconds = rows + piece.rows.num_rows, seconds + took
        if len(found) >= COLUMNS * ROWS:
            empty()

    def empty() -> None:
        ids = np.array(list(found), np.int64).view(np.uint64)
        counts, costs = np.array(list(found.values())).reshape(-1, 2).T
        learn(sketches, ids, counts, costs)
        found.clear()

    def done() -> Iterator[dict[str, Any]]:
        empty()
        if rows:
            sketches.costs.cells[:] += late / rows * sketches.counts.cells
        total = seconds + late
        yield {"worker": task_number(), "rows": rows, "seconds": total, "late": late, "sketches": packed(sketches)}

    return told, done


def packed(sketches: MeanCosts) -> bytes:
    """The cells of both sketches, which are mostly zeros."""
    return zlib.compress(np.stack([sketch.cells for sketch in sketches]).tobytes(), level=1)


def add_up(parts: Iterable[bytes]) -> MeanCosts:
    """All sketches together that `packed` made. ValueError where one is damaged."""
    new = new_mean_costs(ROWS, COLUMNS)
    for part in parts:
        try:
            cells = np.frombuffer(zlib.decompress(part), np.float64).reshape(2, ROWS, COLUMNS)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        new.counts.cells[:] += cells[0]
        new.costs.cells[:] += cells[1]
    return new


def learnt(old: MeanCosts | None, new: MeanCosts, keep: float) -> MeanCosts:
    """What is known after a run; what was known before counts `keep` times, or not at all where costs have changed."""
    return new if old is None or disagreement(old, new) > CHANGED else merge_faded(old, new, keep)
