"""The times and the costs of tuples in columns of files, checked."""

from contextlib import suppress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from unskew.errors import InputError

MOST_COST = 1e9  # seconds
MOST_SECONDS = 2.0**53  # whole seconds are exact up to here
TIMESTAMPS = (pa.timestamp("us"), pa.timestamp("us", "UTC"))


def seconds(times: pa.Array, name: str) -> npt.NDArray[np.float64]:
    """A column of numbers (seconds), timestamps or their text as float seconds."""
    try:
        if pa.types.is_string(times.type) or pa.types.is_large_string(times.type):
            times = _numbers_or_timestamps(times)
        if pa.types.is_temporal(times.type):
            microseconds = times.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
            times = pc.divide(microseconds.cast(pa.float64(), safe=False), 1e6)
        result = times.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        shown = _shown(times, pa.float64(), *TIMESTAMPS)
        raise InputError(f"time: column {name!r} must hold seconds or timestamps, not {shown}") from None
    if result.null_count:
        raise InputError(f"time: column {name!r} has {result.null_count} nulls; every tuple needs its time")
    moments = np.asarray(result, np.float64)
    if not np.isfinite(moments).all():
        raise InputError(f"time: column {name!r} must hold finite times, not {moments[~np.isfinite(moments)][0]}")
    beyond = moments[np.abs(moments) > MOST_SECONDS]
    if len(beyond):
        hint = "divide nanoseconds by 1e9, or give timestamps"
        raise InputError(f"time: column {name!r} must hold seconds from -2^53 to 2^53, not {beyond[0]:g}: {hint}")
    return moments


def numbers(costs: pa.Array, name: str) -> npt.NDArray[np.float64]:
    """A column of costs, numbers or their text, as floats; InputError where one is missing, negative or not finite."""
    try:
        result = costs.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"cost: column {name!r} must hold numbers, not {_shown(costs, pa.float64())}") from None
    if result.null_count:
        raise InputError(f"cost: column {name!r} has {result.null_count} nulls; every tuple needs its cost")
    values = np.asarray(result, np.float64)
    wrong = values[~((values >= 0) & (values <= MOST_COST))]
    if len(wrong):
        raise InputError(f"cost: column {name!r} must hold seconds of work from 0 to {MOST_COST:g}, not {wrong[0]:g}")
    return values


def _shown(values: pa.Array, *allowed: pa.DataType) -> str:
    """The type of the values, with one that is of no allowed type, or the first where each is of one."""
    present = values.drop_null()
    if not len(present):
        return str(values.type)
    wrong = (value for value in present if not any(_can_be(value, kind) for kind in allowed))
    return f"{values.type} such as {next(wrong, present[0]).as_py()!r:.40}"


def _can_be(value: pa.Scalar, kind: pa.DataType) -> bool:
    try:
        return value.cast(kind) is not None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False


def _numbers_or_timestamps(texts: pa.Array) -> pa.Array:
    """Texts as what they spell: numbers, or timestamps with a zone or without."""
    with suppress(pa.ArrowInvalid):
        return texts.cast(pa.float64())
    without_zone, with_zone = TIMESTAMPS
    with suppress(pa.ArrowInvalid):
        return texts.cast(without_zone)
    return texts.cast(with_zone)
