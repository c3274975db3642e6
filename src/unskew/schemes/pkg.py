"""Partial Key Grouping (PKG): each tuple goes to the less loaded of the two candidates of its key.

Paper: Partial Key Grouping, section 3.1 (key splitting) and 3.2 (local load estimation). With ``choices`` = d it is
Greedy-d of section 5: P_t(k) = argmin over i in {H_1(k), ..., H_d(k)} of L_i(t). With d = 1 it is key grouping.

Choices made here:
- Of equally loaded candidates the one with the lowest number j wins. So the first tuple of a source goes to H_0(k).
- Candidates of a key that collide stay collided, as with the paper's independent hash functions: with probability
  about 1/W a key has one worker only. (Apache Storm moves the second, which changes the analysis of section 5.)
- `seed` picks another set of d functions: the candidates d * seed to d * seed + d - 1.
- The load is what this source has sent. The simulator can share it among sources (the paper's global oracle, G), or
  overwrite it with the true load from time to time (probing, LP).

State: 8 bytes per worker. More: docs/schemes/pkg.md.
"""

from typing import Any, NamedTuple

import numpy as np

from unskew.checks import require_integer, require_workers
from unskew.contract import Loads
from unskew.frequencies import Frequencies
from unskew.hashing import candidate
from unskew.kernels import inlined, kernel
from unskew.plan import HotKey, Plan
from unskew.registry import register


class State(NamedTuple):
    load: Loads  # int64[workers], tuples this source believes each worker got


@inlined
def least_loaded_of(load, key, first, end):
    """argmin of the load over the candidates `first` to `end` - 1 of `key`; the first of equals."""
    best = candidate(key, first, len(load))
    for j in range(first + 1, end):
        worker = candidate(key, j, len(load))
        if load[worker] < load[best]:
            best = worker
    return best


@kernel
def least_loaded_candidate(scheme, load, key):
    """argmin of the load over the `scheme.choices` candidates of `key`."""
    first = scheme.seed * scheme.choices
    return least_loaded_of(load, key, first, first + scheme.choices)


@kernel
def choose(scheme, state, key, now):
    worker = least_loaded_candidate(scheme, state.load, key)
    state.load[worker] += 1
    return worker


def check_choices(choices: Any, seed: Any) -> None:
    require_integer("choices", choices, 1, 2**31 - 1)
    require_integer("seed", seed, 0, (2**31 - 1) // choices - 1)  # every candidate's number fits Spark's int


@register(
    "pkg",
    choose=choose,
    paper="PKG, section 3 (Greedy-d)",
    when="partial results of a key can be merged, and the hottest key has p1 under choices/workers",
)
class PartialKey(NamedTuple):
    """Partial Key Grouping (Greedy-d): the least loaded of `choices` candidates, at most `choices` replicas per key.

    Parameters
    ----------
    workers
        W, the number of workers.
    choices
        d, the number of candidates per key.
    seed
        Which set of d hash functions.

    Examples
    --------
    The hot key is split over its two candidates, evenly:

    >>> import numpy as np
    >>> from unskew import PartialKey, Router, key_ids
    >>> np.bincount(Router(PartialKey(workers=4)).route(key_ids(["the"] * 100)), minlength=4).tolist()
    [0, 50, 50, 0]
    """

    workers: int  # W
    choices: int = 2  # d
    seed: int = 0

    def check(self) -> None:
        require_workers(self.workers)
        check_choices(self.choices, self.seed)

    def new_state(self) -> State:
        return State(np.zeros(self.workers, np.int64))

    def load_of(self, state: State) -> Loads:
        return state.load

    @classmethod
    def plan(cls, workers: int, frequencies: Frequencies, choices: int = 2, seed: int = 0) -> Plan:
        """Hot keys are dealt evenly over their candidates, the others stay whole on the first.

        The balance is PKG's where few keys are hot. What a plan cannot do is look at the load: hot keys that share a
        candidate are dealt over it all the same.
        """
        salts = tuple(range(seed * choices, (seed + 1) * choices))
        hot_keys = [
            HotKey(int(frequencies.key_ids[i]), frequencies.counts[i] / frequencies.tuples, salts, frequencies.names[i])
            for i in range(frequencies.hot(workers))
        ]
        return Plan("pkg", workers, tuple(hot_keys), cold_salt=salts[0])
