"""The states of `Variance` as whole numbers that can be added up in any order by anything, without rounding.

A variance is what remains of two large sums that nearly cancel: that of the squares, and the square of that of the
values. With sums of floating point numbers nothing may remain. So both sums are fixed-point numbers of several hundred
bits, cut into limbs of 32 bits, each in a column of its own that Spark can sum: in 63 bits there is room for 2^28 parts
per key. They are exact for values from 2^-105 (2e-32) to 2^128 (3e38); beyond that, plain sums take their place.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

BITS = 32  # of a limb
LOWEST = -160  # the exponent of the unit of the sum of values; twice as much for squares
LIMBS, SQUARE_LIMBS = 11, 22  # up to 2^192 and 2^384: for values below 2^128, however many
PLAIN = 3  # columns before the limbs: count, and both sums as floating point numbers
FIELDS = PLAIN + LIMBS + SQUARE_LIMBS
LARGEST, LARGEST_SQUARE, SMALLEST_SQUARE = 2.0**128, 2.0**320, 2.0**-210  # for which limbs are used
SPLITTER = 2.0**27 + 1


def exact_states(states: pa.StructArray) -> pa.StructArray:
    """The states of `Variance` (count, mean, sum of squared distances) as columns that can be summed."""
    count, mean, squares = states.flatten()
    n = count.cast(pa.float64()).to_numpy(zero_copy_only=False)
    means, distances = (pc.fill_null(each, 0.0).to_numpy(zero_copy_only=False) for each in (mean, squares))
    with np.errstate(all="ignore"):  # infinities and NaN, which plain sums hand on
        totals, total_squares = n * means, distances + n * means * means
        fits = (np.abs(means) < LARGEST) & (distances < LARGEST_SQUARE)
    means, distances = np.where(fits, means, 0.0), np.where(fits, distances, 0.0)
    high, low = _product(n, means)
    first = _limbs([high, low], LOWEST, LIMBS)
    second = _limbs([distances, *_product(high, means), *_product(low, means)], 2 * LOWEST, SQUARE_LIMBS)
    columns = [count, pa.array(totals), pa.array(total_squares), *map(pa.array, [*first, *second])]
    return pa.StructArray.from_arrays(columns, [str(i) for i in range(FIELDS)])


def variances(count: Integers, totals: Floats, squares: Floats, limbs: Integers, *, sample: bool) -> list[float | None]:
    """The variance of each key from the sums of all its states; `limbs` has a row per key."""
    return [
        _variance(n, total, square, row, sample=sample)
        for n, total, square, row in zip(count.tolist(), totals.tolist(), squares.tolist(), limbs.tolist(), strict=True)
    ]


def _variance(n: int, total: float, square: float, limbs: Sequence[int], *, sample: bool) -> float | None:
    divisor = n - sample
    if divisor <= 0:
        return None
    if not SMALLEST_SQUARE <= square < LARGEST_SQUARE and square != 0.0:
        return max(0.0, (square - total * (total / n)) / divisor) if math.isfinite(square) else math.nan
    first, second = _whole(limbs[:LIMBS]), _whole(limbs[LIMBS:])
    apart = max(0, second * n - first * first)  # n times the squared distances, in units of the squares
    return math.ldexp(apart / (n * divisor), 2 * LOWEST)


def _whole(limbs: Sequence[int]) -> int:
    return sum(limb << (BITS * i) for i, limb in enumerate(limbs))


def _limbs(parts: list[Floats], lowest: int, number: int) -> list[Integers]:
    """The sum of the parts in units of 2^lowest, the lowest limb first; what is smaller than a unit is cut off."""
    limbs: list[Integers] = []
    for i in reversed(range(number)):
        unit = 2.0 ** (lowest + BITS * i)
        whole = [np.trunc(part / unit) for part in parts]
        parts = [part - each * unit for part, each in zip(parts, whole, strict=True)]
        limbs.append(sum(each.astype(np.int64) for each in whole))  # type: ignore[arg-type]
    return limbs[::-1]


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a times b as two numbers whose sum is exact (Dekker 1971)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Floats) -> tuple[Floats, Floats]:
    scaled = a * SPLITTER
    high = scaled - (scaled - a)
    return high, a - high
