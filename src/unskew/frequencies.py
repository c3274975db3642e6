"""How often keys occur: what plans, partitioning functions and offline schemes are made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from unskew.checks import is_integer, require
from unskew.errors import InputError, InputTypeError
from unskew.hashing import KeyIds, frozen, require_counts, require_key_ids

HEAD = 10  # a key is hot from a share of 1/(HEAD * workers) on: smaller ones even out
MOST_HOT_KEYS = 2_000  # that a plan looks at; a larger table costs more in the shuffle than it balances


@dataclass(frozen=True)
class Frequencies:
    """How often keys occur: the most frequent ones one by one, and how many tuples there are in all.

    Parameters
    ----------
    key_ids, counts
        The keys that were counted, in any order, and how many tuples each has.
    tuples
        The number of all tuples, those of other keys included.
    names
        What to show to people for the keys; may be left out.
    home_load
        How many tuples each worker would get if every key, counted or not, were at home, on its candidate 0. A plan for
        as many workers then evens out what keys that were not counted do to them. None: not known.

    Examples
    --------
    Of 1000 tuples, two keys have 700; the hottest comes first:

    >>> from unskew import Frequencies, key_ids
    >>> frequencies = Frequencies(key_ids(["cat", "the"]), [200, 500], tuples=1000)
    >>> frequencies.counts.tolist()
    [500, 200]
    """

    key_ids: KeyIds
    counts: npt.NDArray[np.int64]
    tuples: int
    names: Sequence[str] = field(default=(), repr=False)
    home_load: npt.NDArray[np.int64] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        ids = require_key_ids(self.key_ids)
        counts = require_counts(self.counts, len(ids))
        if len(self.names) not in (0, len(ids)):
            raise InputError(f"names: must have one text per key ({len(ids)}) or none, not {len(self.names)}")
        rule = f"an integer from the sum of the counts, {counts.sum()}, to 2**63 - 1"
        require("tuples", self.tuples, rule, is_integer(self.tuples, int(counts.sum())))
        if self.home_load is not None:
            home = np.asarray(self.home_load)
            whole = home.ndim == 1 and home.dtype.kind in "iu" and bool((home >= 0).all())
            require("home_load", self.home_load, "one integer of at least 0 per worker, or None", whole)
            in_all = int(home.sum())
            require("home_load", in_all, f"at most {self.tuples} tuples in all", in_all <= self.tuples)
            object.__setattr__(self, "home_load", frozen(home.astype(np.int64)))
        order = np.argsort(-counts, kind="stable")  # hottest first
        object.__setattr__(self, "key_ids", ids[order])
        object.__setattr__(self, "counts", counts[order])
        object.__setattr__(self, "names", [self.names[i] for i in order] if self.names else [""] * len(ids))

    @classmethod
    def of(cls, counts: Mapping[int, int]) -> "Frequencies":
        """From a mapping of key id to count that has every key."""
        if not isinstance(counts, Mapping) or not all(is_integer(key, 0, 2**64 - 1) for key in counts):
            raise InputTypeError(f"counts: must be a mapping of key id to count, see key_ids, not {counts!r:.80}")
        return cls(np.array(list(counts), np.uint64), np.array(list(counts.values()), np.int64), sum(counts.values()))

    def merged(self) -> "Frequencies":
        """The same with keys that share an id as one, which they are to a router."""
        ids, first, which = np.unique(self.key_ids, return_index=True, return_inverse=True)
        if len(ids) == len(self.key_ids):
            return self
        counts = np.zeros(len(ids), np.int64)
        np.add.at(counts, which, self.counts)
        return Frequencies(ids, counts, self.tuples, [self.names[i] for i in first], self.home_load)

    def hot(self, workers: int) -> int:
        """How many keys, from the hottest on, are hot: too large to even out by themselves."""
        return min(MOST_HOT_KEYS, int((self.counts > self.tuples / (HEAD * workers)).sum()))
