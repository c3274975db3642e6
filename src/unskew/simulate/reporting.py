"""Carries what workers tell to the sources that listen: at the end of each window, with a delay.

A source hears only of the workers that executed a tuple of it in the window, as if signals came with acknowledgements.
The windows of a scheme are its ``report_every`` seconds long, by the stream's clock, from multiples of it on.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from unskew.contract import Times
from unskew.errors import InputError
from unskew.router import Router
from unskew.simulate.agenda import Periodic, Timed
from unskew.simulate.queues import to_number
from unskew.simulate.workers import QueuedWorkers, Window
from unskew.worker_report import WorkerReport

MOST_WINDOWS = 2.0**53  # from time 0 on, either way: beyond it floats do not tell a window from the next


class Reporting(Periodic):
    """An item of the agenda: the end of each window. `deliveries` is the next item: what is on its way to sources."""

    def __init__(self, routers: Sequence[Router], workers: QueuedWorkers, delay: float) -> None:
        super().__init__(_period(routers[0]))
        self._routers, self._workers, self._delay = routers, workers, delay
        self.deliveries = Timed()

    def begin(self, clock: Times, first: int) -> None:
        for time in clock[[0, -1]].tolist() if len(clock) else ():
            if abs(time / self._period) >= MOST_WINDOWS:  # one window more would be the same number
                least = f"{abs(time) / MOST_WINDOWS:.3g} where the stream's clock shows {time:g} seconds"
                raise InputError(
                    f"report_every: must be more than {least}, not {self._period:g}; are its times in seconds?"
                )
        super().begin(clock, first)

    def start(self, time: float) -> None:
        self._workers.start_window(time)

    def happen(self, position: int, undisturbed: float) -> None:
        end = (self._tick + 1) * self._period
        window = self._workers.end_window(end)
        for source in np.flatnonzero(window.told.any(axis=1)).tolist():
            self.deliveries.add(end + self._delay, partial(self._deliver, source, window, end))
        self._tick += 1
        if self._ticks[position] > self._tick:
            self._skip(min(float(self._ticks[position]), np.floor(undisturbed / self._period)))

    def _skip(self, tick: float) -> None:
        """Go on with the window from `tick` on, or with an earlier one in which a worker finishes a tuple.

        The windows between would tell nothing to anybody. There may be any number of them: queues may hardly move.
        """
        tick = float(min(tick, np.floor(self._workers.next_done / self._period)))
        while tick > self._tick and self._workers.finishes_by(tick * self._period):
            tick -= 1  # what is done as a window begins is of the one before
        if tick > self._tick:
            self._tick = tick
            self._workers.start_window(tick * self._period)

    def _deliver(self, source: int, window: Window, end: float, _: float) -> None:
        router = self._routers[source]
        members = router.members
        indices = np.flatnonzero(window.told[source][members])  # those that have left meanwhile tell nothing
        names = members[indices]
        if len(names):
            router.observe(
                WorkerReport(
                    workers=indices,
                    came=window.came[names],
                    tuples=window.tuples[names],
                    busy=window.busy[names],
                    waiting=window.waiting[names],
                    seconds=window.seconds,
                    now=end,
                    spent=window.spent[names],
                )
            )


def _period(router: Router) -> float:
    period = to_number(router.scheme.report_every)
    if period is None or not 1e-9 <= period <= 1e12:
        raise InputError(f"report_every: must be seconds from 1e-09 to 1e+12, not {period!r}")
    return period
