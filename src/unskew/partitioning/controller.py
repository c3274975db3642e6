"""The adaptation loop: measure, analyse, plan, activate.

Paper: Gedik, section 4.5. *Measure*: every tuple is counted, by lossy counting over the recent past, and so is the load
of every worker. *Analyse*: a new function is needed when the highest load since the last look is more than alpha times
the lowest, or when workers come or go. *Plan*: one of the constructions makes it. *Activate*: the state of the keys
that change their worker is moved, then the new function decides.

Choices made here: the paper re-plans only when the number of workers changes. While the workers stay, a new function is
activated only if it promises a lower ratio of loads on the frequencies that were counted: else `scan` and `redist`,
which place all keys anew, would move state for nothing at every look.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from unskew.contract import Loads, Workers
from unskew.frequencies import Frequencies
from unskew.hashing import KeyIds, require_key_ids
from unskew.partitioning.construction import DEFAULT, construct
from unskew.partitioning.function import PartitionFunction
from unskew.partitioning.metrics import Moves, loads, moves
from unskew.partitioning.objective import Objective
from unskew.sketches.lossy_counting import LossyCounting, count_keys, frequent_keys, new_sketch, tuples_seen

HISTORY = 100_000  # tuples that frequencies are counted over
ERROR = 1e-4  # of a frequency
RAREST = 10  # times the error: rarer keys are not tracked, since their counts say little


class Adaptation(NamedTuple):
    """A new function, and what has to be moved before it decides.

    Attributes
    ----------
    before, after
        The function that decided so far, and the one that decides from now on.
    moves
        The keys whose state must be moved.
    why
        What made it necessary, in words.

    Examples
    --------
    >>> from unskew import key_ids
    >>> from unskew.partitioning import Controller
    >>> controller = Controller(workers=2)
    >>> _ = controller.route(key_ids(["the", "cat", "the", "sat"] * 100))
    >>> adaptation = controller.adapt(members=3)
    >>> adaptation.after.workers, adaptation.why
    (3, 'workers changed')
    """

    before: PartitionFunction
    after: PartitionFunction
    moves: Moves
    why: str


class Controller:
    """One splitter's partitioning function, which follows frequencies and workers.

    Parameters
    ----------
    workers
        How many workers there are at first.
    objective
        Which loads count, and what is allowed.
    algorithm
        ``"scan"``, ``"redist"`` or ``"readj"``.
    history
        Over how many tuples frequencies are counted.
    error
        Of a frequency, as a share of all tuples. Keys rarer than ten times that get no entry.
    cold
        The hash of keys without an entry; see `PartitionFunction`.

    Examples
    --------
    One key has half of the tuples. Another one shares its worker by hash, and is moved away:

    >>> from unskew import key_ids
    >>> from unskew.partitioning import Controller
    >>> controller = Controller(workers=2)
    >>> stream = key_ids(["the", "mat", "the", "cat", "the", "on"] * 1000)
    >>> _ = controller.route(stream)
    >>> adaptation = controller.adapt()
    >>> adaptation.why, len(adaptation.moves)
    ('the highest load is 2.0 times the lowest, and may be 1.2 times', 1)
    >>> import numpy as np
    >>> np.bincount(controller.route(stream)).tolist()
    [3000, 3000]
    """

    def __init__(
        self,
        workers: int,
        objective: Objective | None = None,
        *,
        algorithm: str = DEFAULT,
        history: int = HISTORY,
        error: float = ERROR,
        cold: str = "ring",
    ) -> None:
        self.function = PartitionFunction(workers, cold=cold)
        self._goal, self._algorithm, self._error = Objective() if objective is None else objective, algorithm, error
        self._sketch = new_sketch(error, history)
        self._load: Loads = np.zeros(workers, np.int64)

    def route(self, key_ids: KeyIds) -> Workers:
        """The worker of each tuple, by index; counts them (measure)."""
        ids = require_key_ids(key_ids)
        count_keys(self._sketch, ids)
        chosen = self.function.look_up(ids)
        self._load += np.bincount(chosen, minlength=self.function.workers)
        return chosen

    @property
    def frequencies(self) -> Frequencies:
        """The keys in memory and how often they came lately."""
        return frequencies_of(self._sketch)

    def adapt(self, members: int | Iterable[int] | None = None, state: Frequencies | None = None) -> Adaptation | None:
        """Look whether a new function is needed, and go over to it. None where the present one stays.

        `members` are the workers of now; left out, those of before. `state` are all keys that have state, so that the
        list of moves is complete; left out, it has the keys in memory only.
        """
        before, load = self.function, self._load
        now = None if members is None else PartitionFunction(members, cold=before.cold).members
        if now is not None and np.array_equal(now, before.members):
            now = None  # they have not changed
        after = next_function(before, self._sketch, load, now, self._goal, self._algorithm, self._error)
        self._load = np.zeros(load.shape if after is None else after.workers, np.int64)
        if after is None:
            return None
        self.function = after
        changed = not np.array_equal(before.members, after.members)
        ratio, alpha = highest_over_lowest(load), self._goal.alphas[2]
        uneven = f"the highest load is {ratio:.1f} times the lowest, and may be {alpha:g} times"
        found = moves(before, after, self.frequencies if state is None else state, self._goal)
        return Adaptation(before, after, found, "workers changed" if changed else uneven)


def frequencies_of(sketch: LossyCounting) -> Frequencies:
    """What a sketch has counted."""
    return Frequencies(*frequent_keys(sketch), tuples_seen(sketch))


def next_function(
    before: PartitionFunction,
    sketch: LossyCounting,
    load: Loads,
    members: int | Iterable[int] | None,
    goal: Objective,
    algorithm: str,
    error: float,
    keys: int | None = None,
) -> PartitionFunction | None:
    """The function to go on with, or None where the present one is good enough, or no better one was found.

    `load` is what each worker got since the last look. With `members` the workers have changed.
    """
    if members is None and highest_over_lowest(load) <= goal.alphas[2]:
        return None
    counted = frequencies_of(sketch)
    workers = before.workers if members is None else PartitionFunction(members, cold=before.cold).workers
    delta = goal.delta(workers, max(len(counted.key_ids), keys or 1))
    slack = error if delta >= RAREST * error else delta - (RAREST - 1) * error
    after = construct(before, counted, members, goal, algorithm=algorithm, keys=keys, slack=slack)
    if members is None and promised_ratio(after, counted) >= promised_ratio(before, counted):
        return None
    return after


def highest_over_lowest(load: Loads) -> float:
    """The ratio of the highest load to the lowest; 1 where there is none at all."""
    highest, lowest = int(load.max()), int(load.min())
    if not highest:
        return 1.0
    return highest / lowest if lowest else np.inf


def promised_ratio(function: PartitionFunction, counted: Frequencies) -> float:
    """The same for the tuples that were counted, if those of other keys are even."""
    load = loads(function, counted, Objective())[2] + (counted.tuples - counted.counts.sum()) / function.workers
    return float(load.max() / load.min()) if load.min() > 0 else np.inf
