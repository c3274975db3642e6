"""Key grouping (KG), plain hashing: all tuples of a key go to the one worker that the key hashes to.

Paper: Partial Key Grouping, section 3, "Single choice": P_t(k) = H_1(k) mod W.

Choices made here:
- H_1 is candidate 0 of our family of hash functions. The result has the same statistics as Spark's
  ``repartition(W, key)``, but not the same placement, because there Spark hashes the key without a salt.
- `seed` picks another function of the family: candidate number `seed`.

A router remembers nothing. More: docs/schemes/hash.md.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_integer, require_workers
from unskew.frequencies import Frequencies
from unskew.hashing import candidate
from unskew.kernels import kernel
from unskew.plan import Plan
from unskew.registry import register


class State(NamedTuple):
    nothing: npt.NDArray[np.int64]  # int64[0]: hashing remembers nothing


@kernel
def choose(scheme, state, key, now):
    return candidate(key, scheme.seed, scheme.workers)


@register(
    "hash",
    choose=choose,
    paper="PKG, section 3 (KG)",
    when="no key is hot (p1 well under 1/workers), or a key must never be split",
)
class Hash(NamedTuple):
    """Key grouping: one worker per key, by hash.

    Parameters
    ----------
    workers
        W, the number of workers.
    seed
        Which hash function of the family decides: that of candidate number `seed`.

    Examples
    --------
    A key always goes to the same worker:

    >>> from unskew import Hash, Router, key_ids
    >>> Router(Hash(workers=8)).route(key_ids(["to", "be", "or", "not", "to", "be"])).tolist()
    [1, 0, 5, 4, 1, 0]
    """

    workers: int  # W
    seed: int = 0

    def check(self) -> None:
        require_workers(self.workers)
        require_integer("seed", self.seed, 0, 2**31 - 1)

    def new_state(self) -> State:
        return State(np.zeros(0, np.int64))

    @classmethod
    def plan(cls, workers: int, frequencies: Frequencies, seed: int = 0) -> Plan:
        """No key is split, whatever the frequencies."""
        return Plan("hash", workers, cold_salt=seed)
