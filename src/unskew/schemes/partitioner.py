"""Partitioner: hot keys are placed whole, and moved when the load has become uneven or workers come and go.

Paper: Gedik, "Partitioning functions for stateful data parallelism in stream processing". A key has one worker at a
time, so its state need not be mergeable. Its place is looked up in an explicit map, or else on a consistent-hash ring
(Algorithm 1). Every tuple is counted by lossy counting over the recent past. Every `every` tuples the loads are
compared; if the highest is more than alpha times the lowest, a new map is made (`partitioning/controller.py` says when
it is activated), and likewise when workers come or go.

Choices made here:
- One splitter, as in the paper: in a simulation all sources share one function and its counters. Two sources with maps
  of their own would split keys.
- A router does not re-plan by itself: who runs it calls `Router.replan` every `every` tuples, as the simulator does.
- Keys rarer than ten times the error of the counts get no entry.
- As a plan, on Spark, other keys are where Spark's hash puts them, what they do to their workers is balanced too, and
  no state has to be moved yet.

State: about 9 MB with the defaults, and 8 kB per worker. More: docs/schemes/partitioner.md.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import is_number, require, require_integer
from unskew.contract import Loads, Workers
from unskew.errors import InputError
from unskew.frequencies import Frequencies
from unskew.hashing import KeyIds, frozen
from unskew.kernels import kernel
from unskew.key_table import EMPTY, KeyTable, check_table, fill_all, new_table
from unskew.members import Names
from unskew.partitioning.construction import ALGORITHMS, DEFAULT, construct
from unskew.partitioning.controller import ERROR, HISTORY, RAREST, next_function
from unskew.partitioning.function import PLANNER, VIRTUAL_NODES, PartitionFunction, look_up, look_up_all
from unskew.partitioning.objective import Objective
from unskew.plan import Plan
from unskew.registry import register
from unskew.ring import MOST_NODES, Ring, check_ring
from unskew.sketches.lossy_counting import LossyCounting, check_sketch, count_key, new_sketch

MOST_HISTORY = 10**9


class State(NamedTuple):
    explicit: KeyTable  # key -> index of its worker
    ring: Ring
    sketch: LossyCounting
    load: Loads  # int64[workers], tuples since the last look


@kernel
def choose(scheme, state, key, now):
    count_key(state.sketch, key)
    worker = look_up(state.explicit, state.ring, key)
    state.load[worker] += 1
    return worker


@register(
    PLANNER,
    choose=choose,
    paper="Gedik, partitioning functions for stateful data parallelism",
    when="keys must not be split, skew is moderate, and state may be moved when load or workers change",
)
class Partitioner(NamedTuple):
    """A partitioning function that follows frequencies and workers; every key on one worker at a time.

    Parameters
    ----------
    workers
        N, the number of workers.
    algorithm
        How a new map is made: ``"scan"``, ``"redist"`` or ``"readj"``.
    resources
        The load that a key puts on state, computation and communication: C, L or Q each, as in `Objective`.
    alpha
        How many times the lowest load the highest may be.
    sigma
        The part of the allowed imbalance that keys without an entry may cause.
    utility
        How balance and migration are weighed: A, APM, APLM, ATM or ATLM.
    history
        Over how many tuples frequencies are counted, an even number.
    every
        After how many tuples the loads are compared.
    error
        Of a frequency, as a share of all tuples.
    keys
        About how many keys there are; only quadratic resources ask.

    Examples
    --------
    >>> from unskew import Partitioner, Router, key_ids
    >>> router = Router(Partitioner(workers=2))
    >>> stream = key_ids(["the", "mat", "the", "cat", "the", "on"] * 1000)
    >>> np.bincount(router.route(stream)).tolist()
    [2000, 4000]
    >>> router.replan()
    True
    >>> np.bincount(router.route(stream)).tolist()
    [3000, 3000]
    """

    workers: int  # N
    algorithm: str = DEFAULT
    resources: str = "LCL"
    alpha: float = 1.2
    sigma: float = 0.1
    utility: str = "APM"
    history: int = HISTORY
    every: int = 10_000
    error: float = ERROR
    keys: int = 1_000_000

    @classmethod
    def plan(cls, workers: int, frequencies: Frequencies, algorithm: str = "scan", **parameters: Any) -> Plan:
        """Every key whole: hot ones where they even out all workers, others at home.

        With no state to be moved, `scan` is as even as the others, and the quickest.
        """
        scheme = cls(workers, algorithm, **parameters)
        scheme.check()
        goal = scheme._goal()
        if algorithm != "redist":  # which is uneven by balance alone (the paper's Fig. 7b)
            goal = replace(goal, utility="A")  # there is no state yet that could be moved
        at_home = PartitionFunction(workers, cold="home")
        function = construct(at_home, frequencies, None, goal, algorithm=algorithm, cold_load=True)
        return function.to_plan(frequencies)

    def check(self) -> None:
        require_integer("workers", self.workers, 1, MOST_NODES // VIRTUAL_NODES)
        require("algorithm", self.algorithm, f"one of {', '.join(ALGORITHMS)}", self.algorithm in ALGORITHMS)
        self._goal()
        require_integer("history", self.history, 2, MOST_HISTORY)
        require("history", self.history, "an even number", self.history % 2 == 0)
        require_integer("every", self.every, 1, MOST_HISTORY)
        require("error", self.error, "a share from 1e-6 to 0.01", is_number(self.error, 1e-6, 0.01))
        require_integer("keys", self.keys, 1)

    def _goal(self) -> Objective:
        return Objective(self.resources, self.alpha, self.sigma, self.utility)

    def new_state(self) -> State:
        return self._state_for(PartitionFunction(self.workers), new_sketch(self.error, self.history))

    def _state_for(self, function: PartitionFunction, sketch: LossyCounting) -> State:
        """The state that decides as `function`, whose ring becomes its own."""
        most = int(1 / ((RAREST - 1) * self.error)) + 1  # keys of that share of all tuples
        explicit = new_table(1 << (2 * most + 1).bit_length())
        fill_all(explicit, function.key_ids, function.placed)
        return State(explicit, function.ring, sketch, np.zeros(function.workers, np.int64))

    def _function_of(self, state: State, members: Names) -> PartitionFunction:
        cells = np.flatnonzero(state.explicit.values != EMPTY)
        hashed = PartitionFunction(members)
        hashed.__dict__["ring"] = state.ring
        return hashed.with_entries(frozen(state.explicit.keys[cells]), state.explicit.values[cells])

    def check_state(self, state: State) -> None:
        check_table("explicit", state.explicit, self.workers)
        check_ring("ring", state.ring, self.workers)
        check_sketch("sketch", state.sketch)
        if state.load.min() < 0:
            raise InputError(f"load: must be at least 0, not {state.load.min()}")

    def resized(self, state: State, before: Names, after: Names) -> "tuple[Partitioner, State]":
        scheme = self._replace(workers=len(after))
        scheme.check()
        function = scheme._next(state, self._function_of(state, before), after)
        assert function is not None  # workers have changed
        return scheme, scheme._state_for(function, state.sketch)

    def _next(self, state: State, present: PartitionFunction, after: Names | None) -> PartitionFunction | None:
        return next_function(
            present, state.sketch, state.load, after, self._goal(), self.algorithm, self.error, self.keys
        )

    @property
    def replan_every(self) -> int:
        return int(self.every)

    def replanned(self, state: State, members: Names) -> State:
        function = self._next(state, self._function_of(state, members), None)
        state.load[:] = 0
        return state if function is None else self._state_for(function, state.sketch)

    def homes(self, state: State, key_ids: KeyIds) -> Workers:
        chosen: Workers = look_up_all(state.explicit, state.ring, False, self.workers, key_ids)
        return chosen

    def sizes(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return counts.astype(np.float64) ** self._goal().exponents[0]
