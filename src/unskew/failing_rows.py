"""Which row a function of the user fails on, so that the error of a long job can name it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from unskew.errors import InputError

SEARCH = 10.0  # seconds in which the row is looked for
MOST_SHOWN = 500  # characters of a row


class RowError(RuntimeError):
    """A function of the user failed on rows. Its message names the function, and the row where it is one alone."""


@contextmanager
def naming_the_row(who: str, function: Callable[[Any], Any], rows: pa.Table | pa.RecordBatch) -> Iterator[None]:
    """Around a call of `function` with `rows`: if it fails, it is tried with each row alone to find the culprit.

    >>> with naming_the_row("mean", lambda rows: 1 / 0, pa.table({"v": [3]})):
    ...     1 / 0
    Traceback (most recent call last):
    unskew.failing_rows.RowError: mean failed on the row {'v': 3}: ZeroDivisionError: division by zero
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        row = failing_row(function, rows)
        if row is None:
            raise RowError(
                f"{who} failed on {rows.num_rows} rows together, the first {shown_row(rows)}: {what}"
            ) from error
        raise RowError(f"{who} failed on the row {shown_row(row)}: {what}") from error


def failing_row(function: Callable[[Any], Any], rows: Any) -> Any:
    """The first of `rows` that makes the function fail by itself; None if there is none, or none is found in time."""
    late = time.perf_counter() + SEARCH
    for number in range(rows.num_rows):
        row = rows.slice(number, 1)
        try:
            function(row)
        except Exception:
            return row
        if time.perf_counter() > late:
            break
    return None


def shown_row(rows: Any) -> str:
    """The first of `rows`, cut where it is long."""
    shown = str(rows.slice(0, 1).to_pylist()[0]) if rows.num_rows else "none"
    return shown if len(shown) <= MOST_SHOWN else shown[:MOST_SHOWN] + "..."
