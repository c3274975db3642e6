"""Spark's two hashes, murmur3 (``hash``) and xxhash64, one value at a time, as kernels.

Both take a seed. Spark hashes a key of several columns one column after the other: the hash of one is the seed of the
next, and a null leaves it as it is.
"""

import numpy as np

from unskew.kernels import kernel

SPARK_SEED = 42  # of Spark's hash() and xxhash64()

U = np.uint64  # every constant of a kernel is typed: Numba turns uint64 with a plain int into float64
MASK32 = U(0xFFFFFFFF)
C1, C2 = U(0xCC9E2D51), U(0x1B873593)
FIVE, MURMUR_ADD = U(5), U(0xE6546B64)
FINAL_1, FINAL_2 = U(0x85EBCA6B), U(0xC2B2AE35)
P1, P2, P3 = U(0x9E3779B185EBCA87), U(0xC2B2AE3D27D4EB4F), U(0x165667B19E3779F9)
P4, P5 = U(0x85EBCA77C2B2AE63), U(0x27D4EB2F165667C5)


@kernel
def rotate_left_32(x, bits):
    return ((x << bits) | (x >> (U(32) - bits))) & MASK32


@kernel
def _rotate_left_64(x, bits):
    return (x << bits) | (x >> (U(64) - bits))


@kernel
def _murmur_mix(h, block):
    k = (rotate_left_32((block * C1) & MASK32, U(15)) * C2) & MASK32
    return (rotate_left_32(h ^ k, U(13)) * FIVE + MURMUR_ADD) & MASK32


@kernel
def _murmur_finish(h, length):
    h ^= length
    h = ((h ^ (h >> U(16))) * FINAL_1) & MASK32
    h = ((h ^ (h >> U(13))) * FINAL_2) & MASK32
    return h ^ (h >> U(16))


@kernel
def murmur_int(value, seed):
    return _murmur_finish(_murmur_mix(seed, value), U(4))


@kernel
def murmur_long(value, seed):
    return _murmur_finish(_murmur_mix(_murmur_mix(seed, value & MASK32), value >> U(32)), U(8))


@kernel
def _little_endian(data, start, count):
    """The `count` bytes from `start` on as one number."""
    value = U(0)
    for i in range(count):
        value |= U(data[start + i]) << U(8 * i)
    return value


@kernel
def murmur_bytes(data, start, stop, seed):
    h = seed
    aligned = stop - (stop - start) % 4
    for i in range(start, aligned, 4):
        h = _murmur_mix(h, _little_endian(data, i, 4))
    for i in range(aligned, stop):  # Spark mixes each byte of the tail as a block of its own, sign-extended
        h = _murmur_mix(h, U(np.int64(np.int8(data[i]))) & MASK32)
    return _murmur_finish(h, U(stop - start))


@kernel
def _xx_finish(h):
    h = (h ^ (h >> U(33))) * P2
    h = (h ^ (h >> U(29))) * P3
    return h ^ (h >> U(32))


@kernel
def _xx_round(accumulator, block):
    return _rotate_left_64(accumulator + block * P2, U(31)) * P1


@kernel
def _xx_block_8(h, block):
    return _rotate_left_64(h ^ _xx_round(U(0), block), U(27)) * P1 + P4


@kernel
def _xx_block_4(h, block):
    return _rotate_left_64(h ^ (block * P1), U(23)) * P2 + P3


@kernel
def xx_int(value, seed):
    return _xx_finish(_xx_block_4(seed + P5 + U(4), value))


@kernel
def xx_long(value, seed):
    return _xx_finish(_xx_block_8(seed + P5 + U(8), value))


@kernel
def xx_bytes(data, start, stop, seed):
    h = seed + P5
    i = start
    if stop - start >= 32:
        v1, v2, v3, v4 = seed + P1 + P2, seed + P2, seed, seed - P1
        while i <= stop - 32:
            v1 = _xx_round(v1, _little_endian(data, i, 8))
            v2 = _xx_round(v2, _little_endian(data, i + 8, 8))
            v3 = _xx_round(v3, _little_endian(data, i + 16, 8))
            v4 = _xx_round(v4, _little_endian(data, i + 24, 8))
            i += 32
        h = (
            _rotate_left_64(v1, U(1))
            + _rotate_left_64(v2, U(7))
            + _rotate_left_64(v3, U(12))
            + _rotate_left_64(v4, U(18))
        )
        for v in (v1, v2, v3, v4):
            h = (h ^ _xx_round(U(0), v)) * P1 + P4
    h += U(stop - start)
    while i <= stop - 8:
        h = _xx_block_8(h, _little_endian(data, i, 8))
        i += 8
    if i <= stop - 4:
        h = _xx_block_4(h, _little_endian(data, i, 4))
        i += 4
    while i < stop:
        h = _rotate_left_64(h ^ (U(data[i]) * P5), U(11)) * P1
        i += 1
    return _xx_finish(h)
