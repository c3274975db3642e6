"""When to take samples of a stream whose length need not be known, and which of them to keep."""

from collections.abc import Iterator
from typing import Generic, TypeVar

FIRST_DISTANCE = 16  # tuples

Taken = TypeVar("Taken")


class Sampling(Generic[Taken]):
    """Samples at even distances: at least `samples` of them once there are tuples enough, at most twice as many.

    A sample is due every 16 tuples at first. Whenever twice as many as `samples` are kept, every second one goes and
    the distance doubles. Where the length is known, the distance is from the start what it would become.
    """

    def __init__(self, samples: int, length: int | None = None) -> None:
        self.kept: list[Taken] = []
        self._most = 2 * samples
        self._distance = FIRST_DISTANCE
        while self._distance * self._most <= (length or 0):
            self._distance *= 2
        self._tuples = 0

    def pieces(self, count: int) -> Iterator[slice]:
        """The next `count` tuples in pieces; each ends where a sample is due, or at the end.

        The samples that are due must be kept on the way, since the distance to the next one depends on it.
        """
        start = 0
        while start < count:
            stop = min(count, start + self._distance - self._tuples % self._distance)
            self._tuples += stop - start
            yield slice(start, stop)
            start = stop

    @property
    def is_due(self) -> bool:
        """Whether the last piece ended where a sample is due."""
        return self._tuples % self._distance == 0

    def keep(self, sample: Taken) -> None:
        """Keep the sample that is due; older ones may go."""
        self.kept.append(sample)
        if len(self.kept) >= self._most:
            del self.kept[::2]  # leaves the multiples of the doubled distance
            self._distance *= 2
