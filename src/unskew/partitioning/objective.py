"""What a partitioning function is to achieve: which loads count, how uneven they may be, and which keys are tracked.

Paper: Gedik, "Partitioning functions for stateful data parallelism in stream processing", sections 3.1, 4.1.3 and 4.3.

A key of frequency f puts a load beta(f) on its worker, for each of three resources: state, computation and
communication. The resource functions are constant (C), linear (L) and quadratic (Q). ``"LCL"`` says: state linear (a
time window), computation constant (an incremental aggregate), communication linear, which it always is.

Choices made here:
- The load of a resource is the sum of beta(f) over the keys of a worker, also for computation. Eq. 3 as printed has
  f * beta(f) there. That contradicts the text above it (C(d) is in proportion to beta(f), and a join costs f^2), Eq.
  17 (a constant resource has the load |D|) and section 4.4 (a constant resource is balanced by itself). Under the
  printed formula LQL is cubic.
- With one worker there is nothing to balance: theta (Eq. 15) is 0 there, and no key is tracked.
- A constant resource is left out of the balance penalty (section 4.4), whose geometric mean is over the others.
- delta' (end of section 4.1.3): what is predicted there is the sum over all workers, so it is divided by N, as
  everywhere else. A key is tracked if its frequency is at least the smallest of the deltas of all resources.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.checks import is_number, require, require_integer
from unskew.frequencies import Frequencies

EXPONENT = {"C": 0, "L": 1, "Q": 2}
UTILITIES = ("A", "APM", "APLM", "ATM", "ATLM")
NAMES = ("state", "computation", "communication")


@dataclass(frozen=True)
class Objective:
    """Which loads count, how uneven they may be, and what balance is worth against migration.

    Parameters
    ----------
    resources
        The resource functions of state, computation and communication: C (constant), L (linear) or Q (quadratic) each,
        such as ``"LQL"``. Communication is always linear.
    alpha
        How many times the load of the least loaded worker the most loaded one may have; one number, or one per
        resource.
    sigma
        The part of the allowed imbalance that keys without an entry may cause: smaller values track more keys.
    utility
        How balance and migration are weighed: ``A`` (balance alone), ``APM`` (their sum), ``APLM`` (balance plus the
        logarithm of migration), ``ATM`` and ``ATLM`` (products).

    Examples
    --------
    >>> from unskew.partitioning import Objective
    >>> objective = Objective("LCL", alpha=1.2)
    >>> [round(theta, 4) for theta in objective.theta(workers=10)]
    [0.1765, 0.1765, 0.1765]
    >>> round(objective.delta(workers=10, keys=10**6), 6)
    0.001765
    """

    resources: str = "LCL"
    alpha: float | Sequence[float] = 1.2
    sigma: float = 0.1
    utility: str = "APM"

    def __post_init__(self) -> None:
        rule = "three letters for state, computation and communication, each C, L or Q, the last one L, such as LCL"
        right = isinstance(self.resources, str) and len(self.resources) == 3 and self.resources[2] == "L"
        require("resources", self.resources, rule, right and set(self.resources) <= set(EXPONENT))
        alphas = self.alpha if isinstance(self.alpha, list | tuple) else (self.alpha,) * 3
        above_1 = len(alphas) == 3 and all(is_number(a, np.nextafter(1.0, 2.0), 1e6) for a in alphas)
        require("alpha", self.alpha, "a number above 1 and up to 1e6, or one per resource", above_1)
        require("sigma", self.sigma, "a number above 0 and up to 1", is_number(self.sigma, 1e-9, 1.0))
        require("utility", self.utility, f"one of {', '.join(UTILITIES)}", self.utility in UTILITIES)

    @property
    def exponents(self) -> tuple[int, int, int]:
        """The power of the frequency that each resource's load is in proportion to."""
        state, computation, communication = (EXPONENT[letter] for letter in self.resources)
        return state, computation, communication

    @property
    def alphas(self) -> tuple[float, float, float]:
        """alpha of each resource."""
        of = self.alpha if isinstance(self.alpha, list | tuple) else (self.alpha,) * 3
        return float(of[0]), float(of[1]), float(of[2])

    def theta(self, workers: int) -> tuple[float, float, float]:
        """How far a load may be from the mean, as a share of the mean, for each resource (Eq. 15)."""
        if workers == 1:
            return 0.0, 0.0, 0.0
        state, computation, communication = ((a - 1) / (1 + a / (workers - 1)) for a in self.alphas)
        return state, computation, communication

    def delta(self, workers: int, keys: int) -> float:
        """The frequency from which on a key must be counted (Eq. 17); `keys` is |D|. 1 where there is one worker."""
        require_integer("workers", workers, 1)
        require_integer("keys", keys, 1)
        return min(self._deltas(workers, 1 / keys))

    def tracked(self, frequencies: Frequencies, workers: int, keys: int | None = None, slack: float = 0.0) -> int:
        """How many keys, from the hottest on, get an entry: those of frequency delta' - slack and more.

        `keys` is |D|; left out, the number of keys that were counted. `slack` is the error of the counts.
        """
        domain = max(len(frequencies.key_ids), 1 if keys is None else keys)
        if workers == 1 or not len(frequencies.key_ids):
            return 0
        counted = _how_many(frequencies, self.delta(workers, domain) - slack)
        shares = frequencies.counts[:counted] / frequencies.tuples
        return _how_many(frequencies, min(self._deltas(workers, _predicted_squares(shares, domain))) - slack)

    def _deltas(self, workers: int, squares: float) -> list[float]:
        """Eq. 17, where `squares` stands for the sum of the squares of all frequencies."""
        if workers == 1:
            return [1.0]
        allowed = [self.sigma * theta / workers for theta in self.theta(workers)]
        of: dict[int, Any] = {0: lambda _: 1.0, 1: lambda share: share, 2: lambda share: math.sqrt(share * squares)}
        return [of[exponent](share) for exponent, share in zip(self.exponents, allowed, strict=True)]


def _how_many(frequencies: Frequencies, share: float) -> int:
    """How many keys, from the hottest on, have at least this share of all tuples, and one tuple."""
    least = max(share * frequencies.tuples, 1.0)
    return int(np.searchsorted(-frequencies.counts, -least, side="right"))


def _predicted_squares(shares: npt.NDArray[np.float64], keys: int) -> float:
    """The sum of squares of all frequencies, if the keys without a count share the rest evenly."""
    others, rest = keys - len(shares), max(0.0, 1.0 - float(shares.sum()))
    return float((shares**2).sum()) + (rest**2 / others if others else 0.0)
