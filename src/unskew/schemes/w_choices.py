"""W-Choices: a hot key goes to the least loaded of all workers, any other key to the less loaded of its two.

Paper: Nasir et al., "When two choices are not enough", ICDE 2016, section III; FISH, section 2.1. The hot keys are the
head of the stream: `head` says how they are found, and which choices were made about it.

Choices made here:
- Of equally loaded workers the lowest index wins for a hot key, the first candidate for any other.
- The two candidates of other keys are those of `pkg` with the same seed, and may collide as they do there. So while no
  key is hot, every decision is that of `pkg`.

A hot key has up to W replicas. Where frequencies are known beforehand, `fanout` balances with fewer.

State: about 1 to 1.5 kB per worker. More: docs/schemes/w_choices.md.
"""

from typing import Any, NamedTuple

import numpy as np

from unskew.contract import Loads
from unskew.frequencies import Frequencies
from unskew.kernels import kernel
from unskew.least import Least, new_least
from unskew.members import Names
from unskew.plan import Plan
from unskew.registry import register
from unskew.schemes.head import (
    check_head,
    check_head_state,
    counters_of,
    is_head,
    least_loaded_of_all,
    plan_of_head,
    resized_head,
    threshold,
)
from unskew.schemes.pkg import least_loaded_of
from unskew.sketches.space_saving import SpaceSaving, count_key, new_sketch


class State(NamedTuple):
    load: Loads  # int64[workers], tuples this source believes each worker got
    sketch: SpaceSaving  # of the keys
    idle: Least  # the queue of the least loaded workers


@kernel
def choose(scheme, state, key, now):
    if is_head(scheme, state.sketch, count_key(state.sketch, key)):
        worker = least_loaded_of_all(state)
    else:
        worker = least_loaded_of(state.load, key, 2 * scheme.seed, 2 * scheme.seed + 2)
    state.load[worker] += 1
    return worker


@register(
    "w_choices",
    choose=choose,
    paper="When two choices are not enough (ICDE 2016), section III",
    when="pkg is not balanced, frequencies are not known beforehand, and hot keys may be on all workers",
)
class WChoices(NamedTuple):
    """W-Choices: hot keys on whichever worker is least loaded, all others by two choices.

    Parameters
    ----------
    workers
        W, the number of workers.
    theta
        The share of the tuples above which a key is hot; 0 for 1/(5 W).
    counters
        How many counters the sketch has; 0 for 4/theta.
    seed
        Which hash functions: the candidates from number 2 * seed on.
    error_weight
        A key counts as hot by its count plus this times the error of its count: -1 takes what is guaranteed, 0 the
        sketch's estimate, 1 is what the authors' public code does.

    Examples
    --------
    Half of the tuples have the same key, which fills up whichever worker is behind:

    >>> import numpy as np
    >>> from unskew import Router, WChoices, key_ids
    >>> keys = [word for i in range(200) for word in ("the", f"word {i}")]
    >>> np.bincount(Router(WChoices(workers=8)).route(key_ids(keys))).tolist()
    [51, 50, 50, 50, 49, 50, 51, 49]
    """

    workers: int  # W
    theta: float = 0.0
    counters: int = 0
    seed: int = 0
    error_weight: float = -1.0

    def check(self) -> None:
        check_head(self)

    def new_state(self) -> State:
        load = np.zeros(self.workers, np.int64)
        return State(load, new_sketch(counters_of(self)), new_least(self.workers))

    def check_state(self, state: State) -> None:
        check_head_state(state)

    def load_of(self, state: State) -> Loads:
        return state.load

    def resized(self, state: State, before: Names, after: Names) -> "tuple[WChoices, State]":
        return resized_head(self, state, before, after)

    @classmethod
    def plan(cls, workers: int, frequencies: Frequencies, **parameters: Any) -> Plan:
        """The head is dealt over all workers such that they are equally full, other hot keys over their two."""
        scheme = cls(workers, **parameters)
        head = int((frequencies.counts > threshold(scheme) * frequencies.tuples).sum())
        return plan_of_head("w_choices", scheme, frequencies, head, workers)
