"""TopK: the most frequent values of each key, by SpaceSaving in its mergeable form.

Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams", ICDT 2005; merged
as by Agarwal et al., "Mergeable summaries", PODS 2012, section 2, which shows that SpaceSaving and Misra-Gries are the
same summary seen from two sides.
"""

import heapq
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from unskew.aggregates.aggregate import Aggregate
from unskew.checks import require_integer

MARGIN = 10  # counters per wanted value
LEAST_COUNTERS = 100


@dataclass
class Counters:
    """A summary: a value's true count is at most its `count`, and at least count - error. A value that has no counter
    was seen at most `missed` times."""

    count: dict[Any, int] = field(default_factory=dict)
    error: dict[Any, int] = field(default_factory=dict)
    missed: int = 0


@dataclass(frozen=True)
class TopK(Aggregate):
    """The k most frequent values of a column with their counts, most frequent first: a list of (value, count, error).

    Of n values that are not null (those left out), with m counters:

    - the true count is at most `count` and at least `count - error`, and error is at most n / (m + 1);
    - every value that occurs more than n / (m + 1) times has a counter, so the true top k are found if each is that
      frequent and stands out from the next by more than the error;
    - up to m different values, all is exact.

    Values of equal count are listed in the order of the values.

    Parameters
    ----------
    column
        The column whose values are taken.
    k
        How many values are wanted.
    counters
        m, the number of counters; left out, ten per wanted value and at least 100.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import TopK
    >>> aggregate = TopK("v", k=1)
    >>> here = aggregate.add(aggregate.zero(), pa.record_batch({"v": ["cat", "the"]}))
    >>> there = aggregate.add(aggregate.zero(), pa.record_batch({"v": ["the"]}))
    >>> aggregate.finish(aggregate.merge(here, there))
    [{'value': 'the', 'count': 2, 'error': 0}]
    """

    column: str
    k: int = 10
    counters: int | None = None  # m

    def __post_init__(self) -> None:
        require_integer("k", self.k, 1, 1_000_000)
        if self.counters is not None:
            require_integer("counters", self.counters, self.k, 10_000_000)

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        (kind,) = kinds
        if pa.types.is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
            raise self.refuse(kind, "integers, decimals, texts, binaries, booleans, dates and times")
        return pa.list_(pa.struct([("value", kind), ("count", pa.int64()), ("error", pa.int64())]))

    def zero(self) -> Counters:
        return Counters()

    def add(self, state: Counters, batch: pa.RecordBatch) -> Counters:
        values, counts = batch.column(0).drop_null().value_counts().flatten()
        count = dict(zip(values.to_pylist(), counts.to_pylist(), strict=True))
        return self.merge(state, Counters(count, dict.fromkeys(count, 0)))

    def merge(self, a: Counters, b: Counters) -> Counters:
        """A value without a counter on one side may have been missed there."""
        both = Counters(missed=a.missed + b.missed)
        for value in {**a.count, **b.count}:
            both.count[value] = a.count.get(value, a.missed) + b.count.get(value, b.missed)
            both.error[value] = a.error.get(value, a.missed) + b.error.get(value, b.missed)
        return self._shrunk(both)

    def finish(self, state: Counters) -> list[dict[str, Any]]:
        top = heapq.nsmallest(self.k, state.count, key=lambda value: (-state.count[value], value))
        return [{"value": value, "count": state.count[value], "error": state.error[value]} for value in top]

    def _shrunk(self, state: Counters) -> Counters:
        """Keep the m largest counters at most. What has none was then seen at most as often as the next one counts.

        In the view of Misra-Gries, count - missed is a counter, and all are lowered by the (m + 1)-th largest. That
        takes m + 1 times as much from the n values as it adds to `missed`: hence the bound.
        """
        most = self.counters or max(LEAST_COUNTERS, MARGIN * self.k)
        if len(state.count) <= most:
            return state
        *kept, next_one = heapq.nlargest(most + 1, state.count, key=state.count.__getitem__)
        return Counters({v: state.count[v] for v in kept}, {v: state.error[v] for v in kept}, state.count[next_one])
