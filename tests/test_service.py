"""A worker that serves rows in real time, with a clock that does what the test says."""

import numpy as np
import pytest

from unskew.service import NAP, POLL, Others, Service, work_through


class Clock:
    """A clock that sleeps exactly, or too long by `late`; `on_sleep` happens at every sleep."""

    def __init__(self, late=0.0, on_sleep=lambda now: None):
        self.now, self.late, self.on_sleep, self.naps = 100.0, late, on_sleep, []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.naps.append(seconds)
        self.now += seconds + self.late
        self.on_sleep(self.now)


def served(service, rows, costs, clock=None, done=lambda: 0, keys=None, worker=0):
    clock, told = clock or Clock(), []
    rows = np.asarray(rows, np.int64)
    keys = rows if keys is None else np.asarray(keys, np.int64)
    costs = np.asarray(costs, float)
    made = work_through(service, worker, 100.0, rows, keys, costs, Others(done, told.append), clock, clock.sleep)
    return made, told, clock


def test_a_row_takes_as_long_as_it_costs():
    made, told, _ = served(Service(1), [0, 1, 2], [1.0, 2.0, 0.5])
    assert made.finished.tolist() == pytest.approx([101.0, 103.0, 103.5])
    assert told == [1, 2, 3]


def test_a_slow_worker_takes_longer():
    made, _, _ = served(Service(2, speeds=(1.0, 0.25)), [0, 1], [1.0, 1.0], worker=1)
    assert made.finished.tolist() == pytest.approx([104.0, 108.0])


def test_a_row_is_not_served_before_it_comes():
    made, _, _ = served(Service(1, rate=0.5), [0, 1, 2], [1.0, 1.0, 5.0])  # they come at 100, 102 and 104
    assert made.finished.tolist() == pytest.approx([101.0, 103.0, 109.0])


def test_cheap_rows_share_a_sleep_but_have_moments_of_their_own():
    made, told, clock = served(Service(1), range(10), [NAP / 5.5] * 10)
    assert len(clock.naps) == 2
    assert told == [5, 10]
    assert np.diff(made.finished) == pytest.approx(np.full(9, NAP / 5.5))


def test_a_sleep_that_took_too_long_makes_the_next_one_shorter():
    made, _, clock = served(Service(1), range(50), [1.0] * 50, Clock(late=0.25))
    assert clock.naps[1] == pytest.approx(0.75)
    assert made.finished[-1] == pytest.approx(150.25)
    assert made.late == pytest.approx(np.full(50, 0.25))


def test_rows_wait_while_too_many_are_on_their_way():
    """Row 5 may come when 4 of the rows before it are done; others have done them at 101."""
    done = [0]

    def others_work(now):
        done[0] = 4 if now >= 101.0 else 0

    clock = Clock(on_sleep=others_work)
    made, _, _ = served(Service(1, pending=2), [0, 5], [0.5, 0.5], clock, lambda: done[0])
    assert made.finished[0] == pytest.approx(100.5)
    assert 101.5 <= made.finished[1] <= 101.5 + 2 * POLL


def test_other_work_comes_before_the_first_row():
    made, _, _ = served(Service(2, before=(0.0, 3.0)), [0], [1.0], worker=1)
    assert made.finished.tolist() == pytest.approx([104.0])


def test_counters_are_sent_away_at_the_end_of_a_period():
    """Keys 7, 7, 8 in the first period, whose two counters take half a second each to send; then 9."""
    service = Service(1, period=3.0, message=0.5)
    made, _, _ = served(service, range(5), [1.0] * 5, keys=[7, 7, 8, 9, 9])
    assert made.held.tolist() == [1, 1, 2, 1, 1]
    assert made.sent.tolist() == [0, 0, 0, 2, 2]
    assert made.finished.tolist() == pytest.approx([101.0, 102.0, 103.0, 105.0, 106.0])


def test_a_worker_without_rows_has_nothing_to_do():
    made, told, clock = served(Service(1), [], [])
    assert len(made.finished) == 0
    assert told == clock.naps == []
