"""What workers tell to schemes that listen, and what that costs."""

import re

import pytest

import listener as listening
from listener import listener  # noqa: F401  (a fixture)
from test_simulate import Given, skewed
from unskew import InputError
from unskew.simulate import Queues, simulate
from unskew.simulate.workers import QueuedWorkers

pytestmark = pytest.mark.usefixtures("listener")


def heard_by(sources, delay=0.0, period=2.0, tuples=60):
    listening.HEARD.clear()
    simulate(
        skewed(tuples),
        [listening.Listener(6, period)],
        sources=sources,
        queues=Queues(rate=4.0, feedback_delay=delay),
    )
    return list(listening.HEARD)


def test_reports_are_of_whole_windows_and_only_of_workers_that_executed_something():
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


def test_pauses_of_a_million_windows_cost_nothing():
    stream = Given((1, 2, 3), times=(0.0, 1e9, 1e9 + 1))
    listening.HEARD.clear()
    simulate(stream, [listening.Listener(2, 1e-3)], queues=Queues(capacity=100.0))
    assert sum(int(report.tuples.sum()) for report in listening.HEARD) == 2


@pytest.fixture
def few_windows(monkeypatch):
    """A run that walks through every window, however many there are, fails rather than not to end."""

    def limited(method):
        calls = []

        def counted(self, time):
            calls.append(time)
            assert len(calls) < 5000
            return method(self, time)

        return counted

    for name in ("end_window", "finishes_by"):
        monkeypatch.setattr(QueuedWorkers, name, limited(getattr(QueuedWorkers, name)))


@pytest.mark.usefixtures("few_windows")
@pytest.mark.parametrize(
    ("period", "queues"),
    [
        (1e-6, Queues(utilisation=0.8)),
        (1e-6, Queues(utilisation=2.0, capacity="1, 1:0.7", bound=3)),
        (10.0, Queues(utilisation=0.8, capacity=1e-9)),
        (1e-7, Queues(rate=1e3, capacity="0:1000, 1:1e-9", feedback_delay=0.05)),
    ],
    ids=["short windows", "and stalls", "slow workers", "one slow worker"],
)
def test_windows_in_which_nobody_finishes_a_tuple_cost_nothing(period, queues):
    listening.HEARD.clear()
    events = ["t=100 capacity 1:0.01", "t=200 add", "t=300 remove 0"]
    simulate(skewed(400), [listening.Listener(2, period)], queues=queues, events=events)
    assert listening.HEARD
    for report in listening.HEARD:
        assert (
            report.seconds == pytest.approx(period, rel=1e-6) or queues.bound
        )  # a window lasts longer while it stalls
        assert (report.tuples > 0).all()
        assert ((report.busy > 0) & (report.busy <= report.seconds * (1 + 1e-6))).all()


def test_times_that_cannot_be_cut_into_windows_are_refused():
    """Beyond 2^53 windows from time 0 on, one window more is the same number."""
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
