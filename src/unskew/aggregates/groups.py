"""Rows by group: which rows have the same key, exactly, and functions of a column group by group.

Keys are told apart by their values, never by a hash. As in Spark, null is a key like any other, -0.0 and 0.0 are one
key, and so are all NaNs.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.int64]


def key_codes(keys: pa.Table) -> Codes:
    """The number of each row's key: 0, 1, 2 ... in the order in which the keys first appear. For all Arrow types that
    can be keys in Spark; several columns make one key."""
    return _combined([_column_codes(column.combine_chunks()) for column in keys.columns])


def first_rows(codes: Codes) -> Codes:
    """Where each key of `key_codes` first appears."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))


def normalized(column: Any) -> Any:
    """The column with one zero and one NaN, if it holds floating point numbers. For arrays and chunked arrays."""
    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(np.nan, column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, pa.scalar(0.0).cast(column.type)))


def normalized_keys(keys: pa.Table) -> pa.Table:
    """The key columns, each normalized."""
    return pa.table([normalized(column) for column in keys.columns], keys.schema.names)


def widened(keys: pa.Table) -> pa.Table:
    """The key columns with room for more than 2 GB of text in each."""
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return pa.table([column.cast(wide.get(column.type, column.type)) for column in keys.columns], keys.schema.names)


class Groups:
    """Rows in groups: row i is in the group with code ``codes[i]``. Results have one element per group, in the order in
    which the groups first appear, which is that of `codes`."""

    def __init__(self, codes: Codes) -> None:
        encoded = pa.array(codes).dictionary_encode()
        self.index = encoded.indices  # of each row's group
        self.codes: Codes = encoded.dictionary.to_numpy()

    def per_group(self, function: str, values: pa.Array, options: Any = None) -> pa.Array:
        """One of Arrow's grouped functions, such as ``sum``."""
        grouped = pa.table([self.index, values], ["group", "value"]).group_by("group", use_threads=False)
        return grouped.aggregate([("value", function, options)])[f"value_{function}"].combine_chunks()

    def per_row(self, values: pa.Array) -> pa.Array:
        """Each row gets its group's value."""
        return values.take(self.index)


def _column_codes(column: pa.Array) -> Codes:
    if pa.types.is_struct(column.type):
        valid = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        return _combined([_dense(valid), *(_column_codes(field) for field in column.flatten())])
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _list_codes(column)
    return _dense(normalized(column))


def _list_codes(column: pa.Array) -> Codes:
    """Two lists are the same key if the codes of their elements are."""
    elements = _column_codes(column.flatten())
    lengths = pc.fill_null(column.value_lengths(), 0).to_numpy()
    ends = np.cumsum(lengths)
    rows = [elements[end - length : end].tobytes() for end, length in zip(ends, lengths, strict=True)]
    mask = column.is_null().to_numpy(zero_copy_only=False)
    return _dense(pa.array(rows, pa.large_binary(), mask=mask))


def _combined(parts: list[Codes]) -> Codes:
    """One code for each combination of codes."""
    codes = parts[0]
    for part in parts[1:]:
        codes = _dense(codes * (int(part.max(initial=0)) + 1) + part)
    return codes


def _dense(values: Any) -> Codes:
    """Codes 0, 1, 2 ... of equal values, in the order in which they first appear; null is a value."""
    encoded = pc.dictionary_encode(
        pa.array(values) if isinstance(values, np.ndarray) else values, null_encoding="encode"
    )
    return encoded.indices.to_numpy().astype(np.int64)
