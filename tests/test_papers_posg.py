"""Worked examples and numbers printed in the paper of POSG, "Proactive Online Scheduling for Shuffle Grouping in
Distributed Stream Processing Systems". Section cited, tolerance argued."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samples import estimates, ids, uniform
from test_simulate import Given
from unskew import FullKnowledge, Router, make
from unskew.simulate import Queues, simulate
from unskew.sketches.count_min import add_all, new_sketch


def test_the_papers_stream_of_three_tuples_takes_29_seconds_by_round_robin_and_21_by_cost():
    """Section II: a, b, a, one per second, on two workers; a costs 10 s and b costs 1 s."""
    stream = Given((1, 2, 1), times=(0.0, 1.0, 2.0), costs=(10.0, 1.0, 10.0))
    shuffle, greedy = simulate(stream, [make("shuffle", 2), make("full_knowledge", 2)], queues=Queues())
    assert 3 * shuffle.latency_mean == pytest.approx(29.0)
    assert 3 * greedy.latency_mean == pytest.approx(21.0)


def theorem_4_3(cost, costs, columns):
    keys, total = len(costs), costs.sum()
    share = columns * (total - keys * cost) / (keys * (keys - 1)) * (1 - (1 - 1 / columns) ** keys)
    return (total - cost) / (keys - 1) - share


def test_theorem_4_3_holds_for_our_own_sketch():
    """4096 keys of equal frequency, 64 for each cost of 1 to 64, 55 columns: E(W/F) is within [32.08, 32.92].

    2560 functions: the standard error of each mean is 2.1 / sqrt(2560) = 0.04, if all keys of a cost went together.
    """
    costs = np.repeat(np.arange(1.0, 65.0), 64)
    keys, expected = ids(np.arange(4096)), [theorem_4_3(cost, costs, 55) for cost in range(1, 65)]
    assert [round(float(min(expected)), 2), round(float(max(expected)), 2)] == [32.08, 32.92]
    means = np.zeros(64)
    for seed in range(2560):
        counts, seconds = new_sketch(1, 55, seed), new_sketch(1, 55, seed)
        add_all(counts, keys)
        add_all(seconds, keys, costs)
        ratio = estimates(seconds, keys) / estimates(counts, keys)
        assert 1 <= ratio.min() <= ratio.max() <= 64
        means += ratio.reshape(64, 64).mean(axis=1) / 2560
    assert means.tolist() == pytest.approx(expected, abs=0.2)


@given(costs=st.lists(st.integers(1, 12), min_size=1, max_size=7), workers=st.integers(1, 3))
@settings(max_examples=50)
def test_theorem_4_2_greedy_is_within_2_less_1_over_k_of_the_best_schedule(costs, workers):
    """By brute force over all schedules."""
    chosen = Router(FullKnowledge(workers)).route(uniform(len(costs), 5), costs=np.array(costs, float))
    greedy = np.bincount(chosen, weights=costs).max()
    best = min(
        np.bincount(schedule, weights=costs).max()
        for schedule in map(list, itertools.product(range(workers), repeat=len(costs)))
    )
    assert greedy <= (2 - 1 / workers) * best


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_the_bound_of_theorem_4_2_is_tight(workers):
    """Section IV-A: k (k - 1) tuples of w/k, then one of w."""
    costs = np.array([1.0] * (workers * (workers - 1)) + [float(workers)])
    chosen = Router(FullKnowledge(workers)).route(uniform(len(costs), 5), costs=costs)
    assert np.bincount(chosen, weights=costs).max() == (2 - 1 / workers) * workers
