"""SpaceSaving: the most frequent keys of a stream, with a fixed number of counters, in constant time per tuple.

Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams", ICDT 2005. A key
that has a counter is counted. One that has none takes the counter of the smallest count m: count m + 1, of which m may
be error. With c counters and N tuples so far:

- count - error <= true count <= count, for every key that has a counter; error <= the smallest count <= N / c;
- a key without a counter occurred at most as often as the smallest count, not at all while a counter is free;
- hence every key that occurred more than N / c times has a counter;
- the counts sum to N.

`decay` multiplies all counts, errors and N by a factor: old tuples then weigh less, and the lines above hold for the
weights, up to rounding.

Choices made here: of equal smallest counters the one with the lowest number is replaced. The smallest is found as
`least.py` says; the paper's linked "Stream-Summary" gives the same in whole numbers but cannot decay.

32 bytes per counter, and 12 per cell of the table, which has at least two cells per counter.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.kernels import inlined, kernel
from unskew.key_table import EMPTY, KeyTable, check_table, fill, find, new_table, remove
from unskew.least import Least, check_least, least, new_least, scale

MOST_TUPLES = 2.0**53  # until which a float64 counts one by one


class SpaceSaving(NamedTuple):
    table: KeyTable  # key -> its counter; as many keys as counters in use: 0, 1, ... used - 1
    counted: npt.NDArray[np.uint64]  # [counters] the key that each counter counts
    counts: npt.NDArray[np.float64]  # [counters] 0 where not in use
    errors: npt.NDArray[np.float64]  # [counters] how much of the count may be other keys'
    total: npt.NDArray[np.float64]  # [1] N
    smallest: Least  # the queue of counters to be replaced


def new_sketch(counters: int) -> SpaceSaving:
    """An empty sketch."""
    cells = 4
    while cells < 2 * (counters + 1):  # at most half full, also while a key is being replaced
        cells *= 2
    counted, counts, errors = np.zeros(counters, np.uint64), np.zeros(counters), np.zeros(counters)
    return SpaceSaving(new_table(cells), counted, counts, errors, np.zeros(1), new_least(counters))


@inlined
def count_key(sketch, key):
    """Count one tuple; the number of the key's counter, which it may have got just now."""
    table = sketch.table
    sketch.total[0] += 1.0
    cell = find(table, key)
    counter = np.int64(table.values[cell])
    if counter == EMPTY:
        if table.used[0] < len(sketch.counts):
            counter = table.used[0]
            fill(table, cell, key, counter)
        else:
            counter = least(sketch.smallest, sketch.counts)
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
    scale(sketch.smallest, sketch.counts, factor)
    for counter in range(len(sketch.errors)):
        sketch.errors[counter] *= factor
    sketch.total[0] *= factor


def check_sketch(name: str, sketch: SpaceSaving) -> None:
    """InputError unless the arrays of the part `name`, of the right shapes, are a sketch: kernels rely on it for their
    memory."""
    counters = len(sketch.counts)
    check_table(f"{name}.table", sketch.table, below=counters)
    check_least(f"{name}.smallest", sketch.smallest)
    used = int(sketch.table.used[0])
    if used > counters:
        raise InputError(f"{name}.table.used: must be from 0 to {counters}, the number of counters, not {used}")
    lost = _first_lost(sketch)
    if lost >= 0:
        key = sketch.counted[lost]
        value = sketch.table.values[find(sketch.table, key)]
        raise InputError(f"{name}.table: key {int(key):#x} must have the value {lost} (its counter), not {value}")
    for field in ("counts", "errors", "total"):
        numbers = getattr(sketch, field)
        wrong = numbers[~((numbers >= 0) & (numbers < MOST_TUPLES))]
        if len(wrong):
            raise InputError(f"{name}.{field}: must be from 0 to under {MOST_TUPLES:.0f}, not {wrong[0]}")


@kernel
def _first_lost(sketch):
    """The first counter whose key the table does not lead to, or -1."""
    for counter in range(sketch.table.used[0]):
        if sketch.table.values[find(sketch.table, sketch.counted[counter])] != counter:
            return counter
    return -1
