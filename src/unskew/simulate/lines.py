"""The queues of all workers, for kernels, and the loop that serves them.

A worker executes its tuples in order of arrival, one at a time, each in 1/capacity seconds; where tuples have costs, in
cost/capacity seconds. Its queue is a linked list in a pool of nodes, one per tuple that is at the worker: 16 bytes per
tuple that waits (24 with costs), none for one that is done. So a change of capacity, a crash or a full queue meets
exactly the tuples that are there at that moment.

Arrays are by worker name. A kernel settles a worker, that is, accounts for what it has finished, when it next looks.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.kernels import kernel
from unskew.simulate.latency import note

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
def advance(lines, record, workers, times, arriving, sources, bound, costs, letters, executed):
    """Account for what worker `workers[i]` has finished by `times[i]`, and put a tuple that arrives then in its queue.

    `times` are by the stream's clock, which stands still while the queue of the tuple's worker is full, but from the
    first arrival on. With `arriving` False nothing arrives. Arrays and running values are taken out of the tuples once,
    before the loop, and what changes of a worker once per tuple: this is the inmost loop of every run with queues.
    `costs` are None where tuples have none; `letters` (key ids and tickets) and `executed` are None where there is no
    worker half: Numba then compiles a loop without a trace of them.
    """
    (service, waiting, finish, began, busy, done, spent, longest, head, tail, told, clock) = lines[:12]
    (arrived, source, after, free, cost, key, ticket, asked, turn, rest, came, went) = lines[12:]
    stalled, last_done = clock
    first_free, number_free = free
    for i in range(len(workers)):
        worker = workers[i]
        present, ends = waiting[worker], finish[worker]
        now = times[i] + stalled
        if arriving and present >= bound and ends > now:
            now = ends
            stalled = now - times[i]
        while present > 0 and ends <= now:
            node = head[worker]
            head[worker] = after[node]
            after[node] = first_free
            first_free = node
            number_free += 1
            note(record, ends - arrived[node])
            if len(told):
                told[source[node], worker] = 1
            if executed is not None:
                place = executed.number[0]
                executed.worker[place] = worker
                executed.key[place] = key[node]
                executed.seconds[place] = ends - turn[worker]
                executed.waited[place] = rest[worker]
                executed.source[place] = source[node]
                executed.ticket[place] = ticket[node]
                executed.time[place] = ends
                executed.number[0] += 1
                turn[worker] = ends
                rest[worker] = 0.0
                if ticket[node] > 0:
                    asked[worker] -= 1
            last_done = max(last_done, ends)
            done[worker] += 1
            present -= 1
            if costs is None:
                spent[worker] += service[worker]
            else:
                spent[worker] += service[worker] * cost[node]
                went[worker] += cost[node]
            if present > 0:
                ends += service[worker] if costs is None else service[worker] * cost[head[worker]]
            else:
                busy[worker] += ends - began[worker]
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
            if present > 0:
                after[tail[worker]] = node
            else:
                head[worker] = node
                began[worker] = now
                if letters is not None:
                    turn[worker] = now
                    rest[worker] = now - ends  # since its last tuple was done
                ends = now + (service[worker] if costs is None else service[worker] * costs[i])
            tail[worker] = node
            present += 1
            longest[worker] = max(longest[worker], present)
        waiting[worker], finish[worker] = present, ends
    clock[0], clock[1] = stalled, last_done
    free[0], free[1] = first_free, number_free


@kernel
def look_ahead(lines, quiet):
    """The earliest moment, by the workers' clock, when a worker may have a message: after a tuple that has a ticket, or
    after tuple number `quiet[worker]` from the head on."""
    earliest = np.inf
    for worker in range(len(quiet)):
        if lines.waiting[worker] < quiet[worker] and lines.asked[worker] == 0:
            continue
        node, finish = lines.head[worker], lines.finish[worker]
        for place in range(1, lines.waiting[worker] + 1):
            if place == quiet[worker] or lines.ticket[node] > 0:
                earliest = min(earliest, finish)
                break
            node = lines.after[node]
            finish += lines.service[worker] * (lines.cost[node] if len(lines.cost) else 1.0)
    return earliest
