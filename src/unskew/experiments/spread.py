"""One quantity under several hash functions: where luck decides, no single hash function may decide a verdict."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from unskew.experiments.words import median


@dataclass(frozen=True)
class Spread:
    """The values that one quantity had, one per hash function."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def median(self) -> float:
        return median(list(self.values))

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)

    def count(self, holds: Callable[[float], bool]) -> str:
        """Of how many hash functions something holds: ``14 of 40``."""
        return f"{sum(map(holds, self.values))} of {len(self.values)}"

    def text(self, shown: Callable[[float], str] = "{:.2f}".format) -> str:
        """Mean, median and range; the value alone where there is only one."""
        if len(self.values) == 1:
            return shown(self.values[0])
        return (
            f"mean {shown(self.mean)}, median {shown(self.median)}, {shown(self.least)} to {shown(self.most)} "
            f"({len(self.values)} hash functions)"
        )


def spread_of(values: Iterable[float]) -> Spread:
    return Spread(tuple(values))


def seeded(scheme: Any, seeds: int) -> tuple[Any, ...]:
    """The scheme with each of the first `seeds` sets of hash functions; it has a parameter `seed`."""
    return tuple(scheme._replace(seed=seed) for seed in range(seeds))
