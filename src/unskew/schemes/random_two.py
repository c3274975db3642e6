"""Two random choices: each tuple goes to the less loaded of two workers drawn at random, whatever its key.

Paper: "PoTC" of CG, Table II (Azar et al., "Balanced allocations"): the fullest worker is ln ln n / ln 2 tuples over
the mean, but for a constant, however skewed the keys are, since the key is not looked at. A key ends up on nearly all
workers: what `shuffle` costs, with less regular load. Not to be confused with `potc`, where a key keeps its choice.

Choices made here: tuple number t draws the candidates of a key whose placement hash is t, numbers 2 * seed and
2 * seed + 1. So draws depend on the seed, the source and the tuple's number at this source alone, and repeat after 2^32
tuples. Both may be the same worker. Ties go to the first. The first source starts with tuple number 0, each further one
elsewhere among the 2^32: sources that drew the same pairs would move in step, and their imbalances would add up.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_workers
from unskew.contract import Loads
from unskew.kernels import kernel
from unskew.members import Names, carried_over
from unskew.registry import register
from unskew.schemes.pkg import check_choices, least_loaded_of
from unskew.schemes.shuffle import share_of_round


class State(NamedTuple):
    load: Loads  # int64[workers], tuples this source believes each worker got
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

    def load_of(self, state: State) -> Loads:
        return state.load

    def stagger(self, state: State, source: int) -> None:
        state.drawn[0] = share_of_round(source, 2**32)
