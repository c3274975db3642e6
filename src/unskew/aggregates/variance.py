"""Variance and StdDev; like those in `columns`, the states of all keys are Arrow columns, and nulls are left out."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from unskew.aggregates.columns import OfColumn, double_of
from unskew.aggregates.groups import Groups


@dataclass(frozen=True)
class Variance(OfColumn):
    """The variance of a sample (divided by n - 1, null for a single value) or of a population.

    States are merged with the formula of Chan, Golub and LeVeque (1979): the squared distances from the common mean
    are those from each part's mean, plus those of the parts' means. No large squares that cancel.

    Parameters
    ----------
    column
        The column whose values are taken.
    sample
        False for the variance of a population, divided by n.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import Variance
    >>> aggregate = Variance("v")
    >>> here = aggregate.add(aggregate.zero(), pa.record_batch({"v": [1.0, 2.0]}))
    >>> there = aggregate.add(aggregate.zero(), pa.record_batch({"v": [6.0]}))
    >>> aggregate.finish(aggregate.merge(here, there))
    7.0
    """

    sample: bool = True

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return double_of(self, kinds[0])

    def fold(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        values = columns[0].cast(pa.float64(), safe=False)
        count = groups.per_group("count", values)
        squares = pc.multiply(groups.per_group("variance", values), count.cast(pa.float64()))
        return count, groups.per_group("mean", values), squares

    def join(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        count, mean, squares = states  # of each part: n, mean, sum of squared distances from that mean
        weight = count.cast(pa.float64())
        total = groups.per_group("sum", count)
        center = pc.divide(groups.per_group("sum", pc.multiply(weight, mean)), total.cast(pa.float64()))
        apart = pc.subtract(mean, groups.per_row(center))
        moved = pc.add(squares, pc.multiply(weight, pc.multiply(apart, apart)))
        return total, center, groups.per_group("sum", moved)

    def result(self, *states: pa.Array) -> pa.Array:
        count, _, squares = states
        divisor = pc.subtract(count, int(self.sample))
        enough = pc.if_else(pc.greater(divisor, 0), divisor, None)
        return pc.divide(squares, enough.cast(pa.float64()))


@dataclass(frozen=True)
class StdDev(Variance):
    """The standard deviation: the square root of `Variance`.

    Parameters
    ----------
    column
        The column whose values are taken.
    sample
        False for the standard deviation of a population.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import StdDev
    >>> aggregate = StdDev("v", sample=False)
    >>> here = aggregate.add(aggregate.zero(), pa.record_batch({"v": [1.0, 3.0]}))
    >>> there = aggregate.add(aggregate.zero(), pa.record_batch({"v": [1.0, 3.0]}))
    >>> aggregate.finish(aggregate.merge(here, there))
    1.0
    """

    def result(self, *states: pa.Array) -> pa.Array:
        return pc.sqrt(super().result(*states))
