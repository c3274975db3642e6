"""The worker half of POSG: what a worker learns from the tuples that it executes, and when it tells.

Paper: Rivetti et al., Listing III.1 and Fig. 2. The choices made here are in `posg`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.hashing import universal, universal_functions
from unskew.kernels import inlined, kernel

EMPTY = -1.0  # mean cost of a cell without tuples
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class WorkerStates(NamedTuple):
    functions: npt.NDArray[np.uint64]  # [rows, 3]
    counts: Floats  # [workers, rows, columns] F
    seconds: Floats  # [workers, rows, columns] W
    snapshot: Floats  # [workers, rows, columns] S = W/F at the last test; EMPTY where F was 0
    executed: Ints  # [workers] tuples since the last test
    stabilizing: npt.NDArray[np.bool_]  # [workers] whether there is a snapshot, else START
    total: Floats  # [workers, sources] C: seconds spent on the tuples of each source
    idle: Floats  # [workers] seconds without a tuple


class Matrices(NamedTuple):
    """What a worker sends when its tables are stable."""

    counts: Floats  # [rows, columns] F
    seconds: Floats  # [rows, columns] W


def new_worker_states(workers: int, sources: int, rows: int, columns: int, seed: int) -> WorkerStates:
    tables = (workers, rows, columns)
    return WorkerStates(
        functions=universal_functions(rows, seed),
        counts=np.zeros(tables),
        seconds=np.zeros(tables),
        snapshot=np.full(tables, EMPTY),
        executed=np.zeros(workers, np.int64),
        stabilizing=np.zeros(workers, bool),
        total=np.zeros((workers, sources)),
        idle=np.zeros(workers),
    )


@inlined
def execute(scheme, states, worker, key, seconds, waited, source, ticket):
    for row in range(scheme.rows):  # Listing III.1
        column = universal(states.functions[row], key, scheme.columns)
        states.counts[worker, row, column] += 1.0
        states.seconds[worker, row, column] += seconds
    states.total[worker, source] += seconds
    states.idle[worker] += waited
    reply = states.total[worker, source]
    if scheme.count_idle:
        reply += states.idle[worker] / states.total.shape[1]
    states.executed[worker] += 1
    if states.executed[worker] < scheme.window:  # Fig. 2
        return False, reply
    states.executed[worker] = 0
    tables = states.counts[worker], states.seconds[worker], states.snapshot[worker]
    stable = not _unstable(tables[0], tables[1], tables[2], scheme.tolerance)
    tells = states.stabilizing[worker] and stable
    states.stabilizing[worker] = True
    return tells, reply


@kernel
def _unstable(counts, seconds, snapshot, tolerance):
    """Equation (1): whether eta > mu, over the cells of the snapshot that had tuples. It is made anew."""
    off, before = 0.0, 0.0
    for row in range(counts.shape[0]):
        for column in range(counts.shape[1]):
            count = counts[row, column]
            mean = seconds[row, column] / count if count > 0.0 else EMPTY
            if snapshot[row, column] != EMPTY:
                off += abs(snapshot[row, column] - mean)
                before += snapshot[row, column]
            snapshot[row, column] = mean
    return off > tolerance * before


def tell(states: WorkerStates, worker: int) -> Matrices:
    """F and W, which start anew (Fig. 2.C)."""
    matrices = Matrices(states.counts[worker].copy(), states.seconds[worker].copy())
    states.counts[worker] = states.seconds[worker] = 0.0
    states.stabilizing[worker] = False
    return matrices


def quiet_for(states: WorkerStates, window: int) -> Ints:
    """How many tuples each worker executes until it may have tables to send."""
    return np.where(states.stabilizing, window, 2 * window) - states.executed
