"""Checks of numbers, and of True and False, that users give: the same wherever one is asked for."""

from typing import Any

import numpy as np

from unskew.errors import InputError, InputTypeError

MOST = 2**63 - 1  # of the integers that kernels count with
MOST_WORKERS = 2**31 - 1  # Spark counts partitions in an int


def is_integer(value: Any, least: int, most: int = MOST) -> bool:
    """Whether `value` is an integer, of Python or of numpy, from `least` to `most`."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= most)


def is_number(value: Any, least: float, most: float) -> bool:
    """Whether `value` is a number, of Python or of numpy, from `least` to `most`, and float can hold it."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return bool(least <= float(value) <= most)
    except OverflowError:
        return False


def require(name: str, value: Any, rule: str, holds: bool) -> None:
    """InputError, which says `rule`, unless it holds for `value`."""
    if not holds:
        shown = repr(value)
        raise InputError(f"{name}: must be {rule}, not {shown if len(shown) <= 80 else shown[:77] + '...'}")


def require_integer(name: str, value: Any, least: int, most: int = MOST, what: str = "an integer") -> None:
    """InputError unless `value` is an integer from `least` to `most`."""
    require(name, value, f"{what} from {least} to {_written(most)}", is_integer(value, least, most))


def require_number(name: str, value: Any, rule: str, least: float, most: float) -> None:
    """InputError, which says `rule`, unless `value` is a number from `least` to `most`."""
    require(name, value, rule, is_number(value, least, most))


def require_bool(name: str, value: Any) -> None:
    """InputTypeError unless `value` is True or False, of Python or of numpy."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(f"{name}: must be True or False, not {value!r}")


def require_workers(workers: Any) -> None:
    """InputError unless there can be so many workers."""
    require_integer("workers", workers, 1, MOST_WORKERS)


def _written(limit: int) -> str:
    """`limit` as people know it: 2**53, 2**63 - 1, in digits where they can be read."""
    for number, rest in ((limit, ""), (limit + 1, " - 1")):
        if limit >= 2**31 and number.bit_count() == 1:
            return f"2**{number.bit_length() - 1}{rest}"
    return str(limit)
