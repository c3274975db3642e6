"""Carries messages between the worker half and the source half of a scheme: tickets with tuples, messages with a delay.

A worker has a message when it has executed a tuple. Sources hear it `delay` seconds later, by the stream's clock,
before the first tuple that comes then. Tuples are routed many at a time, so a chunk must be cut before that tuple,
though nobody knows yet when it will be. What is known:

- how many tuples a worker must execute before it can have a message (`quiet_for`). As long as fewer have been sent to
  it, there is none;
- once that tuple is in its queue, when it will be done;
- the same of tuples with a ticket. While a source may give one to its next tuple, tuples are routed one at a time;
- while a queue may become full, which stops the stream's clock, so are they;
- what has not been told by now is not heard before the delay has passed.

So cuts come in time, and never change an answer.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unskew.contract import Times
from unskew.router import Router
from unskew.simulate.workers import QueuedWorkers
from unskew.worker_half import WorkerHalf

ROUNDING = 1e-9  # share of a moment by which one that is foreseen may be early


class Delivery(NamedTuple):
    """A message that a source heard.

    Examples
    --------
    >>> from unskew import make
    >>> from unskew.simulate import Queues, simulate
    >>> from unskew.streams import Costed
    >>> (result,) = simulate(Costed(z=1.0), [make("posg", 2)], queues=Queues(utilisation=0.9))
    >>> result.messages[0].kind, result.messages[0].source
    ('Matrices', 0)
    """

    tuples: int  # that had come before
    time: float  # by the stream's clock
    worker: int  # its name
    source: int
    kind: str  # the name of the message's type


class Messaging:
    """An item of the agenda: the next message that is heard, or the moment when there may be a new one."""

    def __init__(self, routers: Sequence[Router], workers: QueuedWorkers, half: WorkerHalf, delay: float) -> None:
        self._routers, self._workers, self._half, self._delay = routers, workers, half, delay
        self._coming: list[tuple[float, int, int, Any]] = []  # (when it is heard, worker, source, content), in order
        self._clock, self._first = np.zeros(0), 0
        self._settled = -np.inf  # until when all that workers finished is known,
        self._arrivals = False  # but for what has arrived since
        self._stalled = 0.0  # so far
        self._last_arrival = -np.inf
        self._quiet = half.quiet_for()
        self._take_in(0)
        self.log: list[Delivery] = []

    def begin(self, clock: Times, first: int) -> None:
        if len(self._clock):
            self._last_arrival = float(self._clock[-1])
        self._clock, self._first = clock, first

    def due(self, position: int) -> float:
        self._take_in(position)
        soonest = self._coming[0][0] if self._coming else np.inf
        moment = min(soonest, self._foreseen() + self._delay)
        return moment if moment <= self._clock[position] else np.inf

    def happen(self, position: int, undisturbed: float) -> None:
        foreseen = self._foreseen()
        if self._coming and self._coming[0][0] <= foreseen + self._delay:
            self._deliver(position, *self._coming.pop(0))
            return
        self._settled, self._arrivals = min(float(self._clock[position]), undisturbed), False
        self._workers.settle(self._settled)

    def next_cut(self, position: int) -> int:
        self._arrivals = True
        members = self._routers[0].members
        slack = (self._quiet - self._workers.waiting)[members]
        asking = any(router.may_ask for router in self._routers)
        quiet = 1 if asking else int(slack[slack > 0].min(initial=len(self._clock)))
        after_delay = self._first_at(float(self._clock[position]) + self._delay)
        unheard = min(max(position + quiet, after_delay), position + max(1, self._workers.room(members)))
        heard = self._foreseen() + self._delay
        if self._coming:
            heard = min(heard, self._coming[0][0])
        return min(unheard, max(position + 1, self._first_at(heard)))

    def _first_at(self, time: float) -> int:
        """The position of the first tuple from this moment on, or the chunk's length."""
        return int(np.searchsorted(self._clock, time, side="left"))

    def _foreseen(self) -> float:
        """The earliest moment when a worker can have a message that is not known yet, of the tuples that it has."""
        moment = self._workers.soonest_letter(self._quiet)
        moment -= ROUNDING * abs(moment) if moment < np.inf else 0.0
        is_news = self._arrivals or moment > self._settled
        return moment if is_news else float(np.nextafter(self._settled, np.inf))

    def _take_in(self, position: int) -> None:
        """Tell the worker halves what was executed, and take their messages."""
        if position:
            self._last_arrival = float(self._clock[position - 1])
        done = self._workers.take_executed()
        stalled_before, self._stalled = self._stalled, self._workers.stalled
        columns = done.worker, done.key, done.seconds, done.waited, done.source, done.ticket
        for message in self._half.take_in(columns):
            moment = self._workers.moment(float(done.time[message.position]), stalled_before, self._last_arrival)
            to = range(len(self._routers)) if message.source is None else [message.source]
            self._coming += [(moment + self._delay, message.worker, source, message.content) for source in to]
        self._coming.sort(key=lambda coming: coming[:3])
        self._quiet = self._half.quiet_for()

    def _deliver(self, position: int, time: float, worker: int, source: int, content: Any) -> None:
        router = self._routers[source]
        (index,) = np.flatnonzero(router.members == worker)[:1].tolist() or [-1]
        if index >= 0:  # else it has left meanwhile
            router.hear(index, content)
            self.log.append(Delivery(self._first + position, time, worker, source, type(content).__name__))
