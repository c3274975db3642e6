"""The simulator against its naive twin: sources, feeds, load estimation and every metric."""

import json
import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_simulator import Run
from samples import every_scheme, ids, scheme_for
from unskew import SCHEMES, InputError, make
from unskew.simulate import count_keys, simulate
from unskew.streams import Chunk, Stream, Zipf


@dataclass(frozen=True)
class Given(Stream):
    """A stream of the given whole numbers, cut as told."""

    numbers: tuple
    times: tuple = ()
    sources: tuple = ()
    cut: int = 1000
    costs: tuple = ()

    @property
    def has_costs(self):
        return bool(self.costs)

    def chunks(self, size=0):
        times = self.times or range(len(self.numbers))
        for i in range(0, len(self.numbers), self.cut):
            part = slice(i, i + self.cut)
            sources = np.array(self.sources[part], np.int64) if self.sources else None
            costs = np.array(self.costs[part], float) if self.costs else None
            yield Chunk(np.array(self.numbers[part], np.int64), np.array(times[part], float), sources, costs)

    @property
    def key_ids(self):
        return ids(self.numbers)

    @property
    def tuples(self):
        """As the naive simulator takes them."""
        sources = ids(self.sources).tolist() if self.sources else [None] * len(self.numbers)
        return list(zip(self.key_ids.tolist(), self.times or range(len(self.numbers)), sources, strict=True))


def skewed(tuples, seed=0, **more):
    numbers = np.random.default_rng(seed).zipf(1.4, tuples) % 50
    return Given(tuple(numbers.tolist()), **more)


def metrics_of(result):
    """All of a result but what it cost and how it was asked for."""
    kept = result.to_dict()
    for name in ("seconds", "tuples_per_second", "stream_seconds", "stream"):
        del kept[name]
    return kept


def run_both(name, workers, stream, **options):
    scheme = scheme_for(name, workers, stream.key_ids)
    (result,) = simulate(stream, [scheme], oracle=True, **options)
    return result, Run(scheme, stream.tuples, **options)


def check(result, naive):
    for name, expected in naive.metrics.items():
        found = getattr(result, name)
        if isinstance(expected, float):
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-12), name
        else:
            assert found == expected, name
    for sample in result.samples:
        assert sample.imbalance == pytest.approx(float(naive.imbalances[sample.tuples - 1]), rel=1e-12, abs=1e-9)
        assert sample.max_load == naive.max_loads[sample.tuples - 1]
        assert sample.time == naive.times[sample.tuples - 1]


# ---------------------------------------------------------------- against the twin


@st.composite
def small_streams(draw):
    numbers = draw(st.lists(st.integers(0, 12), max_size=50))
    count = len(numbers)
    times = draw(st.none() | st.lists(st.floats(-50, 50), min_size=count, max_size=count))
    sources = draw(st.none() | st.lists(st.integers(0, 5), min_size=count, max_size=count))
    return Given(tuple(numbers), tuple(times or ()), tuple(sources or ()), draw(st.integers(1, 60)))


@every_scheme
@given(
    stream=small_streams(),
    workers=st.integers(1, 8),
    sources=st.integers(1, 5),
    feed=st.sampled_from(["round_robin", "key"]),
    estimation=st.sampled_from(["local", "global", "probe:1", "probe:7.5", "probe_whole:7.5"]),
)
@settings(max_examples=25)
def test_every_metric_is_the_naive_simulators(name, stream, workers, sources, feed, estimation):
    check(*run_both(name, workers, stream, sources=sources, feed=feed, estimation=estimation))


@every_scheme
@pytest.mark.parametrize("estimation", ["local", "global", "probe:100"])
def test_a_longer_run_is_the_naive_simulators_too(name, estimation):
    result, naive = run_both(name, 5, skewed(700, cut=97), sources=3, estimation=estimation)
    check(result, naive)
    assert [sample.tuples for sample in result.samples] == [*range(16, 700, 16), 700]


@every_scheme
@given(cut=st.integers(1, 300))
@settings(max_examples=5)
def test_the_size_of_chunks_does_not_matter(name, cut):
    options = {"sources": 3, "feed": "key", "estimation": "probe:20"}
    whole, in_parts = skewed(300), skewed(300, cut=cut)
    scheme = scheme_for(name, 5, whole.key_ids)
    expected, found = (simulate(stream, [scheme], **options)[0] for stream in (whole, in_parts))
    assert metrics_of(found) == metrics_of(expected)


def test_schemes_side_by_side_are_measured_as_if_alone():
    stream = skewed(400)
    schemes = [scheme_for(name, workers, stream.key_ids) for name in SCHEMES for workers in (3, 8)]
    together = simulate(stream, schemes, sources=2, oracle=True)
    alone = [simulate(stream, [scheme], sources=2, oracle=True)[0] for scheme in schemes]
    assert [metrics_of(result) for result in together] == [metrics_of(result) for result in alone]
    assert simulate(stream, []) == []


# ---------------------------------------------------------------- sources and their knowledge


@every_scheme
def test_a_source_vertex_decides_the_source_where_there_is_one(name):
    numbers, vertices = skewed(200).numbers, skewed(200, seed=1).numbers
    options = {"sources": 4, "feed": "key"}
    with_vertices = Given(numbers, sources=vertices)
    check(*run_both(name, 5, with_vertices, **options))
    check(*run_both(name, 5, Given(numbers), **options))


def test_fed_by_key_a_key_has_one_source():
    stream = skewed(300)
    (result,) = simulate(stream, [make("potc", 6)], sources=4, feed="key")
    assert result.replicas == result.keys  # each source settles a key once
    (split,) = simulate(stream, [make("potc", 6)], sources=4)
    assert split.replicas > split.keys


@every_scheme
def test_the_global_oracle_is_one_source_and_agrees_with_itself(name):
    stream = skewed(300)
    scheme = scheme_for(name, 5, stream.key_ids)
    (shared,) = simulate(stream, [scheme], sources=7, estimation="global", oracle=True)
    (single,) = simulate(stream, [scheme], sources=1, oracle=True)
    asked = {"sources", "estimation"}
    assert {k: v for k, v in metrics_of(shared).items() if k not in asked} == {
        k: v for k, v in metrics_of(single).items() if k not in asked
    }
    assert shared.agreement == shared.jaccard == 1.0


def test_sources_that_know_only_themselves_disagree_with_the_oracle_at_times():
    (result,) = simulate(skewed(500), [make("pkg", 5)], sources=5, oracle=True)
    assert 0.3 < result.agreement < 1
    assert result.jaccard == pytest.approx(result.agreement / (2 - result.agreement))


# ---------------------------------------------------------------- probing


def test_before_the_first_probe_nothing_changes():
    stream = skewed(300, times=tuple(np.linspace(1000.0, 1009.9, 300).tolist()))
    local, probed = (simulate(stream, [make("pkg", 5)], sources=3, estimation=e)[0] for e in ("local", "probe:10"))
    assert metrics_of(probed) | {"estimation": "local", "late": None} == metrics_of(local)


def test_a_probe_overwrites_every_estimate_with_the_true_load():
    stream = skewed(300)  # one tuple per second: a probe before each, so every source knows what the oracle knows
    (probed,) = simulate(stream, [make("pkg", 5)], sources=3, estimation="probe_whole:1", oracle=True)
    assert probed.agreement == 1.0
    (local,) = simulate(stream, [make("pkg", 5)], sources=3, oracle=True)
    assert local.agreement < 1.0


def test_sources_that_each_close_the_whole_gap_overshoot_and_with_their_share_they_do_not():
    """Of 5 sources each sees all of the gap, and closes it: it becomes 4 times itself, again and again."""
    stream = Zipf(0.5, 1000, 20_000, rate=1000.0)
    local, shared, whole = (
        simulate(stream, [make("pkg", 5)], sources=5, estimation=e)[0].mean_imbalance_fraction
        for e in ("local", "probe:1", "probe_whole:1")
    )
    assert shared < 2 * local
    assert whole > 10 * local


@pytest.mark.parametrize(
    "times",
    [
        [0, 1, 2, 3, 1000, 1001, 5000, 5001] * 25,  # back and forth, and periods without a tuple
        [i * 37.0 for i in range(200)],  # several periods between two tuples
        [-500.0 + i for i in range(200)],  # before time 0
        [1.6e9 + i for i in range(200)],
        [0.0] * 200,
        [float(200 - i) for i in range(200)],  # backwards
    ],
    ids=["late", "gaps", "negative", "clock", "still", "backwards"],
)
@pytest.mark.parametrize("cut", [1, 9, 1000])
def test_probes_follow_the_latest_time_seen(times, cut):
    stream = skewed(200, times=tuple(times), cut=cut)
    check(*run_both("pkg", 5, stream, sources=3, estimation="probe:10"))


def test_a_scheme_that_estimates_no_load_is_not_changed_by_probes():
    stream = skewed(200)
    for name in ("hash", "shuffle"):
        local, probed = (simulate(stream, [make(name, 5)], sources=3, estimation=e)[0] for e in ("local", "probe:1"))
        assert probed.load == local.load


# ---------------------------------------------------------------- what may be asked


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sources": 0}, "sources: must be an integer from 1 to 1000000, not 0"),
        ({"sources": 1.5}, "sources: must be an integer from 1 to 1000000, not 1.5"),
        ({"samples": 0}, "samples: must be an integer from 1 to 1000000, not 0"),
        ({"feed": "random"}, "feed: must be round_robin or key, not 'random'"),
    ],
)
def test_wrong_options_are_refused_by_name_rule_and_value(options, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        simulate(Zipf(1, 10, 10), [make("pkg", 5)], **options)


@pytest.mark.parametrize(
    ("scheme", "sources", "message"),
    [
        (
            make("pkg", 10_000),
            200_000,
            "sources: must be at most 100,000 for pkg with 10,000 workers, which keeps 80,000",
        ),
        (
            make("cg", 10, virtual=100_000),
            10_000,
            "sources: must be at most 399 for cg with 10 workers, which keeps 20,",
        ),
        (make("bounded", 100), 100_000, "sources: must be at most "),
    ],
    ids=["pkg", "cg", "bounded"],
)
def test_more_sources_than_there_is_memory_for_are_refused(scheme, sources, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        simulate(Zipf(1, 10, 10), [scheme], sources=sources)
    simulate(Zipf(1, 10, 10), [scheme], sources=sources, estimation="global")


@pytest.mark.parametrize("text", ["", "oracle", "probe", "probe:", "probe:x", "probe:0", "probe:-1", "local:3"])
def test_wrong_estimations_are_refused_with_those_allowed(text):
    message = (
        f"estimation: must be local, global, probe:SECONDS (such as probe:60) or probe_whole:SECONDS, not {text!r}"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        simulate(Zipf(1, 10, 10), [make("pkg", 5)], estimation=text)


def test_progress_adds_up_to_the_length():
    done = []
    simulate(skewed(300, cut=70), [make("pkg", 5), make("hash", 5)], progress=done.append)
    assert done == [70, 70, 70, 70, 20]
    counted = []
    frequencies = count_keys(skewed(300, cut=70), counted.append)
    assert sum(counted) == frequencies.tuples == 300


@every_scheme
def test_results_are_plain_values_for_json(name):
    stream = skewed(300)
    for given_stream in (stream, Given(())):
        (result,) = simulate(given_stream, [scheme_for(name, 5, stream.key_ids)], oracle=True)
        text = json.dumps(result.to_dict(), allow_nan=False)
        assert json.loads(text) == result.to_dict()


def test_the_result_says_what_was_run():
    stream = Zipf(1.0, 10, 20)
    (result,) = simulate(stream, [make("pkg", 5, choices=3)], sources=2, feed="key", estimation="probe:60")
    assert (result.scheme, result.params, result.stream) == ("pkg", {"choices": 3, "seed": 0}, str(stream))
    assert (result.workers, result.sources, result.feed, result.estimation) == (5, 2, "key", "probe:60")
