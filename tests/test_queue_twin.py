"""Queues, capacities, events, samples and reports against a naive simulation of every completion."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import listener as listening
import naive_queues
from listener import listener  # noqa: F401  (a fixture)
from test_simulate import Given, skewed
from unskew import Router, make
from unskew.simulate import Queues, simulate

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
    options = {"sources": sources, "capacity": capacity, "events": events, "probe": probe, "costs": stream.costs}
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
    assert result.mean_imbalance_fraction == pytest.approx(float(sum(naive.imbalances)) / result.tuples**2)
    assert result.utilisation == pytest.approx([float(u) for u in naive.utilisation.values()])
    present = [float(naive.utilisation[name]) for name in naive.members]
    imbalance = max(present) - sum(present) / len(present) if max(present) < np.inf else np.inf
    assert result.utilisation_imbalance == pytest.approx(imbalance, rel=1e-9, abs=1e-9)
    check_samples(result, naive)
    check_work(result, naive)
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
    before = {"done": 0, "now": naive.start}
    assert result.queue_samples[-1].tuples == result.tuples
    for sample in result.queue_samples:
        look = naive.looks[sample.tuples - 1]
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

        for prefix, earlier in (("", None), ("recent_", before if "there" in before else None)):
            shares = []
            for name in look["members"]:
                work, there = look["work"][name], look["seconds"][name]
                if earlier is not None:
                    work -= earlier["work"].get(name, 0)
                    there = look["there"][name] - earlier["there"].get(name, 0)
                shares.append(float(naive_queues.share(work, there)))
            assert getattr(sample, f"{prefix}utilisation_max") == pytest.approx(max(shares))
            assert getattr(sample, f"{prefix}utilisation_mean") == pytest.approx(sum(shares) / len(shares))
        assert sample.recent_utilisation_min == pytest.approx(min(shares))
        before = look


def check_work(result, naive):
    if result.work is None:
        assert result.work_max_over_mean is None
        return
    assert result.work == pytest.approx([float(naive.cost[name]) for name in naive.workers])
    since = [float(naive.cost_since[name]) for name in naive.members]
    expected = max(since) * len(since) / sum(since) if sum(since) else None
    assert result.work_max_over_mean == pytest.approx(expected)


def some_costs(numbers):
    """No costs, or one per tuple."""
    costs = st.lists(st.sampled_from(POWERS), min_size=len(numbers), max_size=len(numbers))
    return st.just(()) | costs.map(tuple)


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
        "stream": Given(tuple(numbers), tuple(times), cut=draw(st.integers(1, 50)), costs=draw(some_costs(numbers))),
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
def test_what_happens_in_a_long_pause_meets_the_window_of_its_own_time(what):
    """Tuples take 256 s each and the next comes after 500 s; at 101 s workers become fast, or one crashes."""
    stream = Given((1, 1, 1, 2, 3, 4, 1), times=(0.0, 0.0, 0.0, 1.0, 1.0, 500.0, 501.0))
    busiest = int(Router(make("hash", WORKERS)).route(stream.key_ids[:1])[0])
    events = [(what, None, 101, dict.fromkeys(range(WORKERS), 4.0) if what == "capacity" else busiest)]
    result, heard, naive = run_both("listener", stream, capacity=[2.0**-8] * WORKERS, events=events)
    check(result, heard, naive)
    assert heard
