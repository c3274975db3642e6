"""The scheme `partitioner` again, while nobody tells it to re-plan: consistent hashing on a ring of 1000 nodes each."""

from bisect import bisect_left
from functools import cache

import naive
from naive_fish import KEY_SALT, ring_nodes


@cache
def positions_of(name):
    return [position for position, _, _ in ring_nodes([name], 1000)]


@cache
def ring_of(workers):
    return sorted((position, name) for name in range(workers) for position in positions_of(name))


def naive_partitioner(stream, workers):
    """The worker of each tuple of a list of key ids."""
    nodes = ring_of(workers)
    home = {key: bisect_left(nodes, (naive.candidate(key, KEY_SALT, 2**32),)) for key in set(stream)}
    return [nodes[home[key] % len(nodes)][1] for key in stream]
