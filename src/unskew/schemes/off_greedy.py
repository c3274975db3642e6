"""Off-Greedy: all keys, most frequent first, each to the least loaded worker. Offline: it needs the frequencies first.

Paper: Partial Key Grouping, section 6.2 (Q1): "Offline greedy sorts the keys by decreasing frequency and executes
On-Greedy". The paper calls the comparison with online algorithms unfair. It is the best that can easily be done
without splitting a key.

Choices made here:
- The load is the sum of the frequencies assigned so far. Of equally loaded workers the one with the lowest index wins.
- Keys of equal frequency are taken in the order given.
- A key that was not in the frequencies goes to its candidate 0.

The table is a parameter of the scheme, shared by all routers: 24 to 48 bytes per key. A router remembers nothing.
More: docs/schemes/off_greedy.md.
"""

import heapq
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_workers
from unskew.errors import InputError
from unskew.hashing import KeyIds, candidate, frozen, require_counts, require_key_ids
from unskew.kernels import allocating_kernel, kernel
from unskew.key_table import EMPTY, check_cells, fill, find, new_table, with_room
from unskew.registry import register


class State(NamedTuple):
    nothing: npt.NDArray[np.int64]  # int64[0]: every decision was made beforehand


@kernel
def choose(scheme, state, key, now):
    worker = scheme.values[find(scheme, key)]
    return candidate(key, 0, scheme.workers) if worker == EMPTY else np.int64(worker)


@allocating_kernel
def _assign_all(table, key_ids, counts, order, workers):
    """Fill the table; whether no key came twice."""
    least_loaded = [(np.int64(0), worker) for worker in range(workers)]  # a heap already, being sorted
    for i in order:
        load, worker = least_loaded[0]
        cell = find(table, key_ids[i])
        if table.values[cell] != EMPTY:
            return False
        fill(table, cell, key_ids[i], worker)
        heapq.heapreplace(least_loaded, (load + counts[i], worker))
    return True


@register(
    "off_greedy",
    choose=choose,
    paper="PKG, section 6.2 (Off-Greedy)",
    when="all frequencies are known beforehand and a key must not be split (offline: counts the stream first)",
)
class OffGreedy(NamedTuple):
    """Offline greedy: a fixed table of key -> worker. Make it with `fit`.

    Parameters
    ----------
    workers
        W, the number of workers.
    keys, values
        The table that `fit` makes; not to be written by hand.

    Examples
    --------
    Four keys of 60, 30, 20 and 10 tuples on two workers, 60 each:

    >>> import numpy as np
    >>> from unskew import OffGreedy, Router, key_ids
    >>> ids = key_ids(["the", "of", "and", "to"])
    >>> scheme = OffGreedy.fit(2, ids, np.array([60, 30, 20, 10]))
    >>> Router(scheme).route(ids).tolist()
    [0, 1, 1, 1]
    """

    workers: int  # W
    keys: npt.NDArray[np.uint64]  # this and the next: a KeyTable of key -> its worker
    values: npt.NDArray[np.int32]

    @classmethod
    def fit(cls, workers: int, key_ids: KeyIds, counts: npt.NDArray[np.int64]) -> "OffGreedy":
        """Assign the keys `key_ids`, of which the stream has `counts` tuples each. Costs K log(K W)."""
        require_workers(workers)
        ids, frequencies = require_key_ids(key_ids), require_counts(counts, len(key_ids))
        table = with_room(new_table(), len(ids))
        if not _assign_all(table, ids, frequencies, np.argsort(-frequencies, kind="stable"), workers):
            raise InputError("key_ids: must be distinct")
        return cls(workers, frozen(table.keys), frozen(table.values))

    def check(self) -> None:
        require_workers(self.workers)
        check_cells("off_greedy", self.keys, self.values, self.workers)

    def new_state(self) -> State:
        return State(np.zeros(0, np.int64))

    def describe(self) -> dict[str, Any]:
        return {"keys": int((self.values != EMPTY).sum())}
