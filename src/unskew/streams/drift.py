"""Drifting popularity: a Zipf stream whose ranking moves on as time passes.

Every `every` tuples the ranking is turned by `step` keys: the `step` hottest keys drop to the cold end, and each other
key rises by `step` ranks. So yesterday's news is cold today, today's was warm yesterday, and every key has its turn.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.checks import require_integer
from unskew.streams.stream import Generated, require_zipf
from unskew.streams.zipf import zipf_ranks


@dataclass(frozen=True)
class Drift(Generated):
    """A Zipf stream whose `step` hottest keys go cold every `every` tuples.

    Parameters
    ----------
    z
        The exponent; 0 is uniform.
    keys
        K, the number of possible keys, which are 1 to K.
    tuples
        How many tuples.
    every
        After how many tuples the ranking moves on.
    step
        By how many keys.
    seed
        The same seed gives the same tuples.
    rate
        Tuples per second; they come evenly.

    Examples
    --------
    The hottest key is 1 at first, then 2, then 3:

    >>> from unskew.streams import Drift
    >>> [chunk.keys.tolist() for chunk in Drift(z=4.0, keys=10, tuples=15, every=5).chunks(size=5)]
    [[1, 1, 2, 3, 1], [2, 2, 2, 2, 2], [3, 7, 3, 4, 3]]
    """

    z: float
    keys: int
    tuples: int
    every: int = 100_000
    step: int = 1
    seed: int = 0
    rate: float = 1000.0

    def __post_init__(self) -> None:
        require_zipf(self)
        require_integer("every", self.every, 1)
        require_integer("step", self.step, 0, 2**31)

    def _keys(self, generator: np.random.Generator, start: int, count: int) -> npt.NDArray[np.int64]:
        ranks = zipf_ranks(generator, float(self.z), self.keys, count)
        turns = np.arange(start, start + count) // self.every
        return (ranks - 1 + turns * self.step) % self.keys + 1
