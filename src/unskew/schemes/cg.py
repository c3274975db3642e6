"""Consistent Grouping (CG): many small virtual workers of equal load, held by workers as each has room for them.

Paper: Nasir et al., "Load balancing for skewed streams on heterogeneous clusters", sections V-B and V-C. Tuples are
dealt to n * virtual virtual workers by `porc`, so that each has the same load; a worker gets what its virtual workers
get. Every t0 seconds (`window`) a worker looks at its own utilisation and asks for less above `busy`, for more below
`idle` (worker delegation). A source queues who asks, first come first served, in one queue for each wish; when both
have someone, the first busy worker hands one virtual worker to the first idle one (pairing). So faster workers come to
hold more virtual workers, without anybody knowing a capacity. No tuple migrates: only later tuples go elsewhere, and
partial results are merged as with `pkg`.

Where the paper leaves a choice, and what it means:
- The circle of IDs is cut into equal arcs: a key's virtual workers are its `candidate` 0, 1, 2... among all of them.
  Virtual worker v starts at worker v mod n. Hence, until something moves, a key whose first virtual worker has room
  goes where `hash` sends it.
- ``epsilon`` as in `porc`, first tuples included: no virtual worker ever has a load of (1 + epsilon) t/(n virtual) + 1.
  ``epsilon=inf`` is key grouping over the virtual workers (there is always room); ``keyed=False`` is shuffle grouping
  over them, in turn, whatever the key (Fig. 6).
- Utilisation is what came in the window over what the worker could have executed (section VII-A: tuples assigned over
  capacity; the capacity is taken from what it did execute and how long that took). A backlog of earlier windows does
  not count: what once queued up drains in spare time only, while the worker may even ask for more (the paper blames the
  same for a spike in Fig. 10). With ``drain`` utilisation is the share of the window in which the worker was at work,
  so that one with a backlog is busy whatever comes. That drains sooner and settles later (Fig. 13, 100 virtual workers
  each, first change: drained after 2.9 h, not 4.8, but near zero after 3.1 h, not 1.5), and leaves shorter queues where
  the load comes in bursts (at the end of congress_hashtags 48 tuples, not 18,672; Fig. 13's machines). For real
  deployments the paper suggests the length of the queue over its capacity instead; queues here may have none.
- Signals come with acknowledgements: a source hears only from workers that executed a tuple of it in the window. One
  that tells neither wish withdraws the one it had; one that tells the same again keeps its place; one that tells the
  opposite goes to the end of the other queue. Of a worker that is not heard from, the last wish stays.
- Signals of one window come in the order of the report, which is that of the worker numbers. Who was not served keeps
  its place ahead of all who come later, so that everyone is served in turn.
- A pair moves one virtual worker, so a source moves at most n/2 of them in a window. Many virtual workers hence
  take long to settle (Fig. 12: 1000 a worker are too many); a shorter window helps.
- The virtual worker that came last is the first to go; of those there from the start, the highest number. A worker that
  turns from idle to busy and back then passes the same one to and fro. With the first to come first to go, 3 of 10
  workers 5 times as fast and utilisation 0.8, keys had 1.27 times the replicas (10 virtual workers each; 5: 1.44).
- A worker keeps its last virtual worker: without any it would get no tuple, and could never ask again.
- One virtual worker is a step of utilisation / held. Where it is wider than busy - idle, a worker may be idle with one
  fewer and busy with one more, and go on passing it for ever. So the slowest worker should hold at least utilisation /
  (busy - idle) of them, 8 by default; where it has 1/x of the mean capacity, start with 8 x of them each.
- Moving ends when nobody is idle, though some may still be busy: workers of 0.84 and of 0.9 leave each other alone.
  Section VI-A has another rule, not used in its evaluation as far as it says: a virtual worker of an overloaded worker
  goes to one that has not reported to be overloaded, or to the one that did so least recently. That is
  ``probe_capacity``: it applies to who is left when all pairs are made; nobody gets one who is busy now, and nobody
  two in a window. It settles where pairing stops too early, and costs moves for ever where virtual workers are coarse.
- Each source has its own map, and moves its own share of the load; their maps differ as their signals do.
- A worker that executes hardly a tuple of each source in a window is rarely heard from: choose t0 longer than that.
- When workers come and go, the number of virtual workers stays (``total``), and with it those of a key. What those that
  leave held goes to those that stay, in proportion to what each holds; a new one gets as many as they hold on average,
  from all in proportion. No more are moved than that takes. Wishes are forgotten: who still has one tells it in the
  next window. There must be a virtual worker for each worker.

State: 20 bytes a virtual worker, 16 a worker; at most 2^22 virtual workers. A tuple costs `porc`'s search among all
virtual workers. A report costs a look at each of them, and a sort of those that busy workers hold.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_integer, require_number
from unskew.errors import InputError
from unskew.kernels import kernel
from unskew.members import Names
from unskew.registry import register
from unskew.schemes.porc import MOST_TUPLES, check_sent, first_with_room, send
from unskew.worker_report import WorkerReport

MOST_VIRTUAL = 2**22
Counts = npt.NDArray[np.int64]


class State(NamedTuple):
    sent: Counts  # [virtual workers] tuples this source has sent to each
    total: Counts  # [1] their sum, before the present tuple
    holder: npt.NDArray[np.int32]  # [virtual workers] the worker that has it
    came: Counts  # [virtual workers] number of the change that brought it there; 0 from the start
    asks: Counts  # [workers] place in the queue of idle workers; negative: in that of busy ones; 0: in none
    overloaded: Counts  # [workers] number of the last report in which it was over `busy`; 0: in none
    last: Counts  # [3] the last place given in the queues, the number of the last change of holders, of the last report


@kernel
def choose(scheme, state, key, now):
    virtual = first_with_room(state, scheme.epsilon, key) if scheme.keyed else state.total[0] % len(state.sent)
    return np.int64(state.holder[send(state, virtual)])


@register(
    "cg",
    choose=choose,
    paper="CG, section V-B (consistent grouping)",
    when="workers are unequal or change their speed, and tell how busy they are; partial results can be merged",
)
class ConsistentGrouping(NamedTuple):
    """Consistent grouping: equally loaded virtual workers, handed from busy workers to idle ones."""

    workers: int  # n
    virtual: int = 10  # alpha: virtual workers of each worker at the start; 100 where workers are very unequal
    epsilon: float = 0.01  # of a virtual worker's load over the mean; inf for key grouping
    keyed: bool = True  # False for shuffle grouping over the virtual workers
    idle: float = 0.75  # utilisation below which a worker asks for more
    busy: float = 0.85  # utilisation above which it asks for less
    window: float = 10.0  # t0, seconds
    drain: bool = False  # True: a worker counts as busy until its backlog is gone
    probe_capacity: bool = False  # True: who is busy and finds nobody idle gives to one that was not busy lately
    total: int = 0  # virtual workers in all, which outlives a change of workers; 0 for virtual * workers

    def check(self) -> None:
        require_integer("virtual", self.virtual, 1, MOST_VIRTUAL)
        require_integer("total", self.total, 0, MOST_VIRTUAL)
        require_integer("workers", self.workers, 1, self.total or MOST_VIRTUAL // self.virtual)
        require_number("epsilon", self.epsilon, "a number from 0 on, or inf", 0.0, np.inf)
        require_number("idle", self.idle, "a utilisation from 0 on", 0.0, np.inf)
        require_number("busy", self.busy, f"a utilisation from idle ({self.idle}) on, or inf", self.idle, np.inf)
        require_number("window", self.window, "seconds from 1e-09 to 1e+12", 1e-9, 1e12)
        for name, value in {"keyed": self.keyed, "drain": self.drain, "probe_capacity": self.probe_capacity}.items():
            if not isinstance(value, bool | np.bool_):
                raise InputError(f"{name}: must be True or False, not {value!r}")

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
        if held.min() == 0 or (state.asks < 0)[held == 1].any():
            raise InputError(
                "holder, asks: each worker must hold a virtual worker, and one that has no other must not ask for less"
            )
        highest = np.array([max(state.asks.max(), -state.asks.min()), state.came.max(), state.overloaded.max()])
        least = min(state.came.min(), state.overloaded.min())
        if least < 0 or (highest > state.last).any() or state.last.max() > MOST_TUPLES:
            rule = f"must be from {highest.tolist()} (the highest asks, came, overloaded) to {MOST_TUPLES}"
            raise InputError(f"last: {rule}, not {state.last.tolist()}; came and overloaded: from 0 on, not {least}")

    def observe(self, state: State, report: WorkerReport) -> None:
        """Queue the wishes of the workers, and pair them."""
        utilisation = report.busy / report.seconds
        if not self.drain:
            utilisation = utilisation * (report.came / np.maximum(report.tuples, 1))
        overloaded = report.workers[utilisation > self.busy]
        state.last[2] += 1
        state.overloaded[overloaded] = state.last[2]
        wish = (utilisation < self.idle).astype(np.int64) - (utilisation > self.busy)
        held = np.bincount(state.holder, minlength=self.workers)[report.workers]
        wish[(wish < 0) & (held == 1)] = 0  # it keeps its last one
        turned = wish != np.sign(state.asks[report.workers])
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
