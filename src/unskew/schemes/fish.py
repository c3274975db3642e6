"""FISH: keys that are hot *now* get many workers, and each tuple goes to the candidate where it waits least.

Paper: Huang, "Efficient time-evolving stream processing at scale" (FISH), sections 4 and 5.

- Algorithm 1 counts recent keys: SpaceSaving with K_max counters, all multiplied by alpha after every N_epoch tuples.
- Algorithm 2 (CHK) gives a key with a share f_k > theta d = W / 2^floor(log2(f_top / f_k)) candidates, at least d_min
  and at least M_k, the most that it has had. Any other key has 2.
- Section 5: the candidates are the first d distinct workers on a consistent-hash ring, see `ring`.
- Algorithm 3 sends the tuple to the candidate with the shortest waiting time C_w * P_w: tuples that it has not yet
  processed, times seconds per tuple. Workers report P_w every T seconds.

With d = W workers are tried in the order of their indices, else in that of the ring; the first of equals wins. What a
share is, when M_k is forgotten, what is drained and when, and larger epochs for many workers (the paper's defaults are
too small) are choices of ours: docs/schemes/fish.md has each, with its reason and its measured effect.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_bool, require_integer, require_number
from unskew.errors import InputError
from unskew.filling import plan_over
from unskew.frequencies import Frequencies
from unskew.hashing import candidate
from unskew.kernels import allocating_kernel, kernel
from unskew.members import Names, carried_over
from unskew.plan import Plan
from unskew.registry import register
from unskew.ring import MOST_NODES, VIRTUAL_NODES, Ring, check_ring, first_workers, new_ring, next_worker, start_walk
from unskew.schemes.d_choices import EPSILON, fan_out
from unskew.sketches.space_saving import SpaceSaving, check_sketch, count_key, decay, new_sketch
from unskew.states import copied
from unskew.worker_report import WorkerReport

MOST_COUNTERS = 2_000_000
TAIL = 2  # candidates of a key that is not hot
SOLVED_EVERY = 100  # tuples of an epoch after which `solver` looks again
NEVER = 1e12  # seconds between two reports where they are ignored


class State(NamedTuple):
    sketch: SpaceSaving  # of the recent keys, K and c_k
    widest: npt.NDArray[np.int32]  # [counters] M_k: the most candidates that the key below has had
    widest_of: npt.NDArray[np.uint64]  # [counters] the key whose M_k it is: that of the counter, or one it replaced
    top: npt.NDArray[np.float64]  # [1] the largest count
    in_epoch: npt.NDArray[np.int64]  # [1] tuples of this epoch so far
    choices: npt.NDArray[np.int64]  # [1] d of all hot keys, where `solver` finds it
    ring: Ring  # of no workers where there are no virtual nodes
    backlog: npt.NDArray[np.float64]  # [workers] C_w: tuples sent by this source and not yet processed, as it infers
    pace: npt.NDArray[np.float64]  # [workers] P_w: seconds per tuple; all 1 while no worker has reported
    reported: npt.NDArray[np.bool_]  # [workers] whether the pace is the worker's own
    clock: npt.NDArray[np.float64]  # [2] t_pri (-inf before the first tuple); when to drain next (inf: no report yet)


@kernel
def _total(scheme, counted):
    """What a share is one of: all that is counted, or an epoch while that is more."""
    return max(counted, float(scheme.epoch)) if scheme.whole_epoch else counted


@kernel
def _threshold(scheme, counted):
    """theta, as a count."""
    total = _total(scheme, counted)
    return scheme.theta * total if scheme.theta > 0.0 else total / (4.0 * scheme.workers)


@kernel
def _fan_out(scheme, count, top):
    """Algorithm 2 (CHK), lines 3-6: d of a hot key."""
    number, doubled = scheme.workers, 2.0 * count
    while doubled <= top and number > scheme.least:  # floor(log2(f_top / f_k)) times, and without rounding
        doubled *= 2.0
        number //= 2
    return max(number, scheme.least)


@allocating_kernel
def _find_choices(scheme, state):
    """d by the condition of `d_choices`, on the counts of now."""
    sketch = state.sketch
    total = _total(scheme, sketch.total[0])
    shares = np.empty(sketch.table.used[0], np.float64)
    keys, tail = 0, 1.0
    for counter in range(len(shares)):
        if sketch.counts[counter] > _threshold(scheme, sketch.total[0]):
            shares[keys] = sketch.counts[counter] / total
            tail -= shares[keys]
            keys += 1
    state.choices[0] = fan_out(shares[:keys], max(0.0, tail), scheme.workers, EPSILON)


@kernel
def _drain(backlog, pace, seconds):
    """Algorithm 3, lines 5-9: what the workers have done meanwhile."""
    for worker in range(len(backlog)):
        backlog[worker] = max(0.0, backlog[worker] - seconds / pace[worker])


@kernel
def _soonest(backlog, pace, key, candidates, ring):
    """Algorithm 3, lines 12-17: the candidate with the shortest waiting time, the first of equals."""
    best, shortest = 0, np.inf
    on_ring = len(ring.node_worker) > 0 and candidates < len(backlog)
    node = start_walk(ring, key) if on_ring else 0
    for j in range(candidates):
        if on_ring:
            node = next_worker(ring, node)
            worker = np.int64(ring.node_worker[node])
        else:
            worker = candidate(key, j, len(backlog)) if candidates < len(backlog) else j
        wait = backlog[worker] * pace[worker]
        if wait < shortest:
            best, shortest = worker, wait
    return best


@kernel
def choose(scheme, state, key, now):
    sketch = state.sketch
    if state.in_epoch[0] >= scheme.epoch:  # Algorithm 1
        decay(sketch, scheme.alpha)
        state.top[0] *= scheme.alpha
        state.in_epoch[0] = 0
    state.in_epoch[0] += 1
    counter = count_key(sketch, key)
    state.top[0] = max(state.top[0], sketch.counts[counter])
    if state.widest_of[counter] != key:
        state.widest_of[counter] = key
        state.widest[counter] = 0

    if scheme.solver and state.in_epoch[0] % SOLVED_EVERY == 1:
        _find_choices(scheme, state)
    candidates = min(TAIL, scheme.workers)
    if sketch.counts[counter] > _threshold(scheme, sketch.total[0]):
        if scheme.solver:
            candidates = min(np.int64(state.choices[0]), scheme.workers)
        else:
            wide = _fan_out(scheme, sketch.counts[counter], state.top[0])
            state.widest[counter] = max(state.widest[counter], wide)
            candidates = min(np.int64(state.widest[counter]), scheme.workers)

    if state.clock[0] == -np.inf:
        state.clock[0] = now
    if now > state.clock[1]:
        _drain(state.backlog, state.pace, now - state.clock[0])
        state.clock[0], state.clock[1] = now, now + scheme.interval
    worker = _soonest(state.backlog, state.pace, key, candidates, state.ring)
    state.backlog[worker] += 1.0
    return worker


@register(
    "fish",
    choose=choose,
    paper="FISH, sections 4 and 5",
    when="popularity changes with time, workers are unequal or come and go, and partial results can be merged",
)
class Fish(NamedTuple):
    """FISH: recently hot keys on many workers of a ring, each tuple where it waits least.

    Parameters
    ----------
    workers
        W, the number of workers.
    epoch
        N_epoch, the tuples after which old counts are multiplied by `alpha`.
    counters
        K_max, the number of counters of the sketch.
    alpha
        What the counts of an epoch are worth in the next; 1 counts for life, 0 forgets.
    theta
        The share of the recent tuples above which a key is hot; 0 for 1/(4 W).
    least
        d_min, the fewest candidates of a hot key; W lets every hot key go anywhere, as W-Choices does.
    interval
        T, the seconds between two worker reports; inf ignores them.
    virtual_nodes
        How many nodes each worker has on the ring; 0 hashes modulo W instead.
    whole_epoch
        True: a share is one of at least `epoch` tuples. False: of what the counters sum to, however little that is.
    solver
        True: all hot keys have as many candidates as the condition of `d_choices` asks for; no Algorithm 2.

    Examples
    --------
    Half of the tuples have the same key. It goes wherever the least is waiting:

    >>> import numpy as np
    >>> from unskew import Fish, Router, key_ids
    >>> keys = [word for i in range(200) for word in ("the", f"word {i}")]
    >>> np.bincount(Router(Fish(workers=8)).route(key_ids(keys))).tolist()
    [50, 51, 50, 50, 50, 50, 50, 49]
    """

    workers: int  # W
    epoch: int = 1000  # N_epoch
    counters: int = 1000  # K_max
    alpha: float = 0.2
    theta: float = 0.0
    least: int = 2  # d_min
    interval: float = 10.0  # T
    virtual_nodes: int = VIRTUAL_NODES
    whole_epoch: bool = True
    solver: bool = False

    def check(self) -> None:
        require_integer("virtual_nodes", self.virtual_nodes, 0, MOST_NODES)
        require_integer("workers", self.workers, 1, MOST_NODES // max(1, self.virtual_nodes))
        require_integer("epoch", self.epoch, 1, 2**53)
        require_integer("counters", self.counters, 1, MOST_COUNTERS)
        require_integer("least", self.least, TAIL, 2**31 - 1)
        require_number("alpha", self.alpha, "a number from 0 to 1", 0.0, 1.0)
        require_number("theta", self.theta, "0 for 1/(4 workers), or a share up to 1", 0.0, 1.0)
        require_number("interval", self.interval, "seconds from 1e-09 on, or inf", 1e-9, np.inf)
        for name in ("whole_epoch", "solver"):
            require_bool(name, getattr(self, name))

    @property
    def report_every(self) -> float:
        return min(self.interval, NEVER)

    def new_state(self) -> State:
        return self._state(np.arange(self.workers, dtype=np.int64))

    def _state(self, names: Names) -> State:
        return State(
            sketch=new_sketch(self.counters),
            widest=np.zeros(self.counters, np.int32),
            widest_of=np.zeros(self.counters, np.uint64),
            top=np.zeros(1),
            in_epoch=np.zeros(1, np.int64),
            choices=np.full(1, TAIL, np.int64),
            ring=new_ring(names if self.virtual_nodes else names[:0], self.virtual_nodes),
            backlog=np.zeros(self.workers),
            pace=np.ones(self.workers),
            reported=np.zeros(self.workers, bool),
            clock=np.array([-np.inf, np.inf]),
        )

    def check_state(self, state: State) -> None:
        check_sketch("sketch", state.sketch)
        if self.virtual_nodes:
            check_ring("ring", state.ring, self.workers)
        for name, rule, holds in (
            ("backlog", "from 0 on", state.backlog >= 0),
            ("pace", "above 0", state.pace > 0),
            ("top", "from 0 on", state.top >= 0),
        ):
            numbers = getattr(state, name)
            wrong = numbers[~(np.isfinite(numbers) & holds)]
            if len(wrong):
                raise InputError(f"{name}: must be finite numbers {rule}, not {wrong[0]}")
        require_integer("choices", int(state.choices[0]), 1, max(TAIL, self.workers))
        require_integer("in_epoch", int(state.in_epoch[0]), 0, self.epoch)
        if np.isnan(state.clock).any():
            raise InputError(f"clock: must be two times, not {state.clock.tolist()}")

    def observe(self, state: State, report: WorkerReport) -> None:
        """Take P_w from each worker that has done something; the others are taken as the mean of those known."""
        seconds = report.busy if report.spent is None else report.spent
        told = (report.tuples > 0) & (seconds > 0) & (seconds < np.inf) & (self.interval < np.inf)
        if not told.any():
            return
        workers = report.workers[told]
        # in 24 bits: equally fast workers shall tie, however their seconds were added up
        state.pace[workers] = (seconds[told] / report.tuples[told]).astype(np.float32)
        state.reported[workers] = True
        state.pace[~state.reported] = state.pace[state.reported].mean()
        if state.clock[1] == np.inf:
            state.clock[1] = state.clock[0] + self.interval

    def resized(self, state: State, before: Names, after: Names) -> "tuple[Fish, State]":
        """For other workers: what is known of keys stays, and of those workers that stay."""
        scheme = self._replace(workers=len(after))
        scheme.check()
        stays = np.isin(after, before)
        known = {name: getattr(state, name).copy() for name in ("widest", "widest_of", "top", "in_epoch", "clock")}
        known["choices"] = np.minimum(state.choices, max(TAIL, len(after)))
        backlog, pace, reported = (
            carried_over(array, before, after) for array in (state.backlog, state.pace, state.reported)
        )
        known_pace = state.pace[state.reported] if state.reported.any() else state.pace
        pace[~stays] = known_pace.mean()
        if state.clock[1] < np.inf:
            backlog[~stays] = 0.0
        reported[~stays] = False
        changed = scheme._state(after)._replace(
            sketch=copied(state.sketch), **known, backlog=backlog, pace=pace, reported=reported
        )
        return scheme, changed

    @classmethod
    def plan(cls, workers: int, frequencies: Frequencies, **parameters: Any) -> Plan:
        """CHK on measured frequencies (of recent tuples, best): hot keys fill their d workers on the ring evenly.

        Other keys stay whole where they are hashed to. What a plan cannot do is look at time or at the workers' pace.
        """
        scheme = cls(workers, **parameters)
        ring = scheme.new_state().ring
        top = float(frequencies.counts.max(initial=0))

        def candidates(i: int) -> Sequence[int]:
            key, count = frequencies.key_ids[i], float(frequencies.counts[i])
            hot = count > _threshold(scheme, float(frequencies.tuples))
            number = min(_fan_out(scheme, count, top) if hot else TAIL, workers)
            if scheme.virtual_nodes and number < workers:
                return [int(worker) for worker in first_workers(ring, key, number)]
            return [int(candidate(key, j, workers)) for j in range(number)] if number < workers else range(workers)

        return plan_over("fish", workers, frequencies, candidates)
