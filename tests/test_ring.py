"""The consistent-hash ring: what its docstring states, and the worked example of the FISH paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import naive_fish
from samples import SOME_KEYS
from unskew import InputError
from unskew.hashing import named_hashes
from unskew.ring import (
    POSITIONS,
    Ring,
    check_ring,
    first_workers,
    new_ring,
    node_at,
)

names_of_workers = st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=12).map(sorted)
virtual_nodes = st.integers(1, 20)


def ring_of(names, virtual):
    return new_ring(np.array(names, np.int64), virtual)


def walks(names, virtual, count):
    """For each of some keys the names of its first workers."""
    ring = ring_of(names, virtual)
    return [[names[index] for index in first_workers(ring, key, count)] for key in SOME_KEYS]


def ring_at(nodes, workers):
    """A ring with nodes (position, worker) put by hand."""
    position, worker = np.array(sorted(nodes), np.int64).T
    buckets = 1 << (len(nodes) - 1).bit_length()
    starts = np.searchsorted(position, np.arange(buckets) * (POSITIONS // buckets))
    return Ring(
        position.astype(np.uint32),
        worker.astype(np.int32),
        starts.astype(np.int32),
        np.zeros(workers, np.int64),
        np.zeros(1, np.int64),
    )


# ---------------------------------------------------------------- the paper's example


def homes(nodes, keys):
    ring = ring_at(nodes, 5)
    return {key: int(ring.node_worker[node_at(ring, position)]) for key, position in keys.items()}


def test_fish_fig_8_a_worker_comes_a_worker_goes():
    """Section 5 and Fig. 8, positions as drawn: clockwise key1, worker1, key3, worker2, key2, key4, worker3.

    "key1 is stored in worker1, key3 in worker2, key2 and key4 in worker3"; without worker2 only key3 moves, to worker3;
    with worker4 between key2 and key4 only key2 moves, to worker4."""
    eighth = POSITIONS // 8
    keys = {"key1": 0, "key3": 2 * eighth, "key2": 4 * eighth, "key4": 6 * eighth}
    worker1, worker2, worker3, worker4 = (eighth, 1), (3 * eighth, 2), (7 * eighth, 3), (5 * eighth, 4)
    before = homes([worker1, worker2, worker3], keys)
    assert before == {"key1": 1, "key3": 2, "key2": 3, "key4": 3}
    assert homes([worker1, worker3], keys) == before | {"key3": 3}
    assert homes([worker1, worker2, worker3, worker4], keys) == before | {"key2": 4}
    virtual = [worker1, (5 * eighth, 1), worker3, (3 * eighth, 3)]  # (d): worker1-2 after key2, worker3-2 after key3
    assert homes(virtual, keys) == {"key1": 1, "key2": 1, "key3": 3, "key4": 3}


def test_after_the_last_position_comes_the_first_and_a_node_serves_its_own_position():
    ring = ring_at([(10, 0), (POSITIONS - 10, 1)], 2)
    places = [0, 10, 11, POSITIONS - 11, POSITIONS - 10, POSITIONS - 9, POSITIONS - 1]
    assert [int(ring.node_worker[node_at(ring, place)]) for place in places] == [0, 0, 1, 1, 1, 0, 0]


def test_nodes_at_one_position_stand_in_the_order_of_names():
    """Two names whose only nodes collide: found by birthday, 200,000^2 / 2^33 = 5 pairs expected."""
    names = np.arange(200_000) * (2**32 + 1)  # small names, that fit one word of the hash, never collide
    positions = named_hashes(names, np.zeros_like(names))
    order = np.argsort(positions, kind="stable")
    where = np.flatnonzero(np.diff(positions[order].astype(np.int64)) == 0)[0]
    low, high = sorted(names[order[where : where + 2]].tolist())
    for names in ([low, high], [high, low]):
        ring = ring_of(names, 1)
        assert len(set(ring.node_position.tolist())) == 1
        assert [names[index] for index in ring.node_worker] == [low, high]


# ---------------------------------------------------------------- the twin, and monotonicity


@given(names=names_of_workers, virtual=virtual_nodes)
def test_walks_as_its_twin(names, virtual):
    nodes = naive_fish.ring_nodes(names, virtual)
    for key, walk in zip(SOME_KEYS[:8].tolist(), walks(names, virtual, len(names)), strict=False):
        assert walk == [names[index] for index in naive_fish.first_workers(nodes, key, len(names))]


@given(names=names_of_workers, virtual=virtual_nodes, new=st.integers(-(2**63), 2**63 - 1), data=st.data())
def test_a_worker_that_comes_or_goes_moves_only_what_it_gains_or_held(names, virtual, new, data):
    """Each d: with it, the candidates are the former ones with the new worker put in somewhere, or unchanged."""
    without = [name for name in names if name != new]
    if not without:
        return
    count = data.draw(st.integers(1, len(without)))
    with_new = data.draw(st.permutations([*without, new]))  # indices do not matter
    for before, after in zip(walks(without, virtual, count), walks(with_new, virtual, count), strict=True):
        assert after == before or (new in after and [w for w in after if w != new] == before[: count - 1])


@given(names=names_of_workers, virtual=virtual_nodes, count=st.integers(1, 12))
def test_candidates_are_distinct_and_those_of_a_smaller_number_come_first(names, virtual, count):
    count = min(count, len(names))
    all_of_them = walks(names, virtual, len(names))
    assert all(sorted(walk) == names for walk in all_of_them)
    assert walks(names, virtual, count) == [walk[:count] for walk in all_of_them]


@given(position=st.integers(0, POSITIONS - 1), names=names_of_workers, virtual=virtual_nodes)
def test_the_index_finds_what_a_search_finds(position, names, virtual):
    ring = ring_of(names, virtual)
    expected = int(np.searchsorted(ring.node_position, position)) % len(ring.node_position)
    assert node_at(ring, position) == expected


# ---------------------------------------------------------------- size and spread


def shares(ring, workers):
    """Each worker's part of the ring, over the mean."""
    positions = ring.node_position.astype(np.int64)
    gaps = np.diff(np.concatenate([[positions[-1] - POSITIONS], positions]))
    return np.bincount(ring.node_worker, gaps, workers) / POSITIONS * workers


@pytest.mark.parametrize(("workers", "virtual", "stated"), [(2, 1, 1.49), (16, 8, 1.74), (16, 128, 1.17)])
def test_the_spread_is_as_the_page_of_the_ring_says(workers, virtual, stated):
    """The same 200 rings: exact but for the rounding to two digits."""
    largest = [shares(ring_of(np.arange(workers) + 1000 * i, virtual), workers).max() for i in range(200)]
    assert np.mean(largest) == pytest.approx(stated, abs=0.0051)


def test_the_nodes_of_a_name_are_where_spark_puts_its_rows():
    ring = ring_of([7], 5)
    assert ring.node_position.tolist() == sorted(naive.candidate(naive.key_id(7), v, POSITIONS) for v in range(5))


# ---------------------------------------------------------------- what is refused


def test_a_damaged_ring_is_refused():
    good = ring_of([5, 6, 7], 4)
    first_workers(good, SOME_KEYS[0], 2)
    check_ring("ring", good, 3)
    positions, walks = good.node_position, good.walk_of
    for damaged, rule in (
        (good._replace(node_worker=good.node_worker + 1), "node_worker: must name all workers from 0 to 2, not 3 of"),
        (good._replace(node_worker=good.node_worker * 0), "node_worker: must name all workers from 0 to 2, not 1 of"),
        (good._replace(node_position=positions[::-1].copy()), "node_position: must ascend, but .* comes after"),
        (good._replace(bucket_start=good.bucket_start + 1), "bucket_start: bucket 0 must start at node 0, not at 1"),
        (good._replace(walk_of=walks + 2), r"walk_of: must be from 0 to 1 \(walks\), not 3"),
    ):
        with pytest.raises(InputError, match=rf"^ring\.{rule}"):
            check_ring("ring", damaged, 3)
