"""What workers tell a source: the report of one window."""

import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import is_number
from unskew.errors import InputError, InputTypeError
from unskew.members import Names

MOST = 2.0**53  # of a count or of seconds in a report


class WorkerReport(NamedTuple):
    """What a source hears of its workers at the end of a window.

    It comes with the acknowledgements: only from workers that executed a tuple of this source in that time. What it
    tells is of the worker as a whole, tuples of other sources included.
    """

    workers: Names  # int64[n], their indices
    came: npt.NDArray[np.int64]  # int64[n], tuples that arrived in the window
    tuples: npt.NDArray[np.int64]  # int64[n], executed in it
    busy: npt.NDArray[np.float64]  # float64[n], seconds worked in it
    waiting: npt.NDArray[np.int64]  # int64[n], tuples at the worker at its end, the one in work included
    seconds: float  # length of the window
    now: float  # its end
    # float64[n], seconds of the executed tuples, whenever they were begun, each at the speed that the worker had at its
    # end. `busy` has a part of the tuple in work at either end of the window. None where a worker does not know
    spent: npt.NDArray[np.float64] | None = None


def checked_report(report: Any, workers: int) -> WorkerReport:
    """The report with arrays of the right types; InputError unless `workers` workers can have told it."""
    if not isinstance(report, WorkerReport):
        raise InputTypeError(f"report: must be a WorkerReport, not {type(report).__name__}")
    try:
        number = len(report.workers)
    except TypeError:
        raise InputError(f"report: workers must be a list of indices, not {report.workers!r:.80}") from None
    indices = _whole("workers", report.workers, number)
    if len(indices) and not (indices.max() < workers and np.diff(np.sort(indices)).all()):
        raise InputError(
            f"report: workers must be different indices from 0 to {workers - 1}, not {report.workers!r:.80}"
        )
    came, tuples, waiting = (
        _whole(name, getattr(report, name), len(indices)) for name in ("came", "tuples", "waiting")
    )
    busy = _seconds("busy", report.busy, len(indices))
    spent = None if report.spent is None else _seconds("spent", report.spent, len(indices))
    least, highest = sys.float_info.min, sys.float_info.max
    if not is_number(report.seconds, least, highest):
        raise InputError(f"report: seconds must be a number above 0, not {report.seconds!r}")
    if not is_number(report.now, -highest, highest):
        raise InputError(f"report: now must be a number of seconds, not {report.now!r}")
    return WorkerReport(indices, came, tuples, busy, waiting, float(report.seconds), float(report.now), spent)


def _whole(name: str, values: Any, length: int) -> Names:
    return _array(name, values, length, "iu" if length else "iuf").astype(np.int64, copy=False)


def _seconds(name: str, values: Any, length: int) -> npt.NDArray[np.float64]:
    return _array(name, values, length, "iuf").astype(np.float64, copy=False)


def _array(name: str, values: Any, length: int, kinds: str) -> npt.NDArray[Any]:
    """`values` as an array of `length` numbers that may be counts or seconds; InputError unless they are."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, object)  # lists of different lengths
    if array.shape != (length,) or array.dtype.kind not in kinds or not ((array >= 0) & (array <= MOST)).all():
        what = "whole numbers" if kinds == "iu" else "numbers"
        raise InputError(f"report: {name} must be {length} {what} from 0 to {MOST:g}, not {values!r:.80}")
    return array
