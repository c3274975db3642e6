"""Zipf keys: the key of rank r has probability r^-z / sum over x = 1..K of x^-z.

Paper: Partial Key Grouping, section 6.1 (data set ZF). The keys are the ranks 1..K themselves, as 64-bit integers.

Sampled by rejection-inversion (W. Hoermann and G. Derflinger, "Rejection-inversion to generate variates from monotone
discrete distributions", ACM TOMACS 6(3), 1996): exact, no table, the same cost for ten keys and for a billion.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.kernels import allocating_kernel, kernel
from unskew.streams.stream import Generated, require_zipf

SUMMED = 10_000  # ranks that are summed one by one; the rest is an integral with an error under 1e-9 of the sum


@dataclass(frozen=True)
class Zipf(Generated):
    """Keys by a Zipf distribution: the key of rank r comes with a probability in proportion to r^-z.

    Parameters
    ----------
    z
        The exponent; 0 is uniform.
    keys
        K, the number of possible keys, which are 1 to K.
    tuples
        How many tuples.
    seed
        The same seed gives the same tuples.
    rate
        Tuples per second; they come evenly.

    Examples
    --------
    >>> from unskew.streams import Zipf
    >>> stream = Zipf(z=1.0, keys=1000, tuples=10)
    >>> [chunk.keys.tolist() for chunk in stream.chunks(size=5)]
    [[8, 132, 736, 884, 2], [1, 11, 4, 17, 1]]
    """

    z: float
    keys: int
    tuples: int
    seed: int = 0
    rate: float = 1000.0

    def __post_init__(self) -> None:
        require_zipf(self)

    def _keys(self, generator: np.random.Generator, start: int, count: int) -> npt.NDArray[np.int64]:
        return zipf_ranks(generator, float(self.z), self.keys, count)


class _Curve(NamedTuple):
    """The constants of one distribution's hat function."""

    z: float
    keys: int
    low: float  # integral at 1.5, less 1
    high: float  # integral at keys + 0.5
    accept: float  # a rank this close above its real number needs no further test


@cache
def _curve(z: float, keys: int) -> _Curve:
    accept = 2.0 - _integral_inverse(_integral(2.5, z) - 2.0**-z, z)
    return _Curve(z, keys, _integral(1.5, z) - 1.0, _integral(keys + 0.5, z), accept)


def zipf_ranks(generator: np.random.Generator, z: float, keys: int, count: int) -> npt.NDArray[np.int64]:
    """`count` independent ranks from 1 to `keys`."""
    return _sample(generator, _curve(z, keys), count)


@kernel
def _integral(x, z):
    """The integral of x^-z from 1 to x; with expm1 so that z near 1 keeps its precision."""
    log_x = np.log(x)
    t = (1.0 - z) * log_x
    return log_x if t == 0.0 else np.expm1(t) / t * log_x


@kernel
def _integral_inverse(y, z):
    t = max(y * (1.0 - z), -1.0)
    return np.exp(y if t == 0.0 else np.log1p(t) / t * y)


@allocating_kernel
def _sample(generator, curve, count):
    ranks = np.empty(count, np.int64)
    for i in range(count):
        while True:
            u = curve.high + generator.random() * (curve.low - curve.high)
            x = _integral_inverse(u, curve.z)
            rank = min(max(np.int64(x + 0.5), 1), curve.keys)
            if rank - x <= curve.accept or u >= _integral(rank + 0.5, curve.z) - np.float64(rank) ** -curve.z:
                ranks[i] = rank
                break
    return ranks


# ---------------------------------------------------------------- sums over a Zipf distribution


def harmonic(z: float, keys: int) -> float:
    """Sum over x = 1..keys of x^-z; its inverse is p1."""
    first = np.arange(1, min(keys, SUMMED) + 1, dtype=float)
    total = float((first**-z).sum())
    if keys > SUMMED:  # Euler-Maclaurin for the rest
        a, b = float(SUMMED), float(keys)
        total += (
            float(_integral(b, z) - _integral(a, z)) + (b**-z - a**-z) / 2 - z * (b ** (-z - 1) - a ** (-z - 1)) / 12
        )
    return total


def expected_distinct(z: float, keys: int, tuples: int) -> float:
    """How many of the `keys` keys `tuples` tuples are expected to contain."""
    p1 = 1.0 / harmonic(z, keys)

    def seen(rank: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return -np.expm1(-tuples * p1 * rank**-z)

    total = float(seen(np.arange(1, min(keys, SUMMED) + 1, dtype=float)).sum())
    if keys > SUMMED:  # the rest as an integral over log(rank)
        grid = np.linspace(np.log(SUMMED + 0.5), np.log(keys + 0.5), 20_001)
        values = seen(np.exp(grid)) * np.exp(grid)
        total += float(((values[1:] + values[:-1]) / 2 * np.diff(grid)).sum())
    return total
