"""What tuples cost on average, by key: W / F of a pair of Count-Min sketches."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples import ids
from unskew import InputError
from unskew.sketches.mean_costs import (
    disagreement,
    from_plain_costs,
    learn,
    mean_cost,
    mean_costs_of,
    merge_faded,
    new_mean_costs,
    to_plain,
)

KEYS = ids(range(40))


def test_keys_that_share_no_cell_have_exactly_their_mean():
    sketches = new_mean_costs(4, 2048)
    learn(sketches, KEYS, np.arange(1, 41), 2.5 * np.arange(1, 41))
    learn(sketches, KEYS[:1], 1, 7.5)
    assert mean_costs_of(sketches, KEYS[1:]) == pytest.approx(2.5)
    assert mean_costs_of(sketches, KEYS[:1]) == pytest.approx(5.0)


@given(st.lists(st.tuples(st.integers(0, 39), st.floats(0, 100)), min_size=1, max_size=60), st.integers(1, 8))
def test_an_estimate_is_between_the_least_and_the_most_expensive_tuple(tuples, columns):
    """However many keys share a cell: it is a mean of tuples."""
    sketches = new_mean_costs(2, columns)
    costs = np.array([cost for _, cost in tuples])
    learn(sketches, KEYS[[key for key, _ in tuples]], 1.0, costs)
    found = mean_costs_of(sketches, KEYS)
    assert (found >= costs.min() - 1e-9).all()
    assert (found <= costs.max() + 1e-9).all()


def test_a_key_that_was_never_seen_costs_what_all_do_on_average():
    sketches = new_mean_costs(4, 2048)
    learn(sketches, KEYS[:2], [1, 3], [10.0, 2.0])
    assert mean_cost(sketches) == 3.0
    assert mean_costs_of(sketches, KEYS[30:31]).tolist() == [3.0]
    assert mean_costs_of(new_mean_costs(4, 16), KEYS[:1]).tolist() == [0.0]


@pytest.mark.parametrize(("keep", "after"), [(0.0, [10.0, 10.0]), (0.2, [8.5, 9.71]), (1.0, [5.5, 7.0])])
def test_old_costs_fade_when_they_change_tenfold(keep, after):
    sketches = new_mean_costs(4, 64)
    learn(sketches, KEYS[:1], 100, 100.0)
    for expected in after:
        new = new_mean_costs(4, 64)
        learn(new, KEYS[:1], 100, 1000.0)
        sketches = merge_faded(sketches, new, keep)
        assert mean_costs_of(sketches, KEYS[:1]) == pytest.approx(expected, abs=0.02)


def sketched(keys, counts, costs):
    sketches = new_mean_costs(4, 2048)
    learn(sketches, keys, counts, costs)
    return sketches


def test_disagreement_is_the_share_of_the_costs_that_was_not_foreseen():
    old = sketched(KEYS[:2], [1000, 1000], [1000.0, 3000.0])
    assert disagreement(old, sketched(KEYS[:2], [500, 100], [500.0, 300.0])) == 0
    assert disagreement(old, sketched(KEYS[:2], [500, 100], [5000.0, 300.0])) == pytest.approx(45 / 53)
    assert disagreement(old, sketched(KEYS[9:], 100, 700.0)) == 0


def times(generator, tuples, keys, mean):
    """Some tuples per key, of costs that are exponential."""
    chosen = ids(generator.integers(0, keys, tuples))
    return sketched(chosen, 1.0, generator.exponential(mean, tuples))


@pytest.mark.parametrize(("tuples", "keys"), [(5, 40), (150, 100), (1000, 1000), (1000, 5)])
def test_noise_is_no_disagreement(tuples, keys):
    """Of one or two tuples per key each mean is off by as much as it is, but not the sum of them."""
    generator = np.random.default_rng(7)
    for _ in range(20):
        assert disagreement(times(generator, tuples, keys, 1.0), times(generator, tuples, keys, 1.0)) < 0.5


@pytest.mark.parametrize("factor", [0.1, 10.0])
@pytest.mark.parametrize(("tuples", "keys"), [(150, 100), (1000, 1000), (1000, 5)])
def test_costs_that_change_tenfold_are_a_disagreement(tuples, keys, factor):
    generator = np.random.default_rng(7)
    for _ in range(20):
        assert disagreement(times(generator, tuples, keys, 1.0), times(generator, tuples, keys, factor)) > 0.5


def test_hot_keys_that_change_places_are_a_disagreement():
    """Though all tuples together cost the same as before."""
    old, new = (sketched(KEYS[:2], [500, 500], costs) for costs in ([50.0, 5000.0], [5000.0, 50.0]))
    assert disagreement(old, new) > 0.9


def test_a_few_known_tuples_of_many_say_nothing_of_the_others():
    old = sketched(KEYS[:1], 1000, 1000.0)
    assert disagreement(old, sketched(KEYS[:2], [100, 850], [1000.0, 850.0])) == pytest.approx(0.9)
    assert disagreement(old, sketched(KEYS[:2], [100, 950], [1000.0, 950.0])) == 0


def test_they_go_to_json_and_back():
    sketches = new_mean_costs(2, 8, seed=3)
    learn(sketches, KEYS, 1, 0.25)
    again = from_plain_costs("costs", json.loads(json.dumps(to_plain(sketches))))
    assert mean_costs_of(again, KEYS).tolist() == mean_costs_of(sketches, KEYS).tolist()


def test_what_is_no_pair_of_sketches_is_refused():
    good = to_plain(new_mean_costs(2, 8))
    for wrong in (None, {}, {"counts": good["counts"]}, good | {"costs": to_plain(new_mean_costs(2, 4))["costs"]}):
        with pytest.raises(InputError):
            from_plain_costs("costs", wrong)
