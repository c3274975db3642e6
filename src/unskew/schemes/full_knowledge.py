"""Full knowledge: the online greedy scheduler that is told the true cost of each tuple.

Paper: POSG, section III-A ("Greedy Online Scheduler") and section V-B ("Full Knowledge"). A tuple goes to the worker
that has been given the least work so far. The work of the busiest worker is at most 2 - 1/W times the least possible
(theorem 4.2, after Graham), whatever comes in whatever order.

Choices made here:
- Work is the sum of the costs of what this source has sent. It knows costs, not how fast each worker is.
- Of equal workers the lowest index wins. A router that is told no costs takes 1 for each: that is round robin.
- A worker that joins starts with the least work of the others.

State: about 8 bytes per worker. A decision looks at some 2 sqrt(W) of them. More: docs/schemes/full_knowledge.md.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_workers
from unskew.errors import InputError
from unskew.kernels import inlined
from unskew.least import Blocks, check_blocks, new_blocks, smallest_of, update_block
from unskew.members import Names, carried_over
from unskew.registry import register


class State(NamedTuple):
    work: npt.NDArray[np.float64]  # float64[workers], cost of what this source has sent
    least: Blocks  # of the work


@inlined
def choose(scheme, state, key, now, cost):
    worker = smallest_of(state.least)
    state.work[worker] += cost
    update_block(state.least, state.work, worker)
    return worker


@register(
    "full_knowledge",
    choose=choose,
    paper="POSG, section V-B",
    when="the work keeps no state for a key, and the cost of each tuple is known before it is sent",
)
class FullKnowledge(NamedTuple):
    """Greedy with the true cost: each tuple to the worker with the least work so far.

    Parameters
    ----------
    workers
        W, the number of workers.

    Examples
    --------
    The paper's stream a, b, a (section II), where a costs 10 and b costs 1:

    >>> from unskew import FullKnowledge, Router, key_ids
    >>> Router(FullKnowledge(workers=2)).route(key_ids(["a", "b", "a"]), costs=[10.0, 1.0, 10.0]).tolist()
    [0, 1, 1]
    """

    workers: int  # W

    def check(self) -> None:
        require_workers(self.workers)

    def new_state(self) -> State:
        return _state_of(np.zeros(self.workers))

    def resized(self, state: State, before: Names, after: Names) -> "tuple[FullKnowledge, State]":
        return self._replace(workers=len(after)), _state_of(carried_over(state.work, before, after))

    def check_state(self, state: State) -> None:
        if not (np.isfinite(state.work) & (state.work >= 0)).all():
            raise InputError(f"work: must be finite numbers from 0 on, not {state.work.tolist()!r:.80}")
        check_blocks("least", state.least, state.work)


def _state_of(work: npt.NDArray[np.float64]) -> State:
    return State(work, new_blocks(work))
