"""Events: how they are written, what they do to workers and metrics, and what is refused."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples import scheme_for
from test_simulate import Given, metrics_of, skewed
from unskew import InputError, make
from unskew.simulate import Event, Queues, parse_event, simulate
from unskew.simulate.queues import parse_capacity
from unskew.streams import Zipf

# ---------------------------------------------------------------- how they are written


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("t=6M capacity 0-4:2", Event("capacity", after=6_000_000, capacity="0-4:2")),
        ("t=3k add", Event("add", after=3000)),
        (" t=1.5G  add  2 ", Event("add", after=1_500_000_000, count=2)),
        ("t=1e3 remove 3", Event("remove", after=1000, workers=(3,))),
        ("t=30s crash 3, 5-7", Event("crash", time=30.0, workers=(3, 5, 6, 7))),
        ("t=-2.5s add", Event("add", time=-2.5)),
    ],
)
def test_events_are_written_as_they_are_said(text, event):
    assert parse_event(text) == event
    assert parse_event(str(event)) == event


def meaning(event):
    """What an event does, however it was given."""
    capacity = None
    if event.capacity is not None:
        capacity = np.zeros(100)
        parse_capacity(event.capacity).apply(capacity)
        capacity = capacity.tolist()
    return event.what, event.after, event.time, tuple(map(int, event.workers)), event.count, capacity


speeds = st.floats(1e-9, 1e12) | st.integers(1, 9)
moments = st.fixed_dictionaries({"after": st.integers(0, 10**15)}) | st.fixed_dictionaries(
    {"time": st.floats(-1e15, 1e15) | st.integers(-100, 100)}
)
happenings = (
    st.builds(lambda when, count: Event("add", **when, count=count), moments, st.integers(1, 100))
    | st.builds(
        lambda what, when, names: Event(what, **when, workers=names),
        st.sampled_from(["remove", "crash"]),
        moments,
        st.lists(st.integers(0, 99), min_size=1) | st.integers(1, 90).map(range) | st.just(np.array([3, 4, 2])),
    )
    | st.builds(
        lambda when, capacity: Event("capacity", **when, capacity=capacity),
        moments,
        speeds | st.lists(speeds, min_size=1, max_size=50) | st.just(np.array([0.1, 0.1, 1 / 3])) | st.just("7, 0-3:2"),
    )
)


@given(event=happenings)
def test_the_text_of_an_event_is_the_event(event):
    assert meaning(parse_event(str(event))) == meaning(event)


def test_the_text_of_an_event_is_as_short_as_one_would_write_it():
    assert str(Event("crash", after=5, workers=range(40))) == "t=5 crash 0-39"
    assert str(Event("remove", after=5, workers=[1, 2, 4, 6, 7, 8])) == "t=5 remove 1-2,4,6-8"
    assert str(Event("capacity", time=30.5, capacity=[2, 2, 2, 5.5])) == "t=30.5s capacity 0-2:2,3:5.5"
    (result,) = simulate(skewed(10), [make("pkg", 50)], events=[Event("crash", after=5, workers=range(0, 50, 2))])
    assert result.events == [f"t=5 crash {','.join(map(str, range(0, 50, 2)))}"]


RULE = "event: must be 't=WHEN add', 't=WHEN remove 3', 't=WHEN crash 3,5-7' or 't=WHEN capacity 0-4:2', where WHEN is "
WRONG = {
    "": RULE,
    "add": RULE,
    "t= add": RULE,
    "t=6X add": RULE,
    "t=1.0001k add": RULE,
    "t=-1 add": RULE,
    "t=nan add": RULE,
    "t=infG add": RULE,
    "t=1000001G add": RULE,
    "t=nans add": "event: time must be a number of seconds, not nan",
    "t=1e999s add": "event: time must be a number of seconds, not inf",
    "t=5 explode 3": RULE,
    "t=5 remove": RULE,
    "t=5 remove x": RULE,
    "t=5 crash 7-5": RULE,
    "t=5 crash 0-999999999": RULE,
    f"t=5 add {'1' * 5000}": RULE,
    "t=5 add x": RULE,
    "t=5 add 0": "event: count must be an integer from 1 to 20000000, not 0",
    "t=5 capacity": "capacity: must be tuples per second from 1e-09 to 1e+12 for all workers",
    "t=5 capacity 0:0": "capacity: must be tuples per second from 1e-09 to 1e+12 for all workers",
    "t=5 capacity 4-0:2": "capacity: must be tuples per second from 1e-09 to 1e+12 for all workers",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items(), ids=lambda text: text[:20] or "empty")
def test_what_is_no_event_is_refused(text, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        parse_event(text)


@given(
    text=st.text(max_size=30) | st.from_regex(r"t=\S{1,5} (add|remove|crash|capacity) [\d:,.\-]{0,8}", fullmatch=True)
)
def test_any_text_is_an_event_or_refused(text):
    try:
        assert parse_event(str(parse_event(text))) == parse_event(text)
    except InputError as error:
        assert "\n" not in str(error) or "\n" in text  # noqa: PT017  (either outcome is right; any other exception is not)


@pytest.mark.parametrize(
    ("given_event", "message"),
    [
        (
            {"what": "explode", "after": 1},
            "event: what happens must be one of add, remove, crash, capacity, not 'expl",
        ),
        ({"what": "add"}, "event: needs either after or time, not None and None"),
        ({"what": "add", "after": 1, "time": 1.0}, "event: needs either after or time, not 1 and 1.0"),
        ({"what": "add", "after": 1.5}, "event: after must be a whole number from 0 to 1000000000000000, not 1.5"),
        ({"what": "add", "time": "1"}, "event: time must be a number of seconds, not '1'"),
        ({"what": "add", "after": 1, "workers": (1,)}, "event: add takes no workers, not (1,)"),
        ({"what": "crash", "after": 1}, "event: crash needs the numbers of workers, not ()"),
        ({"what": "crash", "after": 1, "workers": (-1,)}, "event: crash needs the numbers of workers, not (-1,)"),
        ({"what": "capacity", "after": 1}, "event: capacity is needed for 'capacity' and for nothing else"),
        ({"what": "capacity", "after": 1, "capacity": []}, "capacity: must be tuples per second from 1e-09 to 1e+12"),
        ({"what": "add", "after": 1, "capacity": 2.0}, "event: capacity is needed for 'capacity' and for nothing"),
    ],
)
def test_wrong_events_are_refused(given_event, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        Event(**given_event)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ("t=5 remove 9", "event: 't=5 remove 9': there is no worker 9; workers are 0..4"),
        ("t=5 remove 0-4", "event: 't=5 remove 0-4' would leave no worker"),
        ("t=5 capacity 0:2", "event: 't=5 capacity 0:2' needs queues: give a rate, a utilisation or capacities"),
        (
            f"t=5 capacity {','.join(['0:1'] * 50)}",
            f"event: 't=5 capacity {','.join(['0:1'] * 17)}...' needs queues: give a rate, a utilisation or capacities",
        ),
        ("t=5 add 20000000", "event: there may be at most 20,000,000 workers in all, not 20,000,005"),
    ],
)
def test_events_that_cannot_be_are_refused(event, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        simulate(skewed(10), [make("pkg", 5)], events=[event])


def test_a_worker_leaves_once():
    with pytest.raises(InputError, match=r"^event: 't=7 crash 3': worker 3 is not there at that time$"):
        simulate(skewed(10), [make("pkg", 5)], events=["t=5 remove 3", "t=7 crash 3"])
    with pytest.raises(InputError, match=r"^event: 't=5 remove 5': worker 5 is not there at that time$"):
        simulate(skewed(10), [make("pkg", 5)], events=["t=5 remove 5", "t=7 add"])
    with pytest.raises(InputError, match=r"^capacity: there is no worker 6; workers are 0..5, added ones included$"):
        simulate(skewed(10), [make("pkg", 5)], queues=Queues(), events=["t=5 add", "t=7 capacity 6:3"])


class NoTuples(Given):
    """Given, but nothing may be read of it: what is refused is refused before the run."""

    def chunks(self, size=0):
        raise AssertionError


UNREAD = NoTuples((1,) * 10)


@pytest.mark.parametrize("name", ["off_greedy", "potc"])
@pytest.mark.parametrize("events", [["t=5 add"], ["t=5 add", "t=3s add"]], ids=["in order", "in unknown order"])
def test_a_scheme_that_cannot_follow_is_refused_by_name_before_the_run(name, events):
    message = f"scheme: {name} cannot go on when workers come or go: what it has stored is for the workers that it was "
    with pytest.raises(InputError, match=f"^{message}"):
        simulate(UNREAD, [scheme_for(name, 5, UNREAD.key_ids)], events=events)
    with pytest.raises(AssertionError):  # the run begins
        simulate(UNREAD, [scheme_for(name, 5, UNREAD.key_ids)], queues=Queues(), events=["t=5 capacity 2"])


@pytest.mark.parametrize(
    ("events", "queues", "message"),
    [
        (["t=9s remove 1", "t=8s remove 1"], None, "event: 't=9s remove 1': worker 1 is not there at that time"),
        (["t=7 remove 1", "t=3s remove 1"], Queues(rate=2.0), "event: 't=7 remove 1': worker 1 is not there at that"),
        (["t=6 remove 1", "t=3s remove 1"], Queues(rate=2.0), "event: 't=3s remove 1': worker 1 is not there at that"),
        (
            ["t=6 add", "t=5 capacity 6:2"],
            Queues(),
            "capacity: there is no worker 6; workers are 0..5, added ones incl",
        ),
        (["t=6 remove 0-3", "t=3.1s crash 4"], Queues(rate=2.0), "event: 't=3.1s crash 4' would leave no worker"),
    ],
)
def test_who_is_there_is_known_before_the_run_where_the_order_of_events_is(events, queues, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        simulate(UNREAD, [make("cg", 5)], events=events, queues=queues)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (["t=5 remove 1", "t=7s remove 1"], "event: 't=7s remove 1': worker 1 is not there at that time"),
        (["t=5 add"], "event: 't=5 add 1': cg cannot go on with 6 workers: workers: "),
        (["t=7 add 2", "t=5 remove 1"], "event: 't=7 add 2': cg cannot go on with 6 workers: workers: "),
    ],
    ids=["unknown order", "too many", "too many after all"],
)
def test_what_cannot_be_known_beforehand_is_refused_when_it_comes(events, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        simulate(skewed(10), [make("cg", 5, virtual=1)], events=events)
    simulate(skewed(10), [make("cg", 5, virtual=1)], events=["t=9 add", "t=7s remove 1"])


# ---------------------------------------------------------------- what they do


def test_loads_are_by_name_and_balance_counts_from_the_last_change():
    events = ["t=100 remove 1", "t=200 add 2"]
    (result,) = simulate(skewed(320), [make("shuffle", 4)], events=events)
    assert result.load == [25 + 34 + 24, 25, 25 + 33 + 24, 25 + 33 + 24, 24, 24]
    assert result.members == [0, 2, 3, 4, 5]
    assert result.events == ["t=100 remove 1", "t=200 add 2"]
    assert (result.imbalance, result.max_over_mean, result.tuples) == (0.0, 1.0, 320)
    assert result.workers == 4
    assert result.lost is None  # no queues


def test_replicas_are_the_pairs_of_names_and_keys_that_ever_were():
    stream = Given((1,) * 6)  # one key, on one worker of each set of workers
    (result,) = simulate(stream, [make("shuffle", 2)], events=["t=2 crash 0", "t=4 add", "t=5 remove 1"])
    assert result.load == [1, 1 + 2 + 1, 1]
    assert result.replicas == 3


def test_an_event_after_the_last_tuple_does_not_take_place():
    (result,) = simulate(skewed(100), [make("pkg", 5)], events=["t=100 crash 0", "t=1e9s add"])
    assert result.events == []
    (plain,) = simulate(skewed(100), [make("pkg", 5)])
    assert metrics_of(result) | {"events": None, "members": None, "late": None} == metrics_of(plain)


def test_the_oracle_follows_too():
    (result,) = simulate(skewed(300), [make("pkg", 5)], events=["t=100 remove 1", "t=200 add"], oracle=True)
    assert result.agreement == 1.0


def test_an_event_that_cannot_be_is_refused_even_where_it_would_come_too_late():
    for event in ("t=100 remove 0-1", "t=99.5s remove 0-1"):
        with pytest.raises(InputError, match="would leave no worker"):
            simulate(Zipf(1.0, 10, 100), [make("hash", 2)], queues=Queues(rate=1.0), events=[event])


@pytest.mark.parametrize("workers", [5, None, {1: 2, "a": 3}, np.array(3)])
def test_workers_of_an_event_are_a_list_of_numbers(workers):
    with pytest.raises(InputError, match=r"^event: "):
        Event("remove", after=3, workers=workers)
    for event in (5, None):
        with pytest.raises(InputError, match=r"^event: must be 't=WHEN add', "):
            simulate(Zipf(1.0, 10, 10), [make("hash", 2)], events=[event])


def test_workers_of_an_event_may_be_any_collection():
    assert str(Event("remove", after=3, workers={2, 1})) == "t=3 remove 1-2"
