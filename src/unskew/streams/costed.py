"""Zipf keys whose tuples cost different amounts of work, by their key.

Paper: POSG, section V-A. There are `values` different costs, at even distances (or ratios) from `least` to `most`. Each
is given to the same number of keys, which are drawn at random: the hottest key may be cheap or dear.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from unskew.checks import require, require_integer, require_number
from unskew.hashing import frozen
from unskew.streams.stream import Generated, require_zipf
from unskew.streams.zipf import zipf_ranks

SPACINGS = ("constant", "geometric")
MOST_KEYS = 2**27  # each has its cost in a table


@dataclass(frozen=True)
class Costed(Generated):
    """A Zipf stream whose tuples have costs: seconds of work for a worker of capacity 1, by key.

    Parameters
    ----------
    z
        The exponent; 0 is uniform.
    keys
        K, the number of possible keys, which are 1 to K.
    tuples
        How many tuples.
    values
        How many different costs there are, at most K.
    least, most
        The lowest and the highest cost, in seconds.
    spacing
        "constant": costs at even distances. "geometric": at even ratios.
    every
        After how many tuples costs are dealt to the keys anew; 0 for never.
    seed
        The same seed gives the same tuples and costs.
    rate
        Tuples per second; they come evenly.

    Examples
    --------
    >>> from unskew.streams import Costed
    >>> stream = Costed(z=1.0, keys=100, tuples=6, values=4, least=1.0, most=4.0)
    >>> [(chunk.keys.tolist(), chunk.costs.tolist()) for chunk in stream.chunks(size=3)]
    [([4, 25, 81], [3.0, 3.0, 2.0]), ([92, 1, 1], [1.0, 4.0, 4.0])]
    """

    z: float = 1.0
    keys: int = 4096
    tuples: int = 32_768
    values: int = 64
    least: float = 0.001
    most: float = 0.064
    spacing: str = "constant"
    every: int = 0
    seed: int = 0
    rate: float = 1000.0

    def __post_init__(self) -> None:
        require_zipf(self)
        require_integer("keys", self.keys, 1, MOST_KEYS)
        require_integer("values", self.values, 1, self.keys)
        require_integer("every", self.every, 0)
        require("spacing", self.spacing, " or ".join(SPACINGS), self.spacing in SPACINGS)
        require_number("least", self.least, "seconds from 1e-9 to 1e9", 1e-9, 1e9)
        require_number("most", self.most, f"seconds from least, {self.least:g}, to 1e9", self.least, 1e9)

    @property
    def has_costs(self) -> bool:
        return True

    def _keys(self, generator: np.random.Generator, start: int, count: int) -> npt.NDArray[np.int64]:
        return zipf_ranks(generator, float(self.z), self.keys, count)

    def _costs(self, keys: npt.NDArray[np.int64], start: int) -> npt.NDArray[np.float64]:
        if not self.every:
            return self.cost_of_keys()[keys - 1]
        turns = np.arange(start, start + len(keys)) // self.every
        costs = np.empty(len(keys))
        for turn in np.unique(turns).tolist():
            costs[turns == turn] = self.cost_of_keys(turn)[keys[turns == turn] - 1]
        return costs

    def cost_of_keys(self, turn: int = 0) -> npt.NDArray[np.float64]:
        """The cost of key 1, 2, ... K, after costs were dealt anew `turn` times. An array that cannot be written."""
        return _deal_costs(self, turn)


@lru_cache(maxsize=1)  # chunks come in order, so that a table is made once per turn
def _deal_costs(stream: Costed, turn: int) -> npt.NDArray[np.float64]:
    spaced = np.linspace if stream.spacing == "constant" else np.geomspace
    costs = spaced(stream.least, stream.most, stream.values)
    dealt = np.random.Generator(np.random.PCG64([stream.seed, 2, turn])).permutation(stream.keys)
    return frozen(costs[dealt * stream.values // stream.keys])
