"""Checks of numbers: one room for all of them, and messages that say the range."""

import numpy as np
import pytest

from unskew.checks import is_integer, is_number, require_integer, require_number
from unskew.errors import InputError


@pytest.mark.parametrize("value", [0, 7, np.int8(7), np.uint64(7), 2**63 - 1])
def test_an_integer_may_be_of_python_or_of_numpy(value):
    assert is_integer(value, 0)


@pytest.mark.parametrize("value", [-1, 2**63, 10**30, 1.0, True, "1", None, np.float64(1), np.array([1])])
def test_what_is_no_integer_in_the_range_is_refused(value):
    assert not is_integer(value, 0)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int8(1)])
def test_a_number_may_be_of_python_or_of_numpy(value):
    assert is_number(value, 0, 1)


@pytest.mark.parametrize("value", [-1e-300, 1.01, float("nan"), float("inf"), 10**400, True, "1", None, 1j])
def test_what_is_no_number_in_the_range_is_refused(value):
    assert not is_number(value, 0, 1)


@pytest.mark.parametrize(
    ("most", "written"),
    [
        (10, "10"),
        (2**31 - 1, "2147483647"),
        (2**31, "2**31"),
        (10**12, "1000000000000"),
        (2**53, "2**53"),
        (2**63 - 1, "2**63 - 1"),
    ],
)
def test_the_message_says_the_range_and_the_value(most, written):
    with pytest.raises(InputError) as error:
        require_integer("seed", 10**26, 0, most)
    assert str(error.value) == f"seed: must be an integer from 0 to {written}, not 100000000000000000000000000"


def test_a_long_value_is_cut():
    with pytest.raises(InputError, match=r"^z: must be a number from 0 to 20, not 'x{76}\.\.\.$"):
        require_number("z", "x" * 1000, "a number from 0 to 20", 0, 20)
