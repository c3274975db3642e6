"""Lossy counting: its bounds as properties, its twin, the sliding window, and what is refused."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_lossy import naive_lossy, naive_sliding
from samples import SOME_KEYS, ids, zipf
from unskew import InputError
from unskew.key_table import fill_all
from unskew.sketches.lossy_counting import (
    check_sketch,
    count_keys,
    frequent_keys,
    keys_in_memory,
    most_in_memory,
    new_sketch,
    oldest,
    tuples_seen,
)
from unskew.states import copied

# few keys and many: those that come again and again, and those that come once
numbers = st.lists(st.one_of(st.integers(0, 3), st.integers(0, 39)), max_size=200)
windows = st.integers(1, 12)


def memory(sketch):
    """key -> (count, error) of the counter in use."""
    counter, used = oldest(sketch), int(sketch.table.used[0])
    rows = [row for row in range(used) if sketch.counts[row, counter]]
    return {
        int(sketch.counted[row]): (int(sketch.counts[row, counter]), int(sketch.errors[row, counter])) for row in rows
    }


@given(numbers=numbers, window=windows)
def test_counts_as_its_twin(numbers, window):
    stream = SOME_KEYS[np.array(numbers, np.int64)]
    sketch = new_sketch(1 / window)
    count_keys(sketch, stream)
    check_sketch("sketch", sketch)
    assert memory(sketch) == naive_lossy(stream.tolist(), window)
    assert tuples_seen(sketch) == len(stream)
    assert keys_in_memory(sketch) == len(memory(sketch))


@given(numbers=numbers, window=windows)
def test_every_count_is_right_within_its_error_and_the_error_within_epsilon(numbers, window):
    stream = SOME_KEYS[np.array(numbers, np.int64)].tolist()
    sketch = new_sketch(1 / window)
    count_keys(sketch, np.array(stream, np.uint64))
    true, held = Counter(stream), memory(sketch)
    for key, (count, error) in held.items():
        assert count <= true[key] <= count + error
        assert error <= len(stream) / window
    for key, times in true.items():
        assert key in held or times <= len(stream) / window


@given(numbers=numbers, window=windows, share=st.floats(0, 0.5))
def test_every_frequent_key_is_found_and_no_key_far_below(numbers, window, share):
    stream = SOME_KEYS[np.array(numbers, np.int64)].tolist()
    sketch = new_sketch(1 / window)
    count_keys(sketch, np.array(stream, np.uint64))
    found, true = set(frequent_keys(sketch, share)[0].tolist()), Counter(stream)
    for key, times in true.items():
        if times > max(share, 1 / window) * len(stream):
            assert key in found
        if times < (share - 1 / window) * len(stream):
            assert key not in found


@given(numbers=numbers, window=windows)
def test_memory_is_within_its_bound_and_stated_size(numbers, window):
    stream = SOME_KEYS[np.array(numbers, np.int64)]
    sketch = new_sketch(1 / window)
    for t, key in enumerate(stream, start=1):
        count_keys(sketch, np.array([key]))
        current = math.ceil(t / window)
        assert keys_in_memory(sketch) <= window * sum(1 / i for i in range(1, current + 1)) + 1e-9
    assert most_in_memory(10, 1000) == math.ceil(10 * (1 + math.log(100)))


@given(numbers=numbers, window=windows, hop=st.integers(1, 15), counters=st.integers(2, 5))
def test_several_counters_are_those_of_the_twin_and_cover_the_history(numbers, window, hop, counters):
    """Always between `history` and (1 + 1/(x - 1)) `history` tuples, once there are so many."""
    stream, history = SOME_KEYS[np.array(numbers, np.int64)], hop * (counters - 1)
    sketch = new_sketch(1 / window, history, counters)
    for t, key in enumerate(stream, start=1):
        count_keys(sketch, np.array([key]))
        if t >= history:
            assert history <= tuples_seen(sketch) <= history * (1 + 1 / (counters - 1)) + 1e-9
        else:
            assert tuples_seen(sketch) == t
    check_sketch("sketch", sketch)
    seen, held = naive_sliding(stream.tolist(), window, history, counters)
    assert tuples_seen(sketch) == seen
    assert memory(sketch) == held


def test_the_past_is_forgotten():
    sketch = new_sketch(0.001, 10_000)
    count_keys(sketch, zipf(50_000, 100, seed=1))
    count_keys(sketch, ids(1000 + np.arange(15_000) % 10))
    found, counts = frequent_keys(sketch, 0.05)
    assert set(found.tolist()) == set(ids(range(1000, 1010)).tolist())
    assert counts.sum() == tuples_seen(sketch)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"error": 0.0}, "error: must be a share above 0 and up to 1, not 0.0"),
        ({"error": 0.1, "history": 0}, "history: must be an integer from 2 to"),
        ({"error": 0.1, "history": 101}, r"history: must be a multiple of counters - 1 = 2, not 101"),
        ({"error": 0.1, "history": 100, "counters": 1}, "counters: must be an integer from 2 to 100, not 1"),
        ({"error": 1e-9}, "error: 1e-09 may need memory for"),
    ],
)
def test_a_sketch_that_makes_no_sense_is_refused(arguments, sentence):
    with pytest.raises(InputError, match=f"^{sentence}"):
        new_sketch(**arguments)


def test_a_damaged_sketch_is_refused():
    good = new_sketch(0.1, 40)
    count_keys(good, np.tile(SOME_KEYS[:3], 8))
    check_sketch("sketch", good)
    for field, change in (
        ("counted", lambda array: array[::-1].copy()),
        ("counts", lambda array: array - 1),
        ("errors", lambda array: array - 1),
        ("lengths", lambda array: array * 0),
        ("lengths", lambda array: array * 1000),
        ("seen", lambda array: array + 1000),
    ):
        damaged = copied(good)._replace(**{field: change(getattr(good, field))})
        with pytest.raises(InputError, match=r"^sketch\.(table|counts|errors|lengths|seen)"):
            check_sketch("sketch", damaged)
    table = good.table._replace(used=good.table.used + 1)
    with pytest.raises(InputError, match=r"^sketch\.table\.used: "):
        check_sketch("sketch", good._replace(table=table))


def test_a_damaged_sketch_without_room_counts_no_new_key():
    """No sketch becomes full by counting: rows are as many as its bound says."""
    sketch = new_sketch(0.5, history=2, counters=2)
    rows = len(sketch.counted)
    fill_all(sketch.table, SOME_KEYS[:rows], np.arange(rows, dtype=np.int32))
    sketch.counted[:] = SOME_KEYS[:rows]
    sketch.counts[:] = 10**6
    check_sketch("sketch", sketch)
    count_keys(sketch, SOME_KEYS[rows : rows + 3])
    check_sketch("sketch", sketch)
