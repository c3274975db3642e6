"""The worker half of POSG: what a worker learns from the tuples that it executes, and when it tells.

Paper: Rivetti et al., Listing III.1 and Fig. 2. The choices made here are on docs/schemes/posg.md.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError, InputTypeError
from unskew.hashing import universal, universal_functions
from unskew.kernels import inlined, kernel

EMPTY = -1.0  # mean cost of a cell without tuples
USUAL_ROWS = 4  # for so many, kernels are compiled apart: with a number that it knows, the compiler unrolls their loops
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


def checked_matrices(message: Any, rows: int, columns: int) -> Matrices:
    """`message`, if it is what a worker with tables of this shape can send; else an InputError."""
    if not isinstance(message, Matrices):
        raise InputTypeError(f"message: must be Matrices or a Reply, not {type(message).__name__}")
    if not all(np.shape(table) == (rows, columns) for table in message):
        raise InputError(f"message: tables must have {rows} rows and {columns} columns")
    both = np.array(message)
    if not (both.min() >= 0 and both.max() < np.inf and both[0].any(axis=1).all()):
        raise InputError("message: tables must hold finite numbers from 0 on, and some tuples in each row")
    return message


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
def _count(scheme, states, worker, key, seconds, rows):
    for row in range(rows):  # Listing III.1
        column = universal(states.functions[row], key, scheme.columns)
        states.counts[worker, row, column] += 1.0
        states.seconds[worker, row, column] += seconds


@inlined
def execute(scheme, states, worker, key, seconds, waited, source, ticket):
    if scheme.rows == USUAL_ROWS:
        _count(scheme, states, worker, key, seconds, USUAL_ROWS)
    else:
        _count(scheme, states, worker, key, seconds, scheme.rows)
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
