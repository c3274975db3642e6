"""Checks of numbers that users give, the same wherever one is asked for."""

from typing import Any

import numpy as np

from unskew.errors import InputError


def is_integer(value: Any, least: int, most: int = 2**63 - 1) -> bool:
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


def require_integer(name: str, value: Any, least: int, most: int) -> None:
    """InputError unless `value` is an integer from `least` to `most`."""
    if not is_integer(value, least, most):
        raise InputError(f"{name}: must be an integer from {least} to {most}, not {value!r:.80}")


def require_number(name: str, value: Any, rule: str, least: float, most: float) -> None:
    """InputError, which says `rule`, unless `value` is a number from `least` to `most`."""
    if not is_number(value, least, most):
        raise InputError(f"{name}: must be {rule}, not {value!r:.80}")
