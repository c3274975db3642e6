"""Streams of key ids, and schemes, that many tests share."""

import re

import numpy as np
import pytest
from hypothesis import strategies as st

from unskew import SCHEMES, InputError, key_ids, make
from unskew.kernels import allocating_kernel
from unskew.sketches.count_min import estimate


def ids(numbers):
    """Key ids of whole numbers (Spark's bigint)."""
    return key_ids(np.asarray(numbers, np.int64))


def uniform(tuples, keys, seed=0):
    return ids(np.random.default_rng(seed).integers(0, keys, tuples))


def zipf(tuples, keys, exponent=1.2, seed=0):
    weights = np.arange(1, keys + 1) ** -float(exponent)
    return ids(np.random.default_rng(seed).choice(keys, tuples, p=weights / weights.sum()))


def same_low_half(tuples, keys):
    """Adversarial: key ids that differ in their high half only, so that all of them want one cell of a key table."""
    return np.arange(tuples, dtype=np.uint64) % np.uint64(keys) << np.uint64(32) | np.uint64(7)


def same_high_half(tuples, keys):
    """Adversarial: key ids that differ in their low half only, so that all of them have the same candidates."""
    return np.uint64(7 << 32) | np.arange(tuples, dtype=np.uint64) % np.uint64(keys)


STREAMS = {
    "one key": ids(np.zeros(300)),
    "all keys distinct": ids(np.arange(1200)),
    "uniform": uniform(1000, 100),
    "mild skew": zipf(1000, 1000, 0.8),
    "strong skew": zipf(1000, 200, 2.0),
    "sorted by key": np.sort(zipf(800, 100)),
    "hot key last": ids([*range(300), *[0] * 300]),
    "same low half": same_low_half(800, 400),
    "same high half": same_high_half(800, 400),
    "extreme ids": np.array([0, 2**64 - 1, 2**63, 2**32 - 1, 2**32] * 60, np.uint64),
}
any_stream = pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS.keys())

SOME_KEYS = ids(np.arange(40))
streams = st.lists(st.integers(0, 39), max_size=150).map(lambda indices: SOME_KEYS[np.array(indices, np.int64)])

every_scheme = pytest.mark.parametrize("name", sorted(SCHEMES))


def scheme_for(name, workers, stream, **parameters):
    """The scheme called `name`; an offline one knows the frequencies of `stream`, and takes no parameters."""
    entry = SCHEMES[name]
    if entry.offline:
        keys, counts = np.unique(stream, return_counts=True)
        return entry.type.fit(workers, keys, counts)
    return make(name, workers, **parameters)


def widest(name, workers=1_000_000):
    """The scheme for so many workers, or for as many as it says that it allows; an offline one has nothing to plan."""
    try:
        return scheme_for(name, workers, np.empty(0, np.uint64))
    except InputError as refusal:
        most = re.fullmatch(rf"workers: must be an integer from 1 to (\d+), not {workers}", str(refusal))
        return scheme_for(name, int(most[1]), np.empty(0, np.uint64))


@allocating_kernel
def estimates(sketch, keys):
    """What a count-min sketch says of each key."""
    found = np.empty(len(keys))
    for i in range(len(keys)):
        found[i] = estimate(sketch, keys[i])
    return found
