"""Fan-out: each hot key is split over just enough workers, cold keys stay whole. Offline: needs the frequencies first.

Not from a paper. It aims at the lower bound of replicas for perfect balance, sum over keys of max(1, ceil(p_k W)),
where PKG gives every key two workers, needed or not, and the hottest no more than two.

How it plans. Every key is at home, on its candidate 0. The hot keys (a share over 1/(10 W)) are taken up and put down
again, hottest first. A key that fits at home stays there and needs no entry: a worker is full at 1.005 of the mean. Any
other key gets the least loaded workers, as few as can hold it, no more than it has tuples, and fills them to a common
level (water-filling). If one worker can hold it, it is moved whole and has no replica more. A split key has as few
places as keep its workers within 1.01 of the mean: 1, 2, 4, ... per worker on average, up to 8,192 in all.

If a worker is still over 1.01 of the mean, twice as many keys are taken up, and so on up to 2,000: cold keys are uneven
by themselves where workers are few or skew is mild. The most level attempt is the plan. If it was counted what all keys
do to their homes (`Frequencies.home_load`), keys that were not measured are evened out too; else they count as even.

Choices made here: where a hundredth of the mean is less than a tuple, the mean rounded up is the limit; among equally
loaded workers the lowest index wins; a key's tuples take its places in turn. Measured in docs/schemes/fanout.md.
"""

import heapq
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_workers
from unskew.errors import InputError, InputTypeError
from unskew.filling import MOST_PLACES, Load, Places, as_places, hot_key, round_parts, shares, whole_keys
from unskew.frequencies import MOST_HOT_KEYS, Frequencies
from unskew.hashing import KeyIds, candidate, candidates_of, frozen
from unskew.kernels import kernel
from unskew.key_table import EMPTY, check_cells, fill, find, new_table, with_room
from unskew.plan import Plan
from unskew.registry import register
from unskew.schemes.shuffle import GOLDEN_SECTION

FULL = 1.005  # of the mean, the load up to which keys fill a worker
GOAL = 1.01  # of the mean, the load of the busiest worker that is good enough


class State(NamedTuple):
    turn: npt.NDArray[np.int64]  # int64[hot keys], the place that the key's next tuple takes


@kernel
def choose(scheme, state, key, now):
    hot = scheme.values[find(scheme, key)]
    if hot == EMPTY:
        return candidate(key, scheme.cold_salt, scheme.workers)
    first, end = scheme.first_place[hot], scheme.first_place[hot + 1]
    place = first + state.turn[hot]
    state.turn[hot] = state.turn[hot] + 1 if place + 1 < end else 0
    return np.int64(scheme.worker_at[place])


@register(
    "fanout",
    choose=choose,
    paper="none: beyond the papers",
    when="frequencies can be measured beforehand and partial results merged: best balance for the fewest replicas",
)
class Fanout(NamedTuple):
    """Each hot key on just enough workers, cold keys whole. Make it with `fit`, or from any plan with `follow_plan`.

    Parameters
    ----------
    workers
        W, the number of workers.
    keys, values, first_place, worker_at, cold_salt
        The tables that `fit` and `follow_plan` make; not to be written by hand.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Fanout, Router, key_ids
    >>> scheme = Fanout.fit(4, key_ids(["the"]), np.array([100]))
    >>> np.bincount(Router(scheme).route(key_ids(["the"] * 100))).tolist()
    [25, 25, 25, 25]
    """

    workers: int  # W
    keys: npt.NDArray[np.uint64]  # this and the next: a KeyTable of key -> number of the hot key
    values: npt.NDArray[np.int32]
    first_place: npt.NDArray[np.int64]  # int64[hot keys + 1], where the places of a hot key begin
    worker_at: npt.NDArray[np.int32]  # int32[places]
    cold_salt: int = 0  # the candidate that every other key goes to

    @classmethod
    def fit(cls, workers: int, key_ids: KeyIds, counts: npt.NDArray[np.int64]) -> "Fanout":
        """From the counts of all keys. Costs K, and H log(H W) for H keys that are taken up."""
        require_workers(workers)
        return follow_plan(cls.plan(workers, Frequencies(key_ids, counts, int(np.sum(counts))).merged()))

    @classmethod
    def plan(cls, workers: int, frequencies: Frequencies) -> Plan:
        """Keys split over just enough workers, or moved, until all workers are level; see the module's docstring."""
        mean = frequencies.tuples / workers
        most = min(MOST_HOT_KEYS, int(np.count_nonzero(frequencies.counts)))
        homes = candidates_of(frequencies.key_ids[:most], 0, workers)
        at_home = whole_keys(workers, frequencies, 0)
        keys = min(most, max(1, frequencies.hot(workers)))
        best = _attempt(at_home, homes, frequencies.counts[:keys], mean)
        while best.load.max() > _limit(GOAL, mean) and keys < most:
            keys = min(most, 2 * keys)
            best = min(
                best, _attempt(at_home, homes, frequencies.counts[:keys], mean), key=lambda each: each.load.max()
            )
        entries = [hot_key(frequencies, i, places, workers) for i, places in best.places.items()]
        return Plan("fanout", workers, tuple(entries), predicted_load=shares(best.load, frequencies))

    def check(self) -> None:
        require_workers(self.workers)
        hot_keys = len(self.first_place) - 1
        check_cells("fanout", self.keys, self.values, hot_keys)
        ends_fit = (np.diff(self.first_place) > 0).all() and self.first_place[-1] == len(self.worker_at)
        in_range = not len(self.worker_at) or 0 <= self.worker_at.min() <= self.worker_at.max() < self.workers
        if hot_keys < 0 or not ends_fit or not in_range:
            raise InputError(f"workers: the table of places is not one for {self.workers} workers; make it with fit")

    def new_state(self) -> State:
        return State(np.zeros(len(self.first_place) - 1, np.int64))

    def stagger(self, state: State, source: int) -> None:
        numbers = np.arange(1, len(state.turn) + 1)
        state.turn[:] = source * numbers * GOLDEN_SECTION % 1.0 * np.diff(self.first_place)

    def check_state(self, state: State) -> None:
        places = np.diff(self.first_place)
        wrong = np.flatnonzero((state.turn < 0) | (state.turn >= places))
        if len(wrong):
            hot = wrong[0]
            raise InputError(f"turn: of hot key {hot} must be from 0 to {places[hot] - 1}, not {state.turn[hot]}")

    def describe(self) -> dict[str, Any]:
        return {"hot_keys": len(self.first_place) - 1}


def follow_plan(plan: Plan) -> Fanout:
    """The scheme that deals as the plan says, whichever scheme made the plan.

    Parameters
    ----------
    plan
        Made by `make_plan`, or loaded with `Plan.load`.

    Examples
    --------
    >>> from unskew import Frequencies, Router, follow_plan, key_ids, make_plan
    >>> plan = make_plan("pkg", 4, Frequencies(key_ids(["the"]), [500], tuples=1000))
    >>> Router(follow_plan(plan)).route(key_ids(["the", "the", "the"])).tolist()
    [1, 2, 1]
    """
    if not isinstance(plan, Plan):
        raise InputTypeError(f"plan: must be a Plan, such as Plan.load('plan.json'), not {plan!r:.80}")
    table = with_room(new_table(), len(plan.hot_keys))
    first_place, worker_at = [0], []
    for number, hot in enumerate(plan.hot_keys):
        key = np.uint64(hot.key_id)
        fill(table, find(table, key), key, number)
        worker_at += [candidate(key, salt, plan.workers) for salt in hot.salts]
        first_place.append(len(worker_at))
    starts, workers = np.array(first_place, np.int64), np.array(worker_at, np.int32)
    return Fanout(
        plan.workers, frozen(table.keys), frozen(table.values), frozen(starts), frozen(workers), plan.cold_salt
    )


class _Attempt(NamedTuple):
    """Where the hottest keys are put."""

    load: Load
    places: dict[int, Places]  # of those that are not whole at home, by number


def _attempt(at_home: Load, homes: npt.NDArray[np.int32], counts: npt.NDArray[np.int64], mean: float) -> _Attempt:
    """Take the hottest keys up from their homes, as many as there are counts, and put them down again one by one."""
    load, full, goal = at_home.copy(), _limit(FULL, mean), _limit(GOAL, mean)
    np.subtract.at(load, homes[: len(counts)], counts)
    np.maximum(load, 0.0, out=load)  # a sketch may overstate a count
    heap = [(float(amount), worker) for worker, amount in enumerate(load)]
    heapq.heapify(heap)
    placed = {}
    for i, (home, count) in enumerate(zip(homes.tolist(), counts.tolist(), strict=False)):
        if load[home] + count <= full:
            load[home] += count
            continue
        chosen, level = _least_loaded(heap, load, count, full)
        places = _in_places(level - load[chosen], load[chosen], count, goal)
        load[chosen] += count * places / places.sum()
        for worker in chosen.tolist():
            heapq.heappush(heap, (float(load[worker]), worker))
        deal = as_places(chosen, places)
        if deal != {home: 1}:
            placed[i] = deal
    return _Attempt(load, placed)


def _least_loaded(
    heap: list[tuple[float, int]], load: Load, count: int, full: float
) -> tuple[npt.NDArray[np.int64], float]:
    """The least loaded workers, as few as can take `count` tuples, and the level that these would fill them to.

    The heap holds, for each worker, its load or a smaller former one: a stale load is corrected when it comes up. The
    chosen workers are taken from the heap.
    """
    chosen: list[int] = []
    level, content = np.inf, float(count)
    while heap and level > full and len(chosen) < count:
        amount, worker = heapq.heappop(heap)
        if amount < load[worker]:
            heapq.heappush(heap, (float(load[worker]), worker))
            continue
        if amount >= level:  # a further worker would get nothing
            heapq.heappush(heap, (amount, worker))
            break
        chosen.append(worker)
        content += amount
        level = content / len(chosen)
    return np.array(chosen), level


def _in_places(parts: Load, load: Load, count: int, goal: float) -> npt.NDArray[np.int64]:
    """`parts` in whole places: as few as keep all workers within the goal, else those that keep them lowest."""
    if len(parts) == 1:
        return np.ones(1, np.int64)
    total, lowest = len(parts), np.inf
    while total <= max(MOST_PLACES, len(parts)):
        rounded = round_parts(parts, total)
        highest = float((load + count * rounded / total).max())
        if highest < lowest:
            lowest, places = highest, rounded
        if lowest <= goal:
            break
        total *= 2
    return places


def _limit(factor: float, mean: float) -> float:
    """`factor` times the mean, or the mean rounded up: the busiest worker cannot have less than that."""
    return max(factor * mean, math.ceil(mean))
