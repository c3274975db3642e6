"""What may be asked of queues: how fast tuples come, how fast workers are, how much may wait."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import is_number, require_integer, require_number
from unskew.errors import InputError

SLOWEST, FASTEST = 1e-9, 1e12  # tuples per second
MOST_NAMES = 20_000_000
RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
CAPACITY_RULE = (
    f"must be tuples per second from {SLOWEST:g} to {FASTEST:g} for all workers, such as 5, or for some, such as "
    "0-2:5 (workers 0 to 2), separated by commas"
)

Capacity = float | str | Sequence[float]


class Capacities(NamedTuple):
    """Tuples per second of some workers, or of all; the later part wins."""

    parts: tuple[tuple[int, int | None, float], ...]  # first and last name (None: all), capacity

    def apply(self, capacity: npt.NDArray[np.float64]) -> None:
        """Write them into the capacities by name."""
        for first, last, value in self.parts:
            if max(first, last or 0) >= len(capacity):
                highest = len(capacity) - 1
                raise InputError(
                    f"capacity: there is no worker {last or first}; workers are 0..{highest}, added ones included"
                )
            capacity[first : None if last is None else last + 1] = value


def parse_capacity(given: Any) -> Capacities:
    """From a number (all workers), a sequence (worker 0, 1, ...), or a text such as ``0-2:5, 7:3``."""
    if isinstance(given, str):
        parts = tuple(_part(part, given) for part in given.split(","))
        if sum(last is None for _, last, _ in parts) > 1:
            raise InputError(f"capacity: only one number may be for all workers, not {given!r:.80}")
        return Capacities(parts)
    if isinstance(given, Sequence | np.ndarray) and np.ndim(given) and len(given):
        return Capacities(tuple((i, i, _speed(value, given)) for i, value in enumerate(given)))
    return Capacities(((0, None, _speed(given, given)),))


def write_capacity(given: Any) -> str:
    """The text for a capacity that may be given as a number or a sequence."""
    if isinstance(given, str):
        return given.strip()
    parts: list[tuple[int, int | None, float]] = []
    for first, last, value in parse_capacity(given).parts:
        if parts and parts[-1][2] == value:  # one more of a run
            first = parts.pop()[0]
        parts.append((first, last, value))
    return ",".join(
        plain(value) if last is None else f"{range_of(first, last)}:{plain(value)}" for first, last, value in parts
    )


def range_of(first: int, last: int) -> str:
    """What `name_range` reads."""
    return f"{first}" if first == last else f"{first}-{last}"


def plain(number: float) -> str:
    """All digits that the number needs, and no more."""
    return repr(float(number)).removesuffix(".0")


def _part(text: str, whole: str) -> tuple[int, int | None, float]:
    names, colon, value = text.rpartition(":")
    if not colon:
        return 0, None, _speed(value, whole)
    first, last = name_range(names.strip()) or (1, 0)
    if first > last:
        raise InputError(f"capacity: {CAPACITY_RULE}, not {whole!r}")
    return first, last, _speed(value, whole)


def name_range(text: str) -> tuple[int, int] | None:
    """``3`` as (3, 3), ``0-2`` as (0, 2); None where it is neither."""
    found = RANGE.fullmatch(text)
    return None if found is None else (int(found[1]), int(found[2] or found[1]))


def _speed(value: Any, whole: Any) -> float:
    number = to_number(value)
    if number is None or not is_number(number, SLOWEST, FASTEST):
        raise InputError(f"capacity: {CAPACITY_RULE}, not {whole!r}")
    return number


def to_number(value: Any) -> float | None:
    """`value`, a number or its text, as a float; None where it is neither."""
    if not isinstance(value, str):
        return float(value) if is_number(value, -np.inf, np.inf) else None
    try:
        return float(value)
    except ValueError:
        return None


@dataclass(frozen=True)
class Queues:
    """Gives each worker of a simulation a queue, which it executes in order of arrival.

    With neither `rate` nor `utilisation`, tuples arrive at the stream's own times; one that is late arrives at the
    latest time seen.

    Parameters
    ----------
    rate
        Tuples that arrive per second, evenly.
    utilisation
        The rate as a share of the total capacity of the workers that are there at the start; in the place of `rate`.
        Where tuples have costs, the work that comes per second as that share.
    capacity
        Tuples per second that a worker executes: one number for all workers; a sequence for worker 0, 1, ...; or a text
        such as ``"0-2:5, 7:3"``. Workers that are not named execute 1. Where tuples have costs, it is the cost that a
        worker executes per second: one of capacity 2 is twice as fast.
    bound
        The most tuples at a worker, the one in work included. The stream waits while the worker of its next tuple has
        so many, as engines do by backpressure. None for no bound.
    feedback_delay
        Seconds from the end of a window until sources hear what workers report of it.
    migration
        Seconds to send, or to receive, the state of one tuple where keys change their worker (scheme `partitioner`).
        The stream is suspended until the worker that has most to send and receive is done.

    Examples
    --------
    The processing time of FISH, section 6.1, with half of 16 workers twice as fast:

    >>> from unskew import make
    >>> from unskew.simulate import Queues, simulate
    >>> from unskew.streams import Zipf
    >>> queues = Queues(utilisation=1.0, capacity="0-7:2")
    >>> for result in simulate(Zipf(1.0, 1000, 24_000), [make("shuffle", 16), make("fish", 16)], queues=queues):
    ...     print(f"{result.scheme}: all done after {result.makespan:.0f} s, p99 latency {result.latency_p99:.0f} s")
    shuffle: all done after 1501 s, p99 latency 491 s
    fish: all done after 1004 s, p99 latency 5 s
    """

    rate: float | None = None
    utilisation: float | None = None
    capacity: Capacity = 1.0
    bound: int | None = None
    feedback_delay: float = 0.0
    migration: float = 0.0

    def __post_init__(self) -> None:
        if self.rate is not None and self.utilisation is not None:
            raise InputError(f"rate: give either rate or utilisation, not both {self.rate!r} and {self.utilisation!r}")
        if self.rate is not None:
            require_number("rate", self.rate, "tuples per second from 1e-09 to 1e+15", 1e-9, 1e15)
        if self.utilisation is not None:
            rule = "a share of the total capacity from 1e-06 to 1e+06"
            require_number("utilisation", self.utilisation, rule, 1e-6, 1e6)
        require_number("feedback_delay", self.feedback_delay, "seconds from 0 to 1e+12", 0, 1e12)
        require_number("migration", self.migration, "seconds from 0 to 1e+6", 0, 1e6)
        if self.bound is not None:
            require_integer("bound", self.bound, 1, what="None, or a whole number of tuples")
        parse_capacity(self.capacity)

    def capacities(self, names: int) -> npt.NDArray[np.float64]:
        """Of each of the workers named 0..names-1."""
        capacity = np.ones(names)
        parse_capacity(self.capacity).apply(capacity)
        return capacity

    def rate_for(
        self, workers: int, capacities: npt.NDArray[np.float64], mean_cost: float | None = None
    ) -> float | None:
        """Tuples per second, where the workers are 0..workers-1 at the start; None for the stream's own times."""
        if self.utilisation is None:
            return self.rate
        if mean_cost is not None and not mean_cost > 0:
            raise InputError(f"utilisation: needs tuples that cost something, not a mean cost of {mean_cost:g}")
        return self.utilisation * float(capacities[:workers].sum()) / (1.0 if mean_cost is None else mean_cost)
