"""Workers with a capacity and a queue: who waits where, since when, and what came of it.

A worker executes its tuples in order of arrival, one at a time, each in 1/capacity seconds; where tuples have costs, in
cost/capacity seconds. Its queue is a linked list in a pool of nodes, one per tuple that is at the worker: 16 bytes per
tuple that waits (24 with costs), none for one that is done. So a change of capacity, a crash or a full queue meets
exactly the tuples that are there at that moment.

There are two clocks. The *stream's clock* is that of the tuples' times, of routers, events and reports. It stands still
while the stream waits for room in a full queue; the *workers' clock* runs on. It starts at 0 when the first tuple
arrives: seconds since 1970 as floats are a quarter of a microsecond apart, which a fast worker needs for a tuple.

Arrays are by worker name. A kernel settles a worker, that is, accounts for what it has finished, when it next looks.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.kernels import kernel
from unskew.simulate.latency import Latencies, note

NO_SOURCES = np.zeros(0, np.int32)
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Letters = tuple[npt.NDArray[np.uint64], Ints]  # key ids and tickets, for worker halves


class Executed(NamedTuple):
    """Tuples that workers have executed, for worker halves: those of one worker in order."""

    number: Ints  # [1] how many
    worker: Ints  # [room]
    key: npt.NDArray[np.uint64]
    seconds: Floats  # that it took
    waited: Floats  # seconds that the worker had nothing to do before it
    source: Ints
    ticket: Ints
    time: Floats  # when it was done, by the workers' clock


def room_for(tuples: int) -> Executed:
    """Nothing executed yet, and room for so many."""
    whole, real = np.zeros((3, tuples), np.int64), np.zeros((3, tuples))
    keys = np.zeros(tuples, np.uint64)
    return Executed(np.zeros(1, np.int64), whole[0], keys, real[0], real[1], whole[1], whole[2], real[2])


class Lines(NamedTuple):
    """All queues, for kernels."""

    service: Floats  # [names] seconds per tuple, or per unit of cost
    waiting: Ints  # [names] tuples at the worker, the one in work included
    finish: Floats  # [names] when its first tuple will be done, while it has one
    began: Floats  # [names] since when it has worked without a pause, while it has a tuple
    busy: Floats  # [names] seconds of such stretches that are over
    done: Ints  # [names] tuples executed
    spent: Floats  # [names] seconds of these, each at the speed of its end
    longest: Ints  # [names] the most that were ever at the worker
    head: npt.NDArray[np.int32]  # [names] node of its first tuple
    tail: npt.NDArray[np.int32]  # [names] node of its last tuple
    told: npt.NDArray[np.uint8]  # [listening sources, names] 1: executed a tuple of that source in this window
    clock: Floats  # [2] seconds stalled so far; when the last tuple was done
    arrived: Floats  # [nodes] by the workers' clock, as all times here
    source: npt.NDArray[np.int32]  # [nodes] which source sent it
    after: npt.NDArray[np.int32]  # [nodes] the next one in its queue, or in the list of free nodes
    free: npt.NDArray[np.int32]  # [2] first free node, number of free nodes
    cost: Floats  # [nodes] of the tuple; none where tuples have no costs
    key: npt.NDArray[np.uint64]  # [nodes] its key; none where no worker half asks for it
    ticket: Ints  # [nodes] what it carries for the worker half; none where there is none
    asked: Ints  # [names] tuples with a ticket at the worker
    turn: Floats  # [names] since when the worker has worked at its first tuple, for worker halves
    rest: Floats  # [names] how long it had nothing to do before that
    came: Floats  # [names] cost of all tuples that came; 0 where they have none
    went: Floats  # [names] cost of all tuples that are done


@kernel
def _advance(lines, record, workers, times, arriving, sources, bound, costs, letters, executed):
    """Account for what worker `workers[i]` has finished by `times[i]`, and put a tuple that arrives then in its queue.

    `times` are by the stream's clock, which stands still while the queue of the tuple's worker is full, but from the
    first arrival on. With `arriving` False nothing arrives. Arrays and running values are taken out of the tuples once,
    before the loop: it is the inmost one of every run with queues. `costs` are None where tuples have none; `letters`
    (key ids and tickets) and `executed` are None where there is no worker half: Numba then compiles a loop without a
    trace of them.
    """
    (service, waiting, finish, began, busy, done, spent, longest, head, tail, told, clock) = lines[:12]
    (arrived, source, after, free, cost, key, ticket, asked, turn, rest, came, went) = lines[12:]
    stalled, last_done = clock
    first_free, number_free = free
    for i in range(len(workers)):
        worker = workers[i]
        now = times[i] + stalled
        if arriving and waiting[worker] >= bound and finish[worker] > now:
            now = finish[worker]
            stalled = now - times[i]
        while waiting[worker] > 0 and finish[worker] <= now:
            node = head[worker]
            head[worker] = after[node]
            after[node] = first_free
            first_free = node
            number_free += 1
            note(record, finish[worker] - arrived[node])
            if len(told):
                told[source[node], worker] = 1
            if executed is not None:
                place = executed.number[0]
                executed.worker[place] = worker
                executed.key[place] = key[node]
                executed.seconds[place] = finish[worker] - turn[worker]
                executed.waited[place] = rest[worker]
                executed.source[place] = source[node]
                executed.ticket[place] = ticket[node]
                executed.time[place] = finish[worker]
                executed.number[0] += 1
                turn[worker] = finish[worker]
                rest[worker] = 0.0
                if ticket[node] > 0:
                    asked[worker] -= 1
            last_done = max(last_done, finish[worker])
            done[worker] += 1
            waiting[worker] -= 1
            if costs is None:
                spent[worker] += service[worker]
            else:
                spent[worker] += service[worker] * cost[node]
                went[worker] += cost[node]
            if waiting[worker] > 0:
                if costs is None:
                    finish[worker] += service[worker]
                else:
                    finish[worker] += service[worker] * cost[head[worker]]
            else:
                busy[worker] += finish[worker] - began[worker]
        if arriving:
            node = first_free
            first_free = after[node]
            number_free -= 1
            arrived[node] = now
            source[node] = sources[i] if len(sources) else 0
            if costs is not None:
                cost[node] = costs[i]
                came[worker] += costs[i]
            if letters is not None:
                key[node] = letters[0][i]
                ticket[node] = letters[1][i]
                if ticket[node] > 0:
                    asked[worker] += 1
            if waiting[worker] > 0:
                after[tail[worker]] = node
            else:
                head[worker] = node
                began[worker] = now
                if letters is not None:
                    turn[worker] = now
                    rest[worker] = now - finish[worker]  # since its last tuple was done
                if costs is None:
                    finish[worker] = now + service[worker]
                else:
                    finish[worker] = now + service[worker] * costs[i]
            tail[worker] = node
            waiting[worker] += 1
            longest[worker] = max(longest[worker], waiting[worker])
    clock[0], clock[1] = stalled, last_done
    free[0], free[1] = first_free, number_free


@kernel
def _soonest_letter(lines, quiet):
    """The earliest moment, by the workers' clock, when a worker may have a message, of the tuples that are there: with
    tuple number `quiet[worker]` from the head on, or with one that has a ticket."""
    soonest = np.inf
    for worker in range(len(quiet)):
        if lines.waiting[worker] >= quiet[worker] or lines.asked[worker] > 0:
            node, finish = lines.head[worker], lines.finish[worker]
            for place in range(1, lines.waiting[worker] + 1):
                if place == quiet[worker] or lines.ticket[node] > 0:
                    soonest = min(soonest, finish)
                    break
                node = lines.after[node]
                finish += lines.service[worker] * (lines.cost[node] if len(lines.cost) else 1.0)
    return soonest


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
        if len(times) and not len(self._lines.arrived):
            self._start = float(times[0])
        self._make_room(len(chosen))
        moments = times - self._start if self._start else times
        how = True, sources, self._bound, costs, letters, self._executed
        _advance(self._lines, self.latencies.record, chosen, moments, *how)

    def _now(self, time: float) -> float:
        """`time` by the workers' clock."""
        return time - self._start + self.stalled

    def _make_room(self, more: int) -> None:
        waiting = len(self._lines.arrived) - int(self._lines.free[1])
        self.latencies.make_room(waiting + more)
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

    def take_executed(self) -> Executed:
        """The tuples that were executed since the last call; to be read before workers go on."""
        assert self._executed is not None
        number = int(self._executed.number[0])
        self._executed.number[0] = 0
        columns: Any = self._executed[1:]
        return Executed(self._executed.number, *(column[:number] for column in columns))

    def soonest_letter(self, quiet: Ints) -> float:
        """The earliest moment when a worker may have a message after tuple number `quiet` of its queue, or after one
        that has a ticket; infinity where no such tuple is there."""
        return float(_soonest_letter(self._lines, quiet)) - self.stalled + self._start

    def moment(self, time: float, stalled_before: float, arrival: float) -> float:
        """A time by the workers' clock, by that of the stream: which stood still at `arrival`, the last one, if it did
        so since the stream had waited for `stalled_before` seconds."""
        return max(time - self.stalled, min(time - stalled_before, arrival - self._start)) + self._start

    def room(self, names: Ints) -> int:
        """How many tuples may come before one of these workers can have a full queue."""
        return int(self._bound - self._lines.waiting[names].max())

    def settle(self, time: float) -> None:
        """Account for all that is finished by `time`."""
        self._make_room(0)
        moments = np.full(len(self._names), time - self._start)
        nothing = False, NO_SOURCES, self._bound, self._no_costs, self._no_letters, self._executed
        _advance(self._lines, self.latencies.record, self._names, moments, *nothing)

    def set_service(self, service: Floats, time: float) -> None:
        """From `time` on; what waits is executed at the new speed, and what is in work too, from where it is."""
        self.settle(time)
        self._work, self._worked_for = self.work, self._asked.copy()
        now, lines = self._now(time), self._lines
        changed = service != lines.service
        left = (lines.finish - now) * service / lines.service
        lines.finish[changed] = now + left[changed]
        lines.service[:] = service

    def crash(self, workers: Sequence[int], time: float) -> None:
        """All that is at these workers at `time` is lost."""
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
