"""Shuffle grouping (SG), round robin: tuples go to all workers in turn, whatever their key.

Paper: Partial Key Grouping, section 2.1. The imbalance of one source is always under 1. A key has up to W replicas.

Choices made here:
- The first source starts at worker `seed` modulo W. Source number i starts i golden sections of a round later, which
  spreads any number of sources evenly. Sources of equal speed then do not all send to the same worker at the same
  time. Together, S sources stay under an imbalance of S.
- When workers come or go, a source goes on at the same share of the round.

A router remembers one number. More: docs/schemes/shuffle.md.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_integer, require_workers
from unskew.kernels import kernel
from unskew.members import Names
from unskew.registry import register

GOLDEN_SECTION = 0.6180339887498949  # of a round: multiples of it spread most evenly


class State(NamedTuple):
    next_worker: npt.NDArray[np.int64]  # int64[1], in 0..workers-1


def share_of_round(source: int, places: int) -> int:
    """Where source number `source` starts in a round of so many places."""
    return int(source * GOLDEN_SECTION % 1.0 * places)


@kernel
def choose(scheme, state, key, now):
    worker = state.next_worker[0]
    state.next_worker[0] = worker + 1 if worker + 1 < scheme.workers else 0
    return worker


@register(
    "shuffle",
    choose=choose,
    paper="PKG, section 2.1 (SG)",
    when="the work keeps no state for a key, or partial state on every worker is cheap",
)
class Shuffle(NamedTuple):
    """Round robin: perfect balance, up to W replicas per key.

    Parameters
    ----------
    workers
        W, the number of workers.
    seed
        The worker that the first source starts with, modulo W.

    Examples
    --------
    >>> from unskew import Router, Shuffle, key_ids
    >>> Router(Shuffle(workers=4)).route(key_ids(["to", "be", "or", "not", "to", "be"])).tolist()
    [0, 1, 2, 3, 0, 1]

    A second source starts elsewhere:

    >>> Router(Shuffle(workers=4), source=1).route(key_ids(["to", "be"])).tolist()
    [2, 3]
    """

    workers: int  # W
    seed: int = 0

    def check(self) -> None:
        require_workers(self.workers)
        require_integer("seed", self.seed, 0, 2**31 - 1)

    def new_state(self) -> State:
        return State(np.array([self.seed % self.workers], np.int64))

    def resized(self, state: State, before: Names, after: Names) -> tuple["Shuffle", State]:
        return self._replace(workers=len(after)), State(state.next_worker * len(after) // len(before))

    def stagger(self, state: State, source: int) -> None:
        state.next_worker[0] = (self.seed + share_of_round(source, self.workers)) % self.workers

    def check_state(self, state: State) -> None:
        require_integer("next_worker", int(state.next_worker[0]), 0, self.workers - 1)
