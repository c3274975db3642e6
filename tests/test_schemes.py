"""Each scheme's decisions against its naive twin, tuple by tuple, and what each scheme's docstring states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from samples import any_stream, every_scheme, ids, scheme_for, streams, uniform, zipf
from twins import twin_of
from unskew import SCHEMES, OffGreedy, Router, candidate, key_ids, make


def route(name, stream, workers, **parameters):
    return Router(scheme_for(name, workers, stream, **parameters)).route(stream).tolist()


def load_of(decisions, workers):
    return np.bincount(decisions, minlength=workers)


def imbalance(decisions, workers):
    return load_of(decisions, workers).max() - len(decisions) / workers


def workers_of_keys(stream, decisions):
    homes = {}
    for key, worker in zip(stream.tolist(), decisions, strict=True):
        homes.setdefault(key, set()).add(worker)
    return homes


# ---------------------------------------------------------------- twins


@every_scheme
@any_stream
@pytest.mark.parametrize("workers", [1, 5, 16])
def test_decides_as_its_twin(name, stream, workers):
    assert route(name, stream, workers) == twin_of(name)(stream.tolist(), workers)


@every_scheme
@given(stream=streams, workers=st.integers(1, 30), choices=st.integers(1, 5), seed=st.integers(0, 5))
def test_decides_as_its_twin_whatever_the_parameters(name, stream, workers, choices, seed):
    drawn = {"choices": choices, "seed": seed}
    parameters = {parameter: drawn[parameter] for parameter in SCHEMES[name].parameters if parameter in drawn}
    assert route(name, stream, workers, **parameters) == twin_of(name)(stream.tolist(), workers, **parameters)


# ---------------------------------------------------------------- hash and shuffle


@pytest.mark.parametrize("similar", ["user{}", "{}", "key-{}-suffix", "https://example.org/page?id={:08}"])
@pytest.mark.parametrize("j", [0, 1])
def test_similar_keys_at_a_power_of_two_have_well_spread_candidates(similar, j):
    """100 keys thrown at random leave 16 * (15/16)^100 = 0.03 of 16 workers empty: at most one here."""
    keys = key_ids([similar.format(i) for i in range(100)])
    assert len({int(candidate(key, j, 16)) for key in keys}) >= 15


@pytest.mark.parametrize("workers", [2, 16, 64])
def test_the_two_candidates_of_a_key_are_independent(workers):
    """Keys whose candidates collide: 1/workers of 2,000, give or take five standard deviations."""
    keys = key_ids([f"user{i}" for i in range(2000)])
    collided = sum(candidate(key, 0, workers) == candidate(key, 1, workers) for key in keys)
    p = 1 / workers
    assert abs(collided - 2000 * p) <= 5 * np.sqrt(2000 * p * (1 - p))


def test_hash_ignores_the_past():
    stream = zipf(300, 50)
    assert route("hash", stream[::-1], 7) == route("hash", stream, 7)[::-1]


@given(stream=streams, workers=st.integers(1, 40), seed=st.integers(0, 2**31 - 1))
def test_shuffle_has_an_imbalance_under_one(stream, workers, seed):
    decisions = route("shuffle", stream, workers, seed=seed)
    assert not decisions or imbalance(decisions, workers) < 1


def test_shuffle_starts_at_its_seed_and_goes_round():
    assert route("shuffle", ids(np.zeros(6)), 4, seed=7) == [3, 0, 1, 2, 3, 0]


def test_sources_that_shuffle_from_the_same_start_stay_under_an_imbalance_of_their_number():
    decisions = [worker for length in (10, 3, 7, 21, 13) for worker in route("shuffle", uniform(length, 9), 8)]
    assert imbalance(decisions, 8) < 5


# ---------------------------------------------------------------- pkg


@given(stream=streams, workers=st.integers(1, 30), seed=st.integers(0, 9))
def test_pkg_with_one_choice_is_hash(stream, workers, seed):
    assert route("pkg", stream, workers, choices=1, seed=seed) == route("hash", stream, workers, seed=seed)


@given(stream=streams, workers=st.integers(1, 30), choices=st.integers(1, 5))
def test_pkg_uses_only_the_candidates_of_a_key(stream, workers, choices):
    for key, used in workers_of_keys(stream, route("pkg", stream, workers, choices=choices)).items():
        assert used <= {naive.candidate(key, j, workers) for j in range(choices)}


def test_pkg_with_very_many_choices_balances_as_shuffle():
    """150 choices among 8 workers miss one with probability 8 * (7/8)^150 < 2e-8 a key: always the least loaded one."""
    decisions = route("pkg", zipf(400, 30, 2.0), 8, choices=150)
    assert imbalance(decisions, 8) < 1


def key_with(workers, collided):
    """The first number whose two candidates are the same worker, or are not."""
    return next(
        number
        for number, key in enumerate(ids(np.arange(1000)).tolist())
        if (naive.candidate(key, 0, workers) == naive.candidate(key, 1, workers)) == collided
    )


@pytest.mark.parametrize("workers", [2, 3, 4, 16])
@pytest.mark.parametrize("name", ["pkg", "potc"])
def test_collided_choices_stay_collided(name, workers):
    stream = ids([key_with(workers, collided=True)] * 50)
    assert set(route(name, stream, workers)) == {naive.candidate(int(stream[0]), 0, workers)}


@pytest.mark.parametrize("workers", [2, 3, 4, 16])
def test_ties_go_to_the_first_candidate(workers):
    stream = ids([key_with(workers, collided=False)] * 6)
    first, second = (naive.candidate(int(stream[0]), j, workers) for j in (0, 1))
    assert route("pkg", stream, workers) == [first, second] * 3


@pytest.mark.parametrize("name", ["hash", "pkg", "potc"])
def test_the_seed_changes_the_candidates(name):
    stream = ids(np.arange(200))
    agreeing = np.equal(route(name, stream, 64), route(name, stream, 64, seed=1)).sum()
    assert agreeing < 20  # 200/64 = 3 by chance


def test_seeds_of_pkg_have_no_candidate_in_common():
    """Seed s takes the candidates d*s ... d*s + d - 1, so that as many seeds together are one larger set."""
    key = ids([5] * 40)
    used = [set(route("pkg", key, 1_000_000, choices=3, seed=seed)) for seed in range(4)]
    assert [len(workers) for workers in used] == [3] * 4
    assert set.union(*used) == {naive.candidate(int(key[0]), j, 1_000_000) for j in range(12)}


@pytest.mark.parametrize(("choices", "seed"), [(1, 2**31 - 2), (2, 2**30 - 2), (2**31 - 1, 0), (5, 429_496_728)])
def test_the_last_candidate_of_the_last_seed_is_still_an_int_of_spark(choices, seed):
    make("pkg", 10, choices=choices, seed=seed)
    assert (seed + 1) * choices <= 2**31 - 1
    with pytest.raises(ValueError, match=f"seed: must be an integer from 0 to {seed}, not {seed + 1}"):
        make("pkg", 10, choices=choices, seed=seed + 1)


def test_pkg_balances_better_than_hash_on_skew():
    stream = zipf(2000, 500, 1.0)
    assert imbalance(route("pkg", stream, 5), 5) * 20 < imbalance(route("hash", stream, 5), 5)


# ---------------------------------------------------------------- schemes that keep a key whole


@pytest.mark.parametrize("name", ["hash", "potc", "on_greedy", "off_greedy"])
@given(stream=streams, workers=st.integers(1, 30))
def test_a_key_never_moves(name, stream, workers):
    assert all(len(used) == 1 for used in workers_of_keys(stream, route(name, stream, workers)).values())


@pytest.mark.parametrize("name", ["potc", "on_greedy", "off_greedy"])
def test_a_table_that_grows_forgets_no_key(name):
    stream = ids(np.arange(3000))
    router = Router(scheme_for(name, 50, stream))
    homes = np.concatenate([router.route(part) for part in np.split(stream, 10)])
    assert router.route(stream[::-1]).tolist() == homes[::-1].tolist()


def test_potc_takes_the_less_loaded_candidate_of_a_new_key():
    """One key loads a worker; every new key that could also go elsewhere does."""
    hot = ids([0])
    home = route("potc", hot, 8)[0]
    new = ids(np.arange(1, 200))
    decisions = route("potc", np.concatenate([np.repeat(hot, 1000), new]), 8)[1000:]
    for key, worker in zip(new.tolist(), decisions, strict=True):
        assert (worker == home) == ({naive.candidate(key, j, 8) for j in (0, 1)} == {home})


def test_on_greedy_fills_workers_in_order_and_ties_go_to_the_lowest():
    assert route("on_greedy", ids([0, 0, 1, 2, 3]), 3) == [0, 0, 1, 2, 1]
    assert route("on_greedy", ids(np.arange(7)), 3) == [0, 1, 2, 0, 1, 2, 0]


@given(stream=streams, workers=st.integers(1, 20))
def test_off_greedy_is_on_greedy_on_the_keys_sorted_by_frequency(stream, workers):
    """Section 6.2: "sorts the keys by decreasing frequency and executes On-Greedy"; a key's tuples in one run."""
    keys, counts = np.unique(stream, return_counts=True)
    by_frequency = np.repeat(keys[np.argsort(-counts, kind="stable")], -np.sort(-counts))
    assert route("off_greedy", by_frequency, workers) == route("on_greedy", by_frequency, workers)


def test_off_greedy_is_within_a_third_of_the_best_makespan():
    """Longest first is a (4/3 - 1/(3W))-approximation (Graham 1969); the best is at least the mean and the longest."""
    stream = zipf(2000, 80, 1.1)
    workers = 6
    load = load_of(route("off_greedy", stream, workers), workers)
    best = max(len(stream) / workers, np.unique(stream, return_counts=True)[1].max())
    assert load.max() <= (4 / 3 - 1 / (3 * workers)) * best + 1


def test_off_greedy_puts_the_frequent_first_and_equals_in_the_order_given():
    keys = ids([1, 2, 3, 4])
    scheme = OffGreedy.fit(2, keys, np.array([1, 5, 1, 4]))
    assert Router(scheme).route(keys).tolist() == [1, 0, 0, 1]  # 2 -> 0 (5), 4 -> 1 (4), 1 -> 1 (5), 3 -> 0 (tie)


def test_off_greedy_sends_a_key_it_does_not_know_to_its_first_candidate():
    scheme = OffGreedy.fit(7, ids([1, 2]), np.array([3, 4]))
    assert scheme.describe() == {"keys": 2}
    unseen = ids(np.arange(100, 130))
    assert Router(scheme).route(unseen).tolist() == route("hash", unseen, 7)
    nothing_known = OffGreedy.fit(7, ids([]), np.array([], np.int64))
    assert Router(nothing_known).route(unseen).tolist() == route("hash", unseen, 7)


def test_off_greedy_takes_the_frequencies_of_something_else():
    known = {int(key): count for key, count in zip(ids(np.arange(20)), range(20, 0, -1), strict=True)}
    scheme = OffGreedy.fit(4, np.array(list(known), np.uint64), np.array(list(known.values())))
    stream = uniform(300, 40)
    assert Router(scheme).route(stream).tolist() == naive.naive_off_greedy(stream.tolist(), 4, known)


def test_off_greedy_is_fixed_and_its_tables_are_read_only():
    keys, counts = ids([1, 2]), np.array([3, 4])
    scheme = OffGreedy.fit(7, keys, counts)
    before = Router(scheme).route(keys).tolist()
    keys[:], counts[:] = 0, 0
    assert Router(scheme).route(ids([1, 2])).tolist() == before
    assert not scheme.keys.flags.writeable
    assert not scheme.values.flags.writeable


def test_off_greedy_wants_one_count_per_key():
    with pytest.raises(ValueError, match=r"^counts: must have one number per key \(2\), not shape \(3,\)$"):
        OffGreedy.fit(4, ids([1, 2]), np.array([1, 2, 3]))


def test_off_greedy_refuses_what_is_no_key_id():
    with pytest.raises(ValueError, match=r"^key_ids: must be"):
        OffGreedy.fit(4, np.array([1, 2]), np.array([1, 2]))


@pytest.mark.parametrize("counts", [[1, -1], [1.5, 2]])
def test_off_greedy_refuses_what_is_no_count(counts):
    with pytest.raises(ValueError, match=r"^counts: must "):
        OffGreedy.fit(4, ids([1, 2]), np.array(counts))
