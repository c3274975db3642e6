"""What a stream is: chunks of keys with their times, made or read in constant memory."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_integer, require_number
from unskew.hashing import KeyIds
from unskew.key_columns import key_ids

CHUNK = 65_536  # tuples; small enough for the processor's cache, large enough to make Python's share vanish


class Chunk(NamedTuple):
    """Consecutive tuples of a stream.

    Parameters
    ----------
    keys
        One key per tuple, a numpy or Arrow array.
    times
        Seconds.
    source_keys
        What decides which source a tuple enters at, where the stream says so.
    costs
        Seconds of work per tuple for a worker of capacity 1; None: 1 each.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.streams import Chunk
    >>> chunk = Chunk(np.array([1, 2, 1]), times=np.array([0.0, 0.5, 1.0]))
    >>> len(chunk.key_ids())
    3
    """

    keys: Any
    times: npt.NDArray[np.float64]
    source_keys: Any = None
    costs: npt.NDArray[np.float64] | None = None

    def key_ids(self) -> KeyIds:
        return key_ids(self.keys)


@dataclass(frozen=True)
class Stream:
    """A workload. Iterate over `chunks`; every iteration gives the same tuples, however they are cut.

    Examples
    --------
    A stream of your own is a frozen dataclass with `chunks`:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from unskew.streams import Chunk, Stream
    >>> @dataclass(frozen=True)
    ... class Same(Stream):
    ...     key: int
    ...     tuples: int
    ...     def chunks(self, size=65_536):
    ...         yield Chunk(np.full(self.tuples, self.key), times=np.arange(self.tuples) / 1000.0)
    >>> str(Same(key=7, tuples=3))
    'same(key=7, tuples=3)'
    """

    @property
    def length(self) -> int | None:
        """Number of tuples, None where it is not known before the end."""
        return None

    @property
    def has_costs(self) -> bool:
        """Whether its chunks have costs."""
        return False

    def mean_cost(self) -> float:
        """The mean cost of its tuples; where it has costs, that takes a pass over the stream."""
        total, tuples = 0.0, 0
        for chunk in self.chunks() if self.has_costs else ():
            total += float(np.asarray(chunk.costs, np.float64).sum())
            tuples += len(chunk.times)
        return total / tuples if tuples else 1.0

    def chunks(self, size: int = CHUNK) -> Iterator[Chunk]:
        raise NotImplementedError

    def __str__(self) -> str:
        shown = ", ".join(
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != f.default
        )
        return f"{expression_name(type(self))}({shown})"


class Generated(Stream):
    """A synthetic stream of `tuples` tuples that come evenly, `rate` per second."""

    tuples: int
    seed: int
    rate: float

    @property
    def length(self) -> int:
        return self.tuples

    def chunks(self, size: int = CHUNK) -> Iterator[Chunk]:
        generator = np.random.Generator(np.random.PCG64(self.seed))
        of_sources = np.random.Generator(np.random.PCG64([self.seed, 1]))  # its own, so that cuts change nothing
        for start in range(0, self.tuples, size):
            count = min(size, self.tuples - start)
            times = np.arange(start, start + count) / self.rate
            keys = self._keys(generator, start, count)
            yield Chunk(keys, times, self._source_keys(of_sources, count), self._costs(keys, start))

    def _keys(self, generator: np.random.Generator, start: int, count: int) -> npt.NDArray[np.int64]:
        """The next `count` keys, of which the first is tuple number `start`."""
        raise NotImplementedError

    def _source_keys(self, generator: np.random.Generator, count: int) -> npt.NDArray[np.int64] | None:
        """What decides the source of each of these tuples; None for nothing but its key."""
        return None

    def _costs(self, keys: npt.NDArray[np.int64], start: int) -> npt.NDArray[np.float64] | None:
        """The cost of each of these tuples, of which the first is tuple number `start`; None where there are none."""
        return None


def expression_name(stream_type: type[Stream]) -> str:
    """How a stream is called in an expression: StandIn is ``stand_in``."""
    name = stream_type.__name__
    return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(name))


def require_generated(stream: Any) -> None:
    """The checks that all synthetic streams share."""
    require_integer("tuples", stream.tuples, 0)
    require_integer("seed", stream.seed, 0)
    require_number("rate", stream.rate, "a number of tuples per second from 1e-9 to 1e15", 1e-9, 1e15)


def require_zipf(stream: Any) -> None:
    require_number("z", stream.z, "a number from 0 to 20", 0, 20)
    require_integer("keys", stream.keys, 1, 2**53)
    require_generated(stream)
