"""How often keys come, and on how many workers they leave state; all of it exact.

A replica is a (worker, key) pair; their number is the papers' memory. Every pass over a chunk is a loop of independent
steps, so that the processor can wait for many cache misses at once; that is what makes tens of millions of keys
affordable.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.contract import Workers
from unskew.hashing import KeyIds
from unskew.kernels import allocating_kernel, kernel
from unskew.key_table import EMPTY, KeyTable, fill, find, new_table, with_room

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ONE = np.uint64(1)

Rows = npt.NDArray[np.int32]  # numbers of keys, in order of arrival


class KeyCounter:
    """Counts the tuples of each key, and numbers the keys in order of arrival: the number of a key is its *row*.

    It takes about 60 bytes per key at worst.
    """

    def __init__(self) -> None:
        self._table: KeyTable = new_table()
        self._ids = np.zeros(1024, np.uint64)
        self._counts = np.zeros(1024, np.int64)

    def count(self, key_ids: KeyIds) -> Rows:
        """Count these tuples; returns the row of each one's key."""
        known = len(self)
        self._table = with_room(self._table, len(key_ids))
        self._ids = _longer(self._ids, known + len(key_ids))
        self._counts = _longer(self._counts, known + len(key_ids))
        return _count(self._table, self._ids, self._counts, key_ids)

    def __len__(self) -> int:
        return int(self._table.used[0])

    @property
    def ids(self) -> KeyIds:
        return self._ids[: len(self)]

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        return self._counts[: len(self)]

    @property
    def p1(self) -> float:
        """The share of the most frequent key."""
        return float(self.counts.max() / self.counts.sum()) if len(self) else 0.0


@allocating_kernel
def _count(table, ids, counts, key_ids):
    rows = np.empty(len(key_ids), np.int32)
    for i in range(len(key_ids)):
        cell = find(table, key_ids[i])
        row = table.values[cell]
        if row == EMPTY:
            row = np.int32(table.used[0])
            fill(table, cell, key_ids[i], row)
            ids[row] = key_ids[i]
        counts[row] += 1
        rows[i] = row
    return rows


def _longer(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """`array`, zero-filled to a power of two of at least `length` where it is shorter."""
    if length <= len(array):
        return array
    longer = np.zeros(1 << (length - 1).bit_length(), array.dtype)
    longer[: len(array)] = array
    return longer


class Replicas:
    """The number of distinct (worker, key) pairs.

    An array holds the first worker of each key; further pairs go to a hash set. That takes 4 bytes per key and 16 to 32
    bytes per further replica.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._first_worker = np.zeros(1024, np.int32)  # worker + 1, 0 for none
        self._pairs = np.zeros(1024, np.uint64)  # row * workers + worker + 1, 0 for an empty cell
        self._counts = np.zeros(2, np.int64)  # keys, further pairs

    def add(self, rows: Rows, chosen: Workers, keys: int) -> None:
        """One more tuple per row: its key is number `rows[i]` of `keys` so far, and it went to worker `chosen[i]`."""
        self._first_worker = _longer(self._first_worker, keys)
        cells = len(self._pairs)
        while 2 * (int(self._counts[1]) + len(rows)) > cells:
            cells *= 2
        if cells > len(self._pairs):
            larger = np.zeros(cells, np.uint64)
            _copy_pairs(self._pairs, larger)
            self._pairs = larger
        _count_pairs(self._first_worker, self._pairs, self._counts, rows, chosen, self._workers)

    def __len__(self) -> int:
        return int(self._counts.sum())


@kernel
def _pair_cell(pairs, pair):
    """The cell of `pair`, or the empty cell where it belongs."""
    last = np.uint64(len(pairs) - 1)
    cell = ((pair * GOLDEN) >> np.uint64(20)) & last
    while pairs[cell] != 0 and pairs[cell] != pair:
        cell = (cell + ONE) & last
    return cell


@kernel
def _copy_pairs(pairs, larger):
    for i in range(len(pairs)):
        if pairs[i] != 0:
            larger[_pair_cell(larger, pairs[i])] = pairs[i]


@kernel
def _count_pairs(first_worker, pairs, counts, rows, chosen, workers):
    for i in range(len(rows)):
        row, worker = rows[i], chosen[i]
        if first_worker[row] == 0:
            first_worker[row] = worker + 1
            counts[0] += 1
        elif first_worker[row] != worker + 1:
            pair = np.uint64(np.int64(row) * workers + worker + 1)
            cell = _pair_cell(pairs, pair)
            if pairs[cell] == 0:
                pairs[cell] = pair
                counts[1] += 1


def replicas_lower_bound(counts: npt.NDArray[np.int64], workers: int) -> int:
    """Fewest replicas with which perfect balance is possible: sum over keys of max(1, ceil(p_k * workers))."""
    tuples = int(counts.sum())
    heavy = [int(count) for count in counts[counts * workers > tuples]]
    return len(counts) + sum(-(-count * workers // tuples) - 1 for count in heavy)
