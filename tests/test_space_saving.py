"""SpaceSaving: against its twin, and every bound that its docstring states; the queue and the table it is made of."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_heads import SpaceSaving as Twin
from samples import STREAMS, any_stream, ids, streams, zipf
from unskew import InputError
from unskew.key_table import EMPTY, fill, find, new_table, remove
from unskew.least import least, new_least
from unskew.sketches import space_saving
from unskew.sketches.space_saving import check_sketch, count_key, count_keys, decay, new_sketch

sizes = st.integers(1, 30)


def sketch_of(stream, counters):
    sketch = new_sketch(counters)
    count_keys(sketch, stream)
    return sketch


def triples(sketch):
    used = int(sketch.table.used[0])
    columns = (sketch.counted[:used], sketch.counts[:used], sketch.errors[:used])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def check_bounds(sketch, stream, within=0.0):
    """The first three lines of the docstring, for the tuples of `stream`; `within`: what rounding may cost."""
    true, counters, tuples = Counter(stream.tolist()), len(sketch.counts), len(stream)
    for key, count, error in triples(sketch):
        assert count - error - within <= true[key] <= count + within
        assert error <= sketch.counts.min() + within
    assert sketch.counts.min() <= tuples / counters + within
    unseen = set(true) - {key for key, _, _ in triples(sketch)}
    assert all(true[key] <= sketch.counts.min() + within for key in unseen)
    assert all(true[key] <= tuples / counters for key in unseen)
    assert sketch.total[0] == pytest.approx(tuples)


# ---------------------------------------------------------------- the sketch


@any_stream
@pytest.mark.parametrize("counters", [1, 2, 10, 100, 5000])
def test_counts_as_its_twin(stream, counters):
    sketch, twin = new_sketch(counters), Twin(counters)
    for key in stream[:300]:
        counter = count_key(sketch, key)
        assert [sketch.counted[counter], sketch.counts[counter], sketch.errors[counter]] == twin.count(int(key))
    assert triples(sketch) == [tuple(counter) for counter in twin.counters]
    check_sketch("sketch", sketch)


@given(stream=streams, counters=sizes, every=st.integers(1, 40), factor=st.sampled_from([0.2, 0.5, 0.9, 1 / 3, 1]))
def test_decays_as_its_twin(stream, counters, every, factor):
    sketch, twin = new_sketch(counters), Twin(counters)
    for i, key in enumerate(stream):
        count_key(sketch, key)
        twin.count(int(key))
        if i % every == 0:
            decay(sketch, factor)
            twin.decay(factor)
    assert triples(sketch) == [tuple(counter) for counter in twin.counters]
    assert sketch.total[0] == twin.total
    check_sketch("sketch", sketch)


@any_stream
@pytest.mark.parametrize("counters", [1, 10, 100])
def test_counts_and_errors_bound_the_true_counts(stream, counters):
    sketch = sketch_of(stream, counters)
    check_bounds(sketch, stream)
    assert sketch.counts.sum() == len(stream)


@given(stream=streams, counters=st.integers(40, 60))
def test_with_a_counter_for_each_key_all_is_exact(stream, counters):
    assert {key: count for key, count, _ in triples(sketch_of(stream, counters))} == Counter(stream.tolist())


@given(stream=streams, counters=sizes, factor=st.floats(0.1, 1), cut=st.integers(0, 150))
def test_decayed_counts_bound_the_decayed_true_counts(stream, counters, factor, cut):
    sketch = sketch_of(stream[:cut], counters)
    decay(sketch, factor)
    count_keys(sketch, stream[cut:])
    true = Counter({key: count * factor for key, count in Counter(stream[:cut].tolist()).items()})
    true.update(stream[cut:].tolist())
    rounding = 1e-9
    for key, count, error in triples(sketch):
        assert count - error - rounding <= true[key] <= count + rounding
    assert sketch.counts.min() <= sketch.total[0] / counters + rounding
    assert sketch.counts.sum() == pytest.approx(sketch.total[0])


def test_a_queue_is_made_anew_seldom():
    """At most N / counters + 1 times, so that a tuple costs a constant number of steps on average."""
    stream, counters = STREAMS["all keys distinct"], 100
    made, before = 0, None
    sketch = new_sketch(counters)
    for key in stream:
        count_key(sketch, key)
        made += sketch.smallest.beyond[0] != before
        before = sketch.smallest.beyond[0]
    assert made <= len(stream) / counters + 1


# ---------------------------------------------------------------- damage


def damaged_sketches():
    """What is wrong, with the field, the value and the range that the refusal names."""
    good = sketch_of(zipf(500, 80), 20)
    check_sketch("sketch", good)
    table, queue = good.table, good.smallest
    other_key = good.counted.copy()
    other_key[3] += np.uint64(1)
    full = np.where(table.values == EMPTY, np.int32(0), table.values)
    cells = len(table.values)

    def with_values(values):
        return good._replace(table=table._replace(values=values.astype(np.int32)))

    return [
        (with_values(full), rf"table\.values: at most {cells // 2} of {cells} cells may be filled, not {cells}"),
        (with_values(table.values[:-1]), rf"table\.values: must have {cells} cells, as keys have, not {cells - 1}"),
        (with_values(np.where(table.values == 3, 20, table.values)), r"table\.values: must be -1 .* 0 to 19, not 20"),
        (
            with_values(np.where(table.values == 3, 4, table.values)),
            r"table: key 0x\w+ must have the value 3 \(its counter\), not 4",
        ),
        (
            good._replace(table=table._replace(used=table.used - 1)),
            r"table\.used: must be \[20\], the number of filled cells, not \[19\]",
        ),
        (good._replace(counted=other_key), r"table: key 0x\w+ must have the value 3 \(its counter\), not -1"),
        (good._replace(counts=good.counts * np.nan), r"counts: must be from 0 to under 9007199254740992, not nan"),
        (good._replace(counts=-good.counts), r"counts: must be from 0 to under 9007199254740992, not -"),
        (good._replace(errors=good.errors + 2.0**54), r"errors: must be from 0 to under 9007199254740992, not 1\.8"),
        (
            good._replace(smallest=queue._replace(waiting=queue.waiting + 20)),
            r"smallest\.waiting: must be positions from 0 to 19, not 2",
        ),
        (
            good._replace(smallest=queue._replace(waiting=queue.waiting - 20)),
            r"smallest\.waiting: must be positions from 0 to 19, not -",
        ),
        (
            good._replace(smallest=queue._replace(span=np.array([0, 21]))),
            r"smallest\.span: must be two numbers in order, from 0 to 20, not \[0, 21\]",
        ),
        (
            good._replace(smallest=queue._replace(span=np.array([-1, 3]))),
            r"smallest\.span: must be two numbers in order, from 0 to 20, not \[-1, 3\]",
        ),
        (
            good._replace(smallest=queue._replace(beyond=np.array([np.inf]))),
            r"smallest\.beyond: must be a finite number, not inf",
        ),
    ]


@pytest.mark.parametrize(("damaged", "rule"), damaged_sketches())
def test_a_damaged_sketch_is_refused_by_field_value_and_range(damaged, rule):
    with pytest.raises(InputError, match=rf"^sketch\.{rule}"):
        check_sketch("sketch", damaged)


# ---------------------------------------------------------------- what it is made of


@given(
    steps=st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1.0, 1.5, 2.25])), max_size=60), size=st.integers(1, 9)
)
def test_the_least_is_the_lowest_position_of_the_smallest_number(steps, size):
    queue, numbers = new_least(size), np.zeros(size)
    for position, step in steps:
        assert least(queue, numbers) == numbers.argmin()
        numbers[position % size] += step
        numbers[least(queue, numbers)] += step


def test_rounding_that_makes_numbers_equal_lets_the_position_decide():
    numbers = np.array([np.nextafter(1.0, 2.0), 1.0, 5.0])
    queue = new_least(3)
    assert least(queue, numbers) == 1
    space_saving.scale(queue, numbers, 1e-320)  # both become the same subnormal number
    assert numbers[0] == numbers[1]
    assert least(queue, numbers) == 0


low_halves = st.sampled_from([0, 1, 2, 14, 15])  # of ids: many want the same cell, also at the table's end


@given(steps=st.lists(st.tuples(low_halves, st.integers(0, 3)), max_size=80))
def test_a_table_forgets_removed_keys_and_finds_all_others(steps):
    """Against a dict: each step removes the key if it is there, else enters it while there is room."""
    table, expected = new_table(16), {}
    for low, high in steps:
        key = np.uint64(high << 32 | low)
        cell = find(table, key)
        if key in expected:
            assert table.values[cell] == expected.pop(key)
            remove(table, cell)
        elif len(expected) < 8:
            expected[key] = len(expected)
            fill(table, cell, key, expected[key])
        assert table.used[0] == len(expected) == (table.values != EMPTY).sum()
        for other, value in expected.items():
            assert table.values[find(table, other)] == value
    assert all(table.values[find(table, key)] == EMPTY for key in ids(np.arange(5)))
