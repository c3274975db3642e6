"""The router: one source's live scheme, that is, the scheme and its state.

It holds the batch loop over the scheme's kernel: the simulator and Spark both go through it, so both take the same
decisions. Where a simulated scheme talks to its workers at every tuple, `converse` calls the same kernel.
"""

from collections.abc import Iterable
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.checks import MOST_WORKERS, require_integer, require_number
from unskew.contract import (
    Conversing,
    Growing,
    Listening,
    LoadAware,
    Loads,
    Replanning,
    Reply,
    Scheme,
    Staggered,
    Tickets,
    Times,
    Workers,
    can,
)
from unskew.conversing import WRONG, Course
from unskew.errors import InputError, InputTypeError
from unskew.hashing import KeyIds, frozen, require_key_ids
from unskew.members import Names, require_members
from unskew.registry import for_kernels, plain, registration_of
from unskew.resizing import resize
from unskew.states import check_state, from_bytes, to_bytes
from unskew.worker_report import WorkerReport, checked_report

MOST_SOURCE = 2**31 - 1  # Spark counts tasks in an int
MOST_FLOAT = float(np.finfo(np.float64).max)
GROWTH_STEP = 65_536  # tuples routed between two looks at whether a growing state still has room


class Router:
    """One source's live scheme. Knows only what it has routed itself, and what it is told.

    Parameters
    ----------
    scheme
        Such as ``PartialKey(workers=16)``, or what `make` returns.
    state
        What the router starts with; left out, it starts empty.
    members
        The names of the workers, where they have changed; see `change_workers`.
    source
        The number of this source among several. Schemes that go round their workers start at another place for each.

    Examples
    --------
    >>> from unskew import PartialKey, Router, key_ids
    >>> router = Router(PartialKey(workers=16))
    >>> router.route(key_ids(["the", "cat", "the"])).tolist()
    [9, 11, 2]
    """

    def __init__(self, scheme: Scheme, state: Any = None, members: Names | None = None, *, source: int = 0) -> None:
        self._registration = registration_of(scheme)
        scheme = plain(scheme)
        scheme.check()
        require_integer("source", source, 0, MOST_SOURCE)
        if state is not None:
            check_state(scheme, state)
        else:
            state = scheme.new_state()
            if source and can(scheme, Staggered):
                scheme.stagger(state, source)  # type: ignore[attr-defined]
        self._continue_with(scheme, state, members)
        self._one_at_a_time = Lock()  # kernels run without Python's own lock, and a table must not fill up unseen

    def _continue_with(self, scheme: Scheme, state: Any, members: Names | None) -> None:
        members = None if members is None else require_members(members, MOST_WORKERS)
        if members is not None and len(members) != scheme.workers:
            raise InputError(f"members: must be one name per worker ({scheme.workers}), not {len(members)}")
        self.state, self._members, self.scheme = state, members, for_kernels(scheme)
        self._for_loop = _without_texts(self.scheme)

    @property
    def members(self) -> Names:
        """The name of each worker, by index; at the start its own index."""
        return np.arange(self.scheme.workers, dtype=np.int64) if self._members is None else self._members

    def change_workers(self, members: Iterable[int]) -> None:
        """From now on there are the workers named `members`, with indices in that order. See `resizing.resize`."""
        after = require_members(members, MOST_WORKERS)
        with self._one_at_a_time:
            scheme, state = resize(self._registration.name, self.scheme, self.state, self.members, after)
            scheme.check()
            check_state(scheme, state)
            self._continue_with(scheme, state, after)

    @property
    def listens(self) -> bool:
        """Whether `observe` has any effect."""
        return can(self.scheme, Listening)

    def observe(self, report: WorkerReport) -> None:
        """Tell the scheme what its workers report, where it listens."""
        checked = checked_report(report, self.scheme.workers)
        if self.listens:
            with self._one_at_a_time:
                self.scheme.observe(self.state, checked)

    @property
    def converses(self) -> bool:
        """Whether the scheme has a worker half; see `WorkerHalf`."""
        return can(self.scheme, Conversing)

    def hear(self, worker: int, message: Any) -> None:
        """Tell the scheme what the worker half of the worker at index `worker` has to tell."""
        if not self.converses:
            raise InputError(f"scheme: {self._registration.name} has no worker half that could tell anything")
        require_integer("worker", worker, 0, self.scheme.workers - 1)
        if isinstance(message, Reply):
            require_integer("ticket", message.ticket, 1)
            require_number("reply", message.number, "a finite number", -MOST_FLOAT, MOST_FLOAT)
            columns = np.array([worker]), np.array([message.ticket]), np.array([message.number], float)
            self.hear_replies(*columns)
            return
        with self._one_at_a_time:
            self.scheme.hear(self.state, worker, message)

    def hear_replies(self, workers: npt.NDArray[np.int64], tickets: Tickets, numbers: npt.NDArray[np.float64]) -> None:
        """Tell the scheme what these workers reply to these tickets, in order."""
        columns = frozen(workers), frozen(tickets), frozen(numbers)
        with self._one_at_a_time:
            self._registration.reply_loop(self._for_loop, self.state, *columns)

    @property
    def may_ask(self) -> bool:
        """Whether the next tuple may carry a ticket."""
        return self.converses and bool(self.scheme.may_ask(self.state))

    @property
    def replans(self) -> bool:
        """Whether `replan` has any effect."""
        return can(self.scheme, Replanning)

    def replan(self) -> bool:
        """Let the scheme replace its table of keys, where it has one and finds a better; whether it did."""
        if not self.replans:
            return False
        with self._one_at_a_time:
            state = self.scheme.replanned(self.state, self.members)
            replaced, self.state = state is not self.state, state
        return replaced

    @property
    def estimates_load(self) -> bool:
        """Whether `probe` has any effect."""
        return can(self.scheme, LoadAware)

    def probe(self, load: Loads) -> None:
        """Overwrite the scheme's estimate of the load, where it has one, with the true load of each worker."""
        if not self.estimates_load:
            return
        true = np.asarray(load)
        if true.shape != (self.scheme.workers,) or true.dtype.kind not in "iu":
            raise InputError(f"load: must be one whole number per worker ({self.scheme.workers}), not {load!r:.80}")
        with self._one_at_a_time:
            self.scheme.load_of(self.state)[:] = true

    def route(self, key_ids: KeyIds, times: Times | None = None, costs: Times | None = None) -> Workers:
        """The worker of each tuple, in order. `times` are seconds; left out, all are 0.

        `costs` are for schemes that are told the cost of each tuple; left out, each costs 1. Cutting a batch in two
        never changes an answer.
        """
        return self.send(key_ids, times, costs)[0]

    def send(
        self, key_ids: KeyIds, times: Times | None = None, costs: Times | None = None
    ) -> tuple[Workers, Tickets | None]:
        """The worker of each tuple as `route` tells it, and the ticket that it carries: None where the scheme has no
        worker half."""
        ids = require_key_ids(key_ids)
        moments = per_tuple("times", times, len(ids), 0.0)
        chosen = np.empty(len(ids), np.int32)
        tickets = np.zeros(len(ids), np.int64) if self._registration.execute is not None else None
        columns = [ids, moments]
        if self._registration.knows_cost:
            columns.append(_costs(costs, len(ids)))
        if tickets is not None:
            columns.append(tickets)
        with self._one_at_a_time:
            for part in self._parts(len(ids)):
                self._registration.loop(self._for_loop, self.state, *(c[part] for c in columns), chosen[part])
        self._check_chosen(chosen)
        return chosen, tickets

    def converse(
        self,
        states: Any,
        ids: KeyIds,
        times: Times,
        chosen: Workers,
        course: Course,
        told: tuple[float, int],
        first: int,
    ) -> tuple[int, int]:
        """Route the tuples from number `first` on, with worker halves whose states are `states`, into `chosen`.

        Returns where it stopped, and why (see `conversing`): the next message of another kind is heard at ``told[0]``,
        from worker ``told[1]``.
        """
        with self._one_at_a_time:
            stopped, why = self._registration.conversing_loop(
                self._for_loop, self.state, states, ids, times, chosen, course, *told, first
            )
        if why == WRONG:
            self._check_chosen(chosen[first:stopped])
        return stopped, why

    def _check_chosen(self, chosen: Workers) -> None:
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < self.scheme.workers:
            wrong = chosen.min() if chosen.min() < 0 else chosen.max()
            raise InputError(
                f"scheme: {self._registration.name} chose worker {wrong}, not one of 0..{self.scheme.workers - 1}"
            )

    def _parts(self, tuples: int) -> Iterable[slice]:
        """The whole batch at once, or in steps between which a growing state is given room."""
        if not can(self.scheme, Growing):
            yield slice(0, tuples)
            return
        for start in range(0, tuples, GROWTH_STEP):
            self.state = self.scheme.grown(self.state, min(GROWTH_STEP, tuples - start))
            yield slice(start, start + GROWTH_STEP)

    def __reduce__(self) -> tuple[Any, ...]:
        return Router, (self.scheme, self.state, self._members)

    def to_bytes(self) -> bytes:
        """The state, without pickle: the npz of its arrays."""
        return to_bytes(self.state)

    @classmethod
    def from_bytes(cls, scheme: Scheme, data: bytes, members: Names | None = None) -> "Router":
        """The router whose state `to_bytes` wrote, for the same scheme; `members` where its workers had changed."""
        return cls(scheme, from_bytes(scheme, data), members)


def _without_texts(scheme: Any) -> Any:
    """The scheme with 0 for its texts, which no kernel asks for and none can take without counting references."""
    return scheme._replace(**{name: 0 for name, value in scheme._asdict().items() if isinstance(value, str)})


def per_tuple(name: str, given: Any, tuples: int, default: float) -> Times:
    """One number per tuple, as kernels take them; left out, all are `default`."""
    if given is None:
        return frozen(np.full(tuples, default))
    array = np.asarray(given)
    if array.dtype.kind not in "iuf":
        raise InputTypeError(f"{name}: must be numbers of seconds, not {array.dtype}")
    if array.shape != (tuples,):
        raise InputError(f"{name}: must have one number per tuple ({tuples}), not shape {array.shape}")
    return frozen(array.astype(np.float64, copy=False))


def _costs(given: Any, tuples: int) -> Times:
    costs = per_tuple("costs", given, tuples, 1.0)
    wrong = costs[~((costs >= 0) & (costs < np.inf))]
    if len(wrong):
        raise InputError(f"costs: must be finite numbers from 0 on, not {wrong[0]}")
    return costs
