"""The contract of a mergeable aggregate: what can be computed in parts, wherever rows of a key happen to be.

An aggregate of your own is a class with two attributes and four methods. This one counts the words of a key:

    class Vocabulary(Aggregate):
        columns = ["text"]
        type = pa.int64()

        def zero(self): return set()
        def add(self, state, batch): return state.union(*(t.split() for t in batch["text"].to_pylist() if t))
        def merge(self, a, b): return a | b
        def finish(self, state): return len(state)

and is used like any other: ``aggregate(df, "author", {"vocabulary": Vocabulary()}, workers=64)``.
"""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.aggregates.groups import Groups
from unskew.errors import InputError, InputTypeError


class Aggregate(ABC):
    """A function of all rows of a key that can be computed in parts.

    `columns` names what is needed of a row, and `type` is the Arrow type of the result. Each worker makes a state with
    `zero` and feeds it with `add`; the states of a key are then joined by `merge`, in any order, and `finish` gives the
    result. The laws: ``merge`` is associative and commutative, ``zero()`` changes
    nothing, and adding two batches is adding the one made of both. Then the result does not depend on where the rows
    were. `add` and `merge` may change their first argument and return it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import Aggregate
    >>> class Longest(Aggregate):
    ...     columns = ["text"]
    ...     type = pa.string()
    ...     def zero(self): return ""
    ...     def add(self, state, batch): return max(state, *batch["text"].to_pylist(), key=len)
    ...     def merge(self, a, b): return max(a, b, key=len)
    ...     def finish(self, state): return state
    >>> longest = Longest()
    >>> here = longest.add(longest.zero(), pa.record_batch({"text": ["to", "be"]}))
    >>> there = longest.add(longest.zero(), pa.record_batch({"text": ["or", "not"]}))
    >>> longest.finish(longest.merge(here, there))
    'not'
    """

    columns: Sequence[str] = ()  # what `add` sees; everything else stays where it is
    type: pa.DataType  # of the result; if it depends on the columns, override `result_type` instead

    @abstractmethod
    def zero(self) -> Any:
        """The state of a key without rows. Any Python object that `pickle` can carry, or see `to_bytes`."""

    @abstractmethod
    def add(self, state: Any, batch: pa.RecordBatch) -> Any:
        """The state with the rows of `batch`, all of one key, taken in."""

    @abstractmethod
    def merge(self, a: Any, b: Any) -> Any:
        """The state of all rows that went into `a` or `b`."""

    @abstractmethod
    def finish(self, state: Any) -> Any:
        """The result: a value that fits the result's type, or None for null."""

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        """The type of the result, given the types of the columns. InputError if there is none for those."""
        if not isinstance(getattr(self, "type", None), pa.DataType):
            raise InputTypeError(f"type: {self!r} must say what its result is, for example type = pa.float64()")
        return self.type

    def to_bytes(self, state: Any) -> bytes:
        """The state as it travels from worker to worker."""
        try:
            return pickle.dumps(state, protocol=5)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputTypeError(
                f"state: pickle cannot carry the {type(state).__name__} of {self!r} ({error}); "
                "use plain Python or NumPy values, or override to_bytes and from_bytes"
            ) from None

    def from_bytes(self, data: bytes) -> Any:
        """The state that `to_bytes` wrote."""
        return pickle.loads(data)

    def refuse(self, kind: pa.DataType, allowed: str) -> InputError:
        """The error for a column of a type that this aggregate has no result for."""
        return InputError(f"aggregates: {self!r} cannot take a column of type {kind}; allowed are {allowed}")


class ColumnAggregate(Aggregate):
    """An aggregate whose states are columns, so that all keys of a batch are computed at once.

    A state is a tuple of Arrow arrays with one element per key. `fold` makes it from rows, `join` from states, and
    `result` finishes it. The contract for a single key follows from these.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.aggregates import ColumnAggregate
    >>> class Rows(ColumnAggregate):
    ...     columns = ["v"]
    ...     type = pa.int64()
    ...     def fold(self, groups, *columns): return (groups.per_group("count", groups.index),)
    ...     def join(self, groups, *states): return (groups.per_group("sum", states[0]),)
    ...     def result(self, *states): return states[0]
    >>> rows = Rows()
    >>> rows.finish(rows.add(rows.zero(), pa.record_batch({"v": ["to", "be"]})))
    2
    """

    @abstractmethod
    def fold(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        """The states of the groups, from their rows."""

    @abstractmethod
    def join(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        """The states of the groups, from several states of each."""

    @abstractmethod
    def result(self, *states: pa.Array) -> pa.Array:
        """The results; they are cast to the result's type."""

    def zero(self) -> Any:
        return None

    def add(self, state: Any, batch: pa.RecordBatch) -> Any:
        if batch.num_rows == 0:
            return state
        return self.merge(state, self.fold(Groups(np.zeros(batch.num_rows, np.int64)), *batch.columns))

    def merge(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        both = [pa.concat_arrays(pair) for pair in zip(a, b, strict=True)]
        return self.join(Groups(np.zeros(2, np.int64)), *both)

    def finish(self, state: Any) -> Any:
        return None if state is None else self.result(*state)[0].as_py()
