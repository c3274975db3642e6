"""Generated streams: the same tuples everywhere, however they are cut, with the distributions that they promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew import InputError
from unskew.simulate import count_keys
from unskew.streams import PUBLISHED, Drift, Evolving, Lognormal, Matched, StandIn, Zipf
from unskew.streams.matched import possible_apart
from unskew.streams.stream import CHUNK
from unskew.streams.zipf import expected_distinct, harmonic

GENERATED = {
    "zipf": Zipf(1.1, 100, 500),
    "uniform": Zipf(0, 7, 500),
    "lognormal": Lognormal(1.789, 2.366, 500),
    "matched": Matched(500, 50, 0.2),
    "stand-in": StandIn("CT", 500),
    "stand-in of a graph": StandIn("LJ", 500),
    "drift": Drift(1.1, 100, 500, every=30, step=7),
    "evolving": Evolving(1.1, 100, 500),
}
every_stream = pytest.mark.parametrize("stream", GENERATED.values(), ids=GENERATED.keys())


def read(stream, size=CHUNK):
    """Keys, times and source keys of the whole stream, as lists."""
    chunks = list(stream.chunks(size))
    if chunks and chunks[0].source_keys is not None:
        return [np.concatenate([chunk[i] for chunk in chunks]).tolist() for i in range(3)]
    return [*(np.concatenate([chunk[i] for chunk in chunks]).tolist() for i in range(2)), None]


def with_seed(stream, seed):
    return type(stream)(**{name: getattr(stream, name) for name in stream.__dataclass_fields__} | {"seed": seed})


def keys_of(stream):
    return np.concatenate([chunk.keys for chunk in stream.chunks()])


# ---------------------------------------------------------------- what all of them promise


@every_stream
@given(size=st.integers(1, 600))
@settings(max_examples=8)
def test_cuts_and_further_iterations_give_the_same_tuples(stream, size):
    assert read(stream, size) == read(stream)


@every_stream
def test_chunks_are_of_the_size_asked_for_and_as_long_together_as_stated(stream):
    sizes = [len(chunk.keys) for chunk in stream.chunks(80)]
    assert sizes == [80] * 6 + [20]
    assert stream.length == 500


@every_stream
def test_another_seed_gives_other_tuples_and_the_same_seed_the_same(stream):
    assert read(with_seed(stream, 0)) == read(stream)
    assert read(with_seed(stream, 1))[0] != read(stream)[0]


@every_stream
def test_tuples_arrive_evenly_at_the_stated_rate(stream):
    assert np.allclose(read(stream)[1], np.arange(500) / stream.rate, rtol=1e-12)


@every_stream
def test_keys_are_64_bit_integers(stream):
    assert next(stream.chunks()).keys.dtype == np.int64


def test_a_stream_of_no_tuples_has_no_chunks():
    assert list(Zipf(1, 10, 0).chunks()) == []


def test_only_a_graph_has_source_vertices_and_they_are_drawn_apart_from_the_keys():
    assert read(GENERATED["stand-in"])[2] is None
    keys, _, sources = read(GENERATED["stand-in of a graph"])
    assert len(sources) == 500
    assert keys != sources


# ---------------------------------------------------------------- Zipf


def chi_square_score(observed, probabilities):
    """Standard normal if the counts follow the probabilities (Wilson and Hilferty); rare keys are pooled."""
    expected = probabilities * observed.sum()
    rare = expected < 5
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    freedom = len(expected) - 1
    if not freedom:
        return 0.0
    chi_square = ((observed - expected) ** 2 / expected).sum()
    return ((chi_square / freedom) ** (1 / 3) - 1 + 2 / (9 * freedom)) / np.sqrt(2 / (9 * freedom))


def zipf_score(z, keys, tuples, seed=0):
    ranks = keys_of(Zipf(z, keys, tuples, seed))
    assert ranks.min() >= 1
    assert ranks.max() <= keys
    weights = np.arange(1, keys + 1) ** -float(z)
    return chi_square_score(np.bincount(ranks, minlength=keys + 1)[1:].astype(float), weights / weights.sum())


exponents = pytest.mark.parametrize("z", [0, 0.5, 1, 1.0000001, 1.2, 2])
key_counts = pytest.mark.parametrize("keys", [1, 2, 10, 1000])


@exponents
@key_counts
def test_zipf_ranks_have_their_probabilities(z, keys):
    assert abs(zipf_score(z, keys, 3000)) < 4


@exponents
@key_counts
def test_zipf_ranks_have_their_probabilities_in_a_million_samples(z, keys):
    assert abs(zipf_score(z, keys, 1_000_000, seed=1)) < 4


def test_the_score_would_find_a_wrong_exponent():
    ranks = keys_of(Zipf(1.0, 10, 3000))
    weights = np.arange(1, 11) ** -1.2
    assert chi_square_score(np.bincount(ranks, minlength=11)[1:].astype(float), weights / weights.sum()) > 4


@pytest.mark.parametrize("z", [0.9, 1, 1.2, 20])
def test_zipf_takes_as_many_keys_as_a_float_can_count(z):
    tuples, keys = 3000, 2**53
    ranks = keys_of(Zipf(z, keys, tuples))
    assert ranks.min() >= 1
    assert ranks.max() <= keys
    top = np.arange(1, 11) ** -float(z) / harmonic(z, keys)
    observed = np.array([(ranks == rank).sum() for rank in range(1, 11)], float)
    rest = [tuples - observed.sum(), max(0.0, 1 - top.sum())]
    assert abs(chi_square_score(np.append(observed, rest[0]), np.append(top, rest[1]))) < 4


@pytest.mark.parametrize("z", [0, 0.5, 1 - 1e-9, 1, 1 + 1e-9, 1.2, 2, 20])
@pytest.mark.parametrize("keys", [1, 2, 9_999, 10_000, 10_001, 1_000_000])
def test_harmonic_is_the_sum_over_all_ranks(z, keys):
    assert harmonic(z, keys) == pytest.approx((np.arange(1, keys + 1) ** -float(z)).sum(), rel=1e-9)


@pytest.mark.parametrize("z", [0, 0.5, 1, 1.2, 2])
@pytest.mark.parametrize("keys", [1, 10, 10_001, 1_000_000])
@pytest.mark.parametrize("tuples", [0, 1, 1000, 10_000_000])
def test_expected_distinct_is_the_sum_of_the_chances_to_be_seen(z, keys, tuples):
    weights = np.arange(1, keys + 1) ** -float(z)
    p = np.minimum(weights / weights.sum(), 1 - 1e-16)
    seen = -np.expm1(tuples * np.log1p(-p))
    assert expected_distinct(z, keys, tuples) == pytest.approx(seen.sum(), rel=1e-3, abs=0.5)


# ---------------------------------------------------------------- log-normal, matched, stand-ins


@pytest.mark.parametrize(
    ("mu", "sigma", "keys", "p1"), [(1.789, 2.366, 16_400, 0.147), (2.245, 1.133, 1_100, 0.070)], ids=["LN1", "LN2"]
)
def test_lognormal_has_the_keys_and_p1_of_table_1(mu, sigma, keys, p1):
    counts = np.zeros(1, np.int64)
    for chunk in Lognormal(mu, sigma, 10_000_000).chunks():
        more = np.bincount(chunk.keys)
        if len(more) > len(counts):
            counts = np.pad(counts, (0, len(more) - len(counts)))
        counts[: len(more)] += more
    assert (counts > 0).sum() == pytest.approx(keys, rel=0.03)
    assert counts.max() / 1e7 == pytest.approx(p1, abs=0.0005)


def test_lognormal_keys_are_rounded_samples_and_never_overflow():
    samples = np.random.Generator(np.random.PCG64(5)).lognormal(2.0, 1.5, 1000)
    assert keys_of(Lognormal(2.0, 1.5, 1000, seed=5)).tolist() == [round(sample) for sample in samples]
    assert keys_of(Lognormal(40, 40, 1000)).min() >= 0


@pytest.mark.parametrize("name", PUBLISHED)
def test_stand_ins_match_the_published_p1_and_expect_the_published_keys(name):
    data_set = PUBLISHED[name]
    z, possible = Matched(data_set.tuples, data_set.keys, data_set.p1).exponent_and_possible_keys
    assert 1 / harmonic(z, possible) == pytest.approx(data_set.p1, rel=1e-6)
    assert expected_distinct(z, possible, data_set.tuples) == pytest.approx(data_set.keys, rel=2e-3)
    assert possible >= data_set.keys
    assert StandIn(name).length == data_set.tuples


def test_the_stand_in_for_wikipedia_has_its_pairs_too():
    """PKG, section 6.2, Q5: 7.2M counters where the stream is shuffled over 8 workers; printed with two digits."""
    data_set, workers = PUBLISHED["WP"], 8
    others = round(data_set.tuples * (1 - data_set.p1) / workers)  # of each worker, besides the hottest key
    pairs = workers * (1 + expected_distinct(data_set.tail, possible_apart("WP"), others))
    assert pairs == pytest.approx(7_200_000, rel=0.005)


def test_the_stand_in_for_cashtags_has_its_keys_and_p1():
    counted = count_keys(StandIn("CT"))
    assert counted.tuples == 690_000
    assert len(counted.key_ids) == pytest.approx(2_900, rel=0.01)
    assert counted.counts[0] / counted.tuples == pytest.approx(0.0329, rel=0.03)


def test_the_first_million_of_the_stand_in_for_wikipedia_has_its_p1():
    counted = count_keys(StandIn("WP", 1_000_000))
    assert counted.counts[0] / counted.tuples == pytest.approx(0.0932, rel=0.01)


def test_matched_streams_have_about_the_keys_and_p1_asked_for():
    keys = keys_of(Matched(3000, 100, 0.2, seed=3))
    assert len(np.unique(keys)) == pytest.approx(100, abs=15)
    assert (keys == 1).mean() == pytest.approx(0.2, abs=0.03)


def test_a_matched_stream_that_cannot_exist_is_refused():
    with pytest.raises(InputError, match=r"^keys: no Zipf stream of 10 tuples with p1=0.5 has 100 distinct keys"):
        list(Matched(10, 100, 0.5).chunks())
    with pytest.raises(InputError, match=r"^p1: must be a share above 1/keys = 0.01 and at most 0.9999990, not 0.01$"):
        Matched(1000, 100, 0.01)
    with pytest.raises(InputError, match=r"^p1: must be .* at most 0.9999990, not 0.9999999$"):
        Matched(1000, 100, 0.9999999)


# ---------------------------------------------------------------- drift


def test_every_so_often_the_hottest_keys_go_cold_and_the_next_take_their_place():
    every, step, keys = 1000, 3, 50
    stream = Drift(2.0, keys, 4 * every, every=every, step=step)
    still = keys_of(Zipf(2.0, keys, 4 * every))  # the same ranks, not turned
    for turn, (part, ranks) in enumerate(zip(np.split(keys_of(stream), 4), np.split(still, 4), strict=True)):
        assert np.bincount(part).argmax() == 1 + turn * step
        assert ((part - ranks) % keys == turn * step).all()


def test_every_key_has_its_turn_at_the_top():
    parts = np.split(keys_of(Drift(20, 5, 100, every=10)), 10)  # z = 20: rank 1 nearly always
    assert [np.bincount(part).argmax() for part in parts] == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]


def test_no_step_is_no_drift():
    assert keys_of(Drift(1, 10, 300, every=1, step=0)).tolist() == keys_of(Zipf(1, 10, 300)).tolist()
