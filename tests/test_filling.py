"""Plans fill the workers of each hot key to a common level, within what the scheme allows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samples import ids, zipf
from unskew import InputError, Router, candidate, follow_plan, make, make_plan
from unskew.filling import fill_up
from unskew.frequencies import Frequencies
from unskew.plan import places_of
from unskew.registry import SCHEMES
from unskew.ring import first_workers
from unskew.schemes.d_choices import fan_out

PLANNED = sorted(name for name, entry in SCHEMES.items() if "planned" in entry.modes)
STREAM = zipf(40_000, 2000, 1.4)


def measured(stream=STREAM):
    keys, counts = np.unique(stream, return_counts=True)
    return Frequencies(keys, counts, int(counts.sum()))


def workers_of(hot, workers):
    return {int(candidate(np.uint64(hot.key_id), salt, workers)) for salt in hot.salts}


def load_by(plan, stream=STREAM):
    return np.bincount(Router(follow_plan(plan)).route(stream), minlength=plan.workers)


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=12),
    st.lists(st.integers(0, 11), min_size=1, max_size=20),
    st.integers(1, 500),
)
def test_water_finds_its_level(before, wanted, count):
    load = np.array(before, float)
    workers = np.unique([worker % len(before) for worker in wanted])
    parts = fill_up(load, workers, count)
    assert parts.sum() == pytest.approx(count)
    assert parts.min() >= 0
    level = load[workers[parts > 0]]
    assert level == pytest.approx(np.full(len(level), level[0]))
    assert load[workers].min() >= level[0] - 1e-9  # nobody was left below
    assert load.sum() == pytest.approx(sum(before) + count)


@pytest.mark.parametrize("workers", [1, 2, 7, 16, 50])
@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_predicts_the_load_that_it_gives(name, workers):
    plan = make_plan(name, workers, measured())
    if plan.predicted_load:
        assert load_by(plan) / len(STREAM) == pytest.approx(plan.predicted_load, abs=0.03 / workers + 1e-3)
    assert load_by(plan).sum() == len(STREAM)


@pytest.mark.parametrize("name", ["d_choices", "w_choices", "fish", "fanout"])
@pytest.mark.parametrize("workers", [16, 50])
def test_planned_is_balanced_where_two_choices_are_not(name, workers):
    by_plan = load_by(make_plan(name, workers, measured()))
    assert by_plan.max() / by_plan.mean() < 1.1
    two = np.bincount(Router(make("pkg", workers)).route(STREAM), minlength=workers)
    assert two.max() / two.mean() > 1.3


def test_d_choices_plans_its_own_candidates_for_the_head_and_two_for_other_hot_keys():
    workers, frequencies = 16, measured()
    shares = frequencies.counts / frequencies.tuples
    head = shares > 1 / (5 * workers)
    choices = fan_out(shares[head], 1 - shares[head].sum(), workers, 1e-4)
    assert 2 < choices < workers
    plan = make_plan("d_choices", workers, frequencies, seed=1)
    assert {hot.share > 1 / (5 * workers) for hot in plan.hot_keys} == {True, False}
    for hot in plan.hot_keys:
        number = choices if hot.share > 1 / (5 * workers) else 2
        allowed = {int(candidate(np.uint64(hot.key_id), j, workers)) for j in range(2, 2 + number)}
        assert workers_of(hot, workers) <= allowed
    assert plan.cold_salt == 2


def test_w_choices_plans_all_workers_for_the_hottest_key():
    assert workers_of(make_plan("w_choices", 16, measured()).hot_keys[0], 16) == set(range(16))


@pytest.mark.parametrize("virtual_nodes", [128, 0])
def test_fish_plans_by_its_classification_on_its_ring(virtual_nodes):
    workers, frequencies = 32, measured()
    plan = make_plan("fish", workers, frequencies, virtual_nodes=virtual_nodes)
    ring = make("fish", workers, virtual_nodes=virtual_nodes).new_state().ring
    top, seen = plan.hot_keys[0].share, set()
    for hot in plan.hot_keys:
        is_hot = hot.share > 1 / (4 * workers)
        fan_out = max(2, workers // 2 ** int(np.floor(np.log2(top / hot.share)))) if is_hot else 2
        seen.add(fan_out)
        key = np.uint64(hot.key_id)
        allowed = set(range(workers))
        if fan_out < workers:
            by_hash = [int(candidate(key, j, workers)) for j in range(fan_out)]
            allowed = set(first_workers(ring, key, fan_out).tolist()) if virtual_nodes else set(by_hash)
        assert workers_of(hot, workers) <= allowed
    assert len(seen) > 3


@pytest.mark.parametrize("name", PLANNED)
def test_nothing_measured_and_one_key_only_are_planned_too(name):
    nothing = Frequencies(np.empty(0, np.uint64), np.empty(0, np.int64), 0)
    assert make_plan(name, 8, nothing).hot_keys == ()
    only = ids([7] * 1000)
    load = load_by(make_plan(name, 8, measured(only)), only)
    assert load.sum() == 1000
    if name in ("w_choices", "fish", "fanout"):
        assert load.max() <= 126


def test_a_key_has_no_more_places_than_its_proportions_need():
    """A plan is a table of places: what is dealt evenly over 8 workers needs 8 of them, not 16 for each."""
    (hot,) = make_plan("w_choices", 8, Frequencies(ids([7]), np.array([1000]), 1000)).hot_keys
    assert len(hot.salts) == len(workers_of(hot, 8)) == 8


@pytest.mark.parametrize("number", [1, 7, 8, 300])
def test_salts_lead_to_their_workers_and_are_the_smallest(number):
    (key,) = ids([5])
    salts = places_of(key, dict.fromkeys(range(number), 1), 300)
    assert [int(candidate(key, salt, 300)) for salt in salts] == list(range(number))
    tried = [int(candidate(key, j, 300)) for j in range(max(salts) + 1)]
    assert list(salts) == [tried.index(worker) for worker in range(number)]


def test_a_plan_that_would_be_huge_is_refused():
    many = Frequencies(ids(np.arange(2000)), np.full(2000, 10), 20_000)
    with pytest.raises(InputError, match="workers: a plan of w_choices for 2500 workers deals 2000 hot keys over"):
        make_plan("w_choices", 2500, many)
