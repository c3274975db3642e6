"""A user's function over batches, called so that its errors tell the row, or are collected, and so that it is timed.

Rows are handed over in pieces: batches as Spark makes them, or rows of the same cost key, whose time then is known.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from unskew.errors import InputError
from unskew.failing_rows import RowError, failing_row, shown_row
from unskew.spark.frames import warn
from unskew.spark.mapping import Batches

Function = Callable[[Batches], Batches]
END = object()
ENOUGH = 1.0  # seconds: a piece that takes so long is not made larger
MOST_LATE, LITTLE = 0.5, 0.1  # of all seconds, and in seconds: more work after the last rows is warned of
MOST_SAID = 300  # characters of what an error says


class Piece(NamedTuple):
    """Rows that are handed over together."""

    rows: pa.RecordBatch
    key: int | None = None  # the id of their cost key


Told = Callable[[Piece | None, float], None]  # what a piece took, in seconds; None: what came after the last of them


class Failed(NamedTuple):
    """A row that made the function fail."""

    row: pa.RecordBatch
    error: Exception


class Clock:
    """Adds up seconds while it runs."""

    def __init__(self) -> None:
        self._seconds, self._since = 0.0, -1.0

    def start(self) -> None:
        if self._since < 0:
            self._since = time.perf_counter()

    def stop(self) -> None:
        if self._since >= 0:
            self._seconds += time.perf_counter() - self._since
            self._since = -1.0

    def take(self) -> float:
        """The seconds since it was taken last."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds


def by_batch(batches: Batches) -> Iterator[Piece]:
    """The batches as they come."""
    return (Piece(batch) for batch in batches)


def by_cost_key(batches: Batches) -> Iterator[Piece]:
    """The rows of each batch by their cost key, whose id is in the last column, and is left out."""
    for batch in batches:
        if not batch.num_rows:
            continue
        ids = batch.columns[-1].to_numpy()
        order = np.argsort(ids, kind="stable")
        rows = batch.select(list(range(batch.num_columns - 1))).take(pa.array(order))
        starts = np.flatnonzero(np.diff(ids[order], prepend=ids[order[0]] + 1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            yield Piece(rows.slice(start, end - start), int(ids[order[start]]))


def run_through(function: Function, pieces: Iterator[Piece], told: Told) -> Iterator[Any]:
    """What `function` yields, called once with all pieces. An error tells which row it was for.

    A piece takes from the moment in which the function gets it until it asks for the next, without the time in which
    the function waits until what it yielded is taken. What it does after the last piece, when it has asked for more,
    may be for any piece: it is told with None.
    """
    clock, last = Clock(), Piece(None)
    current: Piece | None = None
    reading = False  # then an error is Spark's own

    def fed() -> Batches:
        nonlocal current, last, reading
        while True:
            reading = True
            piece = next(pieces, None)
            reading = False
            clock.start()
            if piece is None:
                return
            last = current = piece
            yield piece.rows
            clock.stop()
            current = None
            told(piece, clock.take())

    try:
        results = iter(function(fed()))
        while (result := next(results, END)) is not END:
            clock.stop()
            yield result
            clock.start()
        clock.stop()
        told(current, clock.take())
    except Exception as error:
        if reading or isinstance(error, InputError | RowError):  # which say all that is known
            raise
        raise RuntimeError(_said(function, error, last.rows)) from error


def run_by_batch(function: Function, batches: Batches) -> Iterator[Any]:
    """What `function` yields for the batches as they come. An error tells which row it was for."""
    return run_through(function, by_batch(batches), lambda piece, seconds: None)


def run_collecting(function: Function, pieces: Iterator[Piece], told: Told) -> Iterator[Any]:
    """What `function` yields, called anew for each part of the pieces; a `Failed` for each row that makes it fail.

    Where a part fails, its rows are done again one by one. Parts take about a second each, so that this is not much.
    """
    size = 1  # rows
    for piece in pieces:
        done = 0
        while done < piece.rows.num_rows:
            part = Piece(piece.rows.slice(done, size), piece.key)
            found, took = _all_of(function, part.rows)
            yield from found
            told(part, took)
            done += part.rows.num_rows
            if took < ENOUGH / 2 and part.rows.num_rows == size:
                size *= 2
            elif took > ENOUGH:
                size = max(1, size // 2)


def _all_of(function: Function, rows: pa.RecordBatch) -> tuple[list[Any], float]:
    """What it yields for these rows, and the seconds that they took; one by one where they fail together."""
    began = time.perf_counter()
    try:
        found = list(function(iter([rows])))
    except Exception as error:
        if rows.num_rows > 1:
            each = [_all_of(function, rows.slice(number, 1)) for number in range(rows.num_rows)]
            return [result for results, _ in each for result in results], sum(took for _, took in each)
        found = [Failed(rows, error)]
    return found, time.perf_counter() - began


def warn_if_late(late: float, seconds: float) -> None:
    """A warning if most of the work was done after the function had asked for all of its rows."""
    if late > max(MOST_LATE * seconds, LITTLE):
        warn(
            f"function: {late:.1f} of {seconds:.1f} s were worked after it had asked for all of its rows, so they "
            "count for all rows alike; let it finish each batch before it asks for the next"
        )


def _said(function: Function, error: Exception, rows: pa.RecordBatch | None) -> str:
    """What went wrong, where, and for which row."""
    name = getattr(function, "__name__", type(function).__name__)
    said = f"function: {name!r} raised {type(error).__name__}: {str(error)[:MOST_SAID]}"
    if rows is None:
        return f"{said}, before it asked for any row"
    found = failing_row(lambda row: list(function(iter([row]))), rows)
    if found is not None:
        return f"{said}, for the row {shown_row(found)}"
    return f"{said}, for one of {rows.num_rows:,} rows, of which the first is {shown_row(rows)}"
