"""Rows per worker, counted exactly inside Spark by one aggregate: a Count-Min sketch in which no two workers meet.

Spark's ``count_min_sketch`` with a single row of cells is an array of counters, and which one a number counts in is
known beforehand. So each worker is given the smallest number that counts in the cell of its own index. It is cheaper
than ``approx_top_k``, and unlike a ``groupBy`` it can be observed on a stream.
"""

import base64
import math
import struct
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

MOST_COUNTERS = 20_000  # that a sketch has: with so many workers, chance is what is left anyway
CONFIDENCE, SEED = 0.4, 32  # of the sketch: one row of cells, and a prime factor, so that every cell can be reached
HEAD = ">iqiiq"  # of a sketch as bytes: version, rows in all, rows of cells, cells, factor
MERSENNE = np.int64(2**31 - 1)
STEP = 65_536  # numbers that are tried at once


def count_workers(worker: Column, workers: int) -> Column:
    """An aggregate of the workers of all rows, numbers from 0 on. `load_in` reads what comes out."""
    return count_numbers(number_of(worker, workers), workers)


def number_of(counter: Column, counters: int) -> Column:
    """What a counter counts: the smallest number that counts in the cell of its index."""
    if counters > MOST_COUNTERS:
        return F.lit(0)
    return F.get(F.split(F.lit(",".join(map(str, _numbers(counters)))), ",").cast("array<int>"), counter)


def count_numbers(number: Column, counters: int) -> Column:
    """An aggregate of such numbers, one per row."""
    if counters > MOST_COUNTERS:
        return F.lit(None).cast("binary")
    return F.count_min_sketch(number, F.lit(_error(counters)), F.lit(CONFIDENCE), F.lit(SEED))


def load_in(sketch: Any, counters: int) -> npt.NDArray[np.int64] | None:
    """The rows of each counter; None where there are too many to count."""
    if counters > MOST_COUNTERS:
        return None
    if sketch is None:
        return np.zeros(counters, np.int64)
    return np.frombuffer(_as_bytes(sketch), ">i8", counters, struct.calcsize(HEAD)).astype(np.int64)


def has_counters(sketch: Any, counters: int) -> bool:
    """Whether it can be the sketch of rows that so many counters counted. That of an earlier query, with another number
    of workers, mostly cannot; up to four counters look the same."""
    if sketch is None or counters > MOST_COUNTERS:
        return sketch is None and counters > MOST_COUNTERS
    cells: int = struct.unpack_from(HEAD, _as_bytes(sketch))[3]
    return cells == _cells(counters)


def _as_bytes(observed: Any) -> bytes:
    """Binary data that was observed, which is text on Connect."""
    return base64.b64decode(observed) if isinstance(observed, str) else bytes(observed)


def _error(counters: int) -> float:
    return 2.0 / max(counters, 4)


def _cells(counters: int) -> int:
    return math.ceil(2.0 / _error(counters))


@cache
def _numbers(counters: int) -> list[int]:
    """The smallest number that counts in the cell of each counter."""
    cells, factor = _cells(counters), np.int64(_first_random(SEED))
    found = np.full(counters, -1, np.int64)
    start = 0
    while (found < 0).any():
        tried = np.arange(start, start + STEP)
        product = factor * tried  # as CountMinSketchImpl.hash
        cell = ((product + (product >> 32)) & MERSENNE) % cells
        first, where = np.unique(cell, return_index=True)
        for counter, number in zip(first.tolist(), tried[where].tolist(), strict=True):
            if counter < counters and found[counter] < 0:
                found[counter] = number
        start += STEP
    return [int(number) for number in found]


def _first_random(seed: int) -> int:
    """``new java.util.Random(seed).nextInt(Integer.MAX_VALUE)``, the factor of the sketch's hash."""
    state, bound = (seed ^ 0x5DEECE66D) & (2**48 - 1), 2**31 - 1
    while True:
        state = (state * 0x5DEECE66D + 0xB) & (2**48 - 1)
        bits = state >> 17
        if bits - bits % bound + bound - 1 < 2**31:
            return bits % bound
