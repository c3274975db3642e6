"""Carries messages between the worker half and the source half of a scheme: tickets with tuples, messages with a delay.

A worker has a message when it has executed a tuple. Sources hear it `delay` seconds later, by the stream's clock,
before the first tuple that comes then. Tuples are routed many at a time, so a chunk must be cut before that tuple,
though nobody knows yet when it will be. What is known:

- how many tuples a worker must execute before it can have something to tell (`quiet_for`). As long as fewer have been
  sent to it, there is nothing; once that tuple is in its queue, it is known when it will be done;
- the same of tuples with a ticket;
- how many replies must be heard before one makes a difference (`awaits`). The ones before are heard at the next cut.

With one source and queues without bound the router itself stops there: it gets a `Watch`. Else there are more cuts:
while a source may give a ticket to its next tuple, tuples are routed one at a time; so they are while a queue may
become full, which stops the stream's clock; and what has not been told by now is not heard before the delay has passed.

So cuts come in time, and never change an answer.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.contract import Times
from unskew.hashing import frozen
from unskew.router import Router, Watch
from unskew.simulate.workers import Ahead, QueuedWorkers
from unskew.worker_half import WorkerHalf

STEP = 4096  # tuples that a router gets at a time, at most, with a watch
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
    kind: str  # "Reply", or the name of the type of what the worker told all


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
        self._watched = len(routers) == 1 and not workers.bounded
        self._heard: list[tuple[Replies, npt.NDArray[np.int64]] | Delivery] = []  # replies with their positions

    def begin(self, clock: Times, first: int) -> None:
        self._catch_up(settle=True)
        if len(self._clock):
            self._last_arrival = float(self._clock[-1])
        self._clock, self._first = clock, first

    @property
    def log(self) -> list[Delivery]:
        """All that sources have heard, in order."""
        self._catch_up(settle=False)
        log: list[Delivery] = []
        for each in self._heard:
            if isinstance(each, Delivery):
                log.append(each)
            else:
                heard, positions = each
                columns = (column.tolist() for column in (positions, heard.time, heard.worker, heard.source))
                log += [Delivery(n, time, worker, to, "Reply") for n, time, worker, to in zip(*columns, strict=True)]
        return log

    def due(self, position: int) -> float:
        self._look(position)
        moment = self._next_heard()
        return moment if moment <= self._clock[position] else np.inf

    def happen(self, position: int, undisturbed: float) -> None:
        if self._known() <= self._foreseen(self._ahead.soonest) + self._delay:
            self._hear_next(position, min(float(self._clock[position]), undisturbed))
            return
        self._settled, self._arrivals = min(float(self._clock[position]), undisturbed), False
        self._workers.settle(self._settled)

    def next_cut(self, position: int) -> int:
        self._arrivals = True
        if self._watched:
            return min(len(self._clock), position + STEP)
        members = self._routers[0].members
        slack = (self._quiet - self._workers.waiting)[members]
        asking = any(router.may_ask for router in self._routers)
        quiet = 1 if asking else int(slack[slack > 0].min(initial=len(self._clock)))
        after_delay = self._first_at(float(self._clock[position]) + self._delay)
        unheard = min(max(position + quiet, after_delay), position + max(1, self._workers.room(members)))
        return min(unheard, max(position + 1, self._first_at(self._next_heard())))

    def watch(self, start: int, stop: int, costs: Times | None) -> Watch | None:
        """For the router of the tuples from `start` to `stop`; None where they are cut in time already."""
        if not self._watched:
            return None
        (router,) = self._routers
        ticket, awaited = router.awaits
        known = self._replies.time[self._replies.ticket == ticket]
        if awaited:
            known = np.append(known, self._workers.replies_to(ticket) + self._delay)
        heard = min(self._coming[0][0] if self._coming else np.inf, self._foreseen(self._ahead.telling) + self._delay)
        if 0 < awaited <= len(known):
            last = float(np.partition(known, awaited - 1)[awaited - 1])
            heard, awaited = min(heard, last - ROUNDING * abs(last)), 0
        members = router.members
        return Watch(
            heard=heard,
            delay=self._delay,
            rounding=ROUNDING,
            ticket=ticket,
            awaited=awaited - len(known) if awaited else 0,
            clock=frozen(self._clock[start:stop]),
            costs=frozen(np.zeros(0) if costs is None else costs),
            free=self._workers.free_from(members),
            service=self._workers.service[members],
            quiet=(self._quiet - self._workers.waiting)[members],
        )

    def _look(self, position: int) -> None:
        """Take in what was executed, and look ahead to what may come of the tuples that are there."""
        if position:
            self._last_arrival = float(self._clock[position - 1])
        self._take_in()
        if self._workers.changes != self._seen:
            self._seen = self._workers.changes
            self._ahead: Ahead = self._workers.look_ahead(self._quiet)

    def _known(self) -> float:
        """When the next message is heard that workers have already."""
        told = self._coming[0][0] if self._coming else np.inf
        return min(told, float(self._replies.time[0])) if len(self._replies.time) else told

    def _next_heard(self) -> float:
        """When a source may hear something next."""
        return min(self._known(), self._foreseen(self._ahead.soonest) + self._delay)

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

    def _catch_up(self, settle: bool) -> None:
        """Let sources hear the replies that came by the end of the chunk."""
        if not self._watched or not len(self._clock):
            return
        end = float(self._clock[-1])
        if settle:
            self._settled, self._arrivals = end, False
            self._workers.settle(end)
        self._last_arrival = end
        self._take_in()
        self._hear_replies(len(self._clock) - 1, int(np.searchsorted(self._replies.time, end, side="right")))

    def _hear_next(self, position: int, until: float) -> None:
        """Let sources hear the next message, and all replies that come before anything else does."""
        replies, coming = self._replies, self._coming
        first = (replies.time[0], replies.worker[0], replies.source[0]) if len(replies.time) else (np.inf,)
        if coming and coming[0][:3] < first:
            self._hear(position, *coming.pop(0))
            return
        until = min(until, coming[0][0] if coming else np.inf, self._foreseen(self._ahead.soonest) + self._delay)
        self._hear_replies(position, max(1, int(np.searchsorted(replies.time, until, side="left"))))

    def _hear_replies(self, position: int, number: int) -> None:
        heard, self._replies = self._replies.part(slice(number)), self._replies.part(slice(number, None))
        if not number:
            return
        positions = np.searchsorted(self._clock, heard.time) if self._watched else np.full(number, position)
        members = self._routers[0].members  # the same for all
        indices = np.full(len(self._workers.waiting), -1)
        indices[members] = np.arange(len(members))
        there = indices[heard.worker] >= 0  # else it has left meanwhile
        heard, positions = heard.part(there), positions[there]
        for source in range(len(self._routers)):
            mine = heard if len(self._routers) == 1 else heard.part(heard.source == source)
            self._routers[source].hear_replies(indices[mine.worker], mine.ticket, mine.number)
        self._heard.append((heard, self._first + positions))

    def _hear(self, position: int, time: float, worker: int, source: int, content: Any) -> None:
        router = self._routers[source]
        (index,) = np.flatnonzero(router.members == worker)[:1].tolist() or [-1]
        if index >= 0:  # else it has left meanwhile
            router.hear(index, content)
            self._heard.append(Delivery(self._first + position, time, worker, source, type(content).__name__))
