"""What the docstring of fanout promises: level workers, few replicas, entries only where a key is not whole at home."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples import SOME_KEYS, ids, streams, uniform, zipf
from unskew import Frequencies, InputError, Router, candidate, follow_plan, make_plan
from unskew.frequencies import MOST_HOT_KEYS

SKEWED = {z: zipf(300_000, 20_000, z) for z in (0.0, 0.8, 1.2, 2.0)}


def measured(stream, keys=None, workers=None):
    """The `keys` most frequent keys, or all; with the load of all keys at home if `workers` are given."""
    found, counts = np.unique(stream, return_counts=True)
    home_load = None
    if workers:
        home = [int(candidate(key, 0, workers)) for key in found]
        home_load = np.bincount(home, counts, workers).astype(np.int64)
    top = np.argsort(-counts, kind="stable")[:keys]
    return Frequencies(found[top], counts[top], len(stream), home_load=home_load)


def route(plan, stream):
    return Router(follow_plan(plan)).route(stream)


def level(plan, stream):
    """max/mean of the load."""
    return np.bincount(route(plan, stream), minlength=plan.workers).max() * plan.workers / len(stream)


def replicas(plan, stream):
    return len(np.unique(np.stack([stream, route(plan, stream).astype(np.uint64)]), axis=1).T)


def fewest_replicas(stream, workers):
    """No balance is perfect with fewer: sum over keys of max(1, ceil(p_k W))."""
    _, counts = np.unique(stream, return_counts=True)
    return np.maximum(1, np.ceil(counts * workers / len(stream))).sum()


@pytest.mark.parametrize("workers", [2, 10, 50, 100])
@pytest.mark.parametrize("z", list(SKEWED))
def test_the_busiest_worker_is_within_a_hundredth_of_the_mean_at_the_fewest_replicas(z, workers):
    stream = SKEWED[z]
    plan = make_plan("fanout", workers, measured(stream))
    assert level(plan, stream) <= 1.011
    assert replicas(plan, stream) <= 1.05 * fewest_replicas(stream, workers)
    assert len(plan.hot_keys) <= MOST_HOT_KEYS


def test_cold_keys_are_moved_whole_where_they_alone_are_uneven():
    stream, workers = uniform(100_000, 1000), 8
    hot = measured(stream).hot(workers)
    assert hot == 0, "or this test is about hot keys"
    plan = make_plan("fanout", workers, measured(stream))
    assert level(plan, stream) <= 1.01 < level(make_plan("hash", workers, measured(stream)), stream)
    assert replicas(plan, stream) == 1000
    assert {len(hot.salts) for hot in plan.hot_keys} == {1}


def test_no_more_keys_are_taken_up_than_needed():
    """Each attempt takes up twice as many, and the first that is level is the plan."""
    plan = make_plan("fanout", 10, measured(SKEWED[0.8]))
    ranks = [int(np.flatnonzero(measured(SKEWED[0.8]).key_ids == hot.key_id)[0]) for hot in plan.hot_keys]
    assert 0 < max(ranks) < 100


def test_what_keys_that_were_not_measured_do_to_their_homes_is_evened_out():
    stream, workers = SKEWED[0.8], 50
    assert level(make_plan("fanout", workers, measured(stream, 500)), stream) > 1.03
    plan = make_plan("fanout", workers, measured(stream, 500, workers))
    assert level(plan, stream) <= 1.011
    assert plan.predicted_max_over_mean == pytest.approx(level(plan, stream), abs=0.001)
    for_others = make_plan("fanout", workers - 1, measured(stream, 500, workers))
    assert for_others == make_plan("fanout", workers - 1, measured(stream, 500)), "counted for other workers"


def test_counts_that_a_sketch_overstates_leave_no_worker_below_nothing():
    overstated = Frequencies(SOME_KEYS[:3], np.array([50, 40, 30]), 200, home_load=np.array([100, 100, 0, 0]))
    assert min(make_plan("fanout", 4, overstated).predicted_load) >= 0


@pytest.mark.parametrize("home_load", [[150, 51, 0, 0], [-1, 0, 0, 0], [[1, 2]], [0.5, 1.0, 0.0, 0.0]])
def test_a_load_at_home_that_cannot_be_is_refused(home_load):
    with pytest.raises(
        InputError, match=r"^home_load: must be (one integer of at least 0 per|at most 200 tuples in all)"
    ):
        Frequencies(SOME_KEYS[:2], np.array([50, 40]), 200, home_load=np.array(home_load))


def test_places_are_finer_where_rounding_is_what_is_left():
    """One key has 60 % of the tuples, and the others leave a different room on each worker: it needs unequal parts."""
    stream = np.concatenate([ids(np.zeros(60_000)), zipf(40_000, 400, 0.5, seed=1)])
    plan = make_plan("fanout", 20, measured(stream))
    assert level(plan, stream) <= 1.011
    assert len(plan.hot_keys[0].salts) > 2 * len(set(plan.workers_of(plan.hot_keys[0])))


@given(stream=streams, workers=st.integers(1, 30))
def test_every_entry_is_of_a_key_that_is_not_whole_at_home_and_has_as_many_tuples_as_workers(stream, workers):
    counts = dict(zip(*np.unique(stream, return_counts=True), strict=True))
    for hot in make_plan("fanout", workers, measured(stream)).hot_keys if len(stream) else ():
        assert hot.salts != (0,)
        assert len(set(hot.salts)) <= counts[hot.key_id]


@given(stream=streams, workers=st.integers(1, 30))
def test_no_worker_is_busier_than_with_whole_keys_at_home(stream, workers):
    frequencies = measured(stream, workers=workers)
    plan = make_plan("fanout", workers, frequencies)
    limit = np.ceil(1.01 * len(stream) / workers)
    assert max(plan.predicted_load) * len(stream) <= max(frequencies.home_load.max(), limit) + 1e-9


@given(stream=streams, workers=st.integers(1, 30))
def test_the_load_is_as_predicted_within_two_tuples_per_split_key(stream, workers):
    plan = make_plan("fanout", workers, measured(stream))
    load = np.bincount(route(plan, stream), minlength=workers)
    split = sum(len(set(hot.salts)) > 1 for hot in plan.hot_keys)
    assert np.abs(load - np.array(plan.predicted_load) * len(stream)).max() <= 2 * split + 1e-9
