"""Longest first: pieces of work of known cost to workers, so that the last worker is done early.

The pieces are given away from the most expensive to the cheapest, each to the worker that has least so far (Graham,
"Bounds on multiprocessing timing anomalies", 1969). The worker that has most ends up with at most 4/3 - 1/(3 W) times
what the best possible assignment would give it, and with at most one piece more than the mean. Pieces that cost
nothing are given away last, in turn: they make no load, but nobody is to get all of them.
"""

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_workers
from unskew.errors import InputError

Costs = npt.NDArray[np.float64]


class Assignment(NamedTuple):
    """Who does what."""

    workers: npt.NDArray[np.int64]  # the worker of each piece
    load: Costs  # what each worker has in the end


def longest_first(costs: npt.ArrayLike, workers: int, load: npt.ArrayLike | None = None) -> Assignment:
    """Give each piece of work to one of `workers` workers. Equal pieces in their order, equal workers by their index.

    Parameters
    ----------
    costs
        What each piece costs: finite numbers from 0 on.
    workers
        W, the number of workers.
    load
        What each worker has already; left out, nothing.

    Examples
    --------
    >>> from unskew.longest_first import longest_first
    >>> longest_first([2, 7, 1, 3, 3], workers=2).load.tolist()
    [8.0, 8.0]
    """
    require_workers(workers)
    every = np.asarray(costs, np.float64)
    if every.ndim != 1 or not ((every >= 0) & (every < np.inf)).all():
        raise InputError("costs: must be a list of finite numbers from 0 on")
    chosen, total = np.zeros(len(every), np.int64), np.zeros(workers) if load is None else np.array(load, np.float64)
    least = sorted(zip(total.tolist(), range(workers), strict=True))  # a heap
    order = np.argsort(-every, kind="stable")
    costly = int(np.count_nonzero(every))
    for piece in order[:costly].tolist():
        sofar, worker = least[0]
        chosen[piece] = worker
        total[worker] = sofar + every[piece]
        heapq.heapreplace(least, (float(total[worker]), worker))
    in_turn = np.array([worker for _, worker in sorted(least)])
    chosen[order[costly:]] = in_turn[np.arange(len(every) - costly) % workers]
    return Assignment(chosen, total)
