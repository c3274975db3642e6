"""What happens to workers in the middle of a run: they join, leave, crash, and become faster or slower."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.checks import is_integer
from unskew.errors import InputError
from unskew.simulate.queues import (
    MOST_NAMES,
    Capacity,
    Queues,
    name_range,
    parse_capacity,
    plain,
    range_of,
    to_number,
    write_capacity,
)

WHAT = ("add", "remove", "crash", "capacity")
EVENT = re.compile(r"\s*t=(\S+)\s+(\w+)\s*(.*?)\s*", re.DOTALL)
MOST_TUPLES = 10**15
UNITS = {"k": 10**3, "M": 10**6, "G": 10**9}
RULE = (
    "must be 't=WHEN add', 't=WHEN remove 3', 't=WHEN crash 3,5-7' or 't=WHEN capacity 0-4:2', where WHEN is a number "
    "of tuples (such as 6M; k, M, G) or of seconds (such as 30s)"
)


@dataclass(frozen=True)
class Event:
    """What happens to workers at one moment of a simulation.

    An event that is due only after the last tuple has arrived does not take place.

    Parameters
    ----------
    what
        "add": `count` workers join, with the next free names; names are never used again. "remove": the `workers` get
        no more tuples, and finish what they have. "crash": the same, but what they have is lost, their state too.
        "capacity": workers become faster or slower.
    after
        The event takes place after so many tuples; or else
    time
        at this second of the stream's clock.
    workers
        The names of those that leave.
    count
        How many join.
    capacity
        Of workers by name, as in `Queues`; the others keep theirs.

    Examples
    --------
    >>> from unskew import make
    >>> from unskew.simulate import Event, simulate
    >>> from unskew.streams import Zipf
    >>> events = [Event("add", after=3000, count=2), Event("remove", time=6.0, workers=[0])]
    >>> print(*events, sep="; ")
    t=3000 add 2; t=6s remove 0
    >>> stream = Zipf(z=1.0, keys=1000, tuples=9000, rate=1000)
    >>> (result,) = simulate(stream, [make("shuffle", 3)], events=events)
    >>> result.load, result.members
    ([1600, 2350, 2350, 1350, 1350], [1, 2, 3, 4])
    """

    what: str
    after: int | None = None
    time: float | None = None
    workers: Sequence[int] = ()
    count: int = 1
    capacity: Capacity | None = None

    def __post_init__(self) -> None:
        if self.what not in WHAT:
            raise InputError(f"event: what happens must be one of {', '.join(WHAT)}, not {self.what!r}")
        if (self.after is None) == (self.time is None):
            raise InputError(f"event: needs either after or time, not {self.after!r} and {self.time!r}")
        if self.after is not None and not is_integer(self.after, 0, MOST_TUPLES):
            raise InputError(f"event: after must be a whole number from 0 to {MOST_TUPLES}, not {self.after!r}")
        moment = 0.0 if self.time is None else to_number(self.time)
        if moment is None or isinstance(self.time, str) or not abs(moment) <= 1e15:
            raise InputError(f"event: time must be a number of seconds, not {self.time!r}")
        try:
            object.__setattr__(self, "workers", tuple(self.workers))
        except TypeError:
            raise InputError(f"event: workers must be a list of numbers, not {self.workers!r:.80}") from None
        leaving = self.what in ("remove", "crash")
        if leaving != bool(len(self.workers)) or not all(is_integer(name, 0, MOST_NAMES) for name in self.workers):
            rule = "needs the numbers of workers" if leaving else "takes no workers"
            raise InputError(f"event: {self.what} {rule}, not {self.workers!r:.80}")
        if not is_integer(self.count, 1, MOST_NAMES):
            raise InputError(f"event: count must be an integer from 1 to {MOST_NAMES}, not {self.count!r}")
        if (self.capacity is not None) != (self.what == "capacity"):
            raise InputError(f"event: capacity is needed for 'capacity' and for nothing else, not for {self.what!r}")
        if self.capacity is not None:
            parse_capacity(self.capacity)

    def __str__(self) -> str:
        """As `parse_event` reads it."""
        when = f"t={self.after}" if self.time is None else f"t={plain(self.time)}s"
        if self.what == "add":
            return f"{when} add {self.count}"
        if self.what == "capacity":
            return f"{when} capacity {write_capacity(self.capacity)}"
        return f"{when} {self.what} {_ranges(self.workers)}"

    @property
    def brief(self) -> str:
        """The beginning of it in quotes, for errors."""
        text = str(self)
        return f"'{text}'" if len(text) <= 80 else f"'{text:.80}...'"


def parse_event(text: str) -> Event:
    """Read an `Event` from a text.

    Parameters
    ----------
    text
        Such as ``t=6M capacity 0-4:2``, ``t=3M add``, ``t=30s remove 3`` or ``t=3M crash 3,5-7``: after 6 or 3 million
        tuples, or at second 30 of the stream's clock.

    Examples
    --------
    >>> parse_event("t=3M crash 3,5-7").workers
    (3, 5, 6, 7)
    """
    found = EVENT.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[2] not in WHAT:
        raise InputError(f"event: {RULE}, not {text!r}")
    when, what, details = found.groups()
    moment = _moment(when, text)
    if what == "capacity":
        return Event(what, **moment, capacity=details)
    if what == "add":
        if details and not (details.isdecimal() and len(details) <= 9):
            raise InputError(f"event: {RULE}, not {text!r}")
        return Event(what, **moment, count=int(details or 1))
    return Event(what, **moment, workers=_names(details, text))


def _moment(when: str, text: str) -> dict[str, Any]:
    if when.endswith("s"):
        seconds = to_number(when[:-1])
        if seconds is not None:
            return {"time": seconds}
    unit = UNITS.get(when[-1], 1)
    number = to_number(when[:-1] if unit > 1 else when)
    if number is None or not (0 <= unit * number <= MOST_TUPLES and (unit * number).is_integer()):
        raise InputError(f"event: {RULE}, not {text!r}")
    return {"after": int(unit * number)}


def _names(details: str, text: str) -> tuple[int, ...]:
    names: list[int] = []
    for part in details.split(","):
        first, last = name_range(part.strip()) or (1, 0)
        if not first <= last < MOST_NAMES:
            raise InputError(f"event: {RULE}, not {text!r}")
        names += range(first, last + 1)
    return tuple(names)


def _ranges(names: Sequence[int]) -> str:
    """``3,5-7`` for 3, 5, 6, 7."""
    numbers = np.array(names, np.int64)
    starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
    runs = zip(numbers[starts].tolist(), numbers[np.append(starts[1:], len(numbers)) - 1].tolist(), strict=True)
    return ",".join(range_of(first, last) for first, last in runs)


def names_needed(workers: int, events: Sequence[Event], queues: Queues | None) -> int:
    """How many workers there are in all, those that join later included; InputError where events cannot be."""
    names = workers + sum(event.count for event in events if event.what == "add")
    if names > MOST_NAMES:
        raise InputError(f"event: there may be at most {MOST_NAMES:,} workers in all, not {names:,}")
    for event in events:
        if max(event.workers, default=0) >= names:
            raise InputError(
                f"event: {event.brief}: there is no worker {max(event.workers)}; workers are 0..{names - 1}"
            )
        if event.what == "capacity":
            if queues is None:
                raise InputError(f"event: {event.brief} needs queues: give a rate, a utilisation or capacities")
            parse_capacity(event.capacity).apply(np.ones(names))
    return names
