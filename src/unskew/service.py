"""A worker that serves rows one after the other, in real time, by sleeping: many of them are busy at once on few cores.

A sleep costs some 60 microseconds and ends late where the machine is busy. So cheap rows are served several at a time,
and what a sleep took too long makes the next one shorter: a worker that always has something to do is never behind for
long, and the moments that it reports are those of the clock, lateness included.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NAP = 0.005  # seconds of work that are served in one sleep, unless a single row takes longer
POLL = 0.003  # seconds between two looks at whether the next row may come
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Service(NamedTuple):
    """How rows come to the workers, and what these do.

    Rows are numbered in the order in which they come, over all workers. Row i comes i / `rate` seconds after the start,
    but not before all but `pending` of the rows before it are done: as on Storm, where a source waits while too many of
    its tuples are on their way.
    """

    workers: int
    rate: float = math.inf  # rows per second
    pending: int = 0  # rows on their way at most; 0: any number
    speeds: tuple[float, ...] = ()  # of each worker, 1 being the normal one; (): all are
    before: tuple[float, ...] = ()  # seconds of other work that each worker does before its first row; (): none
    period: float = 0.0  # seconds after which a worker sends away its counters, one per key; 0: never
    message: float = 0.0  # seconds that it takes to send one of them

    def speed(self, worker: int) -> float:
        return self.speeds[worker] if self.speeds else 1.0


class Work(NamedTuple):
    """What became of the rows of a worker, in their order."""

    finished: Floats  # moments of the clock
    late: Floats  # seconds by which the worker woke up too late for the row
    held: Ints  # counters that the worker had then
    sent: Ints  # counters that it had sent away so far


class Others(NamedTuple):
    """What a worker has to do with the others."""

    done: Callable[[], float]  # how many rows all workers have done
    tell: Callable[[int], None]  # how many this one has done


def work_through(
    service: Service,
    worker: int,
    start: float,
    rows: Ints,
    keys: Ints,
    costs: Floats,
    others: Others,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Work:
    """Serve the rows of one worker, given by number, key and cost in seconds, from the moment `start` on."""
    number = len(rows)
    comes = start + rows / service.rate
    total = np.concatenate(([0.0], np.cumsum(costs / service.speed(worker))))
    made = Work(np.empty(number), np.empty(number), np.zeros(number, np.int64), np.zeros(number, np.int64))
    held: set[int] = set()
    sent, flush = 0, start + service.period
    due = start + (service.before[worker] if service.before else 0.0)  # when all that was begun is done
    first = 0
    while first < number:
        began = max(due, comes[first])
        while True:
            now = clock()
            if now < comes[first]:
                sleep(comes[first] - now)
            elif service.pending and rows[first] >= others.done() + service.pending:
                sleep(POLL)
                began = max(began, clock())
            else:
                break
        if service.period and began >= flush:
            began += len(held) * service.message
            sent += len(held)
            held.clear()
            flush += service.period * math.ceil((began - flush) / service.period + 1e-9)
        last = max(first + 1, int(np.searchsorted(total, total[first] + NAP, side="right")) - 1)
        last = max(first + 1, min(last, int(np.searchsorted(comes, began, side="right"))))
        if service.pending:
            last = max(first + 1, min(last, int(np.searchsorted(rows, others.done() + service.pending))))
        due = began + total[last] - total[first]
        while (now := clock()) < due:
            sleep(due - now)
        held.update(keys[first:last].tolist())
        made.finished[first:last] = began + (total[first + 1 : last + 1] - total[first]) + (now - due)
        made.late[first:last] = now - due
        made.held[first:last] = len(held)
        made.sent[first:last] = sent
        others.tell(last)
        first = last
    return made
