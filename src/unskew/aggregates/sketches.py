"""DistinctCount and Quantiles: approximate, with a small state however many values a key has.

The sketches are those of Apache DataSketches (``pip install 'unskew[sketches]'``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unskew.aggregates.aggregate import Aggregate
from unskew.aggregates.groups import normalized
from unskew.checks import is_number, require_integer
from unskew.errors import InputError


@dataclass(frozen=True)
class DistinctCount(Aggregate):
    """How many different values a column has, nulls not counted: HyperLogLog with ``2**lg_k`` registers.

    The relative standard error is about 1.04 / sqrt(2**lg_k): 1.6 % for the default; small counts are almost exact.

    Parameters
    ----------
    column
        The column whose values are taken.
    lg_k
        The binary logarithm of the number of registers, from 7 to 21.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import DistinctCount
    >>> aggregate = DistinctCount("v")
    >>> here = aggregate.add(aggregate.zero(), pa.record_batch({"v": [1, 2, 2]}))
    >>> there = aggregate.add(aggregate.zero(), pa.record_batch({"v": [2, 3]}))
    >>> aggregate.finish(aggregate.merge(here, there))
    3
    """

    column: str
    lg_k: int = 12

    def __post_init__(self) -> None:
        _datasketches()
        require_integer("lg_k", self.lg_k, 7, 21)

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        if pa.types.is_nested(kinds[0]):
            raise self.refuse(kinds[0], "all that are not nested")
        return pa.int64()

    def zero(self) -> Any:
        return _datasketches().hll_sketch(self.lg_k)

    def add(self, state: Any, batch: pa.RecordBatch) -> Any:
        for value in _hashable(normalized(batch.column(0)).drop_null().unique()):
            state.update(value)
        return state

    def merge(self, a: Any, b: Any) -> Any:
        union = _datasketches().hll_union(self.lg_k)
        union.update(a)
        union.update(b)
        return union.get_result()

    def finish(self, state: Any) -> int:
        return round(state.get_estimate())

    def to_bytes(self, state: Any) -> bytes:
        return state.serialize_compact()

    def from_bytes(self, data: bytes) -> Any:
        return _datasketches().hll_sketch.deserialize(data)


@dataclass(frozen=True)
class Quantiles(Aggregate):
    """Quantiles of a column of numbers, as doubles.

    A KLL sketch: the value given for rank q has a true rank within about 1.65 % of q with probability 99 % (for the
    default k = 200; the error shrinks with k), and is one of the column's values. Exact up to k values. Its choices are
    random: two runs may differ within the error. Nulls and NaNs are left out.

    Parameters
    ----------
    column
        The column whose values are taken.
    ranks
        From 0 to 1: one number, such as 0.5 for the median, or a list of them for a list of quantiles.
    k
        The size of the sketch, from 8 to 65535.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import Quantiles
    >>> aggregate = Quantiles("v", [0.0, 0.5, 1.0])
    >>> here = aggregate.add(aggregate.zero(), pa.record_batch({"v": [1, 2, 3]}))
    >>> there = aggregate.add(aggregate.zero(), pa.record_batch({"v": [4, 5]}))
    >>> aggregate.finish(aggregate.merge(here, there))
    [1.0, 3.0, 5.0]
    """

    column: str
    ranks: float | Sequence[float] = 0.5
    k: int = 200

    def __post_init__(self) -> None:
        _datasketches()
        require_integer("k", self.k, 8, 65535)
        ranks = self._list()
        if not ranks or not all(is_number(rank, 0.0, 1.0) for rank in ranks):
            raise InputError(f"ranks: must be a number from 0 to 1, or a list of them, not {self.ranks!r}")

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        (kind,) = kinds
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            raise self.refuse(kind, "integers, floating point numbers and decimals")
        return pa.float64() if isinstance(self.ranks, int | float) else pa.list_(pa.float64())

    def zero(self) -> Any:
        return _datasketches().kll_doubles_sketch(self.k)

    def add(self, state: Any, batch: pa.RecordBatch) -> Any:
        values = batch.column(0).drop_null()
        if pa.types.is_decimal(values.type):
            values = values.cast(pa.string())  # Arrow's own way from decimal to double can be off by the last digit
        values = values.cast(pa.float64(), safe=False)
        state.update(np.array(values))  # a copy: the sketch takes writable arrays only
        return state

    def merge(self, a: Any, b: Any) -> Any:
        a.merge(b)
        return a

    def finish(self, state: Any) -> float | list[float] | None:
        if state.is_empty():
            return None
        found = state.get_quantiles(self._list(), True)
        return found[0] if isinstance(self.ranks, int | float) else list(found)

    def to_bytes(self, state: Any) -> bytes:
        return state.serialize()

    def from_bytes(self, data: bytes) -> Any:
        return _datasketches().kll_doubles_sketch.deserialize(data)

    def _list(self) -> list[float]:
        return [self.ranks] if isinstance(self.ranks, int | float) else list(self.ranks)


def _datasketches() -> Any:
    try:
        import datasketches
    except ImportError:
        raise InputError("datasketches: DistinctCount and Quantiles need it; pip install 'unskew[sketches]'") from None
    return datasketches


def _hashable(values: pa.Array) -> Iterable[int | float | str]:
    """The values as what a sketch takes in, different ones different. It skips the empty text, so each gets a mark."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return values.to_pylist()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [value.decode("latin-1") + "." for value in values.to_pylist()]
    if pa.types.is_temporal(kind):
        return values.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
    return [value + "." for value in pc.cast(values, pa.string()).to_pylist()]
