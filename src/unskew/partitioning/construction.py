"""Makes the next partitioning function from the present one, the frequencies of now and the workers of now.

Paper: Gedik, section 4.2. The hash of the new function follows from its workers; the constructions decide where the
tracked keys go. Workers may come and go in any number, also at the same time as frequencies change.

The paper adds one worker at a time, and so does `readj` here where several join: all at once it would stop early. Its
penalty knows the extreme loads only, and no single move lowers it while two workers have the highest load and two have
none.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from unskew.checks import require, require_integer
from unskew.errors import InputTypeError
from unskew.frequencies import Frequencies
from unskew.hashing import KeyIds
from unskew.partitioning.function import NO_KEYS, NO_WORKERS, PartitionFunction
from unskew.partitioning.greedy import redist, scan
from unskew.partitioning.objective import UTILITIES, Objective
from unskew.partitioning.penalties import Amounts, Problem
from unskew.partitioning.readj import readj

ALGORITHMS = ("scan", "redist", "readj")
DEFAULT = "redist"  # "the most robust one" (section 5.3); see docs/schemes/partitioner.md


def construct(
    previous: PartitionFunction,
    frequencies: Frequencies,
    members: int | Iterable[int] | None = None,
    objective: Objective | None = None,
    *,
    algorithm: str = DEFAULT,
    keys: int | None = None,
    slack: float = 0.0,
    cold_load: bool | Amounts = False,
) -> PartitionFunction:
    """The partitioning function for what comes next.

    Parameters
    ----------
    previous
        The present function: where the state of each key is.
    frequencies
        How often keys occur now, each key once.
    members
        The workers of now: their number or names. Left out, those of `previous`.
    objective
        Which loads count and how; see `Objective`.
    algorithm
        ``"scan"``, ``"redist"`` or ``"readj"``.
    keys
        |D|, how many keys there are; left out, those that were counted. Only quadratic resources ask.
    slack
        By how much the frequencies may be too low, as shares of all tuples.
    cold_load
        Whether to balance what keys without an entry do to their workers too. The paper takes these as even. An array
        says what is known: how many tuples each worker would get if no key had an entry.

    Examples
    --------
    Four keys of 60, 30, 20 and 10 tuples go from one worker to two:

    >>> from unskew import Frequencies, key_ids
    >>> from unskew.partitioning import PartitionFunction, construct
    >>> ids = key_ids(["the", "of", "and", "to"])
    >>> frequencies = Frequencies(ids, [60, 30, 20, 10], tuples=120)
    >>> construct(PartitionFunction(1), frequencies, 2).look_up(ids).tolist()
    [0, 1, 1, 1]
    """
    if not isinstance(previous, PartitionFunction):
        raise InputTypeError(f"previous: must be a PartitionFunction, not {previous!r:.80}")
    if not isinstance(frequencies, Frequencies):
        raise InputTypeError(f"frequencies: must be Frequencies, not {type(frequencies).__name__}")
    require("algorithm", algorithm, f"one of {', '.join(ALGORITHMS)}", algorithm in ALGORITHMS)
    if keys is not None:
        require_integer("keys", keys, 1)
    goal = Objective() if objective is None else objective
    hashed = replace(
        previous, members=previous.members if members is None else members, key_ids=NO_KEYS, placed=NO_WORKERS
    )
    if np.array_equal(hashed.members, previous.members):
        hashed = previous.with_entries(NO_KEYS, NO_WORKERS)  # has its ring already
    if algorithm == "readj":
        for fewer in _without_the_last_that_join(previous.members.tolist(), hashed.members.tolist()):
            previous = construct(
                previous, frequencies, fewer, goal, algorithm=algorithm, keys=keys, slack=slack, cold_load=cold_load
            )
    tracked = goal.tracked(frequencies, hashed.workers, keys, slack)
    if not tracked:
        return hashed
    ids = frequencies.key_ids[:tracked]
    problem = _problem(previous, hashed, frequencies, tracked, goal, cold_load)
    if algorithm == "readj":
        start = np.where(problem.old >= 0, problem.old, hashed.look_up(ids)).astype(np.int32)
        return hashed.with_entries(ids, readj(problem, start))
    return hashed.with_entries(ids, scan(problem) if algorithm == "scan" else redist(problem))


def _without_the_last_that_join(before: list[int], after: list[int]) -> Iterator[list[int]]:
    """The workers after each step but the last, where one joins per step; those that leave do so in the first."""
    stay, join = [name for name in after if name in before], [name for name in after if name not in before]
    for joined in range(1, len(join)):
        yield stay + join[:joined]


def _problem(
    previous: PartitionFunction,
    hashed: PartitionFunction,
    counted: Frequencies,
    tracked: int,
    goal: Objective,
    cold_load: bool | Amounts,
) -> Problem:
    """What the constructions get; `hashed` is the new function while it has no entries."""
    ids, counts = counted.key_ids[:tracked], counted.counts[:tracked].astype(np.float64)
    state, computation, communication = goal.exponents
    thetas = zip((state, computation, communication), goal.theta(hashed.workers), strict=True)
    balanced = [(exponent, theta) for exponent, theta in thetas if exponent]  # section 4.4
    no_more = previous.key_ids[~np.isin(previous.key_ids, ids)]
    dropped = counts_of(counted, no_more) ** state
    moves = previous.names_of(no_more) != hashed.names_of(no_more)
    of, nothing = counts**state, np.zeros(hashed.workers)
    balances_cold = not isinstance(cold_load, bool) or cold_load
    known = counted.home_load if isinstance(cold_load, bool) and hashed.cold == "home" else cold_load
    index_of = {name: index for index, name in enumerate(hashed.members.tolist())}
    return Problem(
        amounts=np.array([counts**exponent for exponent, _ in balanced]),
        theta=np.array([theta for _, theta in balanced]),
        state=of,
        counts=counts,
        base=np.array(
            [_base(hashed, counted, tracked, exponent, known) if balances_cold else nothing for exponent, _ in balanced]
        ),
        old=np.array([index_of.get(name, -1) for name in previous.names_of(ids).tolist()], np.int64),
        moved=float(dropped[moves].sum()),
        ideal=float(of.sum() + dropped.sum()) / hashed.workers,
        workers=hashed.workers,
        by_load=balances_cold,
        utility=UTILITIES.index(goal.utility),
    )


def _base(hashed: PartitionFunction, counted: Frequencies, tracked: int, exponent: int, known: Any) -> Amounts:
    """The load of each worker by keys without an entry: those that were counted, and tuples of keys that were not.

    These count as even, unless it is `known` how many tuples the hash gives to each worker.
    """
    ids, counts = counted.key_ids[tracked:], counted.counts[tracked:].astype(np.float64)
    load: Amounts = np.bincount(hashed.look_up(ids), counts**exponent, hashed.workers).astype(np.float64)
    if exponent > 1:
        return load
    if np.shape(known) == (hashed.workers,):
        all_counted = np.bincount(hashed.look_up(counted.key_ids), counted.counts, hashed.workers)
        load += np.maximum(known - all_counted, 0.0)
        return load
    return load + (counted.tuples - float(counted.counts.sum())) / hashed.workers


def counts_of(frequencies: Frequencies, key_ids: KeyIds) -> Amounts:
    """The count of each of `key_ids`, which are sorted; 0 of one that was not counted."""
    counts = np.zeros(len(key_ids))
    if len(key_ids):
        at = np.minimum(np.searchsorted(key_ids, frequencies.key_ids), len(key_ids) - 1)
        found = key_ids[at] == frequencies.key_ids
        counts[at[found]] = frequencies.counts[found]
    return counts
