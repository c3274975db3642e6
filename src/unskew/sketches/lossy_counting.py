"""Lossy counting: the frequent keys of a stream, or of its recent past, with an error that is known beforehand.

Manku and Motwani, "Approximate frequency counts over data streams", VLDB 2002, as Gedik describes it in section 4.1.2.
The stream is cut into windows of w = 1/epsilon tuples. A key that is not in memory enters with the count 1 and the
error i - 1 in window i. When window i closes, the keys whose count and error sum to at most i leave. With N tuples so
far:

- count <= true count <= count + error, for every key in memory; error <= epsilon N;
- hence every key that occurred more than epsilon N times is in memory;
- at most w H(i) keys are in memory in window i, where H(i) = 1 + 1/2 + ... + 1/i.

The *recent past* (Gedik, Fig. 2) is counted by x counters that start one after the other, each `history` / (x - 1)
tuples after the one before, and start anew once they have counted ``history * x / (x - 1)``. The oldest is used: it has
always counted between `history` and (1 + 1/(x - 1)) `history` tuples, from the time on when there are so many.

Choices made here: the counters share one table of keys, so a tuple is looked up once whatever their number. Memory is
taken at once, by the bound above: 24 bytes, and 12 to 24 more per counter, for each key that may have to be held.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import is_number, require, require_integer
from unskew.errors import InputError
from unskew.kernels import kernel
from unskew.key_table import EMPTY, KeyTable, check_table, fill, find, new_table, remove

MOST_TUPLES = 2**53
MOST_KEYS = 2**24  # that memory is taken for


class LossyCounting(NamedTuple):
    table: KeyTable  # key -> its row; as many keys as rows in use: 0, 1, ... used - 1
    counted: npt.NDArray[np.uint64]  # [rows] the key of each row
    counts: npt.NDArray[np.int64]  # [rows, counters] 0 where the key is not in that counter's memory
    errors: npt.NDArray[np.int64]  # [rows, counters]
    seen: npt.NDArray[np.int64]  # [counters] tuples counted; below 0: so many pass before the counter starts
    lengths: npt.NDArray[np.int64]  # [2] of a window; of a counter's life, 0 where it never starts anew


def new_sketch(error: float, history: int | None = None, counters: int = 3) -> LossyCounting:
    """An empty sketch of the whole stream, or of the last `history` tuples by several counters.

    `error` is epsilon. `history` is a multiple of `counters` - 1.
    """
    require("error", error, "a share above 0 and up to 1", is_number(error, 1e-12, 1.0))
    window = math.ceil(1 / error)
    if history is None:
        counters, hop, life = 1, 0, 0
    else:
        require_integer("counters", counters, 2, 100)
        require_integer("history", history, counters - 1, MOST_TUPLES)
        require("history", history, f"a multiple of counters - 1 = {counters - 1}", history % (counters - 1) == 0)
        hop = history // (counters - 1)
        life = hop * counters
    rows = counters * most_in_memory(window, life or MOST_TUPLES)
    if rows > MOST_KEYS:
        raise InputError(f"error: {error:g} may need memory for {rows:,} keys, which must be at most {MOST_KEYS:,}")
    cells = 4
    while cells < 2 * (rows + 1):
        cells *= 2
    shape = (rows, counters)
    return LossyCounting(
        new_table(cells),
        np.zeros(rows, np.uint64),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        -hop * np.arange(counters, dtype=np.int64),
        np.array([window, life], np.int64),
    )


def most_in_memory(window: int, tuples: int) -> int:
    """How many keys one counter may hold within `tuples` tuples: window times a harmonic number, and no more than
    tuples."""
    windows = max(1, math.ceil(tuples / window))
    return min(tuples, math.ceil(window * (1.0 + math.log(windows))))


@kernel
def count_key(sketch, key):
    """Count one tuple."""
    window, life = sketch.lengths
    cell = find(sketch.table, key)
    row = np.int64(sketch.table.values[cell])
    if row == EMPTY:
        row = sketch.table.used[0]
        if row == len(sketch.counted):
            return  # in a damaged sketch only: the bound above leaves room for every key
        fill(sketch.table, cell, key, row)
        sketch.counted[row] = key
    closes = False
    for counter in range(len(sketch.seen)):
        seen = sketch.seen[counter]
        if seen >= 0:
            if sketch.counts[row, counter] == 0:
                sketch.errors[row, counter] = seen // window
            sketch.counts[row, counter] += 1
            closes |= (seen + 1) % window == 0 or seen + 1 == life
        sketch.seen[counter] = seen + 1
    if closes:
        _close(sketch)


@kernel
def count_keys(sketch, keys):
    """Count one tuple of each of `keys`, in order."""
    for i in range(len(keys)):
        count_key(sketch, keys[i])


@kernel
def _close(sketch):
    """The window of a counter is over, or its life: keys leave its memory, and those that no counter has leave all."""
    window, life = sketch.lengths
    for row in range(sketch.table.used[0] - 1, -1, -1):
        held = False
        for counter in range(len(sketch.seen)):
            seen = sketch.seen[counter]
            over = seen > 0 and seen == life
            small = seen > 0 and seen % window == 0
            if over or (small and sketch.counts[row, counter] + sketch.errors[row, counter] <= seen // window):
                sketch.counts[row, counter] = 0
            held |= sketch.counts[row, counter] > 0
        if not held:
            _drop(sketch, row)
    for counter in range(len(sketch.seen)):
        if sketch.seen[counter] > 0 and sketch.seen[counter] == life:
            sketch.seen[counter] = 0


@kernel
def _drop(sketch, row):
    """Forget the key of `row`, which the last row takes."""
    remove(sketch.table, find(sketch.table, sketch.counted[row]))
    last = sketch.table.used[0]
    if row != last:
        sketch.counted[row] = sketch.counted[last]
        sketch.table.values[find(sketch.table, sketch.counted[row])] = row
    for counter in range(len(sketch.seen)):
        sketch.counts[row, counter] = sketch.counts[last, counter]
        sketch.errors[row, counter] = sketch.errors[last, counter]
        sketch.counts[last, counter] = 0


def oldest(sketch: LossyCounting) -> int:
    """The counter to use: the one that has counted most tuples."""
    return int(sketch.seen.argmax())


def tuples_seen(sketch: LossyCounting) -> int:
    """How many tuples the counts are of."""
    return int(sketch.seen[oldest(sketch)])


def keys_in_memory(sketch: LossyCounting) -> int:
    """How many keys the counter to use holds."""
    return int(np.count_nonzero(sketch.counts[: sketch.table.used[0], oldest(sketch)]))


def frequent_keys(sketch: LossyCounting, share: float = 0.0) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The keys whose count is at least (share - epsilon) of the tuples seen, and these counts: every key of that share
    is among them."""
    counts = sketch.counts[: sketch.table.used[0], oldest(sketch)]
    least = max(1.0, (share - 1.0 / float(sketch.lengths[0])) * tuples_seen(sketch))
    rows = np.flatnonzero(counts >= least)
    return sketch.counted[rows], counts[rows]


def check_sketch(name: str, sketch: LossyCounting) -> None:
    """InputError unless the arrays of the part `name`, of the right shapes, are a sketch: kernels rely on it for their
    memory."""
    rows = len(sketch.counted)
    check_table(f"{name}.table", sketch.table, below=rows)
    used = int(sketch.table.used[0])
    if used > rows:
        raise InputError(f"{name}.table.used: must be from 0 to {rows}, the number of rows, not {used}")
    lost = _first_lost(sketch)
    if lost >= 0:
        key = sketch.counted[lost]
        value = sketch.table.values[find(sketch.table, key)]
        raise InputError(f"{name}.table: key {int(key):#x} must have the value {lost} (its row), not {value}")
    for field in ("counts", "errors"):
        numbers = getattr(sketch, field)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < MOST_TUPLES:
            raise InputError(f"{name}.{field}: must be from 0 to under {MOST_TUPLES}, not {numbers.min()}")
    window, life = sketch.lengths.tolist()
    if not 1 <= window <= MOST_TUPLES:
        raise InputError(f"{name}.lengths: the window must be from 1 to {MOST_TUPLES} tuples, not {window}")
    if not 0 <= life <= 2 * MOST_TUPLES:
        raise InputError(f"{name}.lengths: a counter's life must be from 0 to {2 * MOST_TUPLES} tuples, not {life}")
    if len(sketch.seen) * most_in_memory(window, life or MOST_TUPLES) > rows:
        raise InputError(f"{name}.lengths: windows of {window} tuples need more than {rows} rows")
    if sketch.seen.max() > (life or MOST_TUPLES) or sketch.seen.min() < -MOST_TUPLES:
        raise InputError(f"{name}.seen: must be up to {life or MOST_TUPLES}, not {sketch.seen.tolist()!s:.60}")


@kernel
def _first_lost(sketch):
    """The first row whose key the table does not lead to, or -1."""
    for row in range(sketch.table.used[0]):
        if sketch.table.values[find(sketch.table, sketch.counted[row])] != row:
            return row
    return -1
