"""Shuffle grouping (SG): tuples go round the workers in turn, whatever their key.

Paper: Partial Key Grouping, section 2.1. Imbalance of one source: under 1. Replicas: up to W for each key.

Choices made here: a source starts at worker `seed` modulo W. Sources that all start at the same worker (the default)
are never more than one tuple each out of step, so S sources together stay under an imbalance of S. When workers come or
go, the round starts anew there.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.kernels import kernel
from unskew.members import Names
from unskew.scheme import register, require_integer, require_workers


class State(NamedTuple):
    next_worker: npt.NDArray[np.int64]  # int64[1], in 0..workers-1


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
    """Round robin: perfect balance, up to W replicas of each key."""

    workers: int  # W
    seed: int = 0

    def check(self) -> None:
        require_workers(self.workers)
        require_integer("seed", self.seed, 0, 2**31 - 1)

    def new_state(self) -> State:
        return State(np.array([self.seed % self.workers], np.int64))

    def resized(self, state: State, before: Names, after: Names) -> tuple["Shuffle", State]:
        scheme = self._replace(workers=len(after))
        return scheme, scheme.new_state()

    def check_state(self, state: State) -> None:
        require_integer("data: next_worker", state.next_worker[0], 0, self.workers - 1)
