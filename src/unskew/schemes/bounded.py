"""Consistent hashing with bounded loads: each tuple goes to the first worker clockwise that has room.

Paper: Mirrokni, Thorup, Zadimoghaddam, "Consistent hashing with bounded loads", as CG describes it in section III-C
("CH"): the capacity of a worker is (1 + epsilon) times the mean load; keys and workers are on a ring, and a tuple that
finds a full worker goes on clockwise. It is `porc` with the ring in the place of random candidates: what `porc` says of
room, of the bound, of probes and of several sources holds here too. The search ends: all workers are on the ring.

- Unlike random candidates, neighbours on the ring inherit a full worker's tuples: they fill up one after the other, and
  a search passes many full ones.
- When workers come and go, only keys that they held or gain move, and what overflows because of it. A new worker
  starts with the least load.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_integer
from unskew.kernels import kernel
from unskew.members import Names
from unskew.registry import register
from unskew.ring import MOST_NODES, VIRTUAL_NODES, Ring, check_ring, home_node, new_ring
from unskew.schemes.porc import carried_sent, check_epsilon, check_sent, has_room, send


class State(NamedTuple):
    sent: npt.NDArray[np.int64]  # [workers] tuples this source has sent to each worker
    total: npt.NDArray[np.int64]  # [1] their sum, before the present tuple
    ring: Ring


@kernel
def choose(scheme, state, key, now):
    ring = state.ring
    node = home_node(ring, key)
    while not has_room(state, scheme.epsilon, ring.node_worker[node]):
        node = node + 1 if node + 1 < len(ring.node_worker) else 0
    return send(state, np.int64(ring.node_worker[node]))


@register(
    "bounded",
    choose=choose,
    paper="CG, section III-C (consistent hashing with bounded loads)",
    when="workers come and go, a bound on the imbalance is needed, and many replicas are affordable",
)
class BoundedLoads(NamedTuple):
    """Consistent hashing with bounded loads: the first worker clockwise with a load under (1 + epsilon) x mean."""

    workers: int  # n
    epsilon: float = 0.01
    virtual_nodes: int = VIRTUAL_NODES  # of a worker on the ring

    def check(self) -> None:
        require_integer("virtual_nodes", self.virtual_nodes, 1, MOST_NODES)
        require_integer("workers", self.workers, 1, MOST_NODES // self.virtual_nodes)
        check_epsilon(self.epsilon)

    def new_state(self) -> State:
        ring = new_ring(np.arange(self.workers), self.virtual_nodes)
        return State(np.zeros(self.workers, np.int64), np.zeros(1, np.int64), ring)

    def check_state(self, state: State) -> None:
        check_sent(state)
        check_ring("ring", state.ring, self.workers)

    def resized(self, state: State, before: Names, after: Names) -> "tuple[BoundedLoads, State]":
        scheme = self._replace(workers=len(after))
        scheme.check()
        sent, total = carried_sent(state, before, after)
        return scheme, State(sent, total, new_ring(after, self.virtual_nodes))
