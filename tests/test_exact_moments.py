"""Variances whose states are summed as whole numbers, against exact fractions."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.aggregates import Variance
from unskew.aggregates.exact_moments import FIELDS, PLAIN, exact_states, variances
from unskew.aggregates.groups import Groups


def by_parts(parts: list[list[float | None]], *, sample: bool = True) -> float | None:
    """The variance of all values, each part of which became a state first."""
    codes = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    values = pa.array([value for part in parts for value in part], pa.float64())
    states = Variance("v").fold(Groups(codes), values)
    fields = exact_states(pa.StructArray.from_arrays(states, ["0", "1", "2"])).flatten()
    sums: list[Any] = [np.array([sum(field.to_pylist())]) for field in fields]
    limbs = np.stack(sums[PLAIN:], 1)
    assert limbs.shape == (1, FIELDS - PLAIN)
    return variances(sums[0], sums[1].astype(float), sums[2].astype(float), limbs, sample=sample)[0]


def exactly(values: list[float]) -> float:
    fractions = [Fraction(value) for value in values]
    mean = sum(fractions) / len(fractions)
    return float(sum((value - mean) ** 2 for value in fractions) / (len(fractions) - 1))


@pytest.mark.parametrize("mean", [0.0, 1e-20, 1.0, -1e6, 1e9, 1e15, 3e37])
@pytest.mark.parametrize("spread", [1e-6, 1.0])
def test_large_means_cost_no_more_digits_than_the_means_of_the_parts_have(mean: float, spread: float) -> None:
    """With plain sums of squares the error would grow with the square of mean over deviation."""
    chance = np.random.default_rng(0)
    scale = max(abs(mean), 1.0) * spread * 1e-3
    values = (mean + scale * chance.standard_normal(2000)).tolist()
    parts = [values[start : start + 50] for start in range(0, 2000, 50)]
    error = 16 * np.finfo(float).eps * (1 + abs(mean) / scale)
    assert error < 1e-3
    assert by_parts(parts) == pytest.approx(exactly(values), rel=error)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=5), min_size=1, max_size=5))
def test_any_parts_give_the_variance_of_all_values(parts: list[list[float | None]]) -> None:
    values: list[float] = [value for part in parts for value in part if value is not None]
    found = by_parts(parts)
    if len(values) == 1:
        assert found is None
        return
    largest = max(map(abs, values))
    assert found == pytest.approx(exactly(values), rel=1e-9, abs=1e-26 * largest * largest)


def test_the_order_of_parts_does_not_change_a_bit_of_it() -> None:
    chance = np.random.default_rng(1)
    parts = [chance.normal(1e9, 1.0, 7).tolist() for _ in range(30)]
    assert by_parts(parts) == by_parts(parts[::-1]) != by_parts(parts[1:])


def test_nulls_do_not_count_and_few_values_have_no_variance() -> None:
    assert by_parts([[None], [1.0, None, 3.0]]) == 2.0
    assert by_parts([[None], [5.0]]) is None
    assert by_parts([[None], [5.0]], sample=False) == 0.0
    assert by_parts([[None]], sample=False) is None


def test_beyond_the_range_of_the_limbs_plain_sums_are_used() -> None:
    assert by_parts([[1e60], [3e60]]) == pytest.approx(2e120)
    assert by_parts([[1e-50], [3e-50]]) == pytest.approx(2e-100)
    found = by_parts([[1.0], [math.inf]])
    assert found is not None
    assert math.isnan(found)
