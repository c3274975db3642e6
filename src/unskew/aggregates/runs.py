"""Sorted rows key by key, with no more than one key's rows and a buffer in memory."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from unskew.aggregates.groups import key_codes, normalized_keys
from unskew.aggregates.states import buffered


def by_key(batches: Iterable[pa.RecordBatch], keys: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of each key as one table, from batches in which rows of the same key are next to each other."""
    held: list[pa.Table] = []  # of the last key, which may go on
    for table in buffered(batches):
        last = [held[0].slice(0, 1).select(keys)] if held else []
        codes = key_codes(pa.concat_tables([*last, table.select(keys)]))[len(last) :]
        starts = np.flatnonzero(np.diff(codes, prepend=0 if held else -1))
        first, *others = [table.slice(a, b - a) for a, b in pairwise([0, *starts, len(table)])]
        held.append(first)
        for other in others:
            if len(held[0]):
                yield pa.concat_tables(held)
            held = [other]
    if held:
        yield pa.concat_tables(held)


def gather_by_key(batches: Iterable[pa.RecordBatch], keys: Sequence[str]) -> Iterator[pa.Table]:
    """The same from batches in any order, all of which are held in memory: for streams, which Spark cannot sort."""
    held = [batch for batch in batches if batch.num_rows]
    if held:
        table = pa.Table.from_batches(held)
        order = np.argsort(key_codes(normalized_keys(table.select(keys))), kind="stable")
        yield from by_key(table.take(order).to_batches(), keys)
