"""Carries messages between the worker half and the source half of a scheme: tickets with tuples, messages with a delay.

A worker has a message when it has executed a tuple. Sources hear it `delay` seconds later, by the stream's clock,
before the first tuple that comes then. Tuples are routed many at a time, so a chunk must be cut before that tuple,
though nobody knows yet when it will be: workers change, and a full queue stops the stream's clock. What is known:

- how many tuples a worker must execute before it can have something to tell (`quiet_for`). As long as fewer have been
  sent to it, there is nothing; once that tuple is in its queue, it is known when it will be done, if nothing changes;
- the same of tuples with a ticket. While a source may give one to its next tuple, tuples are routed one at a time;
- what has not been told by now is not heard before the delay has passed.

So cuts come in time, and never change an answer. Where nothing changes, `foreseeing` needs none.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.contract import Times
from unskew.router import Router
from unskew.simulate.workers import QueuedWorkers
from unskew.worker_half import WorkerHalf

ROUNDING = 1e-9  # share of a moment by which one that is foreseen may be early


class Delivery(NamedTuple):
    """A message that a source heard.

    Attributes
    ----------
    tuples, time
        How many tuples had come before, and the time by the stream's clock.
    worker, source
        The name of the worker that told it, and the index of the source that heard it.
    kind
        "Reply", or the name of the type of what the worker told all.

    Examples
    --------
    >>> from unskew import make
    >>> from unskew.simulate import Queues, simulate
    >>> from unskew.streams import Costed
    >>> (result,) = simulate(Costed(z=1.0), [make("posg", 2)], queues=Queues(utilisation=0.9))
    >>> result.messages[0].kind, result.messages[0].source
    ('Matrices', 0)
    """

    tuples: int
    time: float
    worker: int
    source: int
    kind: str


class Replies(NamedTuple):
    """Replies on their way to sources, in order."""

    time: npt.NDArray[np.float64]  # when each is heard
    worker: npt.NDArray[np.int64]  # its name
    source: npt.NDArray[np.int64]
    ticket: npt.NDArray[np.int64]
    number: npt.NDArray[np.float64]

    def part(self, which: Any) -> "Replies":
        return Replies(*(column[which] for column in self))

    def and_also(self, more: "Replies") -> "Replies":
        together = Replies(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))
        return together.part(np.lexsort((together.source, together.worker, together.time)))


NONE = Replies(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


class Messaging:
    """An item of the agenda: the next message that is heard, or the moment when there may be a new one."""

    def __init__(self, routers: Sequence[Router], workers: QueuedWorkers, half: WorkerHalf, delay: float) -> None:
        self._routers, self._workers, self._half, self._delay = routers, workers, half, delay
        self._coming: list[tuple[float, int, int, Any]] = []  # (when it is heard, worker, source, content), in order
        self._replies = NONE
        self._clock, self._first = np.zeros(0), 0
        self._settled = -np.inf  # until when all that workers finished is known,
        self._arrivals = False  # but for what has arrived since
        self._stalled = 0.0  # so far
        self._last_arrival = -np.inf
        self._quiet = half.quiet_for()
        self._seen = -1  # changes of the queues that are in what is foreseen
        self.log: list[Delivery] = []  # all that sources have heard, in order

    def begin(self, clock: Times, first: int) -> None:
        if len(self._clock):
            self._last_arrival = float(self._clock[-1])
        self._clock, self._first = clock, first

    def due(self, position: int) -> float:
        self._look(position)
        moment = self._next_heard()
        return moment if moment <= self._clock[position] else np.inf

    def happen(self, position: int, undisturbed: float) -> None:
        if self._known() <= self._foreseen(self._ahead) + self._delay:
            self._hear_next(position, min(float(self._clock[position]), undisturbed))
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
        return min(unheard, max(position + 1, self._first_at(self._next_heard())))

    def _look(self, position: int) -> None:
        """Take in what was executed, and look ahead to what may come of the tuples that are there."""
        if position:
            self._last_arrival = float(self._clock[position - 1])
        self._take_in()
        if self._workers.changes != self._seen:
            self._seen = self._workers.changes
            self._ahead = self._workers.look_ahead(self._quiet)

    def _known(self) -> float:
        """When the next message is heard that workers have already."""
        told = self._coming[0][0] if self._coming else np.inf
        return min(told, float(self._replies.time[0])) if len(self._replies.time) else told

    def _next_heard(self) -> float:
        """When a source may hear something next."""
        return min(self._known(), self._foreseen(self._ahead) + self._delay)

    def _first_at(self, time: float) -> int:
        """The position of the first tuple from this moment on, or the chunk's length."""
        return int(np.searchsorted(self._clock, time, side="left"))

    def _foreseen(self, moment: float) -> float:
        """A moment when a worker can have a message that is not known yet, or a little earlier."""
        moment -= ROUNDING * abs(moment) if moment < np.inf else 0.0
        is_news = self._arrivals or moment > self._settled
        return moment if is_news else float(np.nextafter(self._settled, np.inf))

    def _take_in(self) -> None:
        """Tell the worker halves what was executed, and take their messages."""
        stalled_before, self._stalled = self._stalled, self._workers.stalled
        if not self._workers.unread:
            return
        done = self._workers.take_executed()
        replies, told = self._half.take_in((done.worker, done.key, done.seconds, done.waited, done.source, done.ticket))
        self._quiet = self._half.quiet_for()
        for message in told:
            (moment,) = self._heard_at(done.time[message.position : message.position + 1], stalled_before).tolist()
            sources = range(len(self._routers))
            self._coming += [(moment, message.worker, source, message.content) for source in sources]
        if told:
            self._coming.sort(key=lambda coming: coming[:3])
        asked = np.flatnonzero(done.ticket)
        if len(asked):
            new = Replies(
                self._heard_at(done.time[asked], stalled_before),
                done.worker[asked],
                done.source[asked],
                done.ticket[asked],
                replies[asked],
            )
            self._replies = self._replies.and_also(new)

    def _heard_at(self, times: Times, stalled_before: float) -> Times:
        """When messages are heard that workers had at these times, by the workers' clock."""
        return self._workers.moments(times, stalled_before, self._last_arrival) + self._delay

    def _hear_next(self, position: int, until: float) -> None:
        """Let sources hear the next message, and all replies that come before anything else does."""
        replies, coming = self._replies, self._coming
        first = (replies.time[0], replies.worker[0], replies.source[0]) if len(replies.time) else (np.inf,)
        if coming and coming[0][:3] < first:
            self._hear(position, *coming.pop(0))
            return
        until = min(until, coming[0][0] if coming else np.inf, self._foreseen(self._ahead) + self._delay)
        self._hear_replies(position, max(1, int(np.searchsorted(replies.time, until, side="left"))))

    def _hear_replies(self, position: int, number: int) -> None:
        heard, self._replies = self._replies.part(slice(number)), self._replies.part(slice(number, None))
        members = self._routers[0].members  # the same for all
        indices = np.full(len(self._workers.waiting), -1)
        indices[members] = np.arange(len(members))
        there = indices[heard.worker] >= 0  # else it has left meanwhile
        heard = heard.part(there)
        for source in range(len(self._routers)):
            mine = heard if len(self._routers) == 1 else heard.part(heard.source == source)
            self._routers[source].hear_replies(indices[mine.worker], mine.ticket, mine.number)
        whom = zip(heard.time.tolist(), heard.worker.tolist(), heard.source.tolist(), strict=True)
        self.log += [Delivery(self._first + position, *each, "Reply") for each in whom]

    def _hear(self, position: int, time: float, worker: int, source: int, content: Any) -> None:
        router = self._routers[source]
        (index,) = np.flatnonzero(router.members == worker)[:1].tolist() or [-1]
        if index >= 0:  # else it has left meanwhile
            router.hear(index, content)
            self.log.append(Delivery(self._first + position, time, worker, source, type(content).__name__))
