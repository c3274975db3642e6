"""What happens between two tuples, in order of time: worker reports, events and probes.

The *stream's clock* shows the latest time seen. Positions are those of tuples within a chunk.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from unskew.contract import Times


class Clock:
    """The latest time seen: a tuple with a time before an earlier one's counts as of that one's time."""

    def __init__(self) -> None:
        self._latest = -np.inf
        self.late = 0  # such tuples so far

    def follow(self, times: Times) -> Times:
        """Take in the times of the next tuples; returns what the clock shows at each."""
        if not len(times):
            return times
        in_order = times[0] >= self._latest and bool((times[1:] >= times[:-1]).all())  # as they mostly are
        shown = times if in_order else np.maximum(np.maximum.accumulate(times), self._latest)
        self._latest = float(shown[-1])
        self.late += int(np.count_nonzero(times < shown))
        return shown


class Item(Protocol):
    """One kind of thing that happens, once or again and again. `begin` announces the chunk that the others speak of."""

    def begin(self, clock: Times, first: int) -> None:
        """A chunk comes: `clock` is what the clock shows at each tuple, `first` the number of its first tuple."""

    def due(self, position: int) -> float:
        """When it happens next, if that is before the tuple at `position`; else infinity."""

    def happen(self, position: int, undisturbed: float) -> None:
        """Let it happen, before the tuple at `position`. No other item is due before the moment `undisturbed`."""

    def next_cut(self, position: int) -> int:
        """The position of the first tuple, from `position` on, before which it happens; or the chunk's length."""


class Agenda:
    """Items; of those that are due at the same moment, the one that stands first comes first."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._length = 0  # of the chunk

    def begin(self, clock: Times, first: int) -> None:
        """A chunk comes: `clock` is what the clock shows at each tuple, `first` the number of its first tuple."""
        self._length = len(clock)
        for item in self._items:
            item.begin(clock, first)

    def let_happen(self, position: int) -> None:
        """Let everything happen that is due before the tuple at `position`."""
        while self._items:
            dues = [item.due(position) for item in self._items]
            first = dues.index(min(dues))
            if dues.pop(first) == np.inf:
                return
            self._items[first].happen(position, min(dues, default=np.inf))

    def next_cut(self, position: int) -> int:
        """Up to which position nothing is due once `let_happen` has been called for `position`."""
        return min((item.next_cut(position) for item in self._items), default=self._length)


class Periodic:
    """An item that happens whenever the clock passes a multiple of `period`, first after the first tuple."""

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

    def due(self, position: int) -> float:
        return (self._tick + 1) * self._period if self._ticks[position] > self._tick else np.inf

    def happen(self, position: int, undisturbed: float) -> None:
        raise NotImplementedError

    def next_cut(self, position: int) -> int:
        return int(np.searchsorted(self._ticks, self._tick, side="right"))


class Probe(Periodic):
    """However many periods have passed, one probe right before the next tuple makes up for all of them."""

    def __init__(self, period: float, probe: Callable[[], None]) -> None:
        super().__init__(period)
        self._probe, self._clock = probe, np.zeros(0)

    def begin(self, clock: Times, first: int) -> None:
        super().begin(clock, first)
        self._clock = clock

    def due(self, position: int) -> float:
        return float(self._clock[position]) if self._ticks[position] > self._tick else np.inf

    def happen(self, position: int, undisturbed: float) -> None:
        self._tick = float(self._ticks[position])
        self._probe()


class Numbered:
    """Actions, each after a number of tuples; in the order given where numbers are equal."""

    def __init__(self, actions: Sequence[tuple[int, Callable[[float], None]]]) -> None:
        self._actions = deque(sorted(actions, key=lambda action: action[0]))
        self._clock, self._first = np.zeros(0), 0

    def begin(self, clock: Times, first: int) -> None:
        self._clock, self._first = clock, first

    def due(self, position: int) -> float:
        return float(self._clock[position]) if self.next_cut(position) <= position else np.inf

    def happen(self, position: int, undisturbed: float) -> None:
        _, action = self._actions.popleft()
        action(float(self._clock[position]))

    def next_cut(self, position: int) -> int:
        return min(len(self._clock), self._actions[0][0] - self._first) if self._actions else len(self._clock)


class EveryTuples:
    """One action, again and again after so many tuples."""

    def __init__(self, every: int, action: Callable[[float], None]) -> None:
        self._every, self._action = every, action
        self._next = every  # tuples after which it is due
        self._clock, self._first = np.zeros(0), 0

    def begin(self, clock: Times, first: int) -> None:
        self._clock, self._first = clock, first

    def due(self, position: int) -> float:
        return float(self._clock[position]) if self._first + position >= self._next else np.inf

    def happen(self, position: int, undisturbed: float) -> None:
        self._next += self._every
        self._action(float(self._clock[position]))

    def next_cut(self, position: int) -> int:
        return min(len(self._clock), self._next - self._first)


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

    def due(self, position: int) -> float:
        return self._actions[0][0] if self._actions and self._actions[0][0] <= self._clock[position] else np.inf

    def happen(self, position: int, undisturbed: float) -> None:
        time, action = self._actions.popleft()
        action(time)

    def next_cut(self, position: int) -> int:
        if not self._actions:
            return len(self._clock)
        return int(np.searchsorted(self._clock, self._actions[0][0], side="left"))
