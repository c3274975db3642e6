"""Key ids, candidates and salts, against the naive twins and published values."""

import struct
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import naive
from samples import ids
from unskew import InputError, candidate, hashing, key_ids, salt_for, salts_for

EPOCH = date(1970, 1, 1)
INTEGERS = {"int8": "<i", "int16": "<i", "int32": "<i", "int64": "<q"}  # as Spark has them: all but bigint are int
TEXT = ["string", "large_string", "binary", "large_binary"]
ODD_BYTES = [
    b"",
    b"\x00",
    b"\x80",
    b"\xff" * 3,
    b"\x80\x81\x82\x83",
    bytes(range(200, 231)),
    bytes(32),
    bytes(range(256)),
]


def naive_ids(keys, integer="<q"):
    return [naive.key_id(key, integer) for key in keys]


def test_naive_hashes_give_published_values():
    # The examples of hash and xxhash64 in the Spark SQL reference: hash('Spark', array(123), 2) and xxhash64(same).
    murmur, xx = naive.murmur3(b"Spark"), naive.xxhash64(b"Spark")
    for value in (123, 2):  # Spark hashes several values by passing on the hash as the next seed
        murmur, xx = naive.murmur3(struct.pack("<i", value), murmur), naive.xxhash64(struct.pack("<i", value), xx)
    assert naive.signed(murmur, 32) == -1321691492
    assert naive.signed(xx, 64) == 5602566077635097486
    # Test vectors of the reference implementations (for murmur: whole blocks only, Spark's tail is its own).
    assert naive.murmur3(b"test", 0) == 0xBA6BD213
    assert naive.murmur3(b"abcd", 0x9747B28C) == 0xF0478627
    assert naive.xxhash64(b"", 0) == 0xEF46DB3751D8E999
    assert naive.xxhash64(b"Nobody inspects the spammish repetition", 0) == 0xFBCEA83C8A378BF1


@pytest.mark.parametrize("kind", INTEGERS)
@given(data=st.data())
def test_integers_hash_as_on_spark(kind, data):
    bits = int(kind.removeprefix("int"))
    keys = data.draw(st.lists(st.none() | st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1), max_size=20))
    assert key_ids(pa.array(keys, kind)).tolist() == naive_ids(keys, INTEGERS[kind])


@pytest.mark.parametrize("kind", TEXT)
@given(data=st.data())
def test_strings_and_bytes_hash_as_on_spark(kind, data):
    values = st.text(max_size=70) if "string" in kind else st.binary(max_size=70)
    keys = data.draw(st.lists(st.none() | values, max_size=20))
    assert key_ids(pa.array(keys, kind)).tolist() == naive_ids(keys)


@pytest.mark.parametrize("length", range(70))
def test_every_length_of_tail_hashes_as_on_spark(length):
    keys = [bytes(range(250 - length, 250)), b"\xff" * length]
    assert key_ids(keys).tolist() == naive_ids(keys)


def test_odd_keys_hash_as_on_spark():
    assert key_ids(ODD_BYTES).tolist() == naive_ids(ODD_BYTES)
    text = ["", " ", "\0", "a", "é", "日本語", "🦆" * 20, "x" * 10_000]
    assert key_ids(text).tolist() == naive_ids(text)


def test_a_string_of_10_mb_hashes_as_on_spark():
    key = "skewed 数 " * (10 * 2**20 // 11) + "!"
    assert key_ids([key, "a"]).tolist() == naive_ids([key, "a"])


def test_bool_and_date_hash_as_sparks_int():
    assert key_ids([True, False, None]).tolist() == naive_ids([1, 0, None], "<i")
    days = [date(1969, 12, 30), EPOCH, date(2038, 1, 19), None]
    assert key_ids(pa.array(days)).tolist() == naive_ids([d and (d - EPOCH).days for d in days], "<i")


def test_null_is_a_key_of_its_own_with_sparks_hash_of_null():
    assert key_ids([None, None]).tolist() == [42 << 32 | 42] * 2
    assert (
        key_ids(pa.nulls(2, pa.string())).tolist() == key_ids(pa.nulls(2, pa.int64())).tolist() == [42 << 32 | 42] * 2
    )


def test_int_and_bigint_are_different_keys_and_a_string_is_its_utf8_bytes():
    assert key_ids(pa.array([7], "int32")) != key_ids(pa.array([7], "int64"))
    assert key_ids(["é"]) == key_ids(["é".encode()])


EXAMPLES = {
    "bool": [True, False, None, True, True],
    "int8": [1, -2, None, 3, 4],
    "int32": [1, -2, None, 3, 4],
    "int64": [1, -2, None, 3, 4],
    "date32": [1, -2, None, 3, 4],
    "string": ["a", "", None, "日本語", "long enough to pass thirty-two bytes"],
    "large_string": ["a", "", None, "日本語", "b"],
    "binary": [b"a", b"", None, b"\xff", b"b" * 50],
    "large_binary": [b"a", b"", None, b"\xff", b"b" * 50],
}


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize(("start", "length"), [(0, 5), (1, 4), (2, 1), (3, 2), (1, 3)])
def test_a_slice_has_the_ids_of_its_part(kind, start, length):
    array = pa.array(EXAMPLES[kind], kind)
    assert key_ids(array.slice(start, length)).tolist() == key_ids(array).tolist()[start : start + length]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_empty_array_has_no_ids(kind):
    found = key_ids(pa.array([], kind))
    assert found.dtype == np.uint64
    assert len(found) == 0


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("start", [1, 3, 5])
def test_an_empty_slice_has_no_ids(kind, start):
    assert key_ids(pa.array(EXAMPLES[kind], kind).slice(start, 0)).tolist() == []


@pytest.mark.parametrize("kind", EXAMPLES)
def test_chunked_and_dictionary_arrays_have_the_ids_of_their_values(kind):
    array = pa.array(EXAMPLES[kind], kind)
    expected = key_ids(array).tolist()
    assert key_ids(pa.chunked_array([array[:2], array[:0], array[2:]])).tolist() == expected
    assert key_ids(pa.chunked_array([], array.type)).tolist() == []
    encoded = array.dictionary_encode()
    assert key_ids(encoded).tolist() == expected
    assert key_ids(encoded.slice(1, 3)).tolist() == expected[1:4]
    assert key_ids(pa.chunked_array([encoded, encoded])).tolist() == expected * 2


def test_a_null_inside_a_dictionary_is_null():
    array = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(["a", None]))
    assert key_ids(array).tolist() == naive_ids([None, "a", None])


def test_numpy_arrays_and_lists_are_keys_too():
    numbers = np.arange(-6, 6)
    assert key_ids(numbers[::3]).tolist() == naive_ids([-6, -3, 0, 3])
    assert key_ids(numbers.astype(np.int32)).tolist() == naive_ids(numbers.tolist(), "<i")
    assert key_ids(np.array(["a", "bb"])).tolist() == key_ids(["a", "bb"]).tolist() == naive_ids(["a", "bb"])
    assert key_ids(np.array(["a", None], object)).tolist() == naive_ids(["a", None])
    assert key_ids(np.arange(10)[::-1]).tolist() == naive_ids(range(9, -1, -1))
    assert key_ids([]).tolist() == []
    assert key_ids(np.array([], np.int64)).dtype == np.uint64


def test_a_masked_entry_is_null():
    assert key_ids(np.ma.array([1, 2], mask=[False, True])).tolist() == naive_ids([1, None])


@pytest.mark.parametrize(
    "keys",
    [
        np.array([1], np.uint64),
        np.array([1], np.uint32),
        [1.5],
        [[1]],
        pa.array([b"ab"], pa.binary(2)),
        pa.array([1], pa.timestamp("us")),
        pa.array([1], pa.decimal128(5)),
        pa.chunked_array([pa.array([1.5])]),
    ],
    ids=lambda keys: str(pa.array(keys).type if not isinstance(keys, pa.ChunkedArray) else "chunked"),
)
def test_other_types_are_refused_by_name(keys):
    with pytest.raises(InputError, match=r"^keys: .+ keys are not supported; allowed are bool, int8.*binary$") as error:
        key_ids(keys)
    assert isinstance(error.value, TypeError)
    kind = keys.type if isinstance(keys, pa.ChunkedArray) else pa.array(keys).type
    assert str(kind) in str(error.value)


# ---------------------------------------------------------------- candidates and salts

some_ids = st.integers(0, 2**64 - 1)


@given(key=some_ids, j=st.integers(0, 2**31 - 1), workers=st.integers(1, 2**31 - 1))
@example(key=0, j=0, workers=1)
@example(key=2**64 - 1, j=2**31 - 1, workers=2**31 - 1)
def test_candidate_is_sparks_partition_and_in_range(key, j, workers):
    worker = int(candidate(np.uint64(key), j, workers))
    assert worker == naive.candidate(key, j, workers)
    assert 0 <= worker < workers


def hash_of_salt(key, j):
    return naive.signed(naive.murmur3(struct.pack("<I", j), key >> 32), 32)


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 16, 1000, 65_536, 1_000_003, 2**31 - 1])
def test_candidate_is_exact_at_multiples_of_the_workers(workers):
    """Where a remainder by way of a float quotient would go wrong first: hash values at and beside k * workers."""
    key = 0x12345678 << 32
    for multiple in {-(2**31) // workers + 1, -1, 0, 1, (2**31 - 1) // workers}:
        for hash_value in (multiple * workers + d for d in (-1, 0, 1)):
            if -(2**31) <= hash_value < 2**31:
                j = int(hashing._salt_with_hash(np.uint64(key), hash_value))
                assert candidate(np.uint64(key), j, workers) == hash_value % workers


@given(key=some_ids, j=st.integers(0, 2**32 - 1))
def test_the_hash_of_a_salt_can_be_undone(key, j):
    """The bijection of the salts for each key that gives every worker a salt."""
    assert hashing._salt_with_hash(np.uint64(key), hash_of_salt(key, j)) == j


@given(key=some_ids, hash_value=st.integers(-(2**31), 2**31 - 1))
def test_every_hash_value_has_a_salt(key, hash_value):
    assert hash_of_salt(key, int(hashing._salt_with_hash(np.uint64(key), hash_value))) == hash_value


@given(key=some_ids, workers=st.integers(1, 60), data=st.data())
def test_salt_for_is_the_smallest_salt(key, workers, data):
    worker = data.draw(st.integers(0, workers - 1))
    assert salt_for(np.uint64(key), worker, workers) == naive.salt_for(key, worker, workers)


@pytest.mark.parametrize("shift", [-1, 0, 1, 1_000_000, 2**30])
def test_salt_for_is_the_smallest_salt_on_both_sides_of_running_backwards(shift):
    workers = hashing.BACKWARDS_FROM + shift
    for key in ids([3, 4])[: 2 if shift > 1 else 1]:
        worker = int(candidate(key, 12_345, workers))  # so that the smallest salt is at most 12,345
        salt = int(salt_for(key, worker, workers))
        assert salt <= 12_345
        numbers = [naive.candidate(int(key), j, workers) for j in range(salt + 1)]
        assert numbers.index(worker) == salt


def test_salts_for_sends_each_tuple_to_its_chosen_worker():
    keys = ids(np.arange(50))
    for workers in (1, 7, 40, 2**30):
        chosen = np.arange(50, dtype=np.int32) * 31 % workers
        salts = salts_for(keys, chosen, workers)
        assert salts.dtype == np.int32
        found = [naive.candidate(int(k), int(j) % 2**32, workers) for k, j in zip(keys, salts, strict=True)]
        assert found == chosen.tolist()


@pytest.mark.parametrize(("chosen", "workers"), [([0], 4), ([0, 4], 4), ([0, -1], 4), ([[0, 1]], 4), ([0, 0], 0)])
def test_salts_for_refuses_what_is_no_worker_of_each_tuple(chosen, workers):
    with pytest.raises(InputError, match=r"^(chosen|workers): must "):
        salts_for(ids([1, 2]), np.array(chosen, np.int32), workers)


@pytest.mark.parametrize("keys", ["abc", b"abc", [1, "a"], np.zeros((2, 2)), [2**63], np.array([1], ">i8"), object()])
def test_what_is_no_array_of_keys_is_refused(keys):
    with pytest.raises(InputError, match=r"^keys: "):
        key_ids(keys)


# ---------------------------------------------------------------- keys of several columns


def naive_key_id(row, integers):
    """One column after the other, each seeded with the hash before; a null leaves it as it is."""
    placement = identity = naive.SPARK_SEED
    for value, integer in zip(row, integers, strict=True):
        if value is not None:
            data = struct.pack(integer, value) if isinstance(value, int) else value.encode()
            placement, identity = naive.murmur3(data, placement), naive.xxhash64(data, identity)
    return placement << 32 | identity & 0xFFFFFFFF


texts = st.none() | st.text(max_size=40)


@given(rows=st.lists(st.tuples(texts, st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.integers(-9, 9))))
def test_ids_of_several_columns_are_sparks(rows):
    kinds = (pa.string(), pa.int64(), pa.int32())
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    assert key_ids(*columns).tolist() == [naive_key_id(row, (None, "<q", "<i")) for row in rows]


def test_a_second_column_of_nulls_changes_nothing():
    keys = ["a", None, ""]
    assert key_ids(keys, pa.nulls(3)).tolist() == key_ids(keys).tolist()


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InputError, match=r"^keys: all columns of a key must have the same length, not \[2, 1\]$"):
        key_ids(["a", "b"], [1])
