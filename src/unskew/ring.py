"""A consistent-hash ring: workers come and go, and only the keys that they held or gain move.

Paper: FISH, section 5. Keys and workers are hashed to 2^32 positions in a circle. A key belongs to the first worker
clockwise: at its own position or the next higher one, and after the last position comes the first. Each worker has
several *virtual nodes* (Fig. 8d), so that shares are more even. The candidates of a key are the first d distinct
workers that one meets clockwise; those for a smaller d are the first ones of those for a larger d.

When a worker joins, it may become a candidate of a key and push out the last one; nothing else changes. When a worker
leaves, keys that did not have it keep their candidates, and each other key gets one new one after those it keeps.

Choices made here:
- A worker is placed by its *name*, a number that stays with it, not by its index. Its virtual node v is at the hash
  that Spark gives to the row (name, v); a key is at its candidate number ``KEY_SALT`` among 2^32.
- Two nodes at one position stand in the order of their names.
- 128 virtual nodes per worker by default: with 16 workers the largest share of the ring is then 1.17 times the mean.

Look-up takes constant time: the ring is cut into equal buckets, an index says which nodes are in each, and these are
searched by halves. By default there are about as many buckets as nodes. Fewer take less memory and more steps; the
answers are the same. How even the ring is and how large: docs/schemes/ring.md.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.hashing import candidate, named_hashes
from unskew.kernels import allocating_kernel, kernel
from unskew.members import Names

POSITIONS = 2**32
KEY_SALT = 2**31 - 2  # places keys on the ring: a candidate that no scheme uses to choose a worker
MOST_NODES = 2**22  # 50 MB
VIRTUAL_NODES = 128  # per worker, where the user says nothing
KEPT_NODES = 2**17  # of a ring that is kept for the next one who asks for it


class Ring(NamedTuple):
    node_position: npt.NDArray[np.uint32]  # [nodes] sorted
    node_worker: npt.NDArray[np.int32]  # [nodes] index of the worker whose node it is
    bucket_start: npt.NDArray[np.int32]  # [buckets] first node at or after the beginning of the bucket
    walk_of: npt.NDArray[np.int64]  # [workers] the last walk that met the worker
    walks: npt.NDArray[np.int64]  # [1] walks so far


def new_ring(names: Names, virtual_nodes: int, buckets: int | None = None) -> Ring:
    """The ring of the workers called `names`, in the order of their indices, with `virtual_nodes` nodes each.

    Without `buckets` there are as many as nodes, up to the next power of two.
    """
    nodes = len(names) * virtual_nodes
    kept = _kept_ring if nodes <= KEPT_NODES else _new_ring
    made = kept(np.asarray(names, np.int64).tobytes(), virtual_nodes, buckets or 1 << (nodes - 1).bit_length())
    return Ring(*(array.copy() for array in made))


def _new_ring(names: bytes, virtual_nodes: int, buckets: int) -> Ring:
    members = np.frombuffer(names, np.int64)
    name = np.repeat(members, virtual_nodes)
    position = named_hashes(name, np.tile(np.arange(virtual_nodes), len(members)))
    order = np.lexsort((name, position))
    return _indexed(position[order], order // virtual_nodes, len(members), buckets)


_kept_ring = lru_cache(maxsize=16)(_new_ring)  # the same workers are asked for again and again


def forget_rings() -> None:
    """For those who measure how long it takes to make one."""
    _kept_ring.cache_clear()


def rounded_ring(ring: Ring, arcs: int) -> Ring:
    """The ring of equal arcs, each of which belongs to the worker that `ring` has at its beginning.

    It is a table of `arcs` workers, which Spark can look up without a search. When a worker joins or leaves, still
    only those keys move that it gains or held: each arc follows one position of `ring`.
    """
    begins = np.arange(arcs) * POSITIONS // arcs
    worker = ring.node_worker[_nodes_at(ring, begins)]
    return _indexed((np.append(begins[1:], POSITIONS) - 1).astype(np.uint32), worker, len(ring.walk_of), arcs)


def _indexed(position: npt.NDArray[np.uint32], worker: npt.NDArray[Any], workers: int, buckets: int) -> Ring:
    starts = np.searchsorted(position, _begins(buckets)).astype(np.int32)
    return Ring(position, worker.astype(np.int32), starts, np.zeros(workers, np.int64), np.zeros(1, np.int64))


def _begins(buckets: int) -> npt.NDArray[np.int64]:
    """The first position of each bucket: position p is in bucket ``p * buckets // POSITIONS``."""
    return -(-np.arange(buckets) * POSITIONS // buckets)


def check_ring(name: str, ring: Ring, workers: int) -> None:
    """InputError unless the arrays of the state's part `name` are a ring of `workers` workers: kernels rely on it for
    memory and to end a walk."""
    positions, buckets = ring.node_position, len(ring.bucket_start)
    falls = np.flatnonzero(positions[1:] < positions[:-1])
    if len(falls):
        low, high = positions[falls[0] + 1], positions[falls[0]]
        raise InputError(f"{name}.node_position: must ascend, but {low} comes after {high}")
    starts = np.searchsorted(positions, _begins(buckets))
    wrong = np.flatnonzero(ring.bucket_start != starts)
    if len(wrong):
        bucket = wrong[0]
        found, right = ring.bucket_start[bucket], starts[bucket]
        raise InputError(f"{name}.bucket_start: bucket {bucket} must start at node {right}, not at {found}")
    if not np.array_equal(np.unique(ring.node_worker), np.arange(workers)):
        found = f"{len(np.unique(ring.node_worker))} of them up to {ring.node_worker.max(initial=-1)}"
        raise InputError(f"{name}.node_worker: must name all workers from 0 to {workers - 1}, not {found}")
    if ring.walk_of.max() > ring.walks[0]:
        raise InputError(f"{name}.walk_of: must be from 0 to {ring.walks[0]} (walks), not {ring.walk_of.max()}")


@kernel
def start_walk(ring, key):
    """The node that `key` belongs to; from here `next_worker` meets each worker once."""
    ring.walks[0] += 1
    return home_node(ring, key)


@kernel
def home_node(ring, key):
    """The node that `key` belongs to."""
    return node_at(ring, candidate(key, KEY_SALT, POSITIONS))


@kernel
def node_at(ring, position):
    """The first node clockwise from `position`."""
    nodes, buckets = len(ring.node_position), len(ring.bucket_start)
    bucket = position * buckets // POSITIONS
    node = np.int64(ring.bucket_start[bucket])
    end = np.int64(ring.bucket_start[bucket + 1]) if bucket + 1 < buckets else nodes
    while node < end:
        middle = (node + end) // 2
        if ring.node_position[middle] < position:
            node = middle + 1
        else:
            end = middle
    return node if node < nodes else 0


@allocating_kernel
def _nodes_at(ring, positions):
    nodes = np.empty(len(positions), np.int64)
    for i in range(len(positions)):
        nodes[i] = node_at(ring, positions[i])
    return nodes


@kernel
def next_worker(ring, node):
    """The first node from `node` on whose worker this walk has not met yet; asked at most `workers` times per walk."""
    walk = ring.walks[0]
    while ring.walk_of[ring.node_worker[node]] == walk:
        node = node + 1 if node + 1 < len(ring.node_worker) else 0
    ring.walk_of[ring.node_worker[node]] = walk
    return node


@allocating_kernel
def first_workers(ring, key, count):
    """The candidates of `key`: the first `count` distinct workers clockwise from it."""
    found = np.empty(count, np.int32)
    node = start_walk(ring, key)
    for i in range(count):
        node = next_worker(ring, node)
        found[i] = ring.node_worker[node]
    return found
