"""The states of many keys at once: what a worker holds, in both phases of an aggregation.

Phase 1 adds rows and hands out partial results, one row per key: the key columns and one column per
aggregate for its state.
Phase 2 merges partial results and finishes them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.aggregates.aggregate import Aggregate, ColumnAggregate
from unskew.aggregates.groups import Codes, Groups, first_rows, key_codes, normalized_keys, widened
from unskew.errors import InputError
from unskew.failing_rows import naming_the_row

STATE = "__unskew_state_{}"  # the column of the i-th aggregate's state in partial results
ROWS = 262_144  # taken in at once: enough to make the work per key cheap
BYTES = 128 * 2**20  # taken in at once at most, and put out
ROWS_OUT = 10_000


class States:
    """The states of all keys that one worker has seen."""

    def __init__(self, keys: Sequence[str], aggregates: Sequence[Aggregate]) -> None:
        self._names = list(keys)
        self._keys: pa.Table | None = None
        self._counts: Codes = np.zeros(0, np.int64)
        self._all = [_Columns(a) if isinstance(a, ColumnAggregate) else _Objects(a) for a in aggregates]

    def __len__(self) -> int:
        return 0 if self._keys is None else len(self._keys)

    @property
    def keys(self) -> pa.Table:
        """One row per key: its columns."""
        assert self._keys is not None
        return self._keys

    @property
    def counts(self) -> Codes:
        """How many rows of each key were added. Not for states that have merged partial results."""
        return self._counts

    def add(self, rows: pa.Table) -> None:
        """Take in rows, of any keys in any order."""
        placed = _Rows(rows, self._place(rows))
        before, self._counts = self._counts, np.bincount(placed.codes, minlength=len(self))
        self._counts[: len(before)] += before
        for states in self._all:
            states.add(placed)

    def merge(self, partials: pa.Table) -> None:
        """Take in partial results."""
        codes = self._place(partials)
        for i, states in enumerate(self._all):
            states.merge(codes, partials[STATE.format(i)].combine_chunks())

    def partials(self) -> pa.Table:
        """One row per key: its columns and its states."""
        names = [STATE.format(i) for i in range(len(self._all))]
        return self._with_keys(names, [states.column() for states in self._all])

    def results(self, names: Sequence[str], kinds: Sequence[pa.DataType]) -> pa.Table:
        """One row per key: its columns and the results, called `names`, of the types `kinds`."""
        return self._with_keys(names, [states.results(kind) for states, kind in zip(self._all, kinds, strict=True)])

    def _place(self, rows: pa.Table) -> Codes:
        """Where the states of the rows' keys are. New keys go to the end, so no state ever moves."""
        keys = widened(normalized_keys(rows.select(self._names)))
        known = len(self)
        if self._keys is not None:
            keys = pa.concat_tables([self._keys, keys])
        codes = key_codes(keys)
        self._keys = keys.take(first_rows(codes)).combine_chunks()
        return codes[known:]

    def _with_keys(self, names: Sequence[str], columns: list[pa.Array]) -> pa.Table:
        return pa.table([*self.keys.columns, *columns], [*self._names, *names])


class _Rows:
    """Rows and the place of each row's key; sorted or grouped once for all aggregates that need it."""

    def __init__(self, table: pa.Table, codes: Codes) -> None:
        self.table = table
        self.codes = codes

    @cached_property
    def groups(self) -> Groups:
        return Groups(self.codes)

    @cached_property
    def slices(self) -> list[tuple[int, pa.RecordBatch]]:
        """Each key's place and rows."""
        order = np.argsort(self.codes, kind="stable")
        codes = self.codes[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        ends = [*starts[1:], len(codes)]
        batches = self.table.take(order).combine_chunks().to_batches()  # one, or none without rows
        return [
            (int(codes[start]), batch.slice(start, end - start))
            for batch in batches
            for start, end in zip(starts, ends, strict=True)
        ]


class _Columns:
    """The states of an aggregate that computes all keys at once."""

    def __init__(self, aggregate: ColumnAggregate) -> None:
        self._aggregate = aggregate
        self._states: tuple[pa.Array, ...] = ()  # one element per key in each

    def add(self, rows: _Rows) -> None:
        columns = [rows.table[name].combine_chunks() for name in self._aggregate.columns]
        self._join(rows.groups.codes, self._aggregate.fold(rows.groups, *columns))

    def merge(self, codes: Codes, column: pa.StructArray) -> None:
        self._join(codes, tuple(column.flatten()))

    def column(self) -> pa.Array:
        return pa.StructArray.from_arrays(self._states, [str(i) for i in range(len(self._states))])

    def results(self, kind: pa.DataType) -> pa.Array:
        return self._aggregate.result(*self._states).cast(kind)

    def _join(self, codes: Codes, states: tuple[pa.Array, ...]) -> None:
        if self._states:
            codes = np.concatenate([np.arange(len(self._states[0])), codes])
            states = tuple(pa.concat_arrays(pair) for pair in zip(self._states, states, strict=True))
        self._states = self._aggregate.join(Groups(codes), *states)


class _Objects:
    """The states of an aggregate that takes in key by key."""

    def __init__(self, aggregate: Aggregate) -> None:
        self._aggregate = aggregate
        self._states: list[Any] = []  # one per key

    def add(self, rows: _Rows) -> None:
        for place, batch in rows.slices:
            needed = batch.select(list(self._aggregate.columns))
            with naming_the_row(f"aggregates: {self._aggregate!r}", self._add_alone, needed):
                self._change(place, self._aggregate.add, needed)

    def _add_alone(self, rows: pa.RecordBatch) -> None:
        self._aggregate.add(self._aggregate.zero(), rows)

    def merge(self, codes: Codes, column: pa.Array) -> None:
        for place, data in zip(codes.tolist(), column, strict=True):
            self._change(place, self._aggregate.merge, self._aggregate.from_bytes(data.as_py()))

    def column(self) -> pa.Array:
        return pa.array([self._aggregate.to_bytes(state) for state in self._states], pa.large_binary())

    def results(self, kind: pa.DataType) -> pa.Array:
        values = [self._aggregate.finish(state) for state in self._states]
        try:
            return pa.array(values, kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(f"aggregates: {self._aggregate!r} finished with what is no {kind}: {error}") from None

    def _change(self, place: int, change: Callable[[Any, Any], Any], by: Any) -> None:
        if place == len(self._states):  # new keys come in the order of their places
            self._states.append(self._aggregate.zero())
        self._states[place] = change(self._states[place], by)


def buffered(batches: Iterable[pa.RecordBatch], least: Callable[[], int] = lambda: 0) -> Iterator[pa.Table]:
    """The batches in tables of about `ROWS` rows, or `least()` if that is more, but not many more than `BYTES`."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= max(ROWS, least()) or size >= BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def add_all(states: States, batches: Iterable[pa.RecordBatch]) -> None:
    """Phase 1 on one worker. More is taken in at once when there are many keys: the cost stays linear."""
    for rows in buffered(batches, states.__len__):
        states.add(rows)


def merge_all(states: States, batches: Iterable[pa.RecordBatch]) -> None:
    """Phase 2 on one worker."""
    for partials in buffered(batches, states.__len__):
        states.merge(partials)


def in_batches(table: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The table in batches of a size that fits anywhere, cast to `schema`."""
    fit = int(len(table) * BYTES / max(1, table.nbytes))
    rows = max(1, min(ROWS_OUT, fit))
    for start in range(0, len(table), rows):
        yield from table.slice(start, rows).cast(schema).combine_chunks().to_batches()
