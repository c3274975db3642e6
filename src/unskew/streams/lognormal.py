"""Log-normal keys: the key is a log-normal sample, rounded to the nearest integer.

Paper: Partial Key Grouping, section 6.1: LN1 (mu 1.789, sigma 2.366) and LN2 (mu 2.245, sigma 1.133), from an analysis
of the Orkut social network. The paper does not say how a real number becomes a key; rounding gives the key counts and
the p1 of its Table 1 (16k keys and 14.71 %, 1.1k keys and 7.01 %).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unskew.checks import require_number
from unskew.streams.stream import Generated, require_generated

LARGEST_KEY = 2.0**62  # a sample beyond it would not fit a 64-bit key


@dataclass(frozen=True)
class Lognormal(Generated):
    """Keys by a log-normal distribution: exp(mu + sigma * normal), rounded.

    Parameters
    ----------
    mu, sigma
        The mean and the standard deviation of the logarithm.
    tuples
        How many tuples.
    seed
        The same seed gives the same tuples.
    rate
        Tuples per second; they come evenly.

    Examples
    --------
    >>> from unskew.streams import Lognormal
    >>> [chunk.keys.tolist() for chunk in Lognormal(mu=2.245, sigma=1.133, tuples=8).chunks()]
    [[11, 8, 20, 11, 5, 14, 41, 28]]
    """

    mu: float
    sigma: float
    tuples: int
    seed: int = 0
    rate: float = 1000.0

    def __post_init__(self) -> None:
        require_number("mu", self.mu, "a number from -40 to 40", -40, 40)
        require_number("sigma", self.sigma, "a number from 0 to 40", 0, 40)
        require_generated(self)

    def _keys(self, generator: np.random.Generator, start: int, count: int) -> npt.NDArray[np.int64]:
        samples = generator.lognormal(self.mu, self.sigma, count)
        return np.rint(np.minimum(samples, LARGEST_KEY)).astype(np.int64)
