"""What happens between two tuples, in order of time, and where a chunk of tuples is cut for it."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from unskew.contract import Times


class Entry(Protocol):
    """One kind of thing that happens. All methods speak of the chunk that `begin` announced."""

    def begin(self, clock: Times, first: int) -> None:
        """A chunk is to come: `clock` is the latest time seen up to each tuple, `first` the number of the first one."""

    def due(self, place: int) -> float:
        """When it happens next, if that is before the tuple at `place`; else infinity."""

    def happen(self, place: int, undisturbed: float) -> None:
        """Let it happen; no other entry is due before `undisturbed`."""

    def cut(self, place: int) -> int:
        """The place of the first tuple, from `place` on, before which it happens next, or the chunk's length."""


class Agenda:
    """Entries; of those that are due at the same time, the one that stands first comes first."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._latest = -np.inf
        self.late = 0  # tuples with a time before an earlier one's

    @property
    def empty(self) -> bool:
        return not self._entries

    def clock(self, times: Times) -> Times:
        """The latest time seen up to each tuple."""
        clock = np.maximum.accumulate(times) if len(times) else times
        clock = np.maximum(clock, self._latest)
        self._latest = float(clock[-1]) if len(clock) else self._latest
        self.late += int(np.count_nonzero(times < clock))
        return clock

    def segments(self, clock: Times, first: int) -> Iterator[slice]:
        """The chunk in segments, between which everything happens when it is due."""
        if not self._entries:
            yield slice(0, len(clock))
            return
        for entry in self._entries:
            entry.begin(clock, first)
        place = 0
        while place < len(clock):
            self._catch_up(place)
            stop = min(entry.cut(place) for entry in self._entries)
            yield slice(place, stop)
            place = stop

    def _catch_up(self, place: int) -> None:
        while True:
            dues = [entry.due(place) for entry in self._entries]
            first = dues.index(min(dues))
            if dues.pop(first) == np.inf:
                return
            self._entries[first].happen(place, min(dues, default=np.inf))


class Periodic:
    """Happens whenever a multiple of `period` has been passed, first after the first tuple."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._ticks = np.zeros(0)
        self._tick = -np.inf  # periods from time 0 to the last time that it happened

    def begin(self, clock: Times, first: int) -> None:
        self._ticks = np.floor(clock / self._period)
        if self._tick == -np.inf and len(clock):
            self._tick = float(self._ticks[0])
            self.start(float(clock[0]))

    def start(self, time: float) -> None:
        """The first tuple comes."""

    def due(self, place: int) -> float:
        return (self._tick + 1) * self._period if self._ticks[place] > self._tick else np.inf

    def happen(self, place: int, undisturbed: float) -> None:
        raise NotImplementedError

    def cut(self, place: int) -> int:
        return int(np.searchsorted(self._ticks, self._tick, side="right"))


class Probe(Periodic):
    """However many periods have passed, one probe right before the next tuple makes up for all of them."""

    def __init__(self, period: float, probe: Callable[[], None]) -> None:
        super().__init__(period)
        self._probe, self._clock = probe, np.zeros(0)

    def begin(self, clock: Times, first: int) -> None:
        super().begin(clock, first)
        self._clock = clock

    def due(self, place: int) -> float:
        return float(self._clock[place]) if self._ticks[place] > self._tick else np.inf

    def happen(self, place: int, undisturbed: float) -> None:
        self._tick = float(self._ticks[place])
        self._probe()


class Numbered:
    """Actions, each after a number of tuples; in the order given where numbers are equal."""

    def __init__(self, actions: Sequence[tuple[int, Callable[[float], None]]]) -> None:
        self._actions = sorted(actions, key=lambda action: action[0])
        self._clock, self._first = np.zeros(0), 0

    def begin(self, clock: Times, first: int) -> None:
        self._clock, self._first = clock, first

    def due(self, place: int) -> float:
        return float(self._clock[place]) if self.cut(place) <= place else np.inf

    def happen(self, place: int, undisturbed: float) -> None:
        self._actions.pop(0)[1](float(self._clock[place]))

    def cut(self, place: int) -> int:
        return min(len(self._clock), self._actions[0][0] - self._first) if self._actions else len(self._clock)


class Timed:
    """Actions, each at a moment of the stream's clock; in the order given where moments are equal."""

    def __init__(self, actions: Sequence[tuple[float, Callable[[float], None]]] = ()) -> None:
        self._actions = deque(sorted(actions, key=lambda action: action[0]))
        self._clock = np.zeros(0)

    def add(self, time: float, action: Callable[[float], None]) -> None:
        """One more, at a time that is no earlier than those known."""
        self._actions.append((time, action))

    def begin(self, clock: Times, first: int) -> None:
        self._clock = clock

    def due(self, place: int) -> float:
        return self._actions[0][0] if self._actions and self._actions[0][0] <= self._clock[place] else np.inf

    def happen(self, place: int, undisturbed: float) -> None:
        time, action = self._actions.popleft()
        action(time)

    def cut(self, place: int) -> int:
        if not self._actions:
            return len(self._clock)
        return int(np.searchsorted(self._clock, self._actions[0][0], side="left"))
