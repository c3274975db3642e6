"""porc, bounded and random_two: what their docstrings state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import naive_bounds
from samples import SOME_KEYS, ids, streams, uniform, zipf
from unskew import InputError, Router, make
from unskew.ring import first_workers, new_ring

both = pytest.mark.parametrize("name", ["porc", "bounded"])
TWINS = {"porc": naive_bounds.naive_porc, "bounded": naive_bounds.naive_bounded}


def route(name, stream, workers, **parameters):
    return Router(make(name, workers, **parameters)).route(stream)


@both
@given(stream=streams, workers=st.integers(1, 20), epsilon=st.sampled_from([0, 0.01, 0.25, 1.0, 7.5]))
def test_decides_as_its_twin_whatever_epsilon(name, stream, workers, epsilon):
    rest = {"virtual_nodes": 3} if name == "bounded" else {}
    expected = TWINS[name](stream.tolist(), workers, epsilon, **rest)
    assert route(name, stream, workers, epsilon=epsilon, **rest).tolist() == expected


@both
@given(stream=streams, workers=st.integers(1, 20), epsilon=st.sampled_from([0, 0.01, 0.1, 1.0]))
def test_the_imbalance_is_under_epsilon_times_the_mean_and_one_at_every_moment(name, stream, workers, epsilon):
    rest = {"virtual_nodes": 3} if name == "bounded" else {}
    load = np.zeros(workers, np.int64)
    for t, worker in enumerate(route(name, stream, workers, epsilon=epsilon, **rest), start=1):
        load[worker] += 1
        assert load.max() - t / workers < epsilon * t / workers + 1 + 1e-9


@both
@given(tuples=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 39)), max_size=200), workers=st.integers(1, 9))
def test_with_several_sources_the_bounds_add_up(name, tuples, workers):
    routers = [Router(make(name, workers, epsilon=0.1)) for _ in range(5)]
    load = np.zeros(workers, np.int64)
    for source, number in tuples:
        load[routers[source].route(SOME_KEYS[number : number + 1])[0]] += 1
    assert load.max() - len(tuples) / workers < 0.1 * len(tuples) / workers + 5 + 1e-9


def test_at_the_very_first_tuples_no_two_go_to_one_worker():
    decisions = route("porc", np.repeat(SOME_KEYS[:1], 99), 100)
    assert len(set(decisions.tolist())) == 99
    assert route("porc", np.repeat(SOME_KEYS[:1], 100), 100)[-1] == decisions[0]  # the first has room again


@both
def test_one_key_goes_round_and_the_first_tuple_to_its_first_candidate(name):
    stream = np.repeat(SOME_KEYS[:1], 700)
    decisions = route(name, stream, 7, epsilon=0)
    assert np.bincount(decisions).tolist() == [100] * 7
    first = naive.candidate(int(stream[0]), 0, 7)
    assert decisions[0] == (first if name == "porc" else first_workers(new_ring(np.arange(7), 128), stream[0], 1)[0])


@both
def test_with_much_room_a_cold_key_stays_whole(name):
    stream = uniform(3000, 500, seed=2)
    decisions = route(name, stream, 5, epsilon=9.0)
    late = slice(100, None)  # at the start the mean is small
    homes = {(key, worker) for key, worker in zip(stream[late].tolist(), decisions[late].tolist(), strict=True)}
    assert len(homes) == len(set(stream[late].tolist()))


@both
def test_a_full_worker_has_room_again_when_the_mean_has_risen(name):
    """A search that went on where the key stood would never come back to the first candidate."""
    stream = np.concatenate([np.repeat(SOME_KEYS[:1], 50), uniform(5000, 300), SOME_KEYS[:1]])
    decisions = route(name, stream, 4, epsilon=0.5)
    assert decisions[-1] == decisions[0]


@both
def test_workers_come_and_go(name):
    stream = zipf(600, 80)
    router = Router(make(name, 5))
    router.route(stream)
    sent = dict(enumerate(router.state.sent.tolist()))
    router.change_workers([4, 9, 0, 1])
    least = min(sent[worker] for worker in (4, 0, 1))
    assert router.state.sent.tolist() == [sent[4], least, sent[0], sent[1]]
    assert router.state.total[0] == router.state.sent.sum()
    assert router.route(stream).max() < 4


def test_bounded_moves_few_keys_when_a_worker_goes():
    stream = ids(np.arange(500))
    router = Router(make("bounded", 10, epsilon=9.0))
    before = router.route(stream)
    router.change_workers(range(9))
    after = router.route(stream)
    assert (before[before < 9] == after[before < 9]).mean() > 0.9  # but for what overflowed at the start


@both
@pytest.mark.parametrize("epsilon", [-0.1, float("inf"), float("nan"), "1", True])
def test_epsilon_is_checked(name, epsilon):
    with pytest.raises(InputError, match=r"^epsilon: must be a number from 0 on, not "):
        make(name, 10, epsilon=epsilon)


@both
def test_a_state_in_which_a_search_may_not_end_is_refused(name):
    router = Router(make(name, 3))
    for damaged in (
        router.state._replace(sent=router.state.sent + 5),
        router.state._replace(total=router.state.total + 1),
        router.state._replace(sent=np.array([3, -3, 0])),
        router.state._replace(sent=np.array([2**62, 2**62, 0]), total=np.array([-(2**63)])),
        router.state._replace(sent=np.array([2**53, 0, 0]), total=np.array([2**53])),
    ):
        with pytest.raises(
            InputError,
            match=r"^(sent: must be from 0 on|total: must be the sum of sent)",
        ):
            Router(router.scheme, damaged)


# ---------------------------------------------------------------- random_two


def test_random_two_does_not_look_at_the_key():
    assert route("random_two", zipf(500, 50), 9).tolist() == route("random_two", uniform(500, 50), 9).tolist()


def test_random_two_balances_and_seeds_differ():
    one, other = (route("random_two", np.repeat(SOME_KEYS[:1], 4000), 16, seed=seed) for seed in (0, 1))
    assert np.bincount(one).max() - 250 <= 5  # ln ln 16 / ln 2 = 1.5, and a constant
    assert (one == other).mean() < 0.15


def test_random_two_draws_every_pair():
    """1,000 draws of 4 x 4 pairs: each expected 62 times, give or take five standard deviations."""
    pairs = [tuple(naive.candidate(t << 32, j, 4) for j in (0, 1)) for t in range(1000)]
    times = [pairs.count((a, b)) for a in range(4) for b in range(4)]
    assert 62.5 - 5 * 7.7 < min(times) <= max(times) < 62.5 + 5 * 7.7


def test_random_two_goes_on_when_workers_change():
    router = Router(make("random_two", 4))
    router.route(uniform(100, 5))
    router.change_workers([7, 0])
    assert router.state.load[0] == router.state.load[1]  # the new worker starts as the only one that stays
    assert router.state.drawn[0] == 100
    assert router.route(uniform(10, 5)).max() < 2
