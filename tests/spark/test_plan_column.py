"""The perfect hash table that a plan becomes."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.spark.plan_column import perfect_cells

HASH = st.integers(-(2**31), 2**31 - 1)


def cell_of(hashed: int, displacements: list[int], cells: list[int | None]) -> int:
    """As Spark computes it, in two's complement."""
    return ((hashed >> 16) ^ displacements[hashed & (len(displacements) - 1)]) & (len(cells) - 1)


def check(hashes: set[int]) -> list[int | None]:
    displacements, cells = perfect_cells(hashes)
    assert {found for found in cells if found is not None} == hashes
    assert all(cells[cell_of(each, displacements, cells)] == each for each in hashes)
    return cells


@settings(deadline=None)
@given(st.sets(HASH, min_size=1, max_size=60))
def test_every_hash_is_found_in_its_cell(hashes: set[int]) -> None:
    check(hashes)


def test_two_thousand_hashes_take_few_cells() -> None:
    assert len(check(set(random.Random(1).sample(range(-(2**31), 2**31), 2000)))) <= 8192


@pytest.mark.parametrize("step", [1, 2**8, 2**16, 2**20])
def test_hashes_that_differ_in_few_bits_are_told_apart(step: int) -> None:
    check({step * i for i in range(200) if step * i < 2**31})
