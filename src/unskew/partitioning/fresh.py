"""A partitioning function to begin with, where no state has to be moved yet: as level as whole keys allow.

Not from the paper, whose constructions weigh balance against what they move. Keys are taken from the hottest on. A key
stays where its hash puts it while that worker is not full, and needs no entry; any other goes to the worker that has
least. A worker is full at 1.005 of the mean, or of the hottest key where that is more: it cannot be split. If a worker
ends up with more than 1.01 of that, twice as many keys are taken up, and so on up to 2,000.
"""

import numpy as np
import numpy.typing as npt

from unskew.errors import InputTypeError
from unskew.partitioning.function import PartitionFunction
from unskew.plan import MOST_HOT_KEYS, Frequencies

FULL, GOAL = 1.005, 1.01  # of the mean, or of the hottest key

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
