"""The latencies of a run: mean, highest and percentiles, without a memory of every tuple.

A latency goes into one of 128 buckets between each two powers of two, so that a percentile from the buckets is off by
at most 1/256 of itself. The first million latencies are kept besides: up to then percentiles are exact. Both give the
same answer in every run, unlike sketches that toss coins. Buckets reach from 2^-40 to 2^40 seconds.

The percentile q is the latency of the tuple with the rank ceil(q n), from the shortest on.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.kernels import kernel

EXACT = 1_000_000  # latencies that are kept one by one
DROPPED_BITS = 45  # of the 52 bits of a float's mantissa: 7 remain
OCTAVES = 80
BUCKETS = OCTAVES << (52 - DROPPED_BITS)
FIRST_BUCKET = (1023 - OCTAVES // 2) << (52 - DROPPED_BITS)
RANKS = (0.5, 0.95, 0.99)


class Record(NamedTuple):
    """What kernels write to."""

    buckets: npt.NDArray[np.int64]  # int64[BUCKETS], latencies in each
    exact: npt.NDArray[np.float64]  # float64[room], the first ones
    number: npt.NDArray[np.int64]  # int64[1], latencies so far
    sums: npt.NDArray[np.float64]  # float64[3], their sum, the highest, the lowest


@kernel
def _bucket(latency):
    bucket = (np.float64(latency).view(np.int64) >> DROPPED_BITS) - FIRST_BUCKET
    return min(max(bucket, 0), BUCKETS - 1)


@kernel
def note(record, latency):
    """One more latency: seconds, above 0."""
    record.buckets[_bucket(latency)] += 1
    if record.number[0] < len(record.exact):
        record.exact[record.number[0]] = latency
    record.number[0] += 1
    record.sums[0] += latency
    record.sums[1] = max(record.sums[1], latency)
    record.sums[2] = min(record.sums[2], latency)


class Snapshot(NamedTuple):
    """The latencies up to some moment; two of them tell those between."""

    number: int
    total: float
    first: int  # number of the first bucket kept
    buckets: npt.NDArray[np.int64]

    def since(self, earlier: "Snapshot") -> dict[str, float | None]:
        """Mean and percentiles of the latencies noted after `earlier`; None where there are none."""
        number = self.number - earlier.number
        if not number:
            return summary(None, [None] * len(RANKS))
        buckets = self.buckets.copy()
        if len(earlier.buckets):
            start = earlier.first - self.first
            buckets[start : start + len(earlier.buckets)] -= earlier.buckets
        return summary((self.total - earlier.total) / number, _percentiles(buckets, self.first))

    def extremes_since(self, earlier: "Snapshot") -> dict[str, float | None]:
        """The shortest and the longest of them, off by at most 1/256 of themselves."""
        buckets = self.buckets.copy()
        if len(earlier.buckets):
            start = earlier.first - self.first
            buckets[start : start + len(earlier.buckets)] -= earlier.buckets
        filled = np.flatnonzero(buckets)
        if not len(filled):
            return {"latency_min": None, "latency_max": None}
        shortest, longest = (float(each) for each in _middles(filled[[0, -1]], self.first))
        return {"latency_min": shortest, "latency_max": longest}


def summary(mean: float | None, percentiles: list[Any]) -> dict[str, float | None]:
    names = (f"latency_p{round(100 * rank)}" for rank in RANKS)
    return {"latency_mean": mean, **dict(zip(names, percentiles, strict=True))}


NOTHING = Snapshot(0, 0.0, 0, np.zeros(0, np.int64))


class Latencies:
    def __init__(self) -> None:
        exact = np.zeros(EXACT)  # takes no memory before it is written to
        sums = np.array([0.0, 0.0, np.inf])
        self.record = Record(np.zeros(BUCKETS, np.int64), exact, np.zeros(1, np.int64), sums)

    def __len__(self) -> int:
        return int(self.record.number[0])

    @property
    def exact(self) -> bool:
        """Whether the percentiles are exact, else from buckets."""
        return len(self) <= EXACT

    @property
    def highest(self) -> float | None:
        return float(self.record.sums[1]) if len(self) else None

    def snapshot(self) -> Snapshot:
        if not len(self):
            return NOTHING
        total, highest, lowest = self.record.sums
        first = int(_bucket(lowest))
        kept = self.record.buckets[first : int(_bucket(highest)) + 1].copy()
        return Snapshot(len(self), float(total), first, kept)

    def summary(self) -> dict[str, float | None]:
        if not (self.exact and len(self)):
            return self.snapshot().since(NOTHING)
        noted = np.sort(self.record.exact[: len(self)])
        at_ranks = [float(noted[_place(rank, len(noted))]) for rank in RANKS]
        return summary(float(self.record.sums[0]) / len(self), at_ranks)


def _place(rank: float, number: int) -> int:
    return max(0, int(np.ceil(rank * number)) - 1)


def _percentiles(buckets: npt.NDArray[np.int64], first: int) -> list[float]:
    """The middle of the bucket that holds each rank."""
    so_far = np.cumsum(buckets)
    found = [int(np.searchsorted(so_far, _place(rank, int(so_far[-1])), side="right")) for rank in RANKS]
    return [float(middle) for middle in _middles(np.array(found), first)]


def _middles(buckets: npt.NDArray[np.int64], first: int) -> npt.NDArray[np.float64]:
    edges = (np.stack([buckets, buckets + 1], axis=1) + first + FIRST_BUCKET) << DROPPED_BITS
    middles: npt.NDArray[np.float64] = edges.view(np.float64).mean(axis=1)
    return middles
