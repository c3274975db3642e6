"""Fan-out: each hot key is split over just enough workers, cold keys stay whole. Offline: needs the frequencies first.

Not from a paper. It aims at the lower bound of replicas for perfect balance, sum over keys of max(1, ceil(p_k W)),
where PKG gives every key two workers, needed or not, and the hottest no more than two.

How it plans. The mean load is m/W. First every cold key is put where its candidate 0 is (cold: a share under 1/(10 W),
or not among the measured keys; those are taken as evenly spread). Then the hot keys, hottest first. A key that still
fits on its candidate 0 without exceeding the mean stays there and needs no entry. Otherwise it gets the least loaded
workers, as few as keep them all within 2 % of the mean, and no more than it has tuples: its tuples fill them up to a
common level (water-filling). Its shares are rounded to whole places, 16 a worker on average.

Choices made here: among equally loaded workers the lowest number wins; a hot key's tuples take its places in turn.
"""

import heapq
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_workers
from unskew.errors import InputError
from unskew.filling import Load, Parts, hot_key, shares, whole_keys
from unskew.hashing import KeyIds, candidate, frozen
from unskew.kernels import kernel
from unskew.key_table import EMPTY, check_cells, fill, find, new_table, with_room
from unskew.plan import Frequencies, Plan
from unskew.registry import register
from unskew.schemes.shuffle import GOLDEN_SECTION

TOLERANCE = 1.02  # of the mean, the load up to which hot keys fill a worker


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
        """From the counts of all keys. Costs K, and H log(H W) for H hot keys."""
        require_workers(workers)
        return follow_plan(cls.plan(workers, Frequencies(key_ids, counts, int(np.sum(counts))).merged()))

    @classmethod
    def plan(cls, workers: int, frequencies: Frequencies) -> Plan:
        """Hot keys split over just enough workers; see the module's docstring."""
        hot = frequencies.hot(workers)
        mean = frequencies.tuples / workers
        load = whole_keys(workers, frequencies, hot)
        heap = [(float(amount), worker) for worker, amount in enumerate(load)]
        heapq.heapify(heap)
        entries = []
        for i in range(hot):
            count = float(frequencies.counts[i])
            home = int(candidate(frequencies.key_ids[i], 0, workers))
            if load[home] + count <= mean:
                load[home] += count
                continue
            parts = _fill_least_loaded(heap, load, count, TOLERANCE * mean)
            entries.append(hot_key(frequencies, i, parts, workers))
        return Plan("fanout", workers, tuple(entries), predicted_load=shares(load, frequencies))

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


def _fill_least_loaded(heap: list[tuple[float, int]], load: Load, count: float, limit: float) -> Parts:
    """Put `count` tuples on the least loaded workers, on as few as keep their level under `limit`: worker -> its part.

    The heap holds, for each worker, its load or a smaller former one: a stale entry is corrected when it comes up.
    """
    chosen: list[int] = []
    level, content = np.inf, count
    while heap and level > limit and len(chosen) < count:
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
    parts = {worker: level - float(load[worker]) for worker in chosen}
    for worker in chosen:
        load[worker] = level
        heapq.heappush(heap, (level, worker))
    return parts
