"""The consistent-hash ring again, in plain slow Python: a sorted list, and walks that look at every node."""

import struct

import naive

KEY_SALT = 2**31 - 2


def ring_nodes(names, virtual_nodes):
    """(position, name, slot) of every virtual node, in the order of the circle."""
    return sorted(
        (naive.murmur3(struct.pack("<I", v), seed=naive.murmur3(struct.pack("<q", name))), name, slot)
        for slot, name in enumerate(names)
        for v in range(virtual_nodes)
    )


def first_workers(nodes, key, count):
    """The slots of the first `count` distinct workers clockwise from the key."""
    home = naive.candidate(key, KEY_SALT, 2**32)
    clockwise = [node for node in nodes if node[0] >= home] + [node for node in nodes if node[0] < home]
    return list(dict.fromkeys(slot for _, _, slot in clockwise))[:count]
