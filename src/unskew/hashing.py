"""Key ids, candidates and salts: the only hashes in the project, bit-identical with Spark's.

Spark puts the row (key, salt) in partition ``pmod(murmur3(key, salt), workers)``. That is our family of hash functions:

    H_j(key) = pmod(murmur3_int(j, seed=murmur3(key, seed=42)), workers)

A *key id* is all that a kernel ever sees of a key. High 32 bits: Spark's ``hash(key)``, which places it. Low 32 bits:
the low half of Spark's ``xxhash64(key)``, which tells keys apart. Two of n keys share an id with probability about
n^2 / 2^65 (one in 37 million for a million keys).

``murmur3_int(j, seed)`` is a bijection of the 32-bit integers for each seed (each of its steps can be undone), so every
worker is the candidate j of every key for some salt j, and ``salt_for`` can run it backwards.

Sketches hash key ids once more, with functions that are drawn at random (`universal_functions`). These place no tuple,
so Spark need not know them.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError, InputTypeError
from unskew.kernels import allocating_kernel, inlined, kernel
from unskew.spark_hashes import (
    C1,
    C2,
    FINAL_1,
    FINAL_2,
    FIVE,
    MASK32,
    MURMUR_ADD,
    SPARK_SEED,
    U,
    murmur_int,
    murmur_long,
    rotate_left_32,
)

KeyIds = npt.NDArray[np.uint64]

SEED = U(SPARK_SEED)
NULL_KEY_ID = np.uint64((SPARK_SEED << 32) | SPARK_SEED)  # Spark's hash of null is the seed itself

# The inverses modulo 2^32 of murmur's multipliers: `_salt_with_hash` runs the hash backwards.
C1_INVERSE, C2_INVERSE, FIVE_INVERSE, FINAL_1_INVERSE, FINAL_2_INVERSE = (
    U(pow(int(c), -1, 2**32)) for c in (C1, C2, FIVE, FINAL_1, FINAL_2)
)

REMEMBERED = 16384  # salts of a batch, so that a hot key's is not searched again
BACKWARDS_FROM = 65536  # workers: from here on fewer hash values than salts lead to a given worker


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only, contiguous view. Arrow hands out read-only arrays; with all inputs alike a loop is compiled once."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def require_key_ids(ids: Any) -> KeyIds:
    """`ids` as kernels take them; other integers than key ids are refused, not reinterpreted."""
    array = np.asarray(ids)
    if array.dtype != np.uint64 or array.ndim != 1:
        raise InputTypeError(
            f"key_ids: must be a one-dimensional uint64 array of key ids, not {array.ndim}-dimensional {array.dtype}; "
            "make them with unskew.key_ids(keys)"
        )
    return frozen(array)


def require_counts(counts: Any, keys: int) -> npt.NDArray[np.int64]:
    """`counts` as kernels take them: one whole number of at least 0 for each of `keys` keys."""
    array = np.asarray(counts)
    if array.shape != (keys,):
        raise InputError(f"counts: must have one number per key ({keys}), not shape {array.shape}")
    if keys and (array.dtype.kind not in "iu" or array.min() < 0 or array.sum(dtype=float) >= 2**62):
        raise InputError(f"counts: must be integers of at least 0 with a sum under 2**62, not {array.dtype} {array}")
    return frozen(array.astype(np.int64))


# ---------------------------------------------------------------- candidates and salts


@kernel
def candidate(key_id: np.uint64, j: int, workers: int) -> int | np.int64:
    """H_j(key): the worker that Spark gives to the pair (key, salt=j) among `workers` partitions.

    The remainder goes through a float64 quotient, twice as fast as integer division and exact for 32-bit numbers: a
    quotient that is no integer lies at least 1/workers below the next one, its rounding error is under 2^-22/workers.

    Parameters
    ----------
    key_id
        The id of the key, see `key_ids`.
    j
        The number of the candidate, which is the salt that leads to it.
    workers
        W, the number of workers.

    Examples
    --------
    >>> from unskew import candidate, key_ids
    >>> the = key_ids(["the"])[0]
    >>> [int(candidate(the, j, 16)) for j in range(4)]
    [9, 2, 1, 14]
    """
    hash_value = np.int64(np.int32(np.uint32(murmur_int(U(j) & MASK32, U(key_id) >> U(32)))))
    return hash_value - np.int64(np.floor(np.float64(hash_value) / workers)) * workers


@allocating_kernel
def candidates_of(key_ids: KeyIds, j: int, workers: int) -> npt.NDArray[np.int32]:
    """H_j of each key."""
    chosen = np.empty(len(key_ids), np.int32)
    for i in range(len(key_ids)):
        chosen[i] = candidate(key_ids[i], j, workers)
    return chosen


@kernel
def salt_for(key_id: np.uint64, worker: int, workers: int) -> int | np.int64:
    """The smallest salt j (as an unsigned 32-bit number) with H_j(key) = worker; -1 where there is no such worker.

    Costs about min(workers, 2^32 / workers) hashes: tries the salts in turn or, for very many workers, runs the hash
    backwards from each of the few hash values that land on the worker.

    Parameters
    ----------
    key_id
        The id of the key, see `key_ids`.
    worker
        The worker that the tuple should go to.
    workers
        W, the number of workers.

    Examples
    --------
    >>> from unskew import candidate, key_ids, salt_for
    >>> the = key_ids(["the"])[0]
    >>> salt = int(salt_for(the, 5, 16))
    >>> salt, int(candidate(the, salt, 16))
    (27, 5)
    """
    if not 0 <= worker < workers:
        return -1
    if workers < BACKWARDS_FROM:
        j = 0
        while candidate(key_id, j, workers) != worker:
            j += 1
        return j
    smallest = np.int64(MASK32)
    lowest_hash = -(2**31)
    for hash_value in range(lowest_hash + (worker - lowest_hash) % workers, 2**31, workers):
        smallest = min(smallest, _salt_with_hash(key_id, hash_value))
    return smallest


@kernel
def _salt_with_hash(key_id, hash_value):
    """The one j with murmur3_int(j, seed=hash of the key) = hash_value: every step of the hash undone, last first."""
    h = U(np.int64(hash_value)) & MASK32
    h = ((h ^ (h >> U(16))) * FINAL_2_INVERSE) & MASK32
    h = ((h ^ (h >> U(13)) ^ (h >> U(26))) * FINAL_1_INVERSE) & MASK32
    h ^= (h >> U(16)) ^ U(4)
    h = ((h + (U(2**32) - MURMUR_ADD)) * FIVE_INVERSE) & MASK32
    k = ((rotate_left_32(h, U(19)) ^ (key_id >> U(32))) * C2_INVERSE) & MASK32
    return np.int64((rotate_left_32(k, U(17)) * C1_INVERSE) & MASK32)


def salts_for(key_ids: KeyIds, chosen: npt.NDArray[np.int32], workers: int) -> npt.NDArray[np.int32]:
    """The salt of each tuple, as the int32 column that Spark hashes: `salt_for` of its key and its worker.

    Parameters
    ----------
    key_ids
        The id of the key of each tuple.
    chosen
        The worker of each tuple, as `Router.route` returns them.
    workers
        W, the number of workers.

    Examples
    --------
    >>> from unskew import PartialKey, Router, key_ids, salts_for
    >>> ids = key_ids(["the", "cat", "the"])
    >>> salts_for(ids, Router(PartialKey(workers=16)).route(ids), 16).tolist()
    [0, 0, 1]
    """
    ids, places = require_key_ids(key_ids), np.asarray(chosen)
    if places.shape != ids.shape or (len(places) and not 0 <= places.min() <= places.max() < workers):
        raise InputError(f"chosen: must be one worker from 0 to {workers - 1} for each of {len(ids)} tuples")
    if len(places) and (places.dtype.kind not in "iu" or not isinstance(workers, int | np.integer)):
        raise InputTypeError(f"chosen: must be integers, and so must workers, not {places.dtype} and {workers!r}")
    return _salts_for(ids, frozen(places.astype(np.int32)), int(workers))


@allocating_kernel
def _salts_for(key_ids, chosen, workers):
    salts = np.empty(len(key_ids), np.int32)
    last = np.full(REMEMBERED, -1, np.int64)  # tuple that was last looked up in each cell: hot keys come again
    for i in range(len(key_ids)):
        cell = (key_ids[i] ^ U(chosen[i])) & U(REMEMBERED - 1)
        before = last[cell]
        if before >= 0 and key_ids[before] == key_ids[i] and chosen[before] == chosen[i]:
            salts[i] = salts[before]
        else:
            salts[i] = np.int32(np.uint32(salt_for(key_ids[i], chosen[i], workers)))
        last[cell] = i
    return salts


@allocating_kernel
def named_hashes(names: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """For each name (as Spark's bigint) and number j the 32-bit hash that Spark gives to the row (name, j)."""
    hashes = np.empty(len(names), np.uint32)
    for i in range(len(names)):
        hashes[i] = murmur_int(U(numbers[i]) & MASK32, murmur_long(U(names[i]), SEED))
    return hashes


# ---------------------------------------------------------------- random functions, for sketches


def universal_functions(number: int, seed: int) -> npt.NDArray[np.uint64]:
    """The constants of `number` independent functions, one row each, for `universal`; the same for the same seed."""
    return np.random.PCG64(seed).random_raw(3 * number).reshape(number, 3)


@inlined
def universal(function, key_id, cells):
    """The cell of a key, from 0 to `cells` - 1, by a random function: two keys share one with probability 1/cells.

    Strongly universal multiply-shift on the halves of the key id (M. Thorup, "High speed hashing for integers and
    strings", theorem 7) gives 32 bits. Their product with `cells` is cut back: where that is no power of two, the
    probability is higher by at most 2^-32.
    """
    sum_of_products = function[0] * (key_id & MASK32) + function[1] * (key_id >> U(32)) + function[2]
    return np.int64(((sum_of_products >> U(32)) * U(cells)) >> U(32))
