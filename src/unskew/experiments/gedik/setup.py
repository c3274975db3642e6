"""What all of Gedik's experiments share: Zipf frequencies, the path from one worker to N, and what is measured on it.

As printed (section 5.1): start with one worker, add one at a time, and measure the last step. Frequencies are given,
not counted; the k-th most frequent of |D| keys has a frequency in proportion to 1/k^z. A *run* has keys of its own,
which are other keys to every hash: so each run is another hash function. Published numbers are averages of 5 runs, and
so are ours.

Hashing is measured once for all algorithms of a run: which of |D| keys the hash puts where, and moves. The
constructions differ from it by their entries only.
"""

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Settings
from unskew.frequencies import Frequencies
from unskew.hashing import KeyIds
from unskew.key_columns import key_ids
from unskew.partitioning import Objective, PartitionFunction, construct
from unskew.partitioning.construction import counts_of
from unskew.ring import forget_rings
from unskew.streams.zipf import harmonic

OURS = ("scan", "redist", "readj")
HASHES = {"uniform": "home", "consistent": "ring"}
METHODS = (*HASHES, *OURS)
COLOUR = {"uniform": "#999999", "consistent": "#333333", "scan": "#dd8452", "redist": "#4c72b0", "readj": "#55a868"}
KEYS, WORKERS, SIGMA, SKEW = 10**6, 10, 0.1, 1.0  # Table 1
RUNS, QUICK_RUNS = 5, 3
TUPLES = 10**12  # that frequencies are multiplied by, so that counts are whole numbers
APART = 10**10  # keys of one run from those of the next
CHUNK = 2**20
EXPONENTS = np.arange(4)  # of the loads that are kept: constant, linear, quadratic, and Eq. 3's f * beta(f)
TIMED_AGAIN = 0.2  # seconds: a construction that takes less is timed three times, and the shortest counts

Array = npt.NDArray[Any]


class Case(NamedTuple):
    """One line of a figure."""

    algorithm: str
    resources: str = "LCL"
    sigma: float = SIGMA
    utility: str = "APM"
    z: float = SKEW


@dataclass(frozen=True)
class Measured:
    """What came out of one case for one number of workers in one run."""

    algorithm: str
    resources: str
    sigma: float
    utility: str
    z: float
    keys: int
    workers: int
    run: int
    b: float
    b_state: float
    b_computation: float
    b_communication: float
    b_printed: float  # b_computation, if the load is f * beta(f) as Eq. 3 has it
    m: float
    entries: int  # of the explicit map
    seconds: float  # to construct the function
    in_memory: int | None = None  # keys that the lossy counter holds, where it was run

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


class Hashed(NamedTuple):
    """What hashing alone does: `loads` by exponent and worker, `moved` by exponent when the last worker joins."""

    loads: Array
    moved: Array


class Build(NamedTuple):
    """A job of the grid: the frequencies of one run, and all cases on them."""

    experiment: str
    data: str
    domain: int  # |D|
    run_number: int
    cases: tuple[Case, ...]
    at: tuple[int, ...]  # numbers of workers that are measured
    samples: int = 1
    events: tuple[str, ...] = ()

    @property
    def cost(self) -> float:
        return self.domain * (4 + len({case.z for case in self.cases}) + 2 * max(self.at)) + 1e5 * len(self.cases)

    def read(self, values: dict[str, Any]) -> Measured:
        return Measured(**values)

    def row(self, result: Measured) -> dict[str, Any]:
        return {"experiment": self.experiment, "data": self.data, **result.to_dict()}

    def run(self) -> list[Measured]:
        """Construct and measure, here and now."""
        hashed = hash_all(self.domain, self.run_number, sorted({case.z for case in self.cases}), self.at)
        return [found for case in self.cases for found in self._path(case, hashed)]

    def _path(self, case: Case, hashed: dict[tuple[str, float, int], Hashed]) -> Iterable[Measured]:
        goal = Objective(case.resources, sigma=case.sigma, utility=case.utility)
        if case.algorithm in HASHES:
            for workers in self.at:
                base = hashed[HASHES[case.algorithm], case.z, workers]
                yield self._measured(case, goal, workers, base.loads, base.moved)
            return
        counted = hot_keys(self.domain, self.run_number, case.z, goal.delta(max(self.at), self.domain))
        before = PartitionFunction(1)
        for workers in range(2, max(self.at) + 1):
            measured = workers in self.at
            after, seconds = _timed(before, counted, workers, goal, case.algorithm, self.domain, measured)
            if measured:
                base = _with_entries(hashed["ring", case.z, workers], before, after, counted)
                yield self._measured(case, goal, workers, *base, len(after.key_ids), seconds)
            before = after

    def _measured(
        self,
        case: Case,
        goal: Objective,
        workers: int,
        loads: Array,
        moved: Array,
        entries: int = 0,
        seconds: float = 0,
    ) -> Measured:
        highest, lowest = loads.max(axis=1), loads.min(axis=1)
        ratio = np.divide(highest, lowest, out=np.full(len(loads), np.inf), where=lowest > 0) / goal.alphas[0]
        state, computation, communication = goal.exponents
        parts = (float(ratio[state]), float(ratio[computation]), float(ratio[communication]))
        return Measured(
            *case,
            self.domain,
            workers,
            self.run_number,
            float(np.prod(parts)) ** (1 / 3),
            *parts,
            float(ratio[computation + 1]),
            float(moved[state] / (loads[state].sum() / workers)),
            entries,
            seconds,
        )


def counts_at(ranks: Array, z: float, keys: int) -> Array:
    """The count of each rank, a whole number as a float."""
    return np.maximum(np.rint(ranks.astype(np.float64) ** -z * (TUPLES / harmonic(z, keys))), 1.0)


def ids_at(ranks: Array, run: int) -> KeyIds:
    return key_ids(ranks + run * APART)


def hash_all(keys: int, run: int, skews: Iterable[float], at: Iterable[int]) -> dict[tuple[str, float, int], Hashed]:
    """What both hashes do with all keys, for each skew and number of workers."""
    skews, at = list(skews), list(at)
    needed = sorted({*at, *(workers - 1 for workers in at)})
    functions = {(cold, n): PartitionFunction(n, cold=cold) for cold in HASHES.values() for n in needed}
    found = {
        (cold, z, n): Hashed(np.zeros((len(EXPONENTS), n)), np.zeros(len(EXPONENTS)))
        for cold in HASHES.values()
        for z in skews
        for n in at
    }
    for start in range(1, keys + 1, CHUNK):
        ranks = np.arange(start, min(start + CHUNK, keys + 1))
        ids = ids_at(ranks, run)
        powers = {z: counts_at(ranks, z, keys) ** EXPONENTS[:, None] for z in skews}
        for cold in HASHES.values():
            before, last = None, 0
            for n in needed:
                chosen = functions[cold, n].look_up(ids)
                for z in skews if n in at else ():
                    for exponent, amounts in enumerate(powers[z]):
                        found[cold, z, n].loads[exponent] += np.bincount(chosen, amounts, n)
                        if before is not None and last == n - 1:
                            found[cold, z, n].moved[exponent] += amounts[before != chosen].sum()
                before, last = chosen, n
    return found


def hot_keys(keys: int, run: int, z: float, delta: float) -> Frequencies:
    """The keys of frequency delta and more."""
    ranks = np.arange(1, min(keys, CHUNK) + 1)
    counts = counts_at(ranks, z, keys)
    kept = counts >= delta * TUPLES * 0.999
    return Frequencies(ids_at(ranks[kept], run), counts[kept].astype(np.int64), TUPLES + keys)


def _timed(
    before: PartitionFunction,
    counted: Frequencies,
    workers: int,
    goal: Objective,
    algorithm: str,
    keys: int,
    again: bool,
) -> tuple[PartitionFunction, float]:
    """The function for one worker more, and the seconds that it takes, its ring included."""
    shortest, times = np.inf, 0
    while times == 0 or (again and times < 3 and shortest < TIMED_AGAIN):
        forget_rings()
        started = time.perf_counter()
        after = construct(before, counted, workers, goal, algorithm=algorithm, keys=keys)
        _ = after.ring
        shortest, times = min(shortest, time.perf_counter() - started), times + 1
    return after, shortest


def _with_entries(base: Hashed, before: PartitionFunction, after: PartitionFunction, counted: Frequencies) -> Hashed:
    """Loads and migration of `after`, which differs from its hash, and `before` from its own, by entries only."""
    loads, moved = base.loads.copy(), base.moved.copy()
    either = np.union1d(before.key_ids, after.key_ids)
    powers = counts_of(counted, either) ** EXPONENTS[:, None]
    hashed, chosen = after.hashed(either), after.look_up(either)
    by_hash = before.hashed(either) != hashed
    by_function = before.look_up(either) != chosen
    for exponent, amounts in enumerate(powers):
        loads[exponent] += np.bincount(chosen, amounts, after.workers) - np.bincount(hashed, amounts, after.workers)
        moved[exponent] += amounts[by_function].sum() - amounts[by_hash].sum()
    return Hashed(loads, moved)


def builds(
    experiment: str,
    settings: Settings,
    cases: Iterable[Case],
    at: Iterable[int] = (WORKERS,),
    keys: int = KEYS,
    runs: int | None = None,
) -> list[Any]:
    """One job per run."""
    number = settings.pick(RUNS, QUICK_RUNS) if runs is None else runs
    every, places = tuple(cases), tuple(at)
    first = settings.seed * 100
    return [Build(experiment, f"|D|={keys:g}, run {run}", keys, first + run, every, places) for run in range(number)]


# ---------------------------------------------------------------- what was measured


def found(outcomes: Outcomes, **values: Any) -> list[Measured]:
    """The measurements that have all these values, one per run."""
    return cast(list[Measured], outcomes.results(**values))


def values(outcomes: Outcomes, metric: str, **where: Any) -> list[float]:
    """One number per run."""
    return [float(getattr(each, metric)) for each in found(outcomes, **where)]


def mean(outcomes: Outcomes, metric: str, **where: Any) -> float:
    """The average over the runs, as the paper has it."""
    numbers = values(outcomes, metric, **where)
    if not numbers:
        raise KeyError(f"the grid has no run with {where}")
    return float(np.mean(numbers))


def shown(outcomes: Outcomes, metric: str, **where: Any) -> str:
    """The average with the lowest and highest run: ``1.33 (1.25 to 1.43)``."""
    numbers = values(outcomes, metric, **where)
    return f"{np.mean(numbers):.3g} ({min(numbers):.3g} to {max(numbers):.3g})"
