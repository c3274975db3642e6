"""Queues, capacities, events and reports against a naive simulation of every completion; and what they promise."""

import json
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import listener as listening
import naive_queues
from listener import listener  # noqa: F401  (a fixture)
from samples import scheme_for
from test_simulate import Given, metrics_of, skewed
from unskew import SCHEMES, InputError, Router, make
from unskew.simulate import Event, Queues, Result, simulate
from unskew.simulate import latency as latency_module
from unskew.simulate.latency import Latencies, note
from unskew.simulate.workers import QueuedWorkers
from unskew.streams import Evolving, Zipf

pytestmark = pytest.mark.usefixtures("listener")
POWERS = [0.25, 0.5, 1.0, 2.0, 4.0]  # all arithmetic is exact then, ties included
WORKERS = 4


def text_of(event):
    what, message, time, argument = event
    when = f"t={message}" if time is None else f"t={time}s"
    if what == "capacity":
        return f"{when} capacity " + ",".join(f"{name}:{value}" for name, value in argument.items())
    return f"{when} {what} {'' if argument is None else argument}"


def run_both(name, stream, *, sources=1, capacity, events=(), probe=None, bound=None, rate=None, delay=0.0, period=2.0):
    listening.HEARD.clear()
    scheme = make(name, WORKERS, **({"report_every": period} if name == "listener" else {}))
    queues = Queues(rate=rate, capacity=capacity, bound=bound, feedback_delay=delay)
    (result,) = simulate(
        stream,
        [scheme],
        sources=sources,
        queues=queues,
        events=[text_of(event) for event in events],
        estimation="local" if probe is None else f"probe:{probe}",
    )
    heard = [tuple(part.tolist() if isinstance(part, np.ndarray) else part for part in r) for r in listening.HEARD]
    listening.HEARD.clear()
    tuples = [(key, time) for key, time, _ in stream.tuples]
    options = {"sources": sources, "capacity": capacity, "events": events, "probe": probe}
    naive = naive_queues.Run(scheme, tuples, **options, bound=bound, rate=rate, delay=delay)
    return result, heard, naive


def check(result, heard, naive):
    workers = naive.workers.values()
    latencies = np.array([float(latency) for latency in naive.latencies])
    assert result.load == [naive.load[name] for name in naive.workers]
    assert result.replicas == len(naive.pairs)
    assert result.done == len(latencies) == sum(worker.done for worker in workers)
    assert result.lost == sum(worker.lost for worker in workers)
    assert result.waiting == naive.waiting
    assert result.longest_queue == max(worker.longest for worker in workers)
    assert result.makespan == pytest.approx(float(naive.makespan))
    assert result.stalled == pytest.approx(float(naive.stalled))
    assert result.members in (None, naive.members)
    assert result.imbalance == pytest.approx(
        float(max(naive.since.values(), default=0) - Fraction(sum(naive.since.values()), len(naive.members)))
    )
    assert result.mean_imbalance_fraction == pytest.approx(float(sum(naive.imbalances)) / result.messages**2)
    assert result.utilisation == pytest.approx([float(u) for u in naive.utilisation.values()])
    present = [float(naive.utilisation[name]) for name in naive.members]
    imbalance = max(present) - sum(present) / len(present) if max(present) < np.inf else np.inf
    assert result.utilisation_imbalance == pytest.approx(imbalance, rel=1e-9, abs=1e-9)
    check_samples(result, naive)
    if len(latencies):
        assert result.latency_exact
        assert result.latency_mean == pytest.approx(latencies.mean())
        assert result.latency_max == pytest.approx(latencies.max())
        for rank in (50, 95, 99):
            expected = np.percentile(latencies, rank, method="inverted_cdf")
            assert getattr(result, f"latency_p{rank}") == pytest.approx(expected)
        assert result.throughput == pytest.approx(len(latencies) / float(naive.makespan))
    assert result.capacity == [naive.capacity[name] for name in naive.workers]
    assert heard == naive.heard


def check_samples(result, naive):
    before = {"done": 0, "now": naive.start, "work": {}, "seconds": {}}
    assert result.queue_samples[-1].messages == result.messages
    for sample in result.queue_samples:
        look = naive.looks[sample.messages - 1]
        queues = [look["waiting"][name] for name in look["members"]]
        waits = [float(wait) for wait in look["waits"]]
        assert (sample.time, sample.done, sample.lost) == (look["time"], look["done"], look["lost"])
        assert (sample.waiting, sample.stalled) == (sum(look["waiting"].values()), look["stalled"])
        assert (sample.longest_queue, sample.shortest_queue) == (max(queues), min(queues))
        assert (sample.longest_wait, sample.shortest_wait) == pytest.approx((max(waits), min(waits)))

        noted = np.array([float(latency) for latency in naive.latencies[before["done"] : look["done"]]])
        seconds = float(look["now"] - before["now"])
        assert sample.throughput == (pytest.approx(len(noted) / seconds) if seconds > 0 else None)
        assert sample.latency_mean == (pytest.approx(noted.mean()) if len(noted) else None)
        for rank in (50, 95, 99):
            found = getattr(sample, f"latency_p{rank}")
            expected = np.percentile(noted, rank, method="inverted_cdf") if len(noted) else None
            assert found == expected or found == pytest.approx(expected, rel=1 / 256)

        for prefix, work_before, seconds_before in (("", {}, {}), ("recent_", before["work"], before["seconds"])):
            shares = []
            for name in look["members"]:
                work = look["work"][name] - work_before.get(name, 0)
                there = look["seconds"][name] - seconds_before.get(name, 0)
                shares.append(float(naive_queues.share(work, there)))
            assert getattr(sample, f"{prefix}utilisation_max") == pytest.approx(max(shares))
            assert getattr(sample, f"{prefix}utilisation_mean") == pytest.approx(sum(shares) / len(shares))
        assert sample.recent_utilisation_min == pytest.approx(min(shares))
        before = look


# ---------------------------------------------------------------- against the twin


@st.composite
def cases(draw):
    numbers = draw(st.lists(st.integers(0, 12), min_size=1, max_size=40))
    gaps = st.sampled_from([0.0, 0.0, 0.125, 0.5, 1.0, 8.0, 50.0, -3.0])
    times = np.cumsum(draw(st.lists(gaps, min_size=len(numbers), max_size=len(numbers)))).tolist()
    events, present, coming = [], set(range(WORKERS)), WORKERS
    moment = 0
    by_time = draw(st.booleans())
    for what in draw(st.lists(st.sampled_from(["add", "remove", "crash", "capacity"]), max_size=4)):
        moment += draw(st.integers(0, 10))
        argument = None
        if what == "add":
            present.add(coming)
            coming += 1
        elif what == "capacity":
            argument = {draw(st.integers(0, WORKERS - 1)): draw(st.sampled_from(POWERS))}
        elif len(present) > 1:
            argument = draw(st.sampled_from(sorted(present)))
            present.remove(argument)
        else:
            continue
        events.append((what, None, moment, argument) if by_time else (what, moment, None, argument))
    return {
        "stream": Given(tuple(numbers), tuple(times), cut=draw(st.integers(1, 50))),
        "capacity": [draw(st.sampled_from(POWERS)) for _ in range(coming)],
        "events": events,
        "sources": draw(st.integers(1, 3)),
        "bound": draw(st.none() | st.integers(1, 4)),
        "rate": draw(st.none() | st.sampled_from(POWERS)),
        "delay": draw(st.sampled_from([0.0, 1.0, 4.5])),
        "probe": draw(st.none() | st.sampled_from([1.0, 8.0])),
        "period": draw(st.sampled_from([0.5, 2.0, 16.0])),
    }


@pytest.mark.parametrize("name", ["hash", "pkg", "shuffle", "listener"])
@given(case=cases())
@settings(max_examples=40)
def test_every_queue_is_the_naive_simulators(name, case):
    check(*run_both(name, **case))


@pytest.mark.parametrize("bound", [None, 3])
def test_a_longer_run_with_everything_in_it_is_the_naive_simulators_too(bound):
    events = [
        ("capacity", 60, None, {0: 0.25, 1: 0.25}),
        ("add", 100, None, None),
        ("crash", 160, None, 1),
        ("remove", None, 60, 0),
        ("capacity", 300, None, {4: 4.0, 2: 0.5}),
    ]
    options = {"capacity": [1.0, 2.0, 1.0, 0.5, 1.0], "events": events, "sources": 3, "rate": 4.0, "delay": 1.5}
    result, heard, naive = run_both("listener", skewed(400, cut=97), **options, bound=bound)
    check(result, heard, naive)
    assert result.lost > 0
    assert result.stalled > 0 or bound is None
    assert len(heard) > 50
    assert len(result.events) == 5


@pytest.mark.parametrize("what", ["capacity", "crash"])
def test_what_happens_in_a_long_pause_meets_the_slot_of_its_own_time(what):
    """Tuples take 256 s each and the next comes after 500 s; at 101 s workers become fast, or one crashes."""
    stream = Given((1, 1, 1, 2, 3, 4, 1), times=(0.0, 0.0, 0.0, 1.0, 1.0, 500.0, 501.0))
    busiest = int(Router(make("hash", WORKERS)).route(stream.key_ids[:1])[0])
    events = [(what, None, 101, dict.fromkeys(range(WORKERS), 4.0) if what == "capacity" else busiest)]
    result, heard, naive = run_both("listener", stream, capacity=[2.0**-8] * WORKERS, events=events)
    check(result, heard, naive)
    assert heard


# ---------------------------------------------------------------- what they promise


def queue_free(result):
    """What a result says without queues."""
    return {
        name: getattr(result, name)
        for name in ("load", "replicas", "imbalance", "samples", "max_over_mean", "mean_imbalance_fraction", "keys")
    }


@pytest.mark.parametrize("name", sorted(name for name in SCHEMES if not hasattr(SCHEMES[name].type, "observe")))
def test_queues_change_no_decision_of_a_scheme_that_does_not_listen(name):
    stream = skewed(300)  # a tuple a second
    scheme = scheme_for(name, 5, stream.key_ids)
    (without,) = simulate(stream, [scheme], sources=2)
    (with_queues,) = simulate(stream, [scheme], sources=2, queues=Queues())
    assert queue_free(with_queues) == queue_free(without)
    assert without.makespan is without.latency_mean is without.queue_samples is without.events is None


def test_every_tuple_is_done_waiting_or_lost_at_every_moment():
    events = ["t=200 crash 1", "t=300 add", "t=500 capacity 0:0.1", "t=700 crash 0"]
    (result,) = simulate(skewed(1000, cut=130), [make("pkg", 5)], queues=Queues(utilisation=1.2), events=events)
    assert result.lost > 0
    assert result.done + result.lost == result.messages == sum(result.load)
    for sample in result.queue_samples:
        assert sample.done + sample.waiting + sample.lost == sample.messages
    assert result.queue_samples[-1].waiting == result.waiting > 0
    assert result.queue_samples[-1].messages == 1000


def test_samples_tell_of_the_time_since_the_one_before():
    (result,) = simulate(skewed(1000), [make("pkg", 5)], queues=Queues(utilisation=0.9), samples=20)
    samples = result.queue_samples
    done = np.diff([0, *(sample.done for sample in samples)])
    means = [sample.latency_mean or 0 for sample in samples]
    still = result.done - samples[-1].done
    noted = (done * means).sum()
    assert result.latency_mean * result.done >= noted
    assert still == result.waiting
    times = np.diff([0, *(sample.time for sample in samples)])
    throughput = [sample.throughput for sample in samples]
    assert (throughput * times).tolist() == pytest.approx(done.tolist())


def test_samples_tell_of_the_workers_that_are_there():
    """Worker 0 does not get done with what it has, and goes; worker 2 comes after all of that."""
    queues = Queues(rate=4.0, capacity="100, 0:0.01")
    events = ["t=32 remove 0", "t=64 add"]
    (result,) = simulate(Zipf(0, 10, 96), [make("shuffle", 2)], queues=queues, samples=10, events=events)
    before, after = (result.queue_samples[i] for i in (1, 3))  # messages 32 and 64
    assert (before.longest_queue, after.longest_queue, after.shortest_queue) == (16, 1, 1)
    assert (before.waiting, after.waiting) == (17, 17)
    assert before.longest_wait > 1600 > 1 > after.longest_wait
    assert before.utilisation_max > 1 > after.utilisation_max
    assert before.recent_utilisation_max > 1 > after.recent_utilisation_max


def test_samples_tell_of_both_extremes_and_of_recent_utilisation():
    """Shuffle to a fast and a slow worker: after half of the stream they change places."""
    queues = Queues(rate=4.0, capacity="0:4, 1:1")
    (result,) = simulate(
        Zipf(0, 10, 1024), [make("shuffle", 2)], queues=queues, samples=8, events=["t=512 capacity 0:1, 1:4"]
    )
    halves = [sample for sample in result.queue_samples if sample.messages in (512, 1024)]
    for sample in halves:  # 2 tuples a second each: half of what the one can do, twice what the other can
        assert (sample.recent_utilisation_min, sample.recent_utilisation_max) == pytest.approx((0.5, 2.0))
        assert sample.recent_utilisation_mean == pytest.approx(1.25)
    assert halves[1].utilisation_max == pytest.approx(1.25)  # over the whole time both are alike
    first = halves[0]
    assert first.shortest_queue <= 1 < first.longest_queue
    assert first.longest_wait == pytest.approx(first.longest_queue + 1, abs=1)  # a second a tuple
    assert 0.25 <= first.shortest_wait <= 0.5


@given(stall=st.integers(1, 5))
def test_a_bound_is_never_exceeded_and_nothing_is_lost_to_it(stall):
    (result,) = simulate(skewed(300), [make("hash", 5)], queues=Queues(utilisation=2.0, bound=stall))
    assert result.longest_queue <= stall
    assert result.done == 300
    assert result.stalled > 0
    assert result.latency_max <= stall + 1e-9  # a second a tuple


def test_with_equal_load_the_processing_time_is_that_of_one_workers_share():
    """FISH's measure: tuples come as fast as all workers together can take them."""
    (even,) = simulate(Zipf(0, 10, 1000), [make("shuffle", 10)], queues=Queues(utilisation=1.0))
    assert even.rate == 10
    assert even.makespan == pytest.approx(1000 / 10 - 1 / 10 + 1)  # the last tuple comes at 99.9 s
    (mixed,) = simulate(Zipf(0, 10, 1000), [make("shuffle", 10)], queues=Queues(utilisation=1.0, capacity="0-4:2"))
    assert mixed.rate == 15
    assert mixed.makespan == pytest.approx(100, abs=1)  # the slow half has 100 tuples each, at one a second
    assert mixed.utilisation == pytest.approx([0.75] * 5 + [1.5] * 5)


def test_capacities_come_from_a_number_a_sequence_or_a_text():
    def capacity_of(given):
        (result,) = simulate(skewed(10), [make("hash", 4)], queues=Queues(capacity=given))
        return result.capacity

    assert capacity_of(3) == [3] * 4
    assert capacity_of([2, 5]) == [2, 5, 1, 1]
    assert capacity_of(np.array([2.0, 5.0])) == [2, 5, 1, 1]
    assert capacity_of("0-2:5") == [5, 5, 5, 1]
    assert capacity_of(" 7 , 1:5,3:2 ") == [7, 5, 7, 2]


def test_without_a_rate_tuples_come_at_their_own_times_late_ones_at_the_latest_seen():
    stream = Given((1, 1, 1, 1), times=(5.0, 2.0, 9.0, 9.0))
    (result,) = simulate(stream, [make("hash", 1)], queues=Queues())
    assert result.rate is None
    assert (result.makespan, result.latency_max) == (6.0, 2.0)  # done at 6, 7, 10, 11


def test_work_in_no_time_does_not_look_like_idleness():
    stream = Given((1,) * 20, times=(5.0,) * 20)
    (result,) = simulate(stream, [make("hash", 2)], queues=Queues())
    (busy,) = {0, 1} - {result.load.index(0)}
    assert result.utilisation[busy] == result.utilisation_max == result.utilisation_imbalance == np.inf
    assert result.utilisation[1 - busy] == 0
    for sample in result.queue_samples:
        assert sample.utilisation_max == sample.recent_utilisation_mean == np.inf
        assert sample.recent_utilisation_min == 0
    assert Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_late_tuples_are_counted_where_the_latest_time_seen_matters():
    stream = Given((1, 2, 3, 4, 5), times=(5.0, 2.0, 5.0, 9.0, 8.0), cut=2)

    def late(**options):
        return simulate(stream, [make("pkg", 2)], **options)[0].late

    assert late(queues=Queues()) == late(estimation="probe:1") == late(events=["t=3 add"]) == 2
    assert late(queues=Queues(rate=1.0)) == 0
    assert late() is None


@pytest.mark.parametrize("bound", [None, 2])
def test_seconds_since_1970_are_as_exact_as_seconds_since_the_start(bound):
    """As floats they are 2.4e-7 apart. Gaps and slots are multiples of that, so that the times themselves are exact."""
    gaps = np.random.default_rng(0).integers(0, 40, 300) / 2**22
    queues = Queues(capacity="3e6, 1:1e5", bound=bound, feedback_delay=2**-20)
    results, reports = [], []
    for start in (0.0, 2.0**30):
        listening.HEARD.clear()
        times = start + np.cumsum(gaps)
        events = [Event("capacity", time=float(times[100]), capacity="1:2e5"), Event("crash", message=200, workers=[0])]
        stream = skewed(300, times=tuple(times.tolist()))
        (result,) = simulate(stream, [listening.Listener(5, 2**-15)], sources=2, queues=queues, events=events)
        samples = [sample._replace(time=sample.time - start) for sample in result.queue_samples]
        results.append(metrics_of(result) | {"samples": None, "queue_samples": samples, "events": None})
        reports.append(
            [(*map(np.ndarray.tolist, heard[:5]), heard.seconds, heard.now - start) for heard in listening.HEARD]
        )
    assert results[0] == results[1]
    assert reports[0] == reports[1]
    assert len(reports[0]) > 10


def test_a_tuple_of_a_fast_worker_takes_as_long_as_it_takes():
    stream = skewed(3, times=(1.6e9, 1.6e9 + 1, 1.6e9 + 2))
    (result,) = simulate(stream, [make("hash", 2)], queues=Queues(capacity=3e6))
    assert (result.latency_p50, result.latency_max) == pytest.approx((1 / 3e6, 1 / 3e6))
    assert result.makespan == pytest.approx(2 + 1 / 3e6, rel=1e-12)


def test_results_with_queues_are_plain_values_and_come_back():
    for stream in (skewed(300), Given(()), skewed(1)):
        (result,) = simulate(stream, [make("pkg", 5)], queues=Queues(rate=3.0), events=["t=100 add"])
        text = json.dumps(result.to_dict(), allow_nan=False)
        assert Result.from_dict(json.loads(text)) == result


@given(cut=st.integers(1, 300))
@settings(max_examples=8)
def test_the_size_of_chunks_does_not_matter_to_queues(cut):
    events = [Event("crash", message=100, workers=(1,)), Event("capacity", time=20.25, capacity="0:4"), "t=180 add"]
    queues = Queues(utilisation=1.0, bound=6, feedback_delay=0.3)
    results = []
    for stream in (skewed(300), skewed(300, cut=cut)):
        (result,) = simulate(stream, [listening.Listener(5, 1.5)], sources=3, queues=queues, events=events)
        results.append(result.to_dict() | {"seconds": 0, "messages_per_second": 0, "stream_seconds": 0, "stream": ""})
    assert results[0] == results[1]


# ---------------------------------------------------------------- latencies


def latencies_of(values):
    found = Latencies()
    found.make_room(len(values))
    for value in values:
        note(found.record, np.float64(value))
    return found


@given(values=st.lists(st.floats(1e-11, 1e11), min_size=1, max_size=200))
@settings(max_examples=50)
def test_percentiles_are_exact_at_first_and_within_a_256th_beyond(values):
    exact = latencies_of(values)
    beyond = Latencies()  # as if the room for exact ones were used up
    for value in values:
        note(beyond.record, np.float64(value))
    from_buckets = beyond.snapshot().since(latency_module.NOTHING)
    for rank in (50, 95, 99):
        expected = np.percentile(values, rank, method="inverted_cdf")
        assert exact.summary()[f"latency_p{rank}"] == expected
        assert from_buckets[f"latency_p{rank}"] == pytest.approx(expected, rel=1 / 256)
    assert exact.summary()["latency_mean"] == pytest.approx(np.mean(values))


def test_a_long_run_says_that_its_percentiles_come_from_buckets(monkeypatch):
    exact, queues = simulate(skewed(400), [make("pkg", 5)], queues=Queues(utilisation=0.9))[0], Queues(utilisation=0.9)
    monkeypatch.setattr(latency_module, "EXACT", 100)
    (result,) = simulate(skewed(400), [make("pkg", 5)], queues=queues)
    assert (exact.latency_exact, result.latency_exact) == (True, False)
    assert result.latency_mean == exact.latency_mean
    for rank in (50, 95, 99):
        assert getattr(result, f"latency_p{rank}") == pytest.approx(getattr(exact, f"latency_p{rank}"), rel=1 / 256)


# ---------------------------------------------------------------- reports


def heard_by(sources, delay=0.0, period=2.0, messages=60):
    listening.HEARD.clear()
    simulate(
        skewed(messages),
        [listening.Listener(6, period)],
        sources=sources,
        queues=Queues(rate=4.0, feedback_delay=delay),
    )
    return list(listening.HEARD)


def test_reports_are_of_whole_slots_and_only_of_workers_that_executed_something():
    reports = heard_by(1)
    assert [report.now for report in reports] == [2.0 * i for i in range(1, len(reports) + 1)]
    for report in reports:
        assert report.seconds == 2.0
        assert (report.tuples > 0).all()
        assert ((report.busy > 0) & (report.busy <= 2)).all()
    assert any(len(report.workers) < 6 for report in reports)


def test_without_queues_a_scheme_that_listens_hears_nothing():
    listening.HEARD.clear()
    simulate(skewed(60), [listening.Listener(6)])
    assert listening.HEARD == []


def test_a_delay_longer_than_the_stream_leaves_the_scheme_as_if_deaf():
    assert heard_by(2, delay=1e6) == []
    assert len(heard_by(2, delay=5.0)) < len(heard_by(2))


def test_pauses_of_a_million_slots_cost_nothing():
    stream = Given((1, 2, 3), times=(0.0, 1e9, 1e9 + 1))
    listening.HEARD.clear()
    simulate(stream, [listening.Listener(2, 1e-3)], queues=Queues(capacity=100.0))
    assert sum(int(report.tuples.sum()) for report in listening.HEARD) == 2


@pytest.fixture
def few_slots(monkeypatch):
    """A run that walks through every slot of time, however many there are, fails rather than not to end."""

    def limited(method):
        calls = []

        def counted(self, time):
            calls.append(time)
            assert len(calls) < 5000
            return method(self, time)

        return counted

    for name in ("end_slot", "finishes_by"):
        monkeypatch.setattr(QueuedWorkers, name, limited(getattr(QueuedWorkers, name)))


@pytest.mark.usefixtures("few_slots")
@pytest.mark.parametrize(
    ("period", "queues"),
    [
        (1e-6, Queues(utilisation=0.8)),
        (1e-6, Queues(utilisation=2.0, capacity="1, 1:0.7", bound=3)),
        (10.0, Queues(utilisation=0.8, capacity=1e-9)),
        (1e-7, Queues(rate=1e3, capacity="0:1000, 1:1e-9", feedback_delay=0.05)),
    ],
    ids=["short slots", "and stalls", "slow workers", "one slow worker"],
)
def test_slots_in_which_nobody_finishes_a_tuple_cost_nothing(period, queues):
    listening.HEARD.clear()
    events = ["t=100 capacity 1:0.01", "t=200 add", "t=300 remove 0"]
    simulate(skewed(400), [listening.Listener(2, period)], queues=queues, events=events)
    assert listening.HEARD
    for report in listening.HEARD:
        assert report.seconds == pytest.approx(period, rel=1e-6) or queues.bound  # a slot lasts longer while it stalls
        assert (report.tuples > 0).all()
        assert ((report.busy > 0) & (report.busy <= report.seconds * (1 + 1e-6))).all()


def test_times_that_cannot_be_cut_into_slots_are_refused():
    """Beyond 2^53 slots from time 0 on, one slot more is the same number."""
    nanoseconds = skewed(10, times=tuple(1.6e18 + 1e9 * i for i in range(10)))
    for stream, shown in (
        (nanoseconds, "1.6e+18"),
        (skewed(2, times=(0.0, 1.6e18)), "1.6e+18"),
        (skewed(2, times=(-1.6e18, 0.0)), "-1.6e+18"),
    ):
        message = (
            f"report_every: must be more than 178 where the stream's clock shows {shown} seconds, not 10; are its "
        )
        with pytest.raises(InputError, match=f"^{re.escape(message)}"):
            simulate(stream, [listening.Listener(2, 10.0)], queues=Queues())
    simulate(nanoseconds, [listening.Listener(2, 1000.0)], queues=Queues())
    last = skewed(3, times=(2.0**53 - 4, 2.0**53 - 2, 2.0**53 - 1))
    simulate(last, [listening.Listener(2, 1.0)], queues=Queues(capacity=1e-3))


def test_the_oracle_of_a_scheme_that_listens_is_refused():
    with pytest.raises(InputError, match=r"^oracle: a scheme that listens to workers has none"):
        simulate(skewed(10), [listening.Listener(2)], queues=Queues(), oracle=True)


def test_a_scheme_that_listens_says_how_often():
    with pytest.raises(InputError, match=r"^report_every: must be seconds from 1e-09 to 1e\+12, not 0.0$"):
        simulate(skewed(10), [listening.Listener(2, 0)], queues=Queues())


def test_the_evolving_stream_runs_through_queues():
    (result,) = simulate(Evolving(1.4, 100, 1000), [make("pkg", 8)], queues=Queues(utilisation=1.0))
    assert result.done == 1000
