"""How often the keys of a stream occur, in a few thousand numbers however many keys there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.frequencies import MOST_HOT_KEYS, Frequencies
from unskew.hashing import KeyIds

TOP = MOST_HOT_KEYS  # keys that are known one by one: all that a plan can split
FEWEST_TO_FIT = 3  # keys
LEAST_COUNT_TO_FIT = 10  # rows of a key: rarer ones say more about chance than about the distribution

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TopKey:
    """One of the most frequent keys.

    Attributes
    ----------
    key
        As text.
    count, share
        How many rows it has, and their share of all.

    Examples
    --------
    >>> from unskew.report import TopKey
    >>> TopKey("the", count=80, share=0.8)
    TopKey(key='the', count=80, share=0.8)
    """

    key: str
    count: int
    share: float


class ZipfFit(NamedTuple):
    """How well the head follows count = C * rank^-exponent.

    Attributes
    ----------
    exponent
        z.
    r_squared
        How well it fits; 1 is exactly.

    Examples
    --------
    >>> from unskew.report import ZipfFit
    >>> ZipfFit(exponent=1.0, r_squared=0.99).exponent
    1.0
    """

    exponent: float
    r_squared: float


@dataclass(frozen=True)
class KeyCounts:
    """The most frequent keys one by one, the rest as a histogram. Made by `KeyCounts.of`.

    Each bucket of the histogram has keys of (nearly) the same count: how many keys, and how many tuples they have
    together, so all totals are exact.

    Parameters
    ----------
    top
        The most frequent keys; its `tuples` are those of all keys.
    tail_keys, tail_tuples
        How many keys and how many tuples each bucket has; at least 1 of each.
    partition_rows
        The rows of each partition by Spark's own hash, where they were counted.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import key_ids
    >>> from unskew.report import KeyCounts
    >>> counts = KeyCounts.of(key_ids(["the", "cat", "hat"]), np.array([80, 15, 5]))
    >>> counts.tuples, counts.keys, counts.p1
    (100, 3, 0.8)
    """

    top: Frequencies
    tail_keys: Ints
    tail_tuples: Ints
    partition_rows: Ints | None = None

    def __post_init__(self) -> None:
        if self.tail_keys.shape != self.tail_tuples.shape or (self.tail_tuples < self.tail_keys).any():
            raise InputError("tail_tuples: must have one number per bucket, and at least one tuple per key")
        together = int(self.top.counts.sum() + self.tail_tuples.sum())
        if together != self.tuples:
            raise InputError(f"tuples: must be the sum of all counts {together}, not {self.tuples}")

    @classmethod
    def of(cls, key_ids: KeyIds, counts: Ints, names: Sequence[str] = ()) -> "KeyCounts":
        """From the counts of all keys, each above 0."""
        every = Frequencies(key_ids, counts, int(np.sum(counts)), names)
        top = Frequencies(every.key_ids[:TOP], every.counts[:TOP], every.tuples, every.names[:TOP])
        each, keys = np.unique(every.counts[TOP:], return_counts=True)
        return cls(top, keys.astype(np.int64), each * keys)

    @property
    def tuples(self) -> int:
        return self.top.tuples

    @property
    def keys(self) -> int:
        """Distinct keys."""
        return len(self.top.counts) + int(self.tail_keys.sum())

    @property
    def p1(self) -> float:
        """The share of the most frequent key; 0 without any."""
        return int(self.top.counts[0]) / self.tuples if self.tuples else 0.0

    def curve(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """(rank, share) from the hottest key to the rarest; one point for each bucket of the histogram, at its end."""
        each = self.tail_tuples / self.tail_keys
        order = np.argsort(-each)
        ranks = [np.arange(1, len(self.top.counts) + 1), len(self.top.counts) + np.cumsum(self.tail_keys[order])]
        counts = np.concatenate([self.top.counts, each[order]])
        return np.concatenate(ranks).astype(float), counts / max(1, self.tuples)

    def zipf(self) -> ZipfFit | None:
        """The Zipf exponent of the head, None with fewer than three keys to fit.

        Least squares of log(count) over log(rank), over the top keys with ten rows or more. Rank r weighs 1/r: each
        power of ten of ranks then counts the same, where plain least squares would hardly see the hottest keys.
        """
        counts = self.top.counts[self.top.counts >= LEAST_COUNT_TO_FIT]
        if len(counts) < FEWEST_TO_FIT:
            return None
        rank = np.arange(1, len(counts) + 1)
        weight = 1 / rank
        x, y = np.log(rank), np.log(counts)
        x, y = x - np.average(x, weights=weight), y - np.average(y, weights=weight)
        slope = float((weight * x * y).sum() / (weight * x * x).sum())
        spread = float((weight * y * y).sum())
        unexplained = float((weight * (y - slope * x) ** 2).sum())
        return ZipfFit(max(0.0, -slope), 1 - unexplained / spread if spread > 1e-12 else 1.0)


def percent(share: float) -> str:
    """12.34%, and 0.0012% where that would be 0.00%."""
    return f"{share:.2%}" if share >= 0.001 or not share else f"{100 * share:.2g}%"
