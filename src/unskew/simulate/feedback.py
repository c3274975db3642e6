"""Carries what workers tell to the sources that listen: at the end of each slot of time, with a delay.

A source hears only of the workers that executed a tuple of it in the slot, as if signals came with acknowledgements.
The slots of a scheme are its ``report_every`` seconds long, by the stream's clock, from multiples of it on.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from unskew.errors import InputError
from unskew.scheme import Router, WorkerReport
from unskew.simulate.agenda import Periodic, Timed
from unskew.simulate.queues import to_number
from unskew.simulate.workers import QueuedWorkers, Slot


class Feedback(Periodic):
    """An entry of the agenda; `deliveries` is the next one."""

    def __init__(self, routers: Sequence[Router], workers: QueuedWorkers, delay: float) -> None:
        super().__init__(_period(routers[0]))
        self._routers, self._workers, self._delay = routers, workers, delay
        self.deliveries = Timed()

    def start(self, time: float) -> None:
        self._workers.start_slot(time)

    def happen(self, place: int) -> None:
        end = (self._tick + 1) * self._period
        slot = self._workers.end_slot(end)
        for source in np.flatnonzero(slot.told.any(axis=1)).tolist():
            self.deliveries.add(end + self._delay, partial(self._deliver, source, slot, end))
        self._tick += 1
        if not slot.waiting.any() and self._ticks[place] > self._tick:  # nothing will happen until the next tuple
            self._tick = float(self._ticks[place])
            self._workers.start_slot(self._tick * self._period)

    def _deliver(self, source: int, slot: Slot, end: float, _: float) -> None:
        router = self._routers[source]
        slots = np.flatnonzero(slot.told[source][router.members])  # those that have left meanwhile tell nothing
        names = router.members[slots]
        if len(names):
            router.observe(
                WorkerReport(
                    workers=slots,
                    came=slot.came[names],
                    tuples=slot.tuples[names],
                    busy=slot.busy[names],
                    waiting=slot.waiting[names],
                    seconds=slot.seconds,
                    now=end,
                )
            )


def _period(router: Router) -> float:
    period = to_number(getattr(router.scheme, "report_every", None))
    if period is None or not 1e-9 <= period <= 1e12:
        raise InputError(f"report_every: must be seconds from 1e-09 to 1e+12, not {period!r}")
    return period
