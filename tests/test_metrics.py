"""What the simulator measures: exact counts, the lower bound, samples, and the edges of what can be measured."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_simulator import lower_bound
from samples import any_stream, every_scheme, ids, scheme_for, widest
from test_simulate import Given
from unskew import InputError, make
from unskew.simulate import count_keys, simulate
from unskew.simulate.load import Load
from unskew.simulate.metrics import KeyCounter, Replicas, replicas_lower_bound
from unskew.simulate.sampling import FIRST_DISTANCE, Sampling
from unskew.streams import Chunk, Stream, Zipf

ONE_KEY = Zipf(1.0, 1, 300)
NOTHING = Zipf(1.0, 10, 0)


# ---------------------------------------------------------------- keys and replicas


@any_stream
@pytest.mark.parametrize("cut", [1, 7, 10_000])
def test_keys_are_counted_exactly_in_order_of_arrival(stream, cut):
    keys = KeyCounter()
    rows = np.concatenate([keys.count(stream[i : i + cut]) for i in range(0, len(stream), cut)])
    counts = Counter(stream.tolist())
    assert keys.ids.tolist() == list(counts)
    assert keys.counts.tolist() == list(counts.values())
    assert keys.ids[rows].tolist() == stream.tolist()
    assert len(keys) == len(counts)
    assert keys.p1 == max(counts.values()) / len(stream)


def test_no_keys_have_no_hottest_one():
    assert (len(KeyCounter()), KeyCounter().p1, KeyCounter().counts.tolist()) == (0, 0.0, [])


@given(seed=st.integers(0, 2**32), workers=st.sampled_from([1, 2, 50, 10_000_000]), cut=st.integers(1, 3000))
@settings(max_examples=15)
def test_replicas_are_the_distinct_pairs_of_worker_and_key(seed, workers, cut):
    random = np.random.default_rng(seed)
    rows = np.concatenate([np.arange(700), random.integers(0, 700, 2000)]).astype(np.int32)
    chosen = random.integers(0, workers, len(rows)).astype(np.int32)
    replicas = Replicas(workers)
    for i in range(0, len(rows), cut):
        replicas.add(rows[i : i + cut], chosen[i : i + cut], 700)
    assert len(replicas) == len(set(zip(rows.tolist(), chosen.tolist(), strict=True)))


@given(counts=st.lists(st.integers(1, 10**6), min_size=1, max_size=30), workers=st.integers(1, 10**7))
def test_the_lower_bound_is_its_formula_in_exact_arithmetic(counts, workers):
    assert replicas_lower_bound(np.array(counts, np.int64), workers) == lower_bound(counts, workers)


@given(counts=st.lists(st.integers(1, 20), min_size=1, max_size=30), workers=st.integers(1, 10))
def test_the_lower_bound_is_never_above_the_replicas_of_a_perfect_balance(counts, workers):
    """Any balance is perfect that gives each worker the same: here the tuples, sorted by key, in W equal pieces."""
    tuples = np.repeat(np.arange(len(counts)), np.array(counts) * workers)  # a multiple of the workers
    pieces = np.arange(len(tuples)) // (len(tuples) // workers)
    sorted_by_key = len(set(zip(tuples.tolist(), pieces.tolist(), strict=True)))
    in_turn = len(set(zip(tuples.tolist(), (np.arange(len(tuples)) % workers).tolist(), strict=True)))
    bound = replicas_lower_bound(np.bincount(tuples), workers)
    assert len(counts) <= bound <= min(sorted_by_key, in_turn)


def test_the_lower_bound_of_known_cases():
    assert replicas_lower_bound(np.array([50, 50]), 2) == 2
    assert replicas_lower_bound(np.array([51, 49]), 2) == 3
    assert replicas_lower_bound(np.array([100]), 7) == 7
    assert replicas_lower_bound(np.array([1] * 100), 7) == 100
    assert replicas_lower_bound(np.array([1_200_000_000, 1]), 10_000_000) == 10_000_001
    assert replicas_lower_bound(np.array([], np.int64), 7) == 0


# ---------------------------------------------------------------- load and its samples


@given(chosen=st.lists(st.integers(0, 4), max_size=60), cut=st.integers(1, 61))
def test_the_mean_imbalance_is_over_every_tuple(chosen, cut):
    load = Load(5)
    for i in range(0, len(chosen), cut):
        part = np.array(chosen[i : i + cut], np.int32)
        load.add(part, np.zeros(len(part)))
    imbalances = [max(Counter(chosen[:t]).values()) - t / 5 for t in range(1, len(chosen) + 1)]
    assert load.mean_imbalance == pytest.approx(np.mean(imbalances) if imbalances else 0.0, abs=1e-12)
    assert load.imbalance == pytest.approx(imbalances[-1] if imbalances else 0.0, abs=1e-12)
    assert load.vector.tolist() == [chosen.count(worker) for worker in range(5)]


@given(chosen=st.lists(st.integers(0, 3), max_size=200), cut=st.integers(0, 200))
def test_local_balance_is_the_mean_over_windows_of_ten_tuples_per_worker(chosen, cut):
    load = Load(4)
    for part in (chosen[:cut], chosen[cut:]):
        load.add(np.array(part, np.int32), np.arange(len(part), dtype=float))
    windows = [chosen[start : start + 40] for start in range(0, len(chosen) - 39, 40)]
    highest = [max(Counter(window).values()) for window in windows]
    expected = sum(highest) / len(highest) / 10 if windows else None
    assert load.local_max_over_mean == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("tuples", [1, 255, 256, 257, 5120, 5121, 20_000])
@pytest.mark.parametrize("samples", [1, 3, 10])
@pytest.mark.parametrize("cut", [1000, 100_000])
def test_samples_are_evenly_spread_bounded_and_end_with_the_end(tuples, samples, cut):
    stream = Given((1,) * tuples, times=tuple(np.arange(tuples) * 0.5), cut=cut)
    (result,) = simulate(stream, [make("hash", 3)], samples=samples)
    taken = result.samples
    at = [sample.tuples for sample in taken]
    assert at[-1] == tuples
    assert len(taken) <= 2 * samples
    assert len(taken) >= min(samples, tuples // FIRST_DISTANCE)
    distances = np.diff([0, *at])
    assert len(set(distances[:-1].tolist())) <= 1
    assert 0 < distances[-1] <= distances[0]
    assert [sample.time for sample in taken] == [(t - 1) * 0.5 for t in at]
    assert [sample.max_load for sample in taken] == at


def kept_of(tuples, samples, cut, length=None):
    """The numbers of tuples at which samples are kept."""
    sampling, done = Sampling(samples, length), 0
    for i in range(0, tuples, cut):
        for piece in sampling.pieces(min(cut, tuples - i)):
            done += piece.stop - piece.start
            if sampling.is_due:
                sampling.keep(done)
    return sampling.kept


@given(tuples=st.integers(0, 20_000), samples=st.integers(1, 12), cut=st.integers(1, 30_000))
@settings(max_examples=50)
def test_which_samples_are_kept_depends_on_neither_the_cuts_nor_a_known_length(tuples, samples, cut):
    expected = kept_of(tuples, samples, 20_000)
    assert kept_of(tuples, samples, cut) == kept_of(tuples, samples, cut, tuples) == expected


# ---------------------------------------------------------------- the edges


@every_scheme
def test_no_tuples_have_no_balance(name):
    (result,) = simulate(NOTHING, [scheme_for(name, 5, np.empty(0, np.uint64))], sources=3, estimation="probe:1")
    assert (result.tuples, result.keys, result.p1, result.replicas, result.replicas_lower_bound) == (0, 0, 0, 0, 0)
    assert (result.imbalance, result.imbalance_fraction, result.mean_imbalance_fraction) == (0, 0, 0)
    assert result.max_over_mean is None
    assert result.load == [0] * 5
    assert result.samples == []


@every_scheme
def test_one_worker_is_always_balanced(name):
    stream = Zipf(1.0, 20, 300)
    (result,) = simulate(stream, [scheme_for(name, 1, next(stream.chunks()).key_ids())], sources=3)
    assert result.load == [300]
    assert (result.imbalance, result.mean_imbalance_fraction, result.max_over_mean) == (0, 0, 1)
    assert result.replicas == result.replicas_lower_bound == result.keys
    assert result.replicas_over_kg == result.replicas_over_lower_bound == 1.0


@every_scheme
def test_one_key_is_on_the_workers_that_its_scheme_gives_it(name):
    (result,) = simulate(ONE_KEY, [scheme_for(name, 10, ids([1] * 300))])
    assert (result.tuples, result.keys, result.p1, result.replicas_lower_bound) == (300, 1, 1.0, 10)
    assert result.replicas == result.replicas_over_kg == sum(load > 0 for load in result.load)
    expected = {"shuffle": 10, "hash": 1, "potc": 1, "on_greedy": 1, "off_greedy": 1}
    assert result.replicas == expected.get(name, result.replicas)


@every_scheme
def test_a_million_workers_are_all_right(name):
    scheme = widest(name)
    (result,) = simulate(Zipf(1.0, 3, 30), [scheme], sources=2)
    assert len(result.load) == scheme.workers
    assert sum(result.load) == 30
    assert result.max_over_mean == pytest.approx(max(result.load) * scheme.workers / 30)


def test_more_workers_than_can_be_measured_are_refused():
    with pytest.raises(InputError, match=r"^workers: must be an integer from 1 to 10000000, not 10000001$"):
        simulate(NOTHING, [make("hash", 10_000_001)])


@every_scheme
def test_without_replicas_the_balance_is_the_same_and_keys_are_not_counted(name):
    stream = Zipf(1.0, 20, 300)
    scheme = scheme_for(name, 5, next(stream.chunks()).key_ids())
    (counted,) = simulate(stream, [scheme], sources=2)
    (balance,) = simulate(stream, [scheme], sources=2, replicas=False)
    assert balance.load == counted.load
    assert balance.samples == counted.samples
    assert balance.mean_imbalance_fraction == counted.mean_imbalance_fraction
    unknown = (balance.keys, balance.p1, balance.replicas, balance.replicas_over_kg, balance.replicas_lower_bound)
    assert (*unknown, balance.replicas_over_lower_bound) == (None,) * 6


def test_without_an_oracle_there_is_no_agreement():
    (result,) = simulate(ONE_KEY, [make("pkg", 5)])
    assert (result.agreement, result.jaccard) == (None, None)


def test_more_sources_than_tuples_are_all_right():
    (result,) = simulate(Zipf(1.0, 5, 30), [make("pkg", 4)], sources=1000)
    assert sum(result.load) == 30
    (by_key,) = simulate(Zipf(1.0, 5, 30), [make("pkg", 4)], sources=1000, feed="key")
    assert sum(by_key.load) == 30


def test_count_keys_counts_every_key_the_most_frequent_first():
    stream = Zipf(1.2, 50, 500)
    numbers = np.concatenate([chunk.keys for chunk in stream.chunks()])
    counted = count_keys(stream)
    values, counts = np.unique(numbers, return_counts=True)
    expected = dict(zip(ids(values).tolist(), counts.tolist(), strict=True))
    assert dict(zip(counted.key_ids.tolist(), counted.counts.tolist(), strict=True)) == expected
    assert counted.counts.tolist() == sorted(counts.tolist(), reverse=True)


def test_keys_of_any_kind_are_routed_by_their_ids():
    class Words(Stream):
        def chunks(self, size=0):
            yield Chunk(["a", "b", None, "a"], np.zeros(4))

    (result,) = simulate(Words(), [make("hash", 3)])
    assert (result.tuples, result.keys, result.p1) == (4, 3, 0.5)
