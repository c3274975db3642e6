"""Two random choices: each tuple goes to the less loaded of two workers drawn at random, whatever its key.

Paper: "PoTC" of CG, Table II (Azar et al., "Balanced allocations"): the fullest worker is ln ln n / ln 2 tuples over
the mean, but for a constant, however skewed the keys are, since the key is not looked at. A key ends up on nearly all
workers: what `shuffle` costs, with less regular load. Not to be confused with `potc`, where a key keeps its choice.

Choices made here: tuple number t draws the candidates of a key whose placement hash is t, numbers 2 * seed and
2 * seed + 1. So draws depend on the seed and the tuple's number at this source alone, and repeat after 2^32 tuples.
Both may be the same worker. Ties go to the first. Sources with the same seed draw the same pairs and so move in step:
the imbalance of all is as many times that of one (100,000 tuples on 50 workers: 1, 20 and 100 with 1, 10 and 100
sources). Give each source another seed where that matters.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.kernels import kernel
from unskew.members import Names, carried_over
from unskew.scheme import register, require_workers
from unskew.schemes.pkg import check_choices, least_loaded_of


class State(NamedTuple):
    load: npt.NDArray[np.int64]  # int64[workers], tuples this source believes each worker got
    drawn: npt.NDArray[np.uint64]  # [1] tuples so far


@kernel
def choose(scheme, state, key, now):
    pair = state.drawn[0] << np.uint64(32)
    worker = least_loaded_of(state.load, pair, 2 * scheme.seed, 2 * scheme.seed + 2)
    state.drawn[0] += np.uint64(1)
    state.load[worker] += 1
    return worker


@register(
    "random_two",
    choose=choose,
    paper="CG, Table II (PoTC); Azar et al., Balanced allocations",
    when="keys need not be kept together, and the load is known by probes: else shuffle is better",
)
class RandomTwo(NamedTuple):
    """The less loaded of two random workers for each tuple, whatever its key."""

    workers: int  # n
    seed: int = 0

    def check(self) -> None:
        require_workers(self.workers)
        check_choices(2, self.seed)

    def new_state(self) -> State:
        return State(np.zeros(self.workers, np.int64), np.zeros(1, np.uint64))

    def resized(self, state: State, before: Names, after: Names) -> "tuple[RandomTwo, State]":
        load = carried_over(state.load, before, after)
        return self._replace(workers=len(after)), State(load, state.drawn.copy())
