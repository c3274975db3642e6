"""Whole keys as level as they can be, with entries for few of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples import ids, zipf
from unskew import Frequencies, InputError, make_plan
from unskew.hashing import candidates_of
from unskew.partitioning import ALGORITHMS, PartitionFunction, place_whole


def measured(stream, workers):
    keys, counts = np.unique(stream, return_counts=True)
    home = np.bincount(candidates_of(keys, 0, workers), counts, workers).astype(np.int64)
    return Frequencies(keys, counts, int(counts.sum()), home_load=home)


def loads(function, frequencies):
    return np.bincount(function.look_up(frequencies.key_ids), frequencies.counts, function.workers)


@pytest.mark.parametrize("workers", [2, 8, 16])
def test_workers_are_level_where_no_key_is_too_hot(workers):
    frequencies = measured(zipf(40_000, 400, 0.6), workers)
    found = loads(place_whole(workers, frequencies), frequencies)
    assert found.max() <= 1.011 * found.mean()


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=60), st.integers(1, 8), st.sampled_from(["home", "arcs"]))
def test_no_worker_has_more_than_the_mean_and_the_hottest_key(counts, workers, cold):
    frequencies = Frequencies(ids(range(len(counts))), counts, sum(counts))
    found = loads(place_whole(workers, frequencies, cold=cold), frequencies)
    hashed = loads(PartitionFunction(workers, cold=cold), frequencies)
    assert found.sum() == sum(counts)
    assert found.max() <= min(hashed.max(), 1.005 * max(sum(counts) / workers, max(counts)) + max(counts)) + 1e-9


def test_keys_that_are_fine_where_they_are_get_no_entry():
    frequencies = measured(zipf(40_000, 400, 0.6), 8)
    function = place_whole(8, frequencies)
    assert (function.hashed(function.key_ids) != function.placed).all()
    assert len(function.key_ids) < 200


def test_what_was_not_counted_is_evened_out_where_its_load_is_known():
    stream = zipf(60_000, 3000, 0.7)
    every = measured(stream, 8)
    some = Frequencies(every.key_ids[:500], every.counts[:500], every.tuples, home_load=every.home_load)
    found = loads(place_whole(8, some), every)
    assert found.max() <= 1.02 * found.mean()


def test_other_frequencies_are_refused():
    with pytest.raises(InputError, match="frequencies: must be Frequencies, not dict"):
        place_whole(4, {})


@pytest.mark.compiled
@pytest.mark.parametrize("name", ALGORITHMS)
def test_plans_of_the_constructions_keep_every_key_whole(name):
    frequencies = measured(zipf(40_000, 400, 0.8), 8)
    plan = make_plan(name, 8, frequencies)
    assert all(len(hot.salts) == 1 for hot in plan.hot_keys)
    by_hash = frequencies.home_load.max() / frequencies.home_load.mean()
    assert plan.predicted_max_over_mean < by_hash
    assert max(plan.predicted_load) * 40_000 == pytest.approx(
        loads(PartitionFunction.from_plan(plan), frequencies).max()
    )
