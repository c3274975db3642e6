"""Carries messages where it is known at once when a tuple will be done; see `conversing`.

So it is with one source, queues without bound, and workers that stay as they are. Elsewhere `messaging` does it, which
has to look for the moments when a message may be heard.
"""

from bisect import insort
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.contract import Times, Workers
from unskew.conversing import FULL, HEAR, TELL, Course, Heard, moment_of, new_replies, with_more_room
from unskew.hashing import frozen, require_key_ids
from unskew.router import Router, per_tuple
from unskew.simulate.messaging import Delivery
from unskew.simulate.tuples import Tuples
from unskew.worker_half import WorkerHalf

ROOM = 1024  # replies, at first


class Foreseeing:
    """A router and its workers, who have all that is needed to know when which message is heard."""

    def __init__(self, router: Router, half: WorkerHalf, service: Times, delay: float) -> None:
        self._router, self._half = router, half
        nothing = np.zeros(0)
        whole = np.zeros((2, ROOM), np.int64)
        self._course = Course(
            clock=nothing,
            costs=nothing,
            service=service.copy(),
            finish=np.zeros(len(service)),
            start=0.0,
            delay=float(delay),
            replies=new_replies(ROOM),
            heard=Heard(np.zeros(1, np.int64), whole[0], np.zeros(ROOM), whole[1]),
        )
        self._told: list[tuple[float, int, int, Any]] = []  # (when it is heard, worker, order, content), in order
        self._tellings = 0
        self._tuples = 0
        self._heard: list[Delivery | tuple[npt.NDArray[Any], ...]] = []  # of replies: positions, times, workers

    def route(self, part: Tuples, clock: Times) -> Workers:
        """The worker of each tuple; `clock` is what the stream's clock shows at each."""
        if not self._tuples:
            self._course = self._course._replace(start=float(clock[0]))
        costs = frozen(np.zeros(0) if part.costs is None else part.costs)
        self._course = self._course._replace(clock=frozen(clock), costs=costs)
        ids = require_key_ids(part.ids)
        times, chosen = per_tuple("times", part.times, len(ids), 0.0), np.empty(len(ids), np.int32)
        position = 0
        while position < len(ids):
            told = self._told[0][:2] if self._told else (np.inf, 0)
            position, why = self._router.converse(self._half.states, ids, times, chosen, self._course, told, position)
            self._read_heard()
            if why == HEAR:
                self._hear(position)
            elif why == TELL:
                self._tell(int(chosen[position - 1]))
            elif why == FULL:
                self._make_room()
        self._tuples += len(ids)
        return chosen

    @property
    def log(self) -> list[Delivery]:
        """All that the source has heard, in order."""
        log: list[Delivery] = []
        for each in self._heard:
            if isinstance(each, Delivery):
                log.append(each)
            else:
                columns = (column.tolist() for column in each)
                log += [Delivery(before, time, by, 0, "Reply") for before, time, by in zip(*columns, strict=True)]
        return log

    def _read_heard(self) -> None:
        """Write down the replies that were heard."""
        heard = self._course.heard
        number = int(heard.number[0])
        if number:
            positions = heard.position[:number] + self._tuples
            self._heard.append((positions, heard.time[:number].copy(), heard.worker[:number].copy()))
            heard.number[0] = 0

    def _make_room(self) -> None:
        """For more replies that wait; for those that were heard there is room again."""
        replies = self._course.replies
        if replies.number[0] + 1 == len(replies.time):
            self._course = self._course._replace(replies=with_more_room(replies))

    def _tell(self, worker: int) -> None:
        """Take what the worker has to tell after its last tuple."""
        course = self._course
        heard_at = float(moment_of(course.finish[worker], course.start) + course.delay)
        insort(self._told, (heard_at, worker, self._tellings, self._half.scheme.tell(self._half.states, worker)))
        self._tellings += 1

    def _hear(self, position: int) -> None:
        """Let the source hear what a worker told, before the tuple at `position`."""
        time, worker, _, content = self._told.pop(0)
        self._router.hear(worker, content)
        self._heard.append(Delivery(self._tuples + position, time, worker, 0, type(content).__name__))
