"""Two random choices: each tuple goes to the less loaded of two workers drawn at random, whatever its key.

Paper: "PoTC" of CG, Table II (Azar et al., "Balanced allocations"). The key is not looked at, so skew does not matter:
the fullest worker is about ln ln n / ln 2 tuples over the mean. A key ends up on nearly all workers. Do not confuse
this with `potc`, where a key keeps its choice.

Choices made here:
- Tuple number t draws the candidates 2 * seed and 2 * seed + 1 of a key whose placement hash is t. So a draw depends
  only on the seed, the source and the number of the tuple at that source. Draws repeat after 2^32 tuples.
- Both draws may be the same worker. Of equally loaded workers the first drawn wins.
- The first source starts with tuple number 0, and each other source elsewhere among the 2^32 numbers. Sources that drew
  the same pairs would move in step, and their imbalances would add up.

State: 8 bytes per worker. More: docs/schemes/random_two.md.
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
    """The less loaded of two random workers for each tuple, whatever its key.

    Parameters
    ----------
    workers
        n, the number of workers.
    seed
        Which random draws.

    Examples
    --------
    One hot key ends up on all workers, almost evenly:

    >>> import numpy as np
    >>> from unskew import RandomTwo, Router, key_ids
    >>> np.bincount(Router(RandomTwo(workers=4)).route(key_ids(["the"] * 100))).tolist()
    [24, 25, 26, 25]
    """

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
