"""What is measured while tuples are routed, all of it exact.

Load: L_i(t), tuples that worker i got so far. Imbalance: I(t) = max load - mean load. Replicas: distinct (worker, key)
pairs, the papers' memory. Every pass over a chunk is a loop of independent steps, so that the processor can wait for
many cache misses at once; that is what makes tens of millions of keys affordable.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from unskew.contract import Workers
from unskew.hashing import KeyIds
from unskew.kernels import allocating_kernel, kernel
from unskew.key_table import EMPTY, KeyTable, fill, find, new_table, with_room

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


@allocating_kernel
def _rows(table, ids, counts, key_ids):
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

    A key's first worker is an entry of an array; the pairs beyond go to a hash set: 4 bytes a key and 16 to 32 bytes a
    further replica.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._first_worker = np.zeros(1024, np.int32)  # worker + 1, 0 for none
        self._pairs = np.zeros(1024, np.uint64)  # row * workers + worker + 1, 0 for an empty cell
        self._counts = np.zeros(2, np.int64)  # keys, further pairs

    def add(self, rows: npt.NDArray[np.int32], chosen: Workers, keys: int) -> None:
        """Tuples of the keys `rows` (numbers below `keys`) went to the workers `chosen`."""
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


class Sample(NamedTuple):
    """The balance at one moment."""

    tuples: int
    time: float
    imbalance: float
    max_load: int


Taken = TypeVar("Taken")


class Spread(Generic[Taken]):
    """Samples evenly spread over a stream whose length need not be known.

    There is a sample every 16 tuples at first. Whenever there are twice as many as `samples`, every second one goes and
    the distance doubles. Where the length is known, the distance is from the start what it would become.
    """

    def __init__(self, samples: int, take: Callable[[], Taken], length: int | None = None) -> None:
        self._take = take
        self._kept: list[Taken] = []
        self._most = 2 * samples
        self._every = FIRST_SAMPLE_EVERY
        while self._every * self._most <= (length or 0):
            self._every *= 2
        self._tuples = 0

    def pieces(self, count: int) -> Iterator[slice]:
        """The next `count` tuples in pieces; a sample is taken when the piece before it has been dealt with."""
        start = 0
        while start < count:
            stop = min(count, start + self._every - self._tuples % self._every)
            yield slice(start, stop)
            self._tuples += stop - start
            start = stop
            if self._tuples % self._every == 0:
                self._kept.append(self._take())
                if len(self._kept) >= self._most:
                    del self._kept[::2]  # leaves the multiples of the doubled distance
                    self._every *= 2

    @property
    def samples(self) -> list[Taken]:
        """The samples so far; the last one is of now."""
        complete = self._tuples % self._every == 0
        return self._kept if complete else [*self._kept, self._take()]


class Load:
    """The load vector, the mean of I(t) over all tuples, and samples of I(t).

    When workers come or go, the count starts anew: the load by worker, and with it I(t), is of the workers that are
    there, since they are. A worker that joined late is not compared with what others got before.
    """

    def __init__(self, workers: int, samples: int, length: int | None = None) -> None:
        self.vector = np.zeros(workers, np.int64)
        self._samples = Spread(samples, self._sample, length)
        self._last_time = 0.0
        self._tops = np.zeros(3, np.int64)  # max load, tuples, sum of the max load after each tuple
        self._tuples_before = 0  # the last change of workers
        self._imbalances_before = 0.0  # sum of I(t) until then

    @property
    def tuples(self) -> int:
        return self._tuples_before + self.tuples_since

    @property
    def tuples_since(self) -> int:
        """Since workers last came or went."""
        return int(self._tops[1])

    @property
    def imbalance(self) -> float:
        return float(self._tops[0]) - self.tuples_since / len(self.vector)

    @property
    def max_over_mean(self) -> float:
        return float(self._tops[0]) * len(self.vector) / self.tuples_since if self.tuples_since else 1.0

    @property
    def mean_imbalance(self) -> float:
        """The average of I(t) over t = 1..m."""
        since = self.tuples_since
        mean = int(self._tops[2]) / since - (since + 1) / 2 / len(self.vector) if since else 0.0
        return (self._imbalances_before + mean * since) / self.tuples if self._tuples_before else mean

    def add(self, chosen: Workers, times: npt.NDArray[np.float64]) -> None:
        for piece in self._samples.pieces(len(chosen)):
            _add_load(self.vector, self._tops, chosen[piece])
            self._last_time = float(times[piece.stop - 1])

    def workers_changed(self, workers: int) -> None:
        """From now on there are `workers` workers."""
        self._imbalances_before = self.mean_imbalance * self.tuples
        self._tuples_before = self.tuples
        self.vector = np.zeros(workers, np.int64)
        self._tops = np.zeros(3, np.int64)

    @property
    def samples(self) -> list[Sample]:
        """The samples so far; the last one is of now."""
        return self._samples.samples

    def _sample(self) -> Sample:
        return Sample(self.tuples, self._last_time, self.imbalance, int(self._tops[0]))


@kernel
def _add_load(vector, tops, chosen):
    highest, tuples, sum_highest = tops
    for i in range(len(chosen)):
        vector[chosen[i]] += 1
        highest = max(highest, vector[chosen[i]])
        sum_highest += highest
    tops[0], tops[1], tops[2] = highest, tuples + len(chosen), sum_highest
