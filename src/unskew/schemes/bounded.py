"""Consistent hashing with bounded loads: each tuple goes to the first worker clockwise that has room.

Paper: Mirrokni, Thorup, Zadimoghaddam, "Consistent hashing with bounded loads", as CG describes it in section III-C
("CH"). Keys and workers are on a ring, and a worker has room while its load is under (1 + epsilon) times the mean. A
tuple that finds its worker full goes on clockwise.

It is `porc` with the ring in the place of random candidates: what `porc` says of room, of the bound, of probes and of
several sources holds here too. The search ends, because all workers are on the ring.

When workers come and go, only those keys move that the workers held or gain, and what overflows because of it. A new
worker starts with the least load.

State: about 1.6 to 2.1 kB per worker with 128 virtual nodes. More: docs/schemes/bounded.md.
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
    """Consistent hashing with bounded loads: the first worker clockwise with a load under (1 + epsilon) x mean.

    Parameters
    ----------
    workers
        n, the number of workers.
    epsilon
        How far a load may exceed the mean, as a share of the mean.
    virtual_nodes
        How many nodes each worker has on the ring; more of them make the ring more even and larger.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import BoundedLoads, Router, key_ids
    >>> np.bincount(Router(BoundedLoads(workers=4)).route(key_ids(["the"] * 100))).tolist()
    [24, 25, 26, 25]
    """

    workers: int  # n
    epsilon: float = 0.01
    virtual_nodes: int = VIRTUAL_NODES

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
