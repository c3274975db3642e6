"""Consistent Grouping (CG): many small virtual workers of equal load, which busy workers hand to idle ones.

Paper: Nasir et al., "Load balancing for skewed streams on heterogeneous clusters", sections V-B and V-C.

1. Tuples are dealt to n * virtual *virtual workers* by `porc`, so that all of these have the same load. A worker gets
   the tuples of the virtual workers that it holds. Virtual worker v starts at worker v mod n.
2. Every `window` seconds (t0) each worker looks at its own utilisation. Above `busy` it asks for less, below `idle` for
   more (worker delegation).
3. A source keeps two queues of such wishes, first come first served. While both have someone, the first busy worker
   hands one virtual worker to the first idle one (pairing). A worker keeps its last virtual worker.

Fast workers come to hold more virtual workers. No tuple migrates: only later tuples go elsewhere, and partial results
are merged as with `pkg`. What utilisation is, who is heard, in which order wishes are served, which virtual worker goes
first, and what a change of workers does are choices of ours: docs/schemes/cg.md has each, with its measured effect.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_bool, require_integer, require_number
from unskew.errors import InputError
from unskew.hashing import candidate
from unskew.kernels import kernel
from unskew.members import Names
from unskew.registry import register
from unskew.schemes.porc import MOST_TUPLES, check_sent, first_with_room, has_room, send
from unskew.worker_report import WorkerReport

MOST_VIRTUAL = 2**22
SEARCH = 2**16  # candidates of a key that belong to one seed; no search gets that far
MOST_SEEDS = 2**15
Counts = npt.NDArray[np.int64]


class State(NamedTuple):
    sent: Counts  # [virtual workers] tuples this source has sent to each
    total: Counts  # [1] their sum, before the present tuple
    holder: npt.NDArray[np.int32]  # [virtual workers] the worker that has it
    came: Counts  # [virtual workers] number of the change that brought it there; 0 from the start
    asks: Counts  # [workers] place in the queue of idle workers; negative: in that of busy ones; 0: in none
    overloaded: Counts  # [workers] number of the last worker report in which it was over `busy`; 0: in none
    last: Counts  # [3] last place given in the queues, number of the last change of holders, of the last worker report


@kernel
def next_with_room(state, epsilon, key, salt):
    """Consistent hashing with bounded loads: from the key's own bin on, in the order of a ring of equal arcs."""
    virtual = candidate(key, salt, len(state.sent))
    while not has_room(state, epsilon, virtual):
        virtual = virtual + 1 if virtual + 1 < len(state.sent) else 0
    return virtual


@kernel
def choose(scheme, state, key, now):
    if scheme.ring:
        virtual = next_with_room(state, scheme.epsilon, key, scheme.seed * SEARCH)
    elif scheme.keyed:
        virtual = first_with_room(state, scheme.epsilon, key, scheme.seed * SEARCH)
    else:
        virtual = state.total[0] % len(state.sent)
    return np.int64(state.holder[send(state, virtual)])


@register(
    "cg",
    choose=choose,
    paper="CG, section V-B (consistent grouping)",
    when="workers are unequal or change their speed, and tell how busy they are; partial results can be merged",
)
class ConsistentGrouping(NamedTuple):
    """Consistent grouping: equally loaded virtual workers, handed from busy workers to idle ones.

    Parameters
    ----------
    workers
        n, the number of workers.
    virtual
        alpha, how many virtual workers each worker holds at the start; more where workers are very unequal.
    epsilon
        How far the load of a virtual worker may exceed the mean, as a share of it; inf for key grouping.
    keyed
        False for shuffle grouping over the virtual workers, whatever the key.
    idle, busy
        The utilisation below which a worker asks for more, and that above which it asks for less.
    window
        t0, the seconds between two looks at the utilisation.
    drain
        True: a worker counts as busy until its backlog is gone.
    probe_capacity
        True: a busy worker for which no idle worker is left gives to one that has not been overloaded lately.
    total
        The number of virtual workers in all, which outlives a change of workers; 0 for virtual * workers.
    seed
        Which hash functions find the virtual workers of a key.
    ring
        True: a tuple that finds its virtual worker full goes on to the next one, as on a consistent-hash ring with
        equal arcs (the paper's CH), instead of to another candidate.
    patient
        True: a wish stays in its queue until it is served, or until the worker asks for the opposite.
    queue_bound
        Above 0: utilisation is the number of tuples at the worker over this one, where workers tell how long their
        queues are.

    Examples
    --------
    Worker 0 reports that it was busy all the time, worker 1 that it was idle, and a virtual worker changes hands:

    >>> from unskew import ConsistentGrouping, Router
    >>> from unskew.worker_report import WorkerReport
    >>> router = Router(ConsistentGrouping(workers=2, virtual=3))
    >>> router.state.holder.tolist()
    [0, 1, 0, 1, 0, 1]
    >>> told = {"workers": [0, 1], "came": [90, 10], "tuples": [90, 10], "busy": [10.0, 1.0], "waiting": [0, 0]}
    >>> router.observe(WorkerReport(**told, seconds=10.0, now=10.0))
    >>> router.state.holder.tolist()
    [0, 1, 0, 1, 1, 1]
    """

    workers: int  # n
    virtual: int = 10  # alpha, per worker
    epsilon: float = 0.01
    keyed: bool = True
    idle: float = 0.75
    busy: float = 0.85
    window: float = 10.0  # t0
    drain: bool = False
    probe_capacity: bool = False
    total: int = 0
    seed: int = 0
    ring: bool = False
    patient: bool = False
    queue_bound: int = 0

    def check(self) -> None:
        require_integer("virtual", self.virtual, 1, MOST_VIRTUAL)
        require_integer("total", self.total, 0, MOST_VIRTUAL)
        require_integer("workers", self.workers, 1, self.total or MOST_VIRTUAL // self.virtual)
        require_integer("seed", self.seed, 0, MOST_SEEDS - 1)
        require_integer("queue_bound", self.queue_bound, 0, MOST_TUPLES)
        require_number("epsilon", self.epsilon, "a number from 0 on, or inf", 0.0, np.inf)
        require_number("idle", self.idle, "a utilisation from 0 on", 0.0, np.inf)
        require_number("busy", self.busy, f"a utilisation from idle ({self.idle}) on, or inf", self.idle, np.inf)
        require_number("window", self.window, "seconds from 1e-09 to 1e+12", 1e-9, 1e12)
        for name in ("keyed", "drain", "probe_capacity", "ring", "patient"):
            require_bool(name, getattr(self, name))
        if self.drain and self.queue_bound:
            raise InputError(f"drain: must be False where queue_bound is above 0, not with {self.queue_bound}")

    @property
    def report_every(self) -> float:
        return self.window

    def new_state(self) -> State:
        total = self.total or self.virtual * self.workers
        return State(
            sent=np.zeros(total, np.int64),
            total=np.zeros(1, np.int64),
            holder=(np.arange(total) % self.workers).astype(np.int32),
            came=np.zeros(total, np.int64),
            asks=np.zeros(self.workers, np.int64),
            overloaded=np.zeros(self.workers, np.int64),
            last=np.zeros(3, np.int64),
        )

    def check_state(self, state: State) -> None:
        check_sent(state)
        outside = state.holder[(state.holder < 0) | (state.holder >= self.workers)]
        if len(outside):
            raise InputError(f"holder: must be workers from 0 to {self.workers - 1}, not {outside[0]}")
        held = np.bincount(state.holder, minlength=self.workers)
        if held.min() == 0:
            raise InputError(f"holder: each worker must hold a virtual worker, and worker {held.argmin()} holds none")
        greedy = np.flatnonzero((state.asks < 0) & (held == 1))
        if len(greedy):
            last_one = f"worker {greedy[0]} holds one virtual worker, which it keeps"
            raise InputError(f"asks: must be 0 or more where {last_one}, not {state.asks[greedy[0]]}")
        for name in ("came", "overloaded"):
            least = getattr(state, name).min()
            if least < 0:
                raise InputError(f"{name}: must be from 0 on, not {least}")
        highest = np.array([max(state.asks.max(), -state.asks.min()), state.came.max(), state.overloaded.max()])
        if (highest > state.last).any() or state.last.max() > MOST_TUPLES:
            rule = f"must be from {highest.tolist()} (the highest of asks, came and overloaded) to {MOST_TUPLES}"
            raise InputError(f"last: {rule}, not {state.last.tolist()}")

    def observe(self, state: State, report: WorkerReport) -> None:
        """Queue the wishes of the workers, and pair them."""
        utilisation = self._utilisation(report)
        overloaded = report.workers[utilisation > self.busy]
        state.last[2] += 1
        state.overloaded[overloaded] = state.last[2]
        wish = (utilisation < self.idle).astype(np.int64) - (utilisation > self.busy)
        held = np.bincount(state.holder, minlength=self.workers)[report.workers]
        wish[(wish < 0) & (held == 1)] = 0  # it keeps its last one
        turned = wish != np.sign(state.asks[report.workers])
        if self.patient:
            kept = (wish == 0) & ~((state.asks[report.workers] < 0) & (held == 1))
            turned &= ~kept
        new = report.workers[turned]
        state.asks[new] = wish[turned] * (state.last[0] + 1 + np.arange(len(new)))
        state.last[0] += len(new)

        idle, busy = _queue(state.asks), _queue(-state.asks)
        if self.probe_capacity and len(busy) > len(idle):
            others = np.setdiff1d(np.flatnonzero(state.asks == 0), overloaded)
            idle = np.append(idle, others[np.argsort(state.overloaded[others], kind="stable")])
        pairs = min(len(idle), len(busy))
        if pairs:
            _hand_over(state, busy[:pairs], idle[:pairs])

    def _utilisation(self, report: WorkerReport) -> npt.NDArray[np.float64]:
        if self.queue_bound:
            return report.waiting / self.queue_bound
        at_work = report.busy / report.seconds
        return at_work if self.drain else at_work * (report.came / np.maximum(report.tuples, 1))

    def resized(self, state: State, before: Names, after: Names) -> "tuple[ConsistentGrouping, State]":
        """For other workers: the same virtual workers, as few as possible of them with another holder."""
        total, stays = len(state.sent), np.isin(after, before)
        if len(after) > total:
            raise InputError(f"workers: {total} virtual workers are enough for {total} workers, not for {len(after)}")
        scheme = self._replace(workers=len(after), total=total)
        index_of = {name: index for index, name in enumerate(after.tolist())}
        holder = np.array([index_of.get(name, -1) for name in before.tolist()], np.int32)[state.holder]  # -1: has left
        held = np.bincount(holder[holder >= 0], minlength=len(after))
        surplus = held - _shares(np.where(stays, held, held[stays].mean() if stays.any() else 1.0), total)
        order = np.lexsort((state.came, holder))
        came_later = np.empty(total, np.int64)  # to the same worker
        came_later[order] = np.searchsorted(holder[order], holder[order], side="right") - 1 - np.arange(total)
        moving = np.flatnonzero((holder < 0) | (came_later < surplus[holder]))
        came = state.came.copy()
        came[moving] = state.last[1] + 1
        holder[moving] = np.repeat(np.arange(len(after)), np.maximum(-surplus, 0))
        return scheme, scheme.new_state()._replace(
            sent=state.sent.copy(),
            total=state.total.copy(),
            holder=holder,
            came=came,
            last=np.array([0, state.last[1] + 1, 0]),
        )


def _queue(places: Counts) -> Counts:
    """The workers with a place above 0, in order."""
    waiting = np.flatnonzero(places > 0)
    return waiting[np.argsort(places[waiting], kind="stable")]


def _hand_over(state: State, givers: Counts, takers: Counts) -> None:
    """One virtual worker from each giver to its taker: the one that came last, of equals that of the highest number."""
    gives = np.zeros(len(state.asks), bool)
    gives[givers] = True
    theirs = np.flatnonzero(gives[state.holder])
    order = theirs[np.lexsort((state.came[theirs], state.holder[theirs]))]
    virtual = order[np.searchsorted(state.holder[order], givers, side="right") - 1]
    state.holder[virtual] = takers
    state.last[1] += 1
    state.came[virtual] = state.last[1]
    state.asks[givers] = state.asks[takers] = 0


def _shares(weights: npt.NDArray[np.float64], total: int) -> Counts:
    """`total` virtual workers in proportion to `weights`, at least one each; rounded by the largest remainders."""
    one = np.zeros(len(weights), bool)  # whose share would be less than one
    while True:
        exact = np.where(one, 1.0, (total - one.sum()) * weights / weights[~one].sum())
        if (exact >= 1).all():
            break
        one |= exact < 1
    shares = np.floor(exact).astype(np.int64)
    largest = np.argsort(shares - exact, kind="stable")[: total - shares.sum()]
    shares[largest] += 1
    return shares
