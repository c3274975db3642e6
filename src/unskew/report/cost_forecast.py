"""How long the busiest worker takes when rows of different cost are dealt in the ways that users have.

Rows are known as lots: groups that were formed at random, with the number of rows and what they cost together. Dealing
lots at random then is like dealing rows at random. Ways that leave it to chance are drawn several times.
"""

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.longest_first import longest_first

DRAWS = 25
SMALL_TASKS = 8  # tasks per worker where rows are cut into many small tasks

Floats = npt.NDArray[np.float64]


class CostLots(NamedTuple):
    """What is known of the rows, in groups that were formed at random.

    Parameters
    ----------
    rows, cost
        Of each lot: how many rows, and what they cost together.
    longest
        The cost of the most expensive row.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.report import CostLots
    >>> CostLots(rows=np.ones(3), cost=np.array([1.0, 2.0, 9.0]), longest=9.0).bound(workers=2)
    9.0
    """

    rows: Floats
    cost: Floats
    longest: float

    def bound(self, workers: int) -> float:
        """What the busiest worker has at least: the mean, or the most expensive row."""
        return max(float(self.cost.sum()) / workers, self.longest)


class CostForecast(NamedTuple):
    """What one way of dealing would do.

    Attributes
    ----------
    way
        How rows are dealt.
    busiest
        What the busiest worker has to do, in units of cost.
    over_bound
        The same over what is possible at best.

    Examples
    --------
    >>> from unskew.report import CostForecast
    >>> CostForecast("as it is", busiest=12.0, over_bound=1.2).over_bound
    1.2
    """

    way: str
    busiest: float
    over_bound: float


def forecast_costs(lots: CostLots, workers: int, partitions: Floats | None, seed: int = 0) -> list[CostForecast]:
    """As it is (where the cost of each partition is known), round robin, many small tasks, and balanced."""
    generator = np.random.Generator(np.random.PCG64(seed))
    tasks = SMALL_TASKS * workers
    ways = {} if partitions is None else {"as it is": in_turn(partitions, workers)}
    ways["round robin"] = _mean([max(_dealt(lots, workers, generator)) for _ in range(DRAWS)])
    ways["small tasks"] = _mean([in_turn(_dealt(lots, tasks, generator), workers) for _ in range(DRAWS)])
    ways["balanced"] = float(longest_first(lots.cost, workers).load.max())
    bound = lots.bound(workers)
    return [CostForecast(way, max(busiest, bound), max(busiest, bound) / bound) for way, busiest in ways.items()]


def in_turn(tasks: Floats, workers: int) -> float:
    """When the last worker is done if each takes the next task as soon as it is free, as the cores of Spark do."""
    free = [0.0] * workers
    for cost in tasks.tolist():
        heapq.heapreplace(free, free[0] + cost)
    return max(free)


def _dealt(lots: CostLots, parts: int, generator: np.random.Generator) -> Floats:
    """The cost of each of `parts` equal parts of the rows, in random order."""
    order = generator.permutation(len(lots.rows))
    before = np.cumsum(lots.rows[order]) - lots.rows[order]  # rows that come before the lot
    part = np.minimum(before * parts / max(1.0, lots.rows.sum()), parts - 1).astype(np.int64)
    return np.bincount(part, lots.cost[order], parts).astype(np.float64)


def _mean(numbers: list[float]) -> float:
    return float(np.mean(numbers))
