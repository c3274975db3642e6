"""Workers that come and go: what becomes of a scheme and its state when the set of workers changes.

A decision is the index of a worker, 0..workers-1. A worker also has a name, a number that it keeps for as long as it
lives, while its index may change. At the start the worker with index i has the name i.
"""

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import is_number
from unskew.errors import InputError, InputTypeError

Names = npt.NDArray[np.int64]
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
    busy = _array("busy", report.busy, len(indices), "iuf").astype(np.float64, copy=False)
    least, highest = sys.float_info.min, sys.float_info.max
    if not is_number(report.seconds, least, highest):
        raise InputError(f"report: seconds must be a number above 0, not {report.seconds!r}")
    if not is_number(report.now, -highest, highest):
        raise InputError(f"report: now must be a number of seconds, not {report.now!r}")
    return WorkerReport(indices, came, tuples, busy, waiting, float(report.seconds), float(report.now))


def _whole(name: str, values: Any, length: int) -> Names:
    return _array(name, values, length, "iu" if length else "iuf").astype(np.int64, copy=False)


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


def require_members(members: Any, most: int) -> Names:
    """The names as int64; InputError unless there is at least one and all are distinct whole numbers."""
    names = np.asarray(list(members) if isinstance(members, Iterable) else members)
    if names.ndim != 1 or names.dtype.kind not in "iu" or not 1 <= len(names) <= most:
        raise InputError(f"members: must be from 1 to {most} whole numbers, one a worker, not {members!r:.80}")
    if len(np.unique(names)) < len(names) or names.min() < 0 or names.max() > 2**63 - 1:
        raise InputError(f"members: must be distinct and at least 0, not {members!r:.80}")
    return names.astype(np.int64)


def resized(name: str, scheme: Any, state: Any, before: Names, after: Names) -> tuple[Any, Any]:
    """The scheme called `name` and its state, for the workers `after` in the place of those `before`.

    The scheme's own ``resized`` where it has one. Else, where nothing but an estimate of the load depends on the
    workers, W becomes the new number, so that keys are hashed modulo the new number; the load of a worker that stays is
    kept, and a new worker starts with the least load of those that stay, lest everything be sent to it until it has
    caught up with what the others got in their whole life.
    """
    if hasattr(scheme, "resized"):
        own: tuple[Any, Any] = scheme.resized(state, before, after)
        return own
    tables = {field for field, array in zip(state._fields, state, strict=True) if field != "load" and array.size}
    tables |= {field for field, value in zip(scheme._fields, scheme, strict=True) if isinstance(value, np.ndarray)}
    if tables:
        raise InputError(
            f"scheme: {name} cannot follow workers that come and go: it has no method resized, and its "
            f"{', '.join(sorted(tables))} may depend on them"
        )
    new_scheme = scheme._replace(workers=len(after))
    new_scheme.check()
    new_state = new_scheme.new_state()
    if "load" in new_state._fields:
        new_state.load[:] = carried_over(state.load, before, after)
    return new_scheme, new_state


def carried_over(values: npt.NDArray[Any], before: Names, after: Names) -> npt.NDArray[Any]:
    """A value for each of the workers `after`: its own of before, or the least of those that stay for a new one."""
    of = dict(zip(before.tolist(), values.tolist(), strict=True))
    least = min((of[name] for name in after.tolist() if name in of), default=0)
    return np.array([of.get(name, least) for name in after.tolist()], values.dtype)
