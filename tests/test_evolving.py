"""The time-evolving Zipf stream: Zipf at first, upside down for the last fifth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.streams import Evolving, Zipf, parse


def keys_of(stream, size=65_536):
    return np.concatenate([np.empty(0, np.int64), *(chunk.keys for chunk in stream.chunks(size))])


@given(
    z=st.sampled_from([0.0, 1.0, 1.4, 2.0]),
    keys=st.integers(1, 50),
    tuples=st.integers(0, 300),
    size=st.integers(1, 400),
    seed=st.integers(0, 3),
)
@settings(max_examples=50)
def test_four_fifths_are_zipf_and_the_last_fifth_is_its_mirror(z, keys, tuples, size, seed):
    ranks = keys_of(Zipf(z, keys, tuples, seed))
    found = keys_of(Evolving(z, keys, tuples, seed), size)
    turn = int(0.8 * tuples + 1e-9)
    assert found[:turn].tolist() == ranks[:turn].tolist()
    assert found[turn:].tolist() == [keys - rank + 1 for rank in ranks[turn:].tolist()]


def test_the_hottest_key_becomes_the_coldest():
    found = keys_of(Evolving(1.5, 100, 5000))
    first, last = (np.bincount(part, minlength=101)[1:] for part in (found[:4000], found[4000:]))
    assert (first.argmax() + 1, last.argmax() + 1) == (1, 100)
    assert first[99] <= 20
    assert last[0] <= 5


def test_the_papers_stream_is_the_default():
    assert parse("evolving") == Evolving(1.0, 100_000, 5_000_000)
    assert str(parse("evolving(z=1.4, tuples=1e3)")) == "evolving(z=1.4, tuples=1000)"


@pytest.mark.parametrize(("text", "keys", "tuples"), [("zipf(1, 1e2, 5e6)", 100, 5_000_000), ("zipf(1, 3, 0.0)", 3, 0)])
def test_whole_numbers_may_be_written_with_an_exponent(text, keys, tuples):
    stream = parse(text)
    assert (stream.keys, stream.tuples) == (keys, tuples)
    assert isinstance(stream.tuples, int)
