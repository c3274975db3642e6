"""How good a partitioning function is: relative imbalance, relative migration, and the exact list of moves.

Paper: Gedik, sections 3.1, 3.3 and 3.4 (Eqs. 1-6 and 9-12). All numbers are of the keys that were counted.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.frequencies import Frequencies
from unskew.hashing import KeyIds
from unskew.members import Names
from unskew.partitioning.function import PartitionFunction
from unskew.partitioning.objective import Objective

Amounts = npt.NDArray[np.float64]


class Imbalance(NamedTuple):
    """Relative imbalance: 1 is what is allowed, more is worse; infinite where a worker has no load.

    Parameters
    ----------
    state, computation, communication
        b_s, b_c and b_n: of what workers hold, compute and receive.

    Examples
    --------
    >>> from unskew.partitioning import Imbalance
    >>> Imbalance(state=1.2, computation=1.2, communication=1.2).overall
    1.2
    """

    state: float
    computation: float
    communication: float

    @property
    def overall(self) -> float:
        """b, the geometric mean of the three (Eq. 11)."""
        return float(round((self.state * self.computation * self.communication) ** (1 / 3), 12))


@dataclass(frozen=True)
class Moves:
    """The keys that change their worker, in the order of the frequencies.

    Attributes
    ----------
    key_ids
        The keys.
    from_, to
        The names of the workers: the one that hands a key's state over, and the one that gets it.
    state
        The size of each key's state, beta_s of its count.
    names
        The keys as text, where they are known; else empty.

    Examples
    --------
    >>> from unskew import Frequencies, key_ids
    >>> from unskew.partitioning import PartitionFunction, moves
    >>> ids = key_ids(["the", "of"])
    >>> frequencies = Frequencies(ids, [60, 30], tuples=90, names=["the", "of"])
    >>> before = PartitionFunction(2, ids, [0, 1])
    >>> found = moves(before, before.with_entries(ids, [1, 1]), frequencies)
    >>> found.table().to_pylist()
    [{'key': 'the', 'key_id': 2548357470391167514, 'from': 0, 'to': 1, 'state': 60.0}]
    """

    key_ids: KeyIds
    from_: Names
    to: Names
    state: Amounts
    names: tuple[str, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.key_ids)

    @property
    def cost(self) -> float:
        """M, the state that is moved (Eq. 9)."""
        return float(self.state.sum())

    def table(self) -> pa.Table:
        """One row per move: key, key id, from, to, state."""
        names = list(self.names) or [""] * len(self)
        columns = (names, self.key_ids, self.from_, self.to, self.state)
        return pa.table(dict(zip(("key", "key_id", "from", "to", "state"), map(pa.array, columns), strict=True)))


def loads(function: PartitionFunction, frequencies: Frequencies, objective: Objective) -> Amounts:
    """The load of each worker, one row per resource: state, computation, communication (Eqs. 1, 3 and 5)."""
    chosen, counts = function.look_up(frequencies.key_ids), frequencies.counts.astype(np.float64)
    return np.array([np.bincount(chosen, counts**exponent, function.workers) for exponent in objective.exponents])


def imbalance(function: PartitionFunction, frequencies: Frequencies, objective: Objective | None = None) -> Imbalance:
    """How uneven the loads are: highest over lowest, over alpha (Eqs. 2, 4, 6 and 11).

    Parameters
    ----------
    function
        Which worker has which key.
    frequencies
        How often the keys occur.
    objective
        The resource functions, and what is allowed.

    Examples
    --------
    Loads of 60 and 30, where 1.2 to 1 is allowed:

    >>> from unskew import Frequencies, key_ids
    >>> from unskew.partitioning import Objective, PartitionFunction, imbalance
    >>> ids = key_ids(["the", "of"])
    >>> frequencies = Frequencies(ids, [60, 30], tuples=90)
    >>> round(imbalance(PartitionFunction(2, ids, [0, 1]), frequencies, Objective("LLL")).overall, 3)
    1.667
    """
    goal = Objective() if objective is None else objective
    by_worker = loads(function, frequencies, goal)
    highest, lowest = by_worker.max(axis=1), by_worker.min(axis=1)
    ratios = np.divide(highest, lowest, out=np.full(3, np.inf), where=lowest > 0)
    ratios[highest == 0] = 1.0  # no load at all
    return Imbalance(*(ratios / np.array(goal.alphas)).tolist())


def moves(
    before: PartitionFunction,
    after: PartitionFunction,
    frequencies: Frequencies,
    objective: Objective | None = None,
) -> Moves:
    """Which keys change their worker from `before` to `after`, and how much state each of them has.

    Parameters
    ----------
    before, after
        The functions of now and of then.
    frequencies
        The keys that are there, and how often they occur.
    objective
        Its resource function of the state gives the sizes.

    Examples
    --------
    When a worker joins, consistent hashing moves keys to it only:

    >>> import numpy as np
    >>> from unskew import Frequencies, key_ids
    >>> from unskew.partitioning import PartitionFunction, moves
    >>> ids = key_ids(np.arange(1000))
    >>> frequencies = Frequencies(ids, np.ones(1000, np.int64), tuples=1000)
    >>> found = moves(PartitionFunction(4), PartitionFunction(5), frequencies)
    >>> len(found), set(found.to.tolist())
    (204, {4})
    """
    goal = Objective() if objective is None else objective
    old, new = before.names_of(frequencies.key_ids), after.names_of(frequencies.key_ids)
    moved = np.flatnonzero(old != new)
    state = frequencies.counts[moved].astype(np.float64) ** goal.exponents[0]
    names = tuple(frequencies.names[i] for i in moved.tolist()) if any(frequencies.names) else ()
    return Moves(frequencies.key_ids[moved], old[moved], new[moved], state, names)


def relative_migration(
    found: Moves, workers: int, frequencies: Frequencies, objective: Objective | None = None
) -> float:
    """m: the state that is moved, over one worker's share of all state (Eqs. 10 and 12).

    Parameters
    ----------
    found
        What is moved; see `moves`.
    workers
        How many workers there are afterwards.
    frequencies, objective
        As for `moves`.

    Examples
    --------
    Consistent hashing moves about the share of the worker that joins, plain hashing nearly everything:

    >>> import numpy as np
    >>> from unskew import Frequencies, key_ids
    >>> from unskew.partitioning import PartitionFunction, moves, relative_migration
    >>> frequencies = Frequencies(key_ids(np.arange(1000)), np.ones(1000, np.int64), tuples=1000)
    >>> for cold in ("ring", "home"):
    ...     found = moves(PartitionFunction(4, cold=cold), PartitionFunction(5, cold=cold), frequencies)
    ...     print(cold, relative_migration(found, 5, frequencies))
    ring 1.02
    home 4.085
    """
    goal = Objective() if objective is None else objective
    ideal = float((frequencies.counts.astype(np.float64) ** goal.exponents[0]).sum()) / workers
    return found.cost / ideal if ideal else 0.0
