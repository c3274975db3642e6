"""Stand-ins for data sets that cannot be had: Zipf streams that match a published size, key count and p1.

A Zipf distribution has two parameters. Both are solved for: the exponent such that the most frequent key has
probability p1, and the number of *possible* keys such that a stream of the published length contains the published
number of *distinct* keys (a sample never shows all of a long tail). What a stand-in does not have: the data set's own
tail, and its changes through time. So it is labelled as a stand-in wherever it is shown.

Of WP one more fact is published: shuffled over 8 workers it has 7.2M (worker, key) pairs (PKG, section 6.2, Q5). So its
hottest key is apart, and the exponent of all others is the one with which that many pairs are expected.

The p1 of LJ is printed as 0.29 %, but per node, as that of Slashdot is (its largest in-degree, 2,553, over 82,168 nodes
is the printed 3.11 %). Per edge it is 0.29 % * 4.9M / 69M.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import is_number, require, require_integer
from unskew.errors import InputError
from unskew.streams.stream import Generated, require_generated
from unskew.streams.zipf import expected_distinct, harmonic, zipf_ranks

MOST_POSSIBLE_KEYS = 10**12
STEEPEST = 20.0  # exponent
CLOSE_ENOUGH = 1e-3  # relative error of the expected number of distinct keys


class Published(NamedTuple):
    """A data set of the papers: its size, and how long it ran."""

    tuples: int
    keys: int
    p1: float
    seconds: float
    source: str
    graph: bool = False
    tail: float | None = None  # exponent of all keys but the hottest, where it is fitted apart


DAY = 86_400.0
PUBLISHED = {
    "WP": Published(22_000_000, 2_900_000, 0.0932, DAY, "Wikipedia page views of a day in January 2008", tail=0.882),
    "TW": Published(1_200_000_000, 31_000_000, 0.0267, 31 * DAY, "words of tweets, July 2012"),
    "CT": Published(690_000, 2_900, 0.0329, 30 * DAY, "cashtags of tweets, November 2013"),
    "LJ": Published(
        69_000_000,
        4_900_000,
        0.0029 * 4_900_000 / 69_000_000,
        DAY,
        "LiveJournal edges (no duration: a day assumed)",
        graph=True,
    ),
}


@dataclass(frozen=True)
class Matched(Generated):
    """A Zipf stream that has about `keys` distinct keys in its first `tuples` tuples, the top one with share `p1`.

    Parameters
    ----------
    tuples
        How many tuples.
    keys
        How many distinct keys they should have.
    p1
        The share of the most frequent key.
    seed
        The same seed gives the same tuples.
    rate
        Tuples per second; they come evenly.

    Examples
    --------
    The exponent, and how many keys there are of which these tuples show about a thousand:

    >>> from unskew.streams import Matched
    >>> z, possible = Matched(tuples=10_000, keys=1000, p1=0.1).exponent_and_possible_keys
    >>> round(z, 2), round(possible, -2)
    (0.92, 1100)
    """

    tuples: int
    keys: int
    p1: float
    seed: int = 0
    rate: float = 1000.0

    def __post_init__(self) -> None:
        require_generated(self)
        require_integer("keys", self.keys, 2, MOST_POSSIBLE_KEYS)
        least, most = 1 / self.keys, 1 / harmonic(STEEPEST, self.keys)
        rule = f"a share above 1/keys = {least:.3g} and at most {most:.7f}"
        require("p1", self.p1, rule, is_number(self.p1, least, most) and self.p1 > least)

    @cached_property
    def exponent_and_possible_keys(self) -> tuple[float, int]:
        return _solve(self.tuples, self.keys, self.p1)

    def _keys(self, generator: np.random.Generator, start: int, count: int) -> npt.NDArray[np.int64]:
        return zipf_ranks(generator, *self.exponent_and_possible_keys, count)


@dataclass(frozen=True)
class StandIn(Generated):
    """The stand-in for a data set of the papers, or its first `tuples` tuples.

    A graph's edges get source vertices too: drawn independently, as skewed as the destinations.

    Parameters
    ----------
    name
        One of `PUBLISHED`, such as ``"WP"``.
    tuples
        How many tuples; 0 for as many as published.
    seed
        The same seed gives the same tuples.

    Examples
    --------
    >>> from unskew.streams import StandIn
    >>> [chunk.keys.tolist() for chunk in StandIn("CT", tuples=8).chunks()]
    [[132, 1063, 2533, 2748, 24, 5, 166, 60]]
    """

    name: str
    tuples: int = 0  # 0: as many as published
    seed: int = 0

    def __post_init__(self) -> None:
        require("name", self.name, f"one of {', '.join(PUBLISHED)}", self.name in list(PUBLISHED))
        if self.tuples == 0:
            object.__setattr__(self, "tuples", PUBLISHED[self.name].tuples)
        require_generated(self)

    @property
    def rate(self) -> float:  # type: ignore[override]
        data_set = PUBLISHED[self.name]
        return data_set.tuples / data_set.seconds

    def _keys(self, generator: np.random.Generator, start: int, count: int) -> npt.NDArray[np.int64]:
        data_set = PUBLISHED[self.name]
        if data_set.tail is None:
            return zipf_ranks(generator, *_solve(data_set.tuples, data_set.keys, data_set.p1), count)
        keys = zipf_ranks(generator, data_set.tail, possible_apart(self.name), count) + 1
        keys[generator.random(count) < data_set.p1] = 1
        return keys

    def _source_keys(self, generator: np.random.Generator, count: int) -> npt.NDArray[np.int64] | None:
        return self._keys(generator, 0, count) if PUBLISHED[self.name].graph else None


@cache
def possible_apart(name: str) -> int:
    """How many keys there are besides the hottest, of which the published number of tuples shows the published one."""
    data_set = PUBLISHED[name]
    assert data_set.tail is not None
    tail, others = data_set.tail, round(data_set.tuples * (1 - data_set.p1))

    def missing(log_possible: float) -> float:
        return expected_distinct(tail, int(np.exp(log_possible)), others) / (data_set.keys - 1) - 1.0

    return int(np.exp(_bisect(missing, float(np.log(data_set.keys)), float(np.log(MOST_POSSIBLE_KEYS)))))


@cache
def _solve(tuples: int, keys: int, p1: float) -> tuple[float, int]:
    """(exponent, possible keys)."""

    def exponent(possible: float) -> float:
        return _bisect(lambda z: 1.0 / harmonic(z, int(possible)) - p1, 0.0, STEEPEST)

    def missing(log_possible: float) -> float:
        possible = np.exp(log_possible)
        return expected_distinct(exponent(possible), int(possible), tuples) / keys - 1.0

    fewest, most = float(np.log(keys)), float(np.log(MOST_POSSIBLE_KEYS))
    if missing(fewest) > -CLOSE_ENOUGH:
        return exponent(keys), keys
    if missing(most) < 0:
        raise InputError(
            f"keys: no Zipf stream of {tuples} tuples with p1={p1} has {keys} distinct keys; ask for fewer"
        )
    possible = int(np.exp(_bisect(missing, fewest, most)))
    return exponent(possible), possible


def _bisect(increasing: Callable[[float], float], low: float, high: float) -> float:
    """Where `increasing` crosses 0 between `low` and `high`."""
    for _ in range(60):
        middle = (low + high) / 2
        if increasing(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
