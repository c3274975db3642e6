"""Histograms in bounded memory that can be merged (Ben-Haim and Tom-Tov, JMLR 2010, Algorithms 1 to 4).

A histogram is at most B bins, each a centre and the number of points that it stands for, sorted by centre. A new point
is a bin of its own; if there are then B + 1, the two nearest become one, at their weighted mean.

- The counts add up to the number of points, and the mean of the bins is the mean of the points, whatever was merged.
- Up to B different points, all is exact.
- Merging is commutative, and an empty histogram changes nothing. It is *not* associative: like the order of the points,
  the order of merging moves the centres a little. So a tree may differ a little from run to run, not only by scheme.

Choices made here: of equally near pairs the leftmost is merged. Below the first centre there are no points, above the
last there are all; at a centre, half of its own are below.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.kernels import kernel

Floats = npt.NDArray[np.float64]


class Histogram(NamedTuple):
    """Bins: their centres, which rise, and how many points each stands for."""

    centres: Floats
    counts: Floats

    @property
    def total(self) -> float:
        return float(self.counts.sum())


EMPTY = Histogram(np.empty(0), np.empty(0))


def add_points(histogram: Histogram, values: npt.ArrayLike, bins: int) -> Histogram:
    """Algorithm 1, for one point after the other.

    >>> add_points(EMPTY, [23, 19, 10, 16, 36, 2, 9], bins=5)
    Histogram(centres=array([ 2. ,  9.5, 17.5, 23. , 36. ]), counts=array([1., 2., 2., 1., 1.]))
    """
    centres, counts = np.zeros(bins + 1), np.zeros(bins + 1)
    used = len(histogram.centres)
    centres[:used], counts[:used] = histogram
    used = _insert(centres, counts, used, np.asarray(values, np.float64))
    return Histogram(centres[:used].copy(), counts[:used].copy())


def merge(a: Histogram, b: Histogram, bins: int) -> Histogram:
    """Algorithm 2: the bins of both, the nearest two joined until there are at most `bins`."""
    centres, places = np.unique(np.concatenate([a.centres, b.centres]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([a.counts, b.counts]), len(centres)).astype(np.float64)
    used = _shrink(centres, counts, len(centres), bins)
    return Histogram(centres[:used].copy(), counts[:used].copy())


def points_below(histogram: Histogram, at: npt.ArrayLike) -> Floats:
    """Algorithm 3 ("sum"): how many points are at most `at`, estimated by trapezoids between centres."""
    centres, counts = histogram
    b = np.asarray(at, np.float64)
    if len(centres) == 0:
        return np.zeros(b.shape)
    i = np.clip(np.searchsorted(centres, b, side="right") - 1, 0, max(0, len(centres) - 2))
    j = np.minimum(i + 1, len(centres) - 1)
    width = np.where(j > i, centres[j] - centres[i], 1.0)
    share = np.clip((b - centres[i]) / width, 0.0, 1.0)
    height = counts[i] + (counts[j] - counts[i]) * share
    before = np.cumsum(counts) - counts / 2  # points below each centre
    inside = before[i] + (counts[i] + height) / 2 * share
    return np.where(b < centres[0], 0.0, np.where(b >= centres[-1], histogram.total, inside))


def equal_parts(histogram: Histogram, parts: int) -> Floats:
    """Algorithm 4 ("uniform"): points between which there are about equally many, in rising order."""
    centres, counts = histogram
    if len(centres) < 2:
        return np.empty(0)
    before = np.cumsum(counts) - counts / 2
    wanted = np.arange(1, parts) / parts * histogram.total
    wanted = wanted[(wanted > before[0]) & (wanted < before[-1])]
    i = np.searchsorted(before, wanted, side="right") - 1
    a, b, c = counts[i + 1] - counts[i], 2 * counts[i], -2 * (wanted - before[i])
    root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
    share = np.where(a == 0, -c / np.where(b == 0, 1.0, b), (root - b) / np.where(a == 0, 1.0, 2 * a))
    return np.unique(centres[i] + (centres[i + 1] - centres[i]) * np.clip(share, 0.0, 1.0))


def to_plain(histogram: Histogram) -> dict[str, Any]:
    """As lists, ready for Arrow."""
    return {"centres": histogram.centres.tolist(), "counts": histogram.counts.tolist()}


@kernel
def _insert(centres, counts, used, values):
    """Add the points to the first `used` of B + 1 bins, in place; how many are used then."""
    most = len(centres) - 1
    for value in values:
        place, end = 0, used  # the first bin whose centre is not below the point
        while place < end:
            middle = (place + end) // 2
            if centres[middle] < value:
                place = middle + 1
            else:
                end = middle
        if place < used and centres[place] == value:
            counts[place] += 1.0
            continue
        for i in range(used, place, -1):
            centres[i] = centres[i - 1]
            counts[i] = counts[i - 1]
        centres[place] = value
        counts[place] = 1.0
        used = _shrink(centres, counts, used + 1, most)
    return used


@kernel
def _shrink(centres, counts, used, most):
    """Join the two nearest of the first `used` bins, in place, until there are at most `most`."""
    while used > most:
        nearest = 0
        for i in range(1, used - 1):
            if centres[i + 1] - centres[i] < centres[nearest + 1] - centres[nearest]:
                nearest = i
        both = counts[nearest] + counts[nearest + 1]
        share = counts[nearest + 1] / both
        centres[nearest] += (centres[nearest + 1] - centres[nearest]) * share
        counts[nearest] = both
        for i in range(nearest + 1, used - 1):
            centres[i] = centres[i + 1]
            counts[i] = counts[i + 1]
        used -= 1
    return used
