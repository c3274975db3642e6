"""Longest first: the worker with most has little more than it must."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew import InputError
from unskew.longest_first import longest_first

costs = st.lists(st.floats(0, 1e6), max_size=40)


@given(costs, st.integers(1, 9))
def test_no_worker_has_more_than_the_mean_and_one_piece(costs, workers):
    found = longest_first(costs, workers)
    assert found.load.max() <= sum(costs) / workers + max(costs, default=0) + 1e-6


@given(costs, st.integers(1, 9))
def test_loads_are_the_sums_of_the_pieces(costs, workers):
    found = longest_first(costs, workers)
    again = np.bincount(found.workers, costs, workers) if costs else np.zeros(workers)
    assert found.load == pytest.approx(again)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(2, 3))
def test_it_is_within_grahams_bound_of_the_best_assignment(costs, workers):
    best = min(max(np.bincount(chosen, costs, workers)) for chosen in product(range(workers), repeat=len(costs)))
    assert longest_first(costs, workers).load.max() <= (4 / 3 - 1 / (3 * workers)) * best + 1e-9


@given(costs, costs, st.integers(1, 9))
def test_what_comes_later_goes_to_those_that_have_least(early, late, workers):
    before = longest_first(early, workers).load
    found = longest_first(late, workers, before).load
    assert found.sum() == pytest.approx(sum(early) + sum(late))
    assert found.max() <= max(before.max(), found.sum() / workers + max(late, default=0)) + 1e-6


@given(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.5]), max_size=40), st.integers(1, 9))
def test_pieces_that_cost_nothing_are_given_away_in_turn(costs, workers):
    found = longest_first(costs, workers)
    free = np.bincount(found.workers[np.array(costs) == 0], minlength=workers)
    assert free.max() - free.min() <= 1
    least = int(np.argmin(found.load))
    assert free[least] == free.max()


def test_grahams_worst_case():
    """Two workers, 3 3 2 2 2: the best is 6, longest first gives 7."""
    assert longest_first([3, 3, 2, 2, 2], 2).load.tolist() == [7.0, 5.0]


@pytest.mark.parametrize("wrong", [[-1.0], [float("nan")], [float("inf")], [[1.0]]])
def test_costs_that_are_none_are_refused(wrong):
    with pytest.raises(InputError, match=r"^costs: must be a list of finite numbers"):
        longest_first(wrong, 2)
