"""Which row a function of the user fails on, so that the error of a long job can name it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from unskew.errors import InputError

MOST_TRIED = 10_000  # rows, one by one, after a failure
MOST_SHOWN = 500  # characters of a row


class RowError(RuntimeError):
    """A function of the user failed on rows. Its message names the function, and the row where it is one alone."""


@contextmanager
def naming_the_row(who: str, function: Callable[[Any], Any], rows: pa.Table | pa.RecordBatch) -> Iterator[None]:
    """Around a call of `function` with `rows`: if it fails, it is tried with each row alone to find the culprit.

    >>> with naming_the_row("mean", lambda rows: 1 / 0, pa.table({"v": [3]})):
    ...     1 / 0
    Traceback (most recent call last):
    unskew.aggregates.poison.RowError: mean failed on the row {'v': 3}: ZeroDivisionError: division by zero
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        row = _culprit(function, rows)
        if row is None:
            raise RowError(
                f"{who} failed on {rows.num_rows} rows together, the first {_shown(rows)}: {what}"
            ) from error
        raise RowError(f"{who} failed on the row {_shown(row)}: {what}") from error


def _culprit(function: Callable[[Any], Any], rows: Any) -> Any:
    for i in range(min(rows.num_rows, MOST_TRIED)):
        try:
            function(rows.slice(i, 1))
        except Exception:  # noqa: PERF203  (one is caught at most)
            return rows.slice(i, 1)
    return None


def _shown(rows: Any) -> str:
    shown = str(rows.slice(0, 1).to_pylist()[0]) if rows.num_rows else "none"
    return shown if len(shown) <= MOST_SHOWN else shown[:MOST_SHOWN] + "..."
