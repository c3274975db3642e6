"""Workers with a capacity and a queue: who waits where, since when, and what came of it.

There are two clocks. The *stream's clock* is that of the tuples' times, of routers, events and worker reports. It
stands still while the stream waits for room in a full queue; the *workers' clock* runs on. It starts at 0 when the
first tuple arrives: seconds since 1970 as floats are a quarter of a microsecond apart, which a fast worker needs for a
tuple.

The queues themselves, and the loop that serves them, are in `lines`. Arrays are by worker name.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.simulate.latency import Latencies
from unskew.simulate.lines import (
    NO_SOURCES,
    Executed,
    Floats,
    Ints,
    Letters,
    Lines,
    advance,
    look_ahead,
    room_for,
)


class Window(NamedTuple):
    """What the workers did in one window, by name."""

    told: npt.NDArray[np.uint8]  # [sources, names] 1 where the worker executed a tuple of the source
    came: Ints
    tuples: Ints
    busy: Floats
    spent: Floats  # seconds of the executed tuples, whenever they were begun
    waiting: Ints
    seconds: float


class QueuedWorkers:
    """The workers named 0..names-1, each of which may join later, and their queues. Times are by the stream's clock."""

    def __init__(
        self,
        service: Floats,
        bound: int | None,
        listening_sources: int,
        costed: bool = False,
        lettered: bool = False,
    ) -> None:
        names = len(service)
        self.latencies = Latencies()
        self.lost = np.zeros(names, np.int64)
        self.changes = 0  # of the queues, so far
        self._start = 0.0  # when the first tuple arrived, by the stream's clock
        self._bound = 2**62 if bound is None else bound
        self._names = np.arange(names, dtype=np.int32)
        self._lines = Lines(
            service=service.copy(),
            waiting=np.zeros(names, np.int64),
            finish=np.zeros(names),
            began=np.zeros(names),
            busy=np.zeros(names),
            done=np.zeros(names, np.int64),
            spent=np.zeros(names),
            longest=np.zeros(names, np.int64),
            head=np.zeros(names, np.int32),
            tail=np.zeros(names, np.int32),
            told=np.zeros((listening_sources, names), np.uint8),
            clock=np.array([0.0, -np.inf]),
            arrived=np.zeros(0),
            source=np.zeros(0, np.int32),
            after=np.zeros(0, np.int32),
            free=np.zeros(2, np.int32),
            cost=np.zeros(0),
            key=np.zeros(0, np.uint64),
            ticket=np.zeros(0, np.int64),
            asked=np.zeros(names, np.int64),
            turn=np.zeros(names),
            rest=np.zeros(names),
            came=np.zeros(names),
            went=np.zeros(names),
        )
        self._no_costs = np.zeros(0) if costed else None
        self._no_letters = (np.zeros(0, np.uint64), np.zeros(0, np.int64)) if lettered else None
        self._executed = room_for(0) if lettered else None
        self.start_window(-np.inf)
        self._work = np.zeros(names)  # seconds of work asked of each worker before its last change of capacity
        self._worked_for = np.zeros(names)  # tuples that this was for, or their cost

    def serve(
        self,
        chosen: npt.NDArray[np.int32],
        times: Floats,
        sources: npt.NDArray[np.int32],
        costs: Floats | None = None,
        letters: Letters | None = None,
    ) -> None:
        """The tuples arrive at the workers `chosen`; `sources` may be empty where no source listens."""
        self.changes += 1
        if len(times) and not len(self._lines.arrived):
            self._start = float(times[0])
        self._make_room(len(chosen))
        moments = times - self._start if self._start else times
        how = True, sources, self._bound, costs, letters, self._executed
        advance(self._lines, self.latencies.record, chosen, moments, *how)

    def _now(self, time: float) -> float:
        """`time` by the workers' clock."""
        return time - self._start + self.stalled

    def _make_room(self, more: int) -> None:
        waiting = len(self._lines.arrived) - int(self._lines.free[1])
        if self._executed is not None and len(self._executed.worker) < waiting + more + self._executed.number[0]:
            self._grow_executed(2 * (waiting + more + int(self._executed.number[0])))
        if more <= self._lines.free[1]:
            return
        lines, nodes = self._lines, len(self._lines.arrived)
        larger = max(1024, 1 << (waiting + more - 1).bit_length())
        new = larger - nodes
        after = np.append(lines.after, np.arange(nodes + 1, larger + 1, dtype=np.int32))  # the new nodes are free
        after[-1] = lines.free[0]
        self._lines = lines._replace(
            arrived=np.append(lines.arrived, np.zeros(new)),
            source=np.append(lines.source, np.zeros(new, np.int32)),
            after=after,
            free=np.array([nodes, lines.free[1] + new], np.int32),
            cost=lines.cost if self._no_costs is None else np.append(lines.cost, np.zeros(new)),
        )
        if self._no_letters is not None:
            key, ticket = (
                np.append(lines.key, np.zeros(new, np.uint64)),
                np.append(lines.ticket, np.zeros(new, np.int64)),
            )
            self._lines = self._lines._replace(key=key, ticket=ticket)

    def _grow_executed(self, tuples: int) -> None:
        assert self._executed is not None
        larger = room_for(tuples)
        for new, old in zip(larger, self._executed, strict=True):
            new[: len(old)] = old
        self._executed = larger

    @property
    def unread(self) -> int:
        """How many tuples `take_executed` would return."""
        return 0 if self._executed is None else int(self._executed.number[0])

    def take_executed(self) -> Executed:
        """The tuples that were executed since the last call; to be read before workers go on."""
        assert self._executed is not None
        number = int(self._executed.number[0])
        self._executed.number[0] = 0
        columns: Any = self._executed[1:]
        return Executed(self._executed.number, *(column[:number] for column in columns))

    def look_ahead(self, quiet: Ints) -> float:
        """When a worker may have a message: after tuple number `quiet` of its queue, or after one that has a ticket."""
        return float(look_ahead(self._lines, quiet)) + self._start - self.stalled

    def moments(self, times: Floats, stalled_before: float, arrival: float) -> Floats:
        """Times by the workers' clock, by that of the stream: which stood still at `arrival`, the last one, if it did
        so since the stream had waited for `stalled_before` seconds."""
        latest = np.minimum(times - stalled_before, arrival - self._start)
        moved = np.maximum(times - self.stalled, latest)
        moments = moved + self._start
        early = moments - self._start < moved  # as `moment_of`: not before they had them, however it is rounded
        return np.where(early, np.nextafter(moments, np.inf), moments)

    @property
    def service(self) -> Floats:
        """Seconds per tuple, or per unit of cost."""
        return self._lines.service

    def room(self, names: Ints) -> int:
        """How many tuples may come before one of these workers can have a full queue."""
        return int(self._bound - self._lines.waiting[names].max())

    def settle(self, time: float) -> None:
        """Account for all that is finished by `time`."""
        self.changes += 1
        self._make_room(0)
        moments = np.full(len(self._names), time - self._start)
        nothing = False, NO_SOURCES, self._bound, self._no_costs, self._no_letters, self._executed
        advance(self._lines, self.latencies.record, self._names, moments, *nothing)

    def set_service(self, service: Floats, time: float) -> None:
        """From `time` on; what waits is executed at the new speed, and what is in work too, from where it is."""
        self.changes += 1
        self.settle(time)
        self._work, self._worked_for = self.work, self._asked.copy()
        now, lines = self._now(time), self._lines
        changed = (service != lines.service) & (lines.waiting > 0)  # of the others, it is when they ended
        left = (lines.finish - now) * service / lines.service
        lines.finish[changed] = now + left[changed]
        lines.service[:] = service

    def crash(self, workers: Sequence[int], time: float) -> None:
        """All that is at these workers at `time` is lost."""
        self.changes += 1
        self.settle(time)
        lines = self._lines
        for worker in workers:
            lost = lines.waiting[worker]
            lines.went[worker] = lines.came[worker]
            lines.asked[worker] = 0
            if lost:
                self.lost[worker] += lost
                lines.busy[worker] += self._now(time) - lines.began[worker]
                lines.after[lines.tail[worker]] = lines.free[0]  # the whole queue becomes free nodes
                lines.free[:] = lines.head[worker], lines.free[1] + lost
                lines.waiting[worker] = 0

    def suspend(self, seconds: float) -> None:
        """The stream waits for so long; workers go on with what they have."""
        self.changes += 1
        self._lines.clock[0] += seconds

    def start_window(self, time: float) -> None:
        """A window begins; no worker has finished anything since the last one ended."""
        lines = self._lines
        self._window_start = (time, self.stalled, self.sent, lines.done.copy(), self._busy(time), lines.spent.copy())

    def end_window(self, time: float) -> Window:
        """What was done since the window began; the next one begins."""
        self.settle(time)
        began, stalled_before, sent_before, done_before, busy_before, spent_before = self._window_start
        self.start_window(time)
        _, stalled, sent, done, busy, spent = self._window_start
        lines = self._lines
        window = Window(
            told=lines.told.copy(),
            came=sent - sent_before,
            tuples=done - done_before,
            busy=np.maximum(busy - busy_before, 0.0),  # however it is rounded
            spent=spent - spent_before,
            waiting=lines.waiting.copy(),
            seconds=(time - began) + (stalled - stalled_before),
        )
        lines.told[:] = 0
        return window

    def _busy(self, time: float) -> Floats:
        """Seconds that each worker has worked until `time`, when all is settled."""
        lines = self._lines
        return lines.busy + np.where(lines.waiting > 0, self._now(time) - lines.began, 0.0)

    @property
    def next_done(self) -> float:
        """When the next tuple will be done, if none comes; infinity where none waits."""
        lines = self._lines
        first = float(np.min(lines.finish, where=lines.waiting > 0, initial=np.inf))
        return first - self.stalled + self._start

    def finishes_by(self, time: float) -> bool:
        """Whether a tuple will be done by `time`, when nothing is settled beyond it."""
        lines = self._lines
        return bool(((lines.waiting > 0) & (lines.finish <= self._now(time))).any())

    def finish(self) -> None:
        """Let all queues run empty."""
        self.settle(np.inf)

    @property
    def stalled(self) -> float:
        """Seconds that the stream waited for room so far."""
        return float(self._lines.clock[0])

    @property
    def last_done(self) -> float:
        """Seconds from the first arrival until the last tuple so far was done."""
        return float(self._lines.clock[1])

    @property
    def waiting(self) -> Ints:
        return self._lines.waiting

    @property
    def longest(self) -> Ints:
        return self._lines.longest

    @property
    def done(self) -> Ints:
        return self._lines.done

    @property
    def sent(self) -> Ints:
        return self._lines.done + self._lines.waiting + self.lost

    def waits(self, time: float) -> Floats:
        """How long a tuple that came to each worker at `time`, when all is settled, would be there."""
        lines = self._lines
        first = np.where(lines.waiting > 0, lines.finish - self._now(time), 0.0)
        if self._no_costs is None:
            return first + (np.maximum(lines.waiting - 1, 0) + 1) * lines.service
        in_work = np.where(lines.waiting > 0, lines.cost[lines.head], 0.0)
        one_more = lines.came.sum() / max(1, self.sent.sum())  # of the mean cost
        return first + (np.maximum(lines.came - lines.went - in_work, 0.0) + one_more) * lines.service

    @property
    def _asked(self) -> Floats:
        """How many tuples each worker got, or their cost."""
        return self.sent.astype(np.float64) if self._no_costs is None else self._lines.came

    @property
    def work(self) -> Floats:
        """Seconds of work that were asked of each worker, at the capacity that it had when a tuple arrived."""
        return self._work + (self._asked - self._worked_for) * self._lines.service
