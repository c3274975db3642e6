"""What is measured while tuples are routed, all of it exact.

Load: L_i(t), tuples that worker i got so far. Imbalance: I(t) = max load - mean load. Replicas: distinct (worker, key)
pairs, the papers' memory. Every pass over a chunk is a loop of independent steps, so that the processor can wait for
many cache misses at once; that is what makes tens of millions of keys affordable.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.hashing import KeyIds
from unskew.kernels import kernel
from unskew.key_table import EMPTY, KeyTable, fill, find, new_table, with_room
from unskew.scheme import Workers

FIRST_SAMPLE_EVERY = 16  # tuples
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ONE = np.uint64(1)


class Keys:
    """The distinct keys of a stream: a row number for each, in order of arrival, and how often it came.

    About 60 bytes a key at worst.
    """

    def __init__(self) -> None:
        self._table: KeyTable = new_table()
        self._ids = np.zeros(1024, np.uint64)
        self._counts = np.zeros(1024, np.int64)

    def rows(self, key_ids: KeyIds) -> npt.NDArray[np.int32]:
        """Count the tuples and return the row of each."""
        known = len(self)
        self._table = with_room(self._table, len(key_ids))
        self._ids = _longer(self._ids, known + len(key_ids))
        self._counts = _longer(self._counts, known + len(key_ids))
        return _rows(self._table, self._ids, self._counts, key_ids)

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


@kernel
def _rows(table, ids, counts, key_ids):
    rows = np.empty(len(key_ids), np.int32)
    for i in range(len(key_ids)):
        slot = find(table, key_ids[i])
        row = table.values[slot]
        if row == EMPTY:
            row = np.int32(table.used[0])
            fill(table, slot, key_ids[i], row)
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

    A key's first worker is an entry of an array; the pairs beyond go to a hash set: 4 bytes a key and 16 to 32 bytes a
    further replica.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._first_worker = np.zeros(1024, np.int32)  # worker + 1, 0 for none
        self._pairs = np.zeros(1024, np.uint64)  # row * workers + worker + 1, 0 for an empty slot
        self._counts = np.zeros(2, np.int64)  # keys, further pairs

    def add(self, rows: npt.NDArray[np.int32], chosen: Workers, keys: int) -> None:
        """Tuples of the keys `rows` (numbers below `keys`) went to the workers `chosen`."""
        self._first_worker = _longer(self._first_worker, keys)
        slots = len(self._pairs)
        while 2 * (int(self._counts[1]) + len(rows)) > slots:
            slots *= 2
        if slots > len(self._pairs):
            larger = np.zeros(slots, np.uint64)
            _copy_pairs(self._pairs, larger)
            self._pairs = larger
        _count_pairs(self._first_worker, self._pairs, self._counts, rows, chosen, self._workers)

    def __len__(self) -> int:
        return int(self._counts.sum())


@kernel
def _pair_slot(pairs, pair):
    """The slot of `pair`, or the empty slot where it belongs."""
    last = np.uint64(len(pairs) - 1)
    slot = ((pair * GOLDEN) >> np.uint64(20)) & last
    while pairs[slot] != 0 and pairs[slot] != pair:
        slot = (slot + ONE) & last
    return slot


@kernel
def _copy_pairs(pairs, larger):
    for i in range(len(pairs)):
        if pairs[i] != 0:
            larger[_pair_slot(larger, pairs[i])] = pairs[i]


@kernel
def _count_pairs(first_worker, pairs, counts, rows, chosen, workers):
    for i in range(len(rows)):
        row, worker = rows[i], chosen[i]
        if first_worker[row] == 0:
            first_worker[row] = worker + 1
            counts[0] += 1
        elif first_worker[row] != worker + 1:
            pair = np.uint64(np.int64(row) * workers + worker + 1)
            slot = _pair_slot(pairs, pair)
            if pairs[slot] == 0:
                pairs[slot] = pair
                counts[1] += 1


def replicas_lower_bound(counts: npt.NDArray[np.int64], workers: int) -> int:
    """Fewest replicas with which perfect balance is possible: sum over keys of max(1, ceil(p_k * workers))."""
    messages = int(counts.sum())
    heavy = [int(count) for count in counts[counts * workers > messages]]
    return len(counts) + sum(-(-count * workers // messages) - 1 for count in heavy)


class Sample(NamedTuple):
    """The balance at one moment."""

    messages: int
    time: float
    imbalance: float
    max_load: int


class Load:
    """The load vector, the mean of I(t) over all tuples, and samples of I(t) evenly spread over the stream.

    There is a sample every 16 tuples at first. Whenever there are twice as many as `samples`, every second one goes and
    the distance doubles, so the stream's length need not be known.
    """

    def __init__(self, workers: int, samples: int) -> None:
        self.vector = np.zeros(workers, np.int64)
        self._samples: list[Sample] = []
        self._last_time = 0.0
        self._most = 2 * samples
        self._every = FIRST_SAMPLE_EVERY
        self._tops = np.zeros(3, np.int64)  # max load, messages, sum of the max load after each message

    @property
    def messages(self) -> int:
        return int(self._tops[1])

    @property
    def imbalance(self) -> float:
        return float(self._tops[0]) - self.messages / len(self.vector)

    @property
    def mean_imbalance(self) -> float:
        """The average of I(t) over t = 1..m."""
        mean_of_max = int(self._tops[2]) / max(1, self.messages)
        return mean_of_max - (self.messages + 1) / 2 / len(self.vector) if self.messages else 0.0

    def add(self, chosen: Workers, times: npt.NDArray[np.float64]) -> None:
        start = 0
        while start < len(chosen):
            stop = min(len(chosen), start + self._every - self.messages % self._every)
            _add_load(self.vector, self._tops, chosen[start:stop])
            self._last_time = float(times[stop - 1])
            if self.messages % self._every == 0:
                self._samples.append(self._sample())
                if len(self._samples) >= self._most:
                    del self._samples[::2]  # leaves the multiples of the doubled distance
                    self._every *= 2
            start = stop

    @property
    def samples(self) -> list[Sample]:
        """The samples so far; the last one is of now."""
        complete = not self.messages or (self._samples and self._samples[-1].messages == self.messages)
        return self._samples if complete else [*self._samples, self._sample()]

    def _sample(self) -> Sample:
        return Sample(self.messages, self._last_time, self.imbalance, int(self._tops[0]))


@kernel
def _add_load(vector, tops, chosen):
    highest, messages, sum_highest = tops
    for i in range(len(chosen)):
        vector[chosen[i]] += 1
        highest = max(highest, vector[chosen[i]])
        sum_highest += highest
    tops[0], tops[1], tops[2] = highest, messages + len(chosen), sum_highest
