"""How a plan deals hot keys: each fills its workers up to a common level, as water does.

A scheme says which workers a key may have; here is decided how much of it each of them gets, given what they have
already. Live routers do the same by looking at the load tuple by tuple.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.hashing import candidate
from unskew.kernels import kernel
from unskew.plan import Frequencies, HotKey, Plan, places_of

PLACES_A_WORKER = 16  # on average, for a split key: its workers' shares are right within about 3 %
MOST_PLACES = 4096  # of one key, unless it has more workers
MOST_PAIRS = 4_000_000  # of hot keys and workers
SWEEPS = 10  # times that each key is poured

Load = npt.NDArray[np.float64]
Parts = dict[int, float]  # worker -> tuples of a key


def plan_over(
    name: str,
    workers: int,
    frequencies: Frequencies,
    candidates: Callable[[int], Sequence[int]],
    cold_salt: int = 0,
) -> Plan:
    """The plan of the scheme `name` in which hot key number i fills the workers ``candidates(i)``.

    Each key is poured anew a few times, given where the others are by then: this comes close to the most level load
    that the candidates allow. The other keys stay whole on their candidate `cold_salt`.
    """
    hot = frequencies.hot(workers)
    load = whole_keys(workers, frequencies, hot, cold_salt)
    allowed = [np.unique(candidates(i)) for i in range(hot)]
    in_all = sum(map(len, allowed))
    if in_all > MOST_PAIRS:
        raise InputError(
            f"workers: a plan of {name} for {workers} workers deals {hot} hot keys over {in_all:,} places, which must "
            f"be at most {MOST_PAIRS:,}; use fewer workers, or fanout"
        )
    parts = [np.zeros(len(each)) for each in allowed]
    for _ in range(SWEEPS):
        for i in range(hot - 1, -1, -1):  # the hottest last: it can make up for most
            load[allowed[i]] -= parts[i]
            parts[i] = fill_up(load, allowed[i], float(frequencies.counts[i]))
    entries = [hot_key(frequencies, i, parts_of(allowed[i], parts[i]), workers) for i in range(hot)]
    return Plan(name, workers, tuple(entries), cold_salt, predicted_load=shares(load, frequencies))


def whole_keys(workers: int, frequencies: Frequencies, hot: int, cold_salt: int = 0) -> Load:
    """The load by all keys but the `hot` first: those not measured are taken as evenly spread."""
    load = np.full(workers, (frequencies.tuples - frequencies.counts.sum()) / workers)
    _add_whole_keys(load, frequencies.key_ids[hot:], frequencies.counts[hot:], cold_salt)
    return load


@kernel
def _add_whole_keys(load, key_ids, counts, cold_salt):
    for i in range(len(key_ids)):
        load[candidate(key_ids[i], cold_salt, len(load))] += counts[i]


def fill_up(load: Load, workers: npt.NDArray[np.int64], count: float) -> npt.NDArray[np.float64]:
    """Pour `count` tuples onto distinct `workers`: the lowest rise to a common level. Adds to `load`; returns who got
    how much."""
    lowest_first = np.sort(load[workers])
    levels = (count + np.cumsum(lowest_first)) / np.arange(1, len(workers) + 1)  # if only so many get something
    above_the_next = levels[:-1] > lowest_first[1:]
    level = levels[int(above_the_next.argmin()) if not above_the_next.all() else -1]
    parts: npt.NDArray[np.float64] = np.maximum(level - load[workers], 0.0)
    load[workers] += parts
    return parts


def parts_of(workers: npt.NDArray[np.int64], amounts: npt.NDArray[np.float64]) -> Parts:
    """Who gets how much, without those who get nothing worth a place."""
    enough = amounts > amounts.sum() / (2 * PLACES_A_WORKER * len(amounts))
    return dict(zip(workers[enough].tolist(), amounts[enough].tolist(), strict=True))


def hot_key(frequencies: Frequencies, i: int, parts: Parts, workers: int) -> HotKey:
    """The entry of hot key number i, dealt as `parts` says."""
    key_id, share = frequencies.key_ids[i], float(frequencies.counts[i]) / frequencies.tuples
    return HotKey(int(key_id), share, places_of(key_id, _in_places(parts), workers), frequencies.names[i])


def shares(load: Load, frequencies: Frequencies) -> tuple[float, ...]:
    """Each worker's share of all tuples."""
    return tuple((load / max(1, frequencies.tuples)).tolist())


def _in_places(parts: Parts) -> dict[int, int]:
    """Each worker's part as a number of places, at least one, and as few as show the same proportions."""
    places = min(PLACES_A_WORKER * len(parts), max(MOST_PLACES, len(parts)))
    total = sum(parts.values())
    rounded = {worker: max(1, round(part / total * places)) for worker, part in parts.items()}
    common = math.gcd(*rounded.values())
    return {worker: count // common for worker, count in rounded.items()}
