"""Count, Sum, Mean, Min and Max: the states of all keys are Arrow columns.

Nulls are left out, as by Spark's functions of the same names: a key with nulls only has count 0 and otherwise null.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unskew.aggregates.aggregate import ColumnAggregate
from unskew.aggregates.groups import Groups
from unskew.errors import InputError

MOST_DIGITS = 38  # of a decimal in Spark
NUMBERS = "integers, floating point numbers and decimals"


@dataclass(frozen=True)
class Count(ColumnAggregate):
    """How many rows, or how many values of a column that are not null.

    Parameters
    ----------
    column
        The column; left out, rows are counted.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import Count
    >>> aggregate = Count("v")
    >>> here = aggregate.add(aggregate.zero(), pa.record_batch({"v": [1, None]}))
    >>> there = aggregate.add(aggregate.zero(), pa.record_batch({"v": [2, 3]}))
    >>> aggregate.finish(aggregate.merge(here, there))
    3
    """

    column: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return () if self.column is None else (self.column,)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return pa.int64()

    def zero(self) -> tuple[pa.Array, ...]:
        return (pa.array([0], pa.int64()),)

    def fold(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        return (groups.per_group("count", columns[0] if columns else groups.index),)

    def join(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        return (groups.per_group("sum", states[0]),)

    def result(self, *states: pa.Array) -> pa.Array:
        return states[0]


@dataclass(frozen=True)
class OfColumn(ColumnAggregate):
    """An aggregate of one column."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)


@dataclass(frozen=True)
class Sum(OfColumn):
    """The sum: bigint of integers, double of floats, and ten digits more than the column's of decimals, as in Spark.

    A sum that does not fit is an error, as by Spark's default (ANSI); never a wrong number.

    Parameters
    ----------
    column
        The column whose values are taken.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import Sum
    >>> aggregate = Sum("v")
    >>> here = aggregate.add(aggregate.zero(), pa.record_batch({"v": [1, 2]}))
    >>> there = aggregate.add(aggregate.zero(), pa.record_batch({"v": [6]}))
    >>> aggregate.finish(aggregate.merge(here, there))
    9
    """

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        (kind,) = kinds
        if pa.types.is_decimal(kind):
            return pa.decimal128(min(MOST_DIGITS, kind.precision + 10), kind.scale)
        if pa.types.is_integer(kind):
            return pa.int64()
        if pa.types.is_floating(kind):
            return pa.float64()
        raise self.refuse(kind, NUMBERS)

    def fold(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        return (self._sums(groups, columns[0]),)

    def join(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        return (self._sums(groups, states[0]),)

    def result(self, *states: pa.Array) -> pa.Array:
        return states[0]

    def _sums(self, groups: Groups, values: pa.Array) -> pa.Array:
        """Arrow's integer sums wrap around in silence: where that could happen, sum with 76 digits and cast back."""
        if pa.types.is_floating(values.type):
            return groups.per_group("sum", values.cast(pa.float64()))
        if pa.types.is_integer(values.type):
            kind, wide = pa.int64(), pa.decimal256(19, 0)
            if _largest(values) * len(values) < 2**63:
                return groups.per_group("sum", values.cast(kind))
        else:
            kind, wide = pa.decimal128(MOST_DIGITS, values.type.scale), pa.decimal256(76, values.type.scale)
        try:
            return groups.per_group("sum", values.cast(wide)).cast(kind)
        except pa.ArrowInvalid:
            raise InputError(f"aggregates: {self!r}: a sum does not fit into {kind}; cast the column first") from None


@dataclass(frozen=True)
class Mean(OfColumn):
    """The arithmetic mean, a double, also of decimals (where Spark's has four digits more than the column).

    Parameters
    ----------
    column
        The column whose values are taken.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import Mean
    >>> aggregate = Mean("v")
    >>> here = aggregate.add(aggregate.zero(), pa.record_batch({"v": [1.0, 2.0]}))
    >>> there = aggregate.add(aggregate.zero(), pa.record_batch({"v": [6.0]}))
    >>> aggregate.finish(aggregate.merge(here, there))
    3.0
    """

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return double_of(self, kinds[0])

    def fold(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        values = columns[0].cast(pa.float64(), safe=False)
        return groups.per_group("sum", values), groups.per_group("count", values)

    def join(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        total, count = states
        return groups.per_group("sum", total), groups.per_group("sum", count)

    def result(self, *states: pa.Array) -> pa.Array:
        total, count = states
        return pc.divide(total, count.cast(pa.float64()))


@dataclass(frozen=True)
class _Extreme(OfColumn):
    """Min or Max. As in Spark, NaN is larger than all numbers."""

    function: ClassVar[str]
    nan_wins: ClassVar[bool]  # over the numbers

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        (kind,) = kinds
        try:
            self.fold(Groups(np.zeros(0, np.int64)), pa.array([], kind))
        except pa.ArrowNotImplementedError:
            raise self.refuse(kind, "numbers, texts, binaries, booleans, dates and times") from None
        return kind

    def fold(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        (values,) = columns
        if not pa.types.is_floating(values.type):
            return (groups.per_group(self.function, values),)
        nan, null, is_nan = pa.scalar(np.nan, values.type), pa.scalar(None, values.type), pc.is_nan(values)
        numbers = groups.per_group(self.function, pc.if_else(is_nan, null, values))
        nans = pc.if_else(groups.per_group("any", is_nan), nan, null)
        return (pc.coalesce(nans, numbers) if self.nan_wins else pc.coalesce(numbers, nans),)

    def join(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        return self.fold(groups, *states)

    def result(self, *states: pa.Array) -> pa.Array:
        return states[0]


class Min(_Extreme):
    """The smallest value.

    Parameters
    ----------
    column
        The column whose values are taken.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import Min
    >>> aggregate = Min("v")
    >>> here = aggregate.add(aggregate.zero(), pa.record_batch({"v": [1.0, 2.0]}))
    >>> there = aggregate.add(aggregate.zero(), pa.record_batch({"v": [6.0]}))
    >>> aggregate.finish(aggregate.merge(here, there))
    1.0
    """

    function, nan_wins = "min", False


class Max(_Extreme):
    """The largest value. As in Spark, NaN is larger than all numbers.

    Parameters
    ----------
    column
        The column whose values are taken.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import Max
    >>> aggregate = Max("v")
    >>> here = aggregate.add(aggregate.zero(), pa.record_batch({"v": [1.0, 2.0]}))
    >>> there = aggregate.add(aggregate.zero(), pa.record_batch({"v": [6.0]}))
    >>> aggregate.finish(aggregate.merge(here, there))
    6.0
    """

    function, nan_wins = "max", True


def double_of(aggregate: ColumnAggregate, kind: pa.DataType) -> pa.DataType:
    """The type of a result that is a double, where the column has numbers."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pa.float64()
    raise aggregate.refuse(kind, NUMBERS)


def _largest(values: pa.Array) -> int:
    """The largest absolute value, 0 if there is none."""
    bounds = pc.min_max(values).as_py()
    return max(abs(bounds["min"] or 0), abs(bounds["max"] or 0))
