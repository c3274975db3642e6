"""Key ids of arrays and columns, bit-identical with the hashes that Spark computes of them. See `hashing`."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.errors import InputError, InputTypeError
from unskew.hashing import NULL_KEY_ID, SEED, KeyIds, frozen
from unskew.kernels import allocating_kernel, kernel
from unskew.spark_hashes import MASK32, U, murmur_bytes, murmur_int, murmur_long, xx_bytes, xx_int, xx_long

ALLOWED_TYPES = "bool, int8, int16, int32, int64, date32, string and binary"


def key_ids(keys: Any, *more: Any) -> KeyIds:
    """The key id of each key: 64 bits that are all a router ever sees of a key.

    Types as Spark has them: bool, int8, int16, int32 and date32 hash as its int, int64 as its bigint, strings by their
    UTF-8 bytes. The type matters: the int 7 and the bigint 7 are different keys, on Spark and here. Null is a key too.

    Parameters
    ----------
    keys
        An array of numpy or Arrow, or a list: integers, strings or bytes. A struct is a key of several columns, as it
        is to Spark.
    more
        Further columns of the same length, for a key of several columns.

    Examples
    --------
    The high half is Spark's ``hash(key)``, the low half that of its ``xxhash64(key)``:

    >>> from unskew import key_ids
    >>> [hex(key) for key in key_ids(["the", "cat", None])]
    ['0x235d959e1760ea1a', '0x2aa9e5b0fef031f6', '0x2a0000002a']
    >>> [hex(key) for key in key_ids(["the", "cat"], [2025, 2026])]
    ['0x2fcfcc65e2210d35', '0x7cccbadfcb8757e3']
    """
    if more:
        return _ids_of_columns([_as_arrow(column) for column in (keys, *more)])
    if type(keys) is np.ndarray and keys.ndim == 1 and keys.dtype in (np.int32, np.int64):
        hash_all = _ids_of_int32 if keys.dtype == np.int32 else _ids_of_int64
        return hash_all(frozen(keys))  # without Arrow, whose conversion imports pandas: a third of a second
    array = _as_arrow(keys)
    if pa.types.is_struct(array.type):
        return _ids_of_columns([_as_arrow(column) for column in array.flatten()])
    ids = _ids_of_values(array) if len(array) else np.empty(0, np.uint64)
    if array.null_count:
        ids[np.asarray(array.is_null())] = NULL_KEY_ID
    return ids


def can_be_key(kind: pa.DataType) -> bool:
    """Whether `key_ids` takes plain columns of this type; a struct or a dictionary is none."""
    try:
        _plain_values(pa.nulls(1, kind))
    except InputTypeError:
        return False
    return True


def _as_arrow(keys: Any) -> pa.Array:
    """The keys as one array of plain values."""
    array = keys if isinstance(keys, pa.Array | pa.ChunkedArray) else _to_arrow(keys)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _to_arrow(keys: Any) -> pa.Array:
    if isinstance(keys, str | bytes | bytearray):
        raise InputTypeError(f"keys: must be an array of keys, not one {type(keys).__name__}")
    try:
        return pa.array(keys)
    except (pa.ArrowException, TypeError, OverflowError, UnicodeError) as error:
        reason = str(error).splitlines()[0]
        raise InputTypeError(f"keys: must be an array of {ALLOWED_TYPES}, all of one type: {reason}") from None


def _ids_of_values(array: pa.Array) -> KeyIds:
    """Ids of the values; where the array has nulls, what stands there is arbitrary."""
    plain = _plain_values(array)
    if plain is None:
        return np.full(len(array), NULL_KEY_ID)
    if isinstance(plain, tuple):
        return _ids_of_bytes(*plain)
    return _ids_of_int32(plain) if plain.dtype == np.int32 else _ids_of_int64(plain)


def _ids_of_columns(columns: list[pa.Array]) -> KeyIds:
    """Ids of keys of several columns, as Spark hashes them: one column after the other."""
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise InputError(f"keys: all columns of a key must have the same length, not {lengths}")
    placement, identity = np.full(lengths[0], SEED), np.full(lengths[0], SEED)
    for column in columns:
        plain = _plain_values(column) if len(column) else None
        if plain is None:  # all null
            continue
        present = frozen(np.asarray(column.is_valid()))
        if isinstance(plain, tuple):
            starts, data = plain
            _mix_bytes(starts, data, present, placement, identity)
        else:
            _mix_numbers(plain, plain.dtype == np.int32, present, placement, identity)
    return (placement << U(32)) | (identity & MASK32)


def _plain_values(array: pa.Array) -> Any:
    """int32 or int64 values, or starts and bytes of texts; None where all are null."""
    kind, is_a = array.type, pa.types
    if is_a.is_null(kind):
        return None
    if is_a.is_boolean(kind) or kind in (pa.int8(), pa.int16(), pa.int32(), pa.date32()):
        as_int32 = array.view(pa.int32()) if is_a.is_date32(kind) else array.cast(pa.int32())
        return _fixed_width(as_int32, np.int32)
    if kind == pa.int64():
        return _fixed_width(array, np.int64)
    if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_binary(kind) or is_a.is_large_binary(kind):
        array = array.cast(pa.large_binary())
        _, offsets, data = array.buffers()
        starts = frozen(np.frombuffer(offsets, np.int64))[array.offset : array.offset + len(array) + 1]
        return starts, frozen(np.frombuffer(data or b"", np.uint8))
    raise InputTypeError(f"keys: {kind} keys are not supported; allowed are {ALLOWED_TYPES}")


def _fixed_width(array: pa.Array, dtype: type) -> npt.NDArray[Any]:
    return frozen(np.frombuffer(array.buffers()[1], dtype))[array.offset : array.offset + len(array)]


@allocating_kernel
def _ids_of_int32(values):
    ids = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        value = U(np.int64(values[i])) & MASK32
        ids[i] = (murmur_int(value, SEED) << U(32)) | (xx_int(value, SEED) & MASK32)
    return ids


@allocating_kernel
def _ids_of_int64(values):
    ids = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        value = U(values[i])
        ids[i] = (murmur_long(value, SEED) << U(32)) | (xx_long(value, SEED) & MASK32)
    return ids


@allocating_kernel
def _ids_of_bytes(starts, data):
    ids = np.empty(len(starts) - 1, np.uint64)
    for i in range(len(starts) - 1):
        murmur = murmur_bytes(data, starts[i], starts[i + 1], SEED)
        ids[i] = (murmur << U(32)) | (xx_bytes(data, starts[i], starts[i + 1], SEED) & MASK32)
    return ids


@kernel
def _mix_numbers(values, are_int32, present, placement, identity):
    for i in range(len(values)):
        if present[i]:
            value = U(np.int64(values[i]))
            if are_int32:
                placement[i] = murmur_int(value & MASK32, placement[i])
                identity[i] = xx_int(value & MASK32, identity[i])
            else:
                placement[i] = murmur_long(value, placement[i])
                identity[i] = xx_long(value, identity[i])


@kernel
def _mix_bytes(starts, data, present, placement, identity):
    for i in range(len(starts) - 1):
        if present[i]:
            placement[i] = murmur_bytes(data, starts[i], starts[i + 1], placement[i])
            identity[i] = xx_bytes(data, starts[i], starts[i + 1], identity[i])
