"""Time-evolving Zipf: what was hottest becomes coldest after four fifths of the stream.

Paper: FISH, section 6.1 (data set ZF). The first 0.8 N tuples have Pr[i] ~ i^-z. For the last 0.2 N the paper prints
the same formula again, which would not evolve at all; we take the popularity reversed, the key i having the rank
K - i + 1, so that the coldest key becomes the hottest: Pr[i] ~ (K - i + 1)^-z. N is 5 million there, K is 10^5.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.streams.stream import Generated, require_zipf
from unskew.streams.zipf import zipf_ranks


@dataclass(frozen=True)
class Evolving(Generated):
    """A Zipf stream whose ranking is turned upside down for its last fifth.

    Parameters
    ----------
    z
        The exponent; 0 is uniform.
    keys
        K, the number of possible keys, which are 1 to K.
    tuples
        How many tuples.
    seed
        The same seed gives the same tuples.
    rate
        Tuples per second; they come evenly.

    Examples
    --------
    >>> from unskew.streams import Evolving
    >>> [chunk.keys.tolist() for chunk in Evolving(z=4.0, keys=1000, tuples=20).chunks()]
    [[1, 1, 2, 3, 1, 1, 1, 1, 1, 1, 1, 5, 1, 2, 1, 1, 1000, 1000, 1000, 1000]]
    """

    z: float = 1.0
    keys: int = 100_000
    tuples: int = 5_000_000
    seed: int = 0
    rate: float = 1000.0

    def __post_init__(self) -> None:
        require_zipf(self)

    @property
    def turn(self) -> int:
        """The number of the first tuple of the last fifth."""
        return self.tuples * 4 // 5

    def _keys(self, generator: np.random.Generator, start: int, count: int) -> npt.NDArray[np.int64]:
        keys = zipf_ranks(generator, float(self.z), self.keys, count)
        late = keys[max(0, self.turn - start) :]
        late[:] = self.keys + 1 - late
        return keys
