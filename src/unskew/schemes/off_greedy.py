"""Off-Greedy: all keys, most frequent first, each to the least loaded worker. Offline: needs the frequencies first.

Paper: Partial Key Grouping, section 6.2 (Q1): "Offline greedy sorts the keys by decreasing frequency and executes
On-Greedy". The paper calls it an unfair comparison for online algorithms; it is the best that whole keys can do easily.

Choices made here: "least loaded" is by the frequencies assigned so far; ties go to the worker with the lowest number;
keys of equal frequency are taken in the order given. A key that was not in the frequencies goes to its candidate 0.
The table is a parameter of the scheme (24 to 48 bytes a key, shared by all routers); a router remembers nothing.
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
    """Offline greedy: a fixed table of key -> worker. Make it with `fit`."""

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
