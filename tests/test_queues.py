"""What queues promise: times, latencies, utilisation, samples. `test_queue_twin` compares them with a naive twin."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import listener as listening
from listener import listener  # noqa: F401  (a fixture)
from samples import scheme_for
from test_simulate import Given, metrics_of, skewed
from unskew import SCHEMES, make
from unskew.simulate import Event, Queues, Result, simulate
from unskew.simulate import latency as latency_module
from unskew.simulate.latency import Latencies, note
from unskew.simulate.workers import QueuedWorkers
from unskew.streams import Evolving, Zipf

pytestmark = pytest.mark.usefixtures("listener")


def queue_free(result):
    """What a result says without queues."""
    return {
        name: getattr(result, name)
        for name in ("load", "replicas", "imbalance", "samples", "max_over_mean", "mean_imbalance_fraction", "keys")
    }


@pytest.mark.parametrize("name", sorted(name for name in SCHEMES if not hasattr(SCHEMES[name].type, "observe")))
def test_queues_change_no_decision_of_a_scheme_that_does_not_listen(name):
    stream = skewed(300)  # one tuple per second
    scheme = scheme_for(name, 5, stream.key_ids)
    (without,) = simulate(stream, [scheme], sources=2)
    (with_queues,) = simulate(stream, [scheme], sources=2, queues=Queues())
    assert queue_free(with_queues) == queue_free(without)
    assert without.makespan is without.latency_mean is without.queue_samples is without.events is None


def test_every_tuple_is_done_waiting_or_lost_at_every_moment():
    events = ["t=200 crash 1", "t=300 add", "t=500 capacity 0:0.1", "t=700 crash 0"]
    (result,) = simulate(skewed(1000, cut=130), [make("pkg", 5)], queues=Queues(utilisation=1.2), events=events)
    assert result.lost > 0
    assert result.done + result.lost == result.tuples == sum(result.load)
    for sample in result.queue_samples:
        assert sample.done + sample.waiting + sample.lost == sample.tuples
    assert result.queue_samples[-1].waiting == result.waiting > 0
    assert result.queue_samples[-1].tuples == 1000


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
    before, after = (result.queue_samples[i] for i in (1, 3))  # tuples 32 and 64
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
    halves = [sample for sample in result.queue_samples if sample.tuples in (512, 1024)]
    for sample in halves:  # 2 tuples per second each: half of what the one can do, twice what the other can
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


def test_workers_that_join_later_do_not_count_in_the_utilisation_that_sets_the_rate():
    queues = Queues(utilisation=0.5, capacity="0-1:2, 2:100")
    (result,) = simulate(Zipf(0, 10, 64), [make("shuffle", 2)], queues=queues, events=["t=32 add"])
    assert result.capacity == [2, 2, 100]
    assert result.rate == 2  # half of what workers 0 and 1 can take


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
    """As floats they are 2.4e-7 apart. Gaps and windows are multiples of that, so the times themselves are exact."""
    gaps = np.random.default_rng(0).integers(0, 40, 300) / 2**22
    queues = Queues(capacity="3e6, 1:1e5", bound=bound, feedback_delay=2**-20)
    results, reports = [], []
    for start in (0.0, 2.0**30):
        listening.HEARD.clear()
        times = start + np.cumsum(gaps)
        events = [Event("capacity", time=float(times[100]), capacity="1:2e5"), Event("crash", after=200, workers=[0])]
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
    events = [Event("crash", after=100, workers=(1,)), Event("capacity", time=20.25, capacity="0:4"), "t=180 add"]
    queues = Queues(utilisation=1.0, bound=6, feedback_delay=0.3)
    results = []
    for stream in (skewed(300), skewed(300, cut=cut)):
        (result,) = simulate(stream, [listening.Listener(5, 1.5)], sources=3, queues=queues, events=events)
        results.append(result.to_dict() | {"seconds": 0, "tuples_per_second": 0, "stream_seconds": 0, "stream": ""})
    assert results[0] == results[1]


def test_the_evolving_stream_runs_through_queues():
    (result,) = simulate(Evolving(1.4, 100, 1000), [make("pkg", 8)], queues=Queues(utilisation=1.0))
    assert result.done == 1000


# ---------------------------------------------------------------- latencies


def latencies_of(values):
    found = Latencies()
    for value in values:
        note(found.record, np.float64(value))
    return found


@given(values=st.lists(st.floats(1e-11, 1e11), min_size=1, max_size=200))
@settings(max_examples=50)
def test_percentiles_are_exact_at_first_and_within_a_256th_beyond(values):
    exact = latencies_of(values)
    from_buckets = exact.snapshot().since(latency_module.NOTHING)
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


def test_recent_utilisation_is_of_its_own_stretch_whatever_came_before():
    """A long pause, then one tuple per second for a worker that can do two."""
    times = (0.0, *(1000.0 + i for i in range(95)))
    (result,) = simulate(skewed(96, times=times), [make("hash", 1)], queues=Queues(capacity=2.0), samples=6)
    assert [sample.tuples for sample in result.queue_samples] == [16, 32, 48, 64, 80, 96]
    assert [sample.recent_utilisation_max for sample in result.queue_samples[1:]] == [0.5] * 5


def test_a_change_of_capacity_leaves_alone_when_an_idle_worker_ended():
    workers = QueuedWorkers(np.ones(1), None, 0, lettered=True)
    letters = np.zeros(1, np.uint64), np.zeros(1, np.int64)
    workers.serve(np.zeros(1, np.int32), np.array([0.0]), np.zeros(0, np.int32), None, letters)
    workers.set_service(np.array([2.0]), 100.0)
    workers.serve(np.zeros(1, np.int32), np.array([150.0]), np.zeros(0, np.int32), None, letters)
    workers.settle(200.0)
    done = workers.take_executed()
    assert done.seconds.tolist() == [1.0, 2.0]
    assert done.waited.tolist() == [0.0, 149.0]  # since 1.0, when the first was done
