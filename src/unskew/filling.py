"""How a plan deals hot keys: each fills its workers up to a common level, as water does.

A scheme says which workers a key may have; here is decided how much of it each of them gets, given what they have
already. Live routers do the same by looking at the load tuple by tuple.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.frequencies import Frequencies
from unskew.hashing import candidate
from unskew.kernels import kernel
from unskew.plan import HotKey, Plan, places_of

PLACES_PER_WORKER = 16  # on average, for a split key: its workers' shares are right within about 3 %
MOST_PLACES = 8192  # of one key, unless it has more workers
MOST_PAIRS = 4_000_000  # of hot keys and workers
SWEEPS = 10  # times that each key is poured

Load = npt.NDArray[np.float64]
Places = dict[int, int]  # worker -> how many places of a key are its own


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
    entries = [hot_key(frequencies, i, _places_of_parts(allowed[i], parts[i]), workers) for i in range(hot)]
    return Plan(name, workers, tuple(entries), cold_salt, predicted_load=shares(load, frequencies))


def whole_keys(workers: int, frequencies: Frequencies, hot: int, cold_salt: int = 0) -> Load:
    """The load by all keys but the `hot` first. Keys that were not measured are taken as evenly spread, unless the
    load of all keys was counted."""
    counted = frequencies.home_load
    if counted is not None and len(counted) == workers and cold_salt == 0:
        load = counted.astype(np.float64)
        _add_whole_keys(load, frequencies.key_ids[:hot], -frequencies.counts[:hot], cold_salt)
        return np.maximum(load, 0.0)  # a sketch may overstate a count
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


def _places_of_parts(workers: npt.NDArray[np.int64], amounts: npt.NDArray[np.float64]) -> Places:
    """The places of a key of which each of `workers` gets its amount, without those who get nothing worth a place."""
    enough = amounts > amounts.sum() / (2 * PLACES_PER_WORKER * len(amounts))
    chosen, parts = workers[enough], amounts[enough]
    total = min(PLACES_PER_WORKER * len(parts), max(MOST_PLACES, len(parts)))
    return as_places(chosen, round_parts(parts, total))


def round_parts(parts: npt.NDArray[np.float64], total: int) -> npt.NDArray[np.int64]:
    """`total` whole places in proportion to `parts`: each rounded down, those that lose most get one more."""
    ideal = parts * total / math.fsum(parts)
    places = np.floor(ideal).astype(np.int64)
    places[np.argsort(places - ideal, kind="stable")[: total - places.sum()]] += 1
    return places


def as_places(workers: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> Places:
    """Who has how many places: as few as show the same proportions."""
    common = math.gcd(*places.tolist())
    return {worker: count // common for worker, count in zip(workers.tolist(), places.tolist(), strict=True) if count}


def hot_key(frequencies: Frequencies, i: int, places: Places, workers: int) -> HotKey:
    """The plan's row for hot key number i, dealt over `places`."""
    key_id, share = frequencies.key_ids[i], float(frequencies.counts[i]) / frequencies.tuples
    return HotKey(int(key_id), share, places_of(key_id, places, workers), frequencies.names[i])


def shares(load: Load, frequencies: Frequencies) -> tuple[float, ...]:
    """Each worker's share of all tuples."""
    return tuple((load / max(1, frequencies.tuples)).tolist())
