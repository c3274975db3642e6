"""Proactive Online Shuffle Grouping (POSG): each tuple to the worker with the least estimated work so far.

Paper: Rivetti et al., "Proactive online scheduling for shuffle grouping in distributed stream processing systems",
section III. For work that keeps no state, where equal counts are not equal work.

- Worker half (Listing III.1, Fig. 2): two Count-Min tables with the same functions, F of counts and W of seconds. After
  every N tuples a worker compares W/F with its last snapshot. Once the relative difference is at most mu, it sends F
  and W to all sources and starts anew.
- Source half (Listing III.2, Fig. 3): round robin until every worker has sent its tables. Then each tuple goes to the
  worker with the least estimated cumulated time, which grows by W/F in the row where F is least. New tables start a
  synchronisation: the next k tuples go round and carry a request, and each worker replies with its true cumulated time.

Choices of ours: the mean cost for keys in empty cells, replies that count from the first request on, how often new
tables may restart a synchronisation (so that RUN is reached however slow the feedback is), several sources, workers
that join, and `count_idle`. docs/schemes/posg.md has each, with its effect. Of equal estimates the lowest index wins.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_bool, require_integer, require_number
from unskew.errors import InputError
from unskew.hashing import universal, universal_functions
from unskew.kernels import inlined, kernel
from unskew.least import Blocks, check_blocks, look_anew, new_blocks, smallest_of, update_block
from unskew.members import Names, carried_over
from unskew.registry import register
from unskew.schemes.posg_worker import (
    USUAL_ROWS,
    Floats,
    Ints,
    Matrices,
    WorkerStates,
    checked_matrices,
    execute,
    new_worker_states,
    quiet_for,
    tell,
)
from unskew.schemes.shuffle import share_of_round
from unskew.sketches.count_min import MOST_COLUMNS, MOST_ROWS, MOST_SEED

ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = range(4)  # Fig. 3
MOST_CELLS = 2**25  # of all workers, in a source


class State(NamedTuple):
    functions: npt.NDArray[np.uint64]  # [rows, 3] the same in all workers
    counts: Floats  # [workers, rows, columns] F of each worker; 0 before it has sent one
    seconds: Floats  # [workers, rows, columns] W
    mean: Floats  # [workers] mean seconds per tuple by these; -1 before it has sent them
    estimated: Floats  # [workers] C^, estimated cumulated time of what this source has sent
    least: Blocks  # of these
    asked: Floats  # [workers] C^ when the last request went out, its own tuple included
    difference: Floats  # [workers] real less estimated time, by the reply
    ahead: Floats  # [workers] added to what it replies: what the others had when it joined; nan until that is known
    replied: npt.NDArray[np.bool_]  # [workers] whether it has come
    missing: Ints  # [1] replies that have not
    phase: Ints  # [1] ROUND_ROBIN ... RUN
    next_worker: Ints  # [1] of the round robin, or of the requests
    number: Ints  # [1] of this synchronisation, from 1 on; the ticket of its requests
    restarts: Ints  # [1] of WAIT_ALL since the last RUN


@inlined
def _estimate(scheme, state, worker, key, rows):
    """W/F of the key in the row where its F is least (Listing III.2); the mean where that is 0."""
    least, seconds = np.inf, 0.0
    for row in range(rows):
        column = universal(state.functions[row], key, scheme.columns)
        count, seconds_here = state.counts[worker, row, column], state.seconds[worker, row, column]
        is_less = count < least  # no branch: nobody can foresee it
        seconds = seconds_here if is_less else seconds
        least = count if is_less else least
    return seconds / least if least > 0.0 else state.mean[worker]


@inlined
def choose(scheme, state, key, now):
    phase = state.phase[0]
    worker = state.next_worker[0] if phase <= SEND_ALL else smallest_of(state.least)
    if phase <= SEND_ALL:
        state.next_worker[0] = worker + 1 if worker + 1 < scheme.workers else 0
    if phase == ROUND_ROBIN:
        return worker, 0
    if scheme.rows == USUAL_ROWS:
        state.estimated[worker] += _estimate(scheme, state, worker, key, USUAL_ROWS)
    else:
        state.estimated[worker] += _estimate(scheme, state, worker, key, scheme.rows)
    update_block(state.least, state.estimated, worker)
    if phase != SEND_ALL:
        return worker, 0
    state.asked[worker] = state.estimated[worker]
    if state.next_worker[0] == 0:
        state.phase[0] = WAIT_ALL
    return worker, state.number[0]


@kernel
def hear_reply(scheme, state, worker, ticket, reply):
    """Fig. 3.D and E. A reply that comes while requests are still being sent counts; one of an older synchronisation
    does not."""
    if ticket != state.number[0]:
        return
    state.difference[worker] = reply - state.asked[worker]
    if not state.replied[worker]:
        state.replied[worker] = True
        state.missing[0] -= 1
    if state.phase[0] != WAIT_ALL or state.missing[0] > 0:
        return
    _correct(state)
    look_anew(state.least, state.estimated)
    state.phase[0] = RUN
    state.restarts[0] = 0


@kernel
def _correct(state):
    """Estimates by what was replied; a worker that has joined meanwhile is level with the least of the others."""
    least = np.inf
    for worker in range(len(state.estimated)):
        state.estimated[worker] += state.difference[worker]
        if not np.isnan(state.ahead[worker]):
            state.estimated[worker] += state.ahead[worker]
            least = min(least, state.estimated[worker])
    for worker in range(len(state.estimated)):
        if np.isnan(state.ahead[worker]):
            state.ahead[worker] = least - state.estimated[worker] if least < np.inf else 0.0
            state.estimated[worker] += state.ahead[worker]


@register(
    "posg",
    choose=choose,
    execute=execute,
    hear_reply=hear_reply,
    message=Matrices,
    paper="POSG, section III",
    when="the work keeps no state for a key, costs differ from key to key, and workers can tell how long tuples took",
)
class Posg(NamedTuple):
    """POSG: each tuple to the worker with the least estimated work, learnt from what workers executed.

    Parameters
    ----------
    workers
        k, the number of workers.
    window
        N, the tuples that a worker executes from one test to the next.
    tolerance
        mu, the relative difference up to which tables count as stable.
    columns, rows
        Of the Count-Min tables. In the paper's terms columns are e/epsilon and rows are log2(1/delta).
    seed
        Of the hash functions.
    count_idle
        Whether replies count the time that a worker had nothing to do as worked, so that it is not sent a burst of
        tuples to make up for it. Not in the paper.

    Examples
    --------
    Keys cost from 1 to 64 ms. Round robin is even in counts, POSG in work:

    >>> from unskew import make
    >>> from unskew.simulate import Queues, simulate
    >>> from unskew.streams import Costed
    >>> queues = Queues(utilisation=1.0)
    >>> for result in simulate(Costed(z=2.5, tuples=50_000), [make("shuffle", 5), make("posg", 5)], queues=queues):
    ...     print(f"{result.scheme}: a tuple is done after {1000 * result.latency_mean:.0f} ms")
    shuffle: a tuple is done after 481 ms
    posg: a tuple is done after 414 ms
    """

    workers: int  # k
    window: int = 1024  # N
    tolerance: float = 0.05  # mu
    columns: int = 54
    rows: int = USUAL_ROWS
    seed: int = 0
    count_idle: bool = False

    def check(self) -> None:
        require_integer("rows", self.rows, 1, MOST_ROWS)
        require_integer("columns", self.columns, 1, MOST_COLUMNS // MOST_ROWS)
        require_integer("workers", self.workers, 1, max(1, MOST_CELLS // (self.rows * self.columns)))
        require_integer("window", self.window, 1, 2**53)
        require_number("tolerance", self.tolerance, "a number from 0 to 1e9", 0.0, 1e9)
        require_integer("seed", self.seed, 0, MOST_SEED)
        require_bool("count_idle", self.count_idle)

    def new_state(self) -> State:
        tables = (self.workers, self.rows, self.columns)
        return State(
            functions=universal_functions(self.rows, self.seed),
            counts=np.zeros(tables),
            seconds=np.zeros(tables),
            mean=np.full(self.workers, -1.0),
            estimated=np.zeros(self.workers),
            least=new_blocks(np.zeros(self.workers)),
            asked=np.zeros(self.workers),
            difference=np.zeros(self.workers),
            ahead=np.zeros(self.workers),
            replied=np.zeros(self.workers, bool),
            missing=np.full(1, self.workers),
            phase=np.zeros(1, np.int64),
            next_worker=np.zeros(1, np.int64),
            number=np.zeros(1, np.int64),
            restarts=np.zeros(1, np.int64),
        )

    def stagger(self, state: State, source: int) -> None:
        state.next_worker[0] = share_of_round(source, self.workers)

    # ------------------------------------------------------------ messages

    def new_worker_states(self, workers: int, sources: int) -> WorkerStates:
        return new_worker_states(workers, sources, self.rows, self.columns, self.seed)

    def quiet_for(self, states: WorkerStates) -> Ints:
        return quiet_for(states, self.window)

    def tell(self, states: WorkerStates, worker: int) -> Matrices:
        return tell(states, worker)

    def may_ask(self, state: State) -> bool:
        return bool(state.phase[0] == SEND_ALL)

    def hear(self, state: State, worker: int, message: Any) -> None:
        matrices = checked_matrices(message, self.rows, self.columns)
        state.counts[worker], state.seconds[worker] = matrices
        state.mean[worker] = matrices.seconds[0].sum() / matrices.counts[0].sum()
        phase = state.phase[0]
        is_first = phase == ROUND_ROBIN and not (state.mean < 0).any()
        may_restart = phase == WAIT_ALL and state.restarts[0] < self.workers
        if is_first or may_restart or phase == RUN:
            state.restarts[0] += may_restart
            self._synchronise(state)

    def _synchronise(self, state: State) -> None:
        """Fig. 3, to SEND ALL: the next tuples carry requests."""
        state.phase[0] = SEND_ALL
        state.next_worker[0] = 0
        state.number[0] += 1
        state.replied[:] = False
        state.missing[0] = self.workers

    # ------------------------------------------------------------ workers that come and go

    def resized(self, state: State, before: Names, after: Names) -> "tuple[Posg, State]":
        """Those that stay keep what is known of them. A new one has the sum of their tables and the least of their
        estimates; all are asked anew."""
        scheme = self._replace(workers=len(after))
        scheme.check()
        places = {name: place for place, name in enumerate(before.tolist())}
        kept = [places.get(name, -1) for name in after.tolist()]
        stays = np.array([place >= 0 for place in kept])
        resized = scheme.new_state()
        for new, old in ((resized.counts, state.counts), (resized.seconds, state.seconds)):
            new[stays] = old[[place for place in kept if place >= 0]]
            new[~stays] = new[stays].sum(axis=0)
        resized.mean[stays] = carried_over(state.mean, before, after)[stays]
        if stays.any():
            resized.ahead[:] = np.where(stays, carried_over(state.ahead, before, after), np.nan)
        if state.phase[0] != ROUND_ROBIN and stays.any():
            resized.mean[~stays] = resized.seconds[~stays, 0].sum(axis=1) / resized.counts[~stays, 0].sum(axis=1)
        if not (resized.mean < 0).any():  # also if the last without tables has left
            resized.estimated[:] = carried_over(state.estimated, before, after)
            look_anew(resized.least, resized.estimated)
            resized.number[:] = state.number
            scheme._synchronise(resized)
        else:
            resized.next_worker[:] = state.next_worker * len(after) // len(before)
        return scheme, resized

    def check_state(self, state: State) -> None:
        require_integer("next_worker", int(state.next_worker[0]), 0, self.workers - 1)
        require_integer("phase", int(state.phase[0]), ROUND_ROBIN, RUN)
        for name in ("counts", "seconds", "estimated", "mean"):
            values = getattr(state, name)
            least = -1.0 if name == "mean" else -np.inf if name == "estimated" else 0.0
            if not (np.isfinite(values) & (values >= least)).all():
                raise InputError(f"{name}: must be finite numbers from {least:g} on")
        if np.isinf(state.ahead).any():
            raise InputError("ahead: must be finite numbers, or nan where it is not known yet")
        if state.missing[0] != np.count_nonzero(~state.replied):
            raise InputError(f"missing: must be the workers that have not replied, not {state.missing[0]}")
        check_blocks("least", state.least, state.estimated)
