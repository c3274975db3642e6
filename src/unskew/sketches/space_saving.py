"""SpaceSaving: the most frequent keys of a stream, with a fixed number of counters, in constant time a tuple.

Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams", ICDT 2005. A key
that has a counter is counted. One that has none takes the counter of the smallest count m: count m + 1, of which m may
be error. With c counters and N tuples so far:

- count - error <= true count <= count, for every key that has a counter; error <= the smallest count <= N / c;
- a key without a counter occurred at most as often as the smallest count, not at all while a counter is free;
- hence every key that occurred more than N / c times has a counter;
- the counts sum to N.

Merging as in Agarwal et al., "Mergeable summaries", PODS 2012, section 3: the first three lines hold for the merged
sketch, with N the tuples of both; its counts sum to at most N.

`decay` multiplies all counts, errors and N by a factor: old tuples then weigh less, and the lines above hold for the
weights, up to rounding.

Choices made here: of equal smallest counters the one with the lowest number is replaced. The smallest is found as
`least.py` says; the paper's linked "Stream-Summary" gives the same in whole numbers but cannot decay.

All functions take any NamedTuple that has a sketch's fields, so that a scheme's state can contain one. 32 bytes a
counter and 12 a cell of the table, which has at least two cells a counter.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.hashing import KeyIds
from unskew.kernels import kernel
from unskew.key_table import EMPTY, KeyTable, check_table, fill, find, new_table, remove
from unskew.least import Least, check_least, least, new_least, scale

MOST_TUPLES = 2.0**53  # until which a float64 counts one by one


class SpaceSaving(NamedTuple):
    keys: npt.NDArray[np.uint64]  # this and the next two: a KeyTable of key -> its counter
    values: npt.NDArray[np.int32]
    used: npt.NDArray[np.int64]  # [1] counters in use: 0, 1, ... used - 1
    counted: npt.NDArray[np.uint64]  # [counters] the key that each counter counts
    counts: npt.NDArray[np.float64]  # [counters] 0 where not in use
    errors: npt.NDArray[np.float64]  # [counters] how much of the count may be other keys'
    total: npt.NDArray[np.float64]  # [1] N
    waiting: npt.NDArray[np.int64]  # this and the next two: the queue of counters to be replaced, see least.Least
    span: npt.NDArray[np.int64]
    beyond: npt.NDArray[np.float64]


def new_sketch(counters: int) -> SpaceSaving:
    cells = 4
    while cells < 2 * (counters + 1):  # at most half full, also while a key is being replaced
        cells *= 2
    table, queue = new_table(cells), new_least(counters)
    counted, counts, errors = np.zeros(counters, np.uint64), np.zeros(counters), np.zeros(counters)
    return SpaceSaving(*table, counted, counts, errors, np.zeros(1), *queue)


@kernel
def count_key(sketch, key):
    """Count one tuple; the number of the key's counter, which it may have got just now."""
    table = KeyTable(sketch.keys, sketch.values, sketch.used)  # narrow types, which all schemes share once compiled
    sketch.total[0] += 1.0
    cell = find(table, key)
    counter = np.int64(sketch.values[cell])
    if counter == EMPTY:
        if sketch.used[0] < len(sketch.counts):
            counter = sketch.used[0]
            fill(table, cell, key, counter)
        else:
            counter = least(Least(sketch.waiting, sketch.span, sketch.beyond), sketch.counts)
            sketch.errors[counter] = sketch.counts[counter]
            fill(table, cell, key, counter)
            remove(table, find(table, sketch.counted[counter]))
        sketch.counted[counter] = key
    sketch.counts[counter] += 1.0
    return counter


@kernel
def count_keys(sketch, keys):
    """Count one tuple of each of `keys`, in order."""
    for i in range(len(keys)):
        count_key(sketch, keys[i])


@kernel
def decay(sketch, factor):
    """Multiply everything counted so far by `factor`, from 0 to 1. Costs the number of counters."""
    scale(Least(sketch.waiting, sketch.span, sketch.beyond), sketch.counts, factor)
    for counter in range(len(sketch.errors)):
        sketch.errors[counter] *= factor
    sketch.total[0] *= factor


def missed(sketch: Any) -> float:
    """How often a key without a counter can have occurred at most."""
    return float(sketch.counts.min())  # 0 while a counter is free


def merge(a: SpaceSaving, b: SpaceSaving) -> SpaceSaving:
    """The sketch of both streams; the order of the two does not matter.

    A key that only one side counts may have been missed by the other. Of equal counts the lower key id is kept.
    """
    if len(a.counts) != len(b.counts):
        raise InputError(f"sketch: only equally many counters merge, not {len(a.counts)} and {len(b.counts)}")
    ids: KeyIds = np.union1d(_keys(a), _keys(b))
    bounds = [_bounds(sketch, ids) for sketch in (a, b)]
    counts, errors = bounds[0][0] + bounds[1][0], bounds[0][1] + bounds[1][1]
    merged = new_sketch(len(a.counts))
    kept = np.argsort(-counts, kind="stable")[: len(a.counts)]
    count_keys(merged, ids[kept])
    merged.counts[: len(kept)], merged.errors[: len(kept)] = counts[kept], errors[kept]
    merged.total[0] = a.total[0] + b.total[0]
    return merged


def _keys(sketch: SpaceSaving) -> KeyIds:
    return sketch.counted[: int(sketch.used[0])]


def _bounds(sketch: SpaceSaving, ids: KeyIds) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Count and error of each of the sorted `ids`, which contain all keys of the sketch."""
    counts, errors = np.full(len(ids), missed(sketch)), np.full(len(ids), missed(sketch))
    places = np.searchsorted(ids, _keys(sketch))
    counts[places], errors[places] = sketch.counts[: len(places)], sketch.errors[: len(places)]
    return counts, errors


def check_sketch(sketch: Any) -> None:
    """InputError unless the arrays, of the right shapes, are a sketch: kernels rely on it for their memory."""
    check_table(sketch, below=len(sketch.counts))
    check_least(sketch)
    if sketch.used[0] > len(sketch.counts) or not _is_indexed(sketch):
        raise InputError("sketch: its table does not lead to its counters")
    for numbers in (sketch.counts, sketch.errors, sketch.total):
        if not ((numbers >= 0) & (numbers < MOST_TUPLES)).all():
            raise InputError(f"sketch: it has counts that are not from 0 to {MOST_TUPLES:.0f}")


@kernel
def _is_indexed(sketch):
    lost = 0
    for counter in range(sketch.used[0]):
        lost += sketch.values[find(sketch, sketch.counted[counter])] != counter
    return lost == 0
