"""Partitioning functions that are as level as whole keys allow: one to begin with, and one after another.

Not from the paper, whose constructions give entries to the few keys above a threshold and take all others as even.

`place_whole` makes one to begin with, where no state has to be moved yet. Keys are taken from the hottest on. A key
stays where its hash puts it while that worker is not full, and needs no entry; any other goes to the worker that has
least. A worker is full at 1.005 of the mean, or of the hottest key where that is more: it cannot be split. If a worker
ends up with more than 1.01 of that, twice as many keys are taken up, and so on up to 2,000.

`move_whole` makes the one after another, where moving costs. It tries the paper's constructions with more and more
entries, up to 2,000, until no worker has more than 1.05 of the mean, or of the hottest key. The most level one is
taken, and of those that are alike, to a twentieth, the one that moves least. While the workers stay, the present
function is the first that is tried: it is kept unless another one is more level by that measure.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from unskew.checks import require
from unskew.errors import InputTypeError
from unskew.frequencies import MOST_HOT_KEYS, Frequencies
from unskew.partitioning.construction import ALGORITHMS, construct
from unskew.partitioning.function import NO_KEYS, NO_WORKERS, PartitionFunction
from unskew.partitioning.metrics import moves
from unskew.partitioning.objective import Objective

FULL, GOAL = 1.005, 1.01  # of the mean, or of the hottest key
STEP = 0.05  # of the same: by how much a function must be more level to be worth moving
SIGMAS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)  # each tracks some three times the keys of the one before
TRIED = ("scan", "readj")  # `redist` decides nearly as `scan`, and takes longer
MOST_SEARCHED = 500  # keys: with more, `readj` and `redist` take longer than a second or two

Load = npt.NDArray[np.float64]


def place_whole(
    workers: int, frequencies: Frequencies, *, cold: str = "home", cold_load: npt.ArrayLike | None = None
) -> PartitionFunction:
    """The function that spreads whole keys most evenly.

    Parameters
    ----------
    workers
        W, the number of workers.
    frequencies
        How often the keys occur.
    cold
        The hash for keys without an entry, as in `PartitionFunction`.
    cold_load
        How many tuples each worker would get if no key had an entry. Left out: ``frequencies.home_load``, if keys stay
        at home; otherwise the keys that were not counted are taken as evenly spread.

    Examples
    --------
    Four keys of 60, 50, 40 and 30 tuples over two workers:

    >>> import numpy as np
    >>> from unskew import Frequencies, key_ids
    >>> from unskew.partitioning import place_whole
    >>> ids = key_ids(["the", "of", "and", "to"])
    >>> function = place_whole(2, Frequencies(ids, [60, 50, 40, 30], tuples=180))
    >>> np.bincount(function.look_up(ids), [60, 50, 40, 30]).tolist()
    [90.0, 90.0]
    """
    if not isinstance(frequencies, Frequencies):
        raise InputTypeError(f"frequencies: must be Frequencies, not {type(frequencies).__name__}")
    empty = PartitionFunction(workers, cold=cold)
    counted = frequencies.merged()
    homes = empty.hashed(counted.key_ids)
    load = _cold_load(empty, counted, homes, cold_load)
    most = min(MOST_HOT_KEYS, int(np.count_nonzero(counted.counts)))
    if workers == 1 or not most:
        return empty
    level = max(load.sum() / workers, float(counted.counts[0]))
    keys, best, best_load = min(most, max(1, counted.hot(workers))), empty, np.inf
    while True:
        placed, reached = _attempt(load, homes[:keys], counted.counts[:keys].astype(np.float64), FULL * level)
        if reached < best_load:
            moved = placed != homes[:keys]
            best, best_load = empty.with_entries(counted.key_ids[:keys][moved], placed[moved]), reached
        if best_load <= GOAL * level or keys == most:
            return best
        keys = min(most, 2 * keys)


def move_whole(
    previous: PartitionFunction,
    workers: int,
    frequencies: Frequencies,
    *,
    algorithm: str | None = None,
    cold_load: npt.ArrayLike | None = None,
) -> PartitionFunction:
    """The function after `previous` that spreads whole keys evenly and moves little.

    Parameters
    ----------
    previous
        The present function: where the state of each key is.
    workers
        W, the number of workers of now.
    frequencies
        How often the keys occur now.
    algorithm
        ``"scan"``, ``"redist"`` or ``"readj"``. Left out, `scan` and `readj` are tried.
    cold_load
        As for `place_whole`.

    Examples
    --------
    A third worker joins two that have 120 tuples each. It gets its share, and nothing else moves:

    >>> import numpy as np
    >>> from unskew import Frequencies, key_ids
    >>> from unskew.partitioning import PartitionFunction, move_whole, moves
    >>> ids = key_ids(np.arange(24))
    >>> frequencies = Frequencies(ids, np.full(24, 10), tuples=240)
    >>> before = PartitionFunction(2, ids, np.arange(24) % 2, cold="arcs")
    >>> after = move_whole(before, 3, frequencies)
    >>> np.bincount(after.look_up(ids)).tolist(), len(moves(before, after, frequencies))
    ([8, 8, 8], 8)
    """
    if not isinstance(previous, PartitionFunction):
        raise InputTypeError(f"previous: must be a PartitionFunction, not {previous!r:.80}")
    if not isinstance(frequencies, Frequencies):
        raise InputTypeError(f"frequencies: must be Frequencies, not {type(frequencies).__name__}")
    if algorithm is not None:
        require("algorithm", algorithm, f"one of {', '.join(ALGORITHMS)}", algorithm in ALGORITHMS)
    hashed, every = replace(previous, members=workers, key_ids=NO_KEYS, placed=NO_WORKERS), frequencies.merged()
    load = _cold_load(hashed, every, hashed.hashed(every.key_ids), cold_load)
    counted = Frequencies(every.key_ids[:MOST_HOT_KEYS], every.counts[:MOST_HOT_KEYS], every.tuples)
    others = load - np.bincount(hashed.hashed(counted.key_ids), counted.counts, hashed.workers)
    level = max(load.sum() / hashed.workers, float(counted.counts.max(initial=0)))

    def rank(function: PartitionFunction) -> tuple[float, float]:
        busiest = others + np.bincount(function.look_up(counted.key_ids), counted.counts, hashed.workers)
        above = float(busiest.max()) / level - 1 if level else 0.0
        return max(1, math.ceil(above / STEP - 1e-9)), moves(previous, function, counted).cost

    best, best_rank = hashed, (np.inf, np.inf)
    for tried in _candidates(previous, hashed, counted, algorithm, load):
        ranks = [rank(function) for function in tried]
        if min(ranks) < best_rank:
            best_rank = min(ranks)
            best = tried[ranks.index(best_rank)]
        if best_rank[0] == 1:
            break
    return best


def _candidates(
    previous: PartitionFunction, hashed: PartitionFunction, counted: Frequencies, algorithm: str | None, load: Load
) -> Iterator[list[PartitionFunction]]:
    """The present function, where its workers stay; then those with more and more entries."""
    entries = -1
    if np.array_equal(previous.members, hashed.members):
        yield [previous]
    for sigma in SIGMAS:
        goal = Objective("LLL", sigma=sigma)
        before, entries = entries, goal.tracked(counted, hashed.workers)
        names = [name for name in (TRIED if algorithm is None else [algorithm]) if _is_quick(name, entries)]
        if names and entries > before:
            yield [construct(previous, counted, hashed.members, goal, algorithm=name, cold_load=load) for name in names]


def _is_quick(algorithm: str, entries: int) -> bool:
    return algorithm == "scan" or entries <= MOST_SEARCHED


def _cold_load(
    empty: PartitionFunction, counted: Frequencies, homes: npt.NDArray[np.int32], cold_load: npt.ArrayLike | None
) -> Load:
    """The load of each worker where no key has an entry."""
    own = np.bincount(homes, counted.counts, empty.workers).astype(np.float64)
    given = counted.home_load if cold_load is None and empty.cold == "home" else cold_load
    if given is not None and len(np.asarray(given)) == empty.workers:
        return np.maximum(np.asarray(given, np.float64), own)
    return own + (counted.tuples - own.sum()) / empty.workers


def _attempt(
    load: Load, homes: npt.NDArray[np.int32], counts: Load, full: float
) -> tuple[npt.NDArray[np.int32], float]:
    """The worker of each key, and the highest load."""
    load = load - np.bincount(homes, counts, len(load))
    placed = homes.copy()
    for key, count in enumerate(counts.tolist()):
        if load[homes[key]] + count > full:
            placed[key] = int(load.argmin())
        load[placed[key]] += count
    return placed, float(load.max())
