"""Count-Min: every line that its docstring states, and what is refused."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples import SOME_KEYS, any_stream, estimates, ids, streams, uniform, zipf
from unskew import InputError
from unskew.hashing import universal, universal_functions
from unskew.kernels import kernel
from unskew.sketches.count_min import (
    CountMin,
    add,
    add_all,
    check_sketch,
    estimate,
    from_plain,
    lowest_row,
    merge,
    new_sketch,
    to_plain,
)

shapes = st.tuples(st.integers(1, 5), st.integers(1, 20), st.integers(0, 2**63 - 1))
values = st.one_of(st.integers(0, 1000), st.floats(0, 1e6))


def sketch_of(stream, numbers=1.0, rows=3, columns=8, seed=0):
    sketch = new_sketch(rows, columns, seed)
    add_all(sketch, stream, numbers)
    return sketch


def true_sums(stream, numbers, keys):
    return np.array([np.asarray(numbers)[stream == key].sum() for key in keys])


@kernel
def cells_of(functions, keys, cells, found):
    for row in range(len(functions)):
        for i in range(len(keys)):
            found[row, i] = universal(functions[row], keys[i], cells)


# ---------------------------------------------------------------- the functions


def test_a_function_is_plain_arithmetic_on_the_halves_of_a_key_id():
    functions, keys = universal_functions(4, seed=7), np.concatenate([uniform(50, 1000), ids([0, -1])])
    found = np.zeros((4, len(keys)), np.int64)
    cells_of(functions, keys, 54, found)
    for (low, high, plus), cells in zip(functions.tolist(), found.tolist(), strict=True):
        sums = [(low * (key % 2**32) + high * (key >> 32) + plus) % 2**64 >> 32 for key in keys.tolist()]
        assert cells == [number * 54 >> 32 for number in sums]


def test_functions_depend_on_the_seed_alone():
    assert universal_functions(4, seed=3).tolist() == universal_functions(4, seed=3).tolist()
    assert universal_functions(5, seed=3)[:4].tolist() == universal_functions(4, seed=3).tolist()
    assert (universal_functions(4, seed=3) != universal_functions(4, seed=4)).all()


@pytest.mark.parametrize("cells", [2, 7, 54, 64])
def test_two_keys_share_a_cell_with_a_probability_of_one_in_the_number_of_cells(cells):
    """Over 20,000 functions and pairs of keys that differ in one bit, in one half, or everywhere: 5 standard errors."""
    functions = universal_functions(20_000, seed=1)
    keys = np.array([0, 1, 1 << 32, 1 << 63, 2**64 - 1, *ids([1, 2])], np.uint64)
    found = np.zeros((len(functions), len(keys)), np.int64)
    cells_of(functions, keys, cells, found)
    error = math.sqrt((1 / cells) * (1 - 1 / cells) / len(functions))
    for i in range(len(keys)):
        for j in range(i):
            assert (found[:, i] == found[:, j]).mean() == pytest.approx(1 / cells, abs=5 * error)


# ---------------------------------------------------------------- what the docstring states


@given(stream=streams, numbers=st.lists(values, min_size=150, max_size=150), shape=shapes)
def test_the_estimate_is_never_under_the_true_sum(stream, numbers, shape):
    numbers = np.array(numbers, float)[: len(stream)]
    sketch = sketch_of(stream, numbers, *shape)
    true = true_sums(stream, numbers, SOME_KEYS)
    assert (estimates(sketch, SOME_KEYS) >= true * (1 - 1e-12)).all()
    if (numbers == numbers.round()).all():
        assert (estimates(sketch, SOME_KEYS) >= true).all()


@any_stream
@pytest.mark.parametrize("weighted", [False, True])
def test_the_estimate_is_within_its_bound_with_its_probability(stream, weighted):
    """Of 300 draws of the functions, at most the share e^-r may fail for any key, but for 4 standard errors. So it is
    for tuples that count 1, and for values of three orders of magnitude."""
    rows, columns, draws = 2, 20, 300
    values = 1000.0 ** np.random.default_rng(3).random(len(stream)) if weighted else np.ones(len(stream))
    keys = np.unique(stream)[:40]
    sums = true_sums(stream, values, keys)
    bound = (sums + math.e / columns * (values.sum() - sums)) * (1 + 1e-12)
    failures = sum(estimates(sketch_of(stream, values, rows, columns, seed), keys) > bound for seed in range(draws))
    allowed = math.exp(-rows)
    assert failures.max() <= draws * allowed + 4 * math.sqrt(draws * allowed * (1 - allowed))


@given(one=streams, other=streams, shape=shapes)
def test_a_merged_sketch_is_that_of_both_streams(one, other, shape):
    weights = np.arange(1000) % 7
    merged = merge(
        sketch_of(one, weights[: len(one)], *shape), sketch_of(other, weights[len(one) :][: len(other)], *shape)
    )
    both = sketch_of(np.concatenate([one, other]), weights[: len(one) + len(other)], *shape)
    assert merged.cells.tolist() == both.cells.tolist()
    assert merged.functions.tolist() == both.functions.tolist()


def test_merging_leaves_both_sketches_as_they_were():
    one, other = sketch_of(zipf(100, 20)), sketch_of(zipf(50, 20))
    before = one.cells.copy(), other.cells.copy()
    merged = merge(one, other)
    merged.cells[:] = -1
    assert (one.cells == before[0]).all()
    assert (other.cells == before[1]).all()


def test_with_a_cell_for_each_key_all_is_exact():
    stream = zipf(500, 30)
    keys, counts = np.unique(stream, return_counts=True)
    assert estimates(sketch_of(stream, 1.0, 5, 100_000), keys).tolist() == counts.tolist()


@given(stream=streams, shape=shapes)
def test_one_key_at_a_time_is_the_same_as_many(stream, shape):
    many, single = sketch_of(stream, 2.5, *shape), new_sketch(*shape)
    for key in stream:
        add(single, key, 2.5)
    assert many.cells.tolist() == single.cells.tolist()
    for key in SOME_KEYS[:5]:
        row = lowest_row(single, key)
        mine = [single.cells[i, universal(single.functions[i], key, shape[1])] for i in range(shape[0])]
        assert row == np.argmin(mine)
        assert estimate(single, key) == min(mine)


# ---------------------------------------------------------------- as data, and what is refused


@given(stream=streams, shape=shapes)
def test_plain_values_bring_a_sketch_back(stream, shape):
    sketch = sketch_of(stream, 0.1, *shape)
    again = from_plain("sketch", json.loads(json.dumps(to_plain(sketch))))
    assert again.cells.tolist() == sketch.cells.tolist()
    assert again.functions.tolist() == sketch.functions.tolist()
    assert merge(again, sketch).cells.tolist() == (2 * sketch.cells).tolist()


GOOD = to_plain(sketch_of(zipf(30, 10)))


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        GOOD | {"cells": [[]]},
        GOOD | {"cells": [[1.0], [1.0, 2.0]]},
        GOOD | {"cells": [1.0, 2.0]},
        GOOD | {"cells": "cells"},
        GOOD | {"cells": [[1.0, -1.0]] * 3},
        GOOD | {"cells": [[1.0, float("nan")]] * 3},
        GOOD | {"functions": GOOD["functions"][:2]},
        GOOD | {"functions": [[1, 2, -3]] * 3},
        GOOD | {"functions": [[1, 2, 2**64]] * 3},
    ],
)
def test_plain_values_that_are_no_sketch_are_refused(wrong):
    with pytest.raises(InputError, match=r"^sketch(\.cells)?: must "):
        from_plain("sketch", wrong)


@pytest.mark.parametrize(("numbers", "rule"), [(-1.0, "from 0 on, not -1"), ([1.0, np.inf], "not inf"), ("a", "must")])
def test_values_that_are_no_finite_numbers_from_0_on_are_refused(numbers, rule):
    with pytest.raises((InputError, TypeError), match=rf"^values: .*{rule}"):
        add_all(new_sketch(2, 4), SOME_KEYS[:2], numbers)
    with pytest.raises(InputError, match=r"^values: must be one number, or one per tuple \(2\), not shape \(3,\)$"):
        add_all(new_sketch(2, 4), SOME_KEYS[:2], [1, 2, 3])


def test_sketches_of_other_seeds_or_shapes_do_not_merge():
    for other in (new_sketch(3, 8, seed=1), new_sketch(3, 9), new_sketch(2, 8)):
        with pytest.raises(InputError, match=r"^sketches: only those of one seed and one shape merge"):
            merge(new_sketch(3, 8), other)


@pytest.mark.parametrize("shape", [(0, 8, 0), (65, 8, 0), (3, 0, 0), (3, 2.0, 0), (3, 8, -1)])
def test_shapes_that_cannot_be_are_refused(shape):
    with pytest.raises(InputError, match=r"^(rows|columns|seed): must be an integer from "):
        new_sketch(*shape)


def test_damaged_cells_are_refused():
    with pytest.raises(InputError, match=r"^part\.cells: must be finite numbers from 0 on, not nan$"):
        check_sketch("part", CountMin(np.zeros((1, 3), np.uint64), np.array([[1.0, np.nan]])))
