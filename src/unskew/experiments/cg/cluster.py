"""Clusters of unequal machines in front of which a day of WP passes, and what is seen through that day.

A day has 22M tuples, one after the other at an even pace; a shorter stream has the same pace. All machines together
could execute 1/0.8 times as many ("each worker operates at 80 % of the capacity using shuffle grouping", section
VII-B). y of n machines are z times as strong as the others; the total is the same whatever y and z. The window t0
after which a worker may ask for more or less is a minute with 10 workers: section V-B has "on the order of minutes"
where workloads change by the hour. With n workers it is n/10 minutes, so that a worker always has as many tuples per
window to judge by.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from unskew import Hash, Shuffle
from unskew.experiments.cg.setup import EPSILON, KG, SG, WP, Kinds
from unskew.plots import COLOURS, new_figure
from unskew.schemes.cg import ConsistentGrouping
from unskew.simulate import Queues, Result
from unskew.streams import Stream

CG = "CG"
RATE = WP.tuples / WP.seconds  # tuples per second
TARGET = 0.8  # utilisation of all machines together
MINUTE, HOUR = 60.0, 3600.0
# Windows of 65,536 tuples, a bit over 4 minutes, in which chance evens out
WINDOW = 65_536
PER_MINUTE = 16_384  # tuples: about t0

# Rules that several claims share, fixed before the grid was run. A machine at 80 % has a headroom of 0.2: with an
# imbalance above that its queue grows without end, so that is high; half of it is what is called near zero.
HIGH_IMBALANCE = 1 - TARGET
NEAR_ZERO = HIGH_IMBALANCE / 2
QUICKLY = 0.5  # of the time until the next change: to have settled by then is to adapt efficiently
LOW = 0.01  # queues and latencies are low where they are at most this share of what they are compared with


class Machines(NamedTuple):
    """`strong` of the machines are `times` as strong as the others."""

    strong: int  # y
    times: float  # z

    def units(self, workers: int) -> float:
        """How many weak machines all together are worth."""
        return workers + self.strong * (self.times - 1)

    def capacity(self, workers: int, total: float = RATE / TARGET) -> str:
        """Of each machine, as `Queues` and events take it."""
        one = total / self.units(workers)
        return f"{one!r}" if not self.strong else f"{one!r}, 0-{self.strong - 1}:{one * self.times!r}"


ALL_ALIKE = Machines(0, 1.0)
UNEQUAL = Machines(3, 5.0)  # Figs. 10, 12 and 13


def queues_of(machines: Machines, workers: int, own_times: bool = False, delay: float = 0.0) -> Queues:
    """Tuples come at an even pace, or at the times of the stream."""
    rate = None if own_times else RATE
    return Queues(rate=rate, capacity=machines.capacity(workers), feedback_delay=delay)


def window_for(workers: int) -> float:
    """t0 in seconds."""
    return MINUTE * workers / 10


def grouping(workers: int, virtual: int = 10, **more: Any) -> ConsistentGrouping:
    """CG as the paper runs it."""
    options: dict[str, Any] = {"epsilon": EPSILON, "window": window_for(workers)} | more
    return ConsistentGrouping(workers, virtual, **options)


THREE: Kinds = {KG: Hash, SG: Shuffle, CG: grouping}


def samples_for(stream: Stream, window: int = WINDOW) -> int:
    """As many that windows are about as long as on WP, but at least 40."""
    return max(40, (stream.length or 0) // window)


class Window(NamedTuple):
    """A part of the day. Differences are between the workers with the most and the least, as the paper has it."""

    start: float  # seconds
    end: float
    queue: int  # difference at its end, tuples
    wait: float  # difference at its end, seconds that a tuple which comes then would spend
    spread: float  # difference of utilisation
    imbalance: float  # highest utilisation less the mean


def windows_of(result: Result) -> list[Window]:
    """All of the day but a rest that is too short to tell anything."""
    samples = result.queue_samples or []
    whole = samples[0].tuples if samples else 0
    found, before = [], (0, 0.0)
    for sample in samples:
        if sample.tuples - before[0] < whole:
            break
        found.append(
            Window(
                start=before[1],
                end=sample.time,
                queue=sample.longest_queue - sample.shortest_queue,
                wait=sample.longest_wait - sample.shortest_wait,
                spread=sample.recent_utilisation_max - sample.recent_utilisation_min,
                imbalance=sample.recent_utilisation_max - sample.recent_utilisation_mean,
            )
        )
        before = (sample.tuples, sample.time)
    return found


def between(windows: Sequence[Window], start: float, end: float) -> list[Window]:
    """Those that lie in that time altogether."""
    return [window for window in windows if window.start >= start and window.end <= end]


def settled(windows: Sequence[Window], start: float, end: float) -> float | None:
    """Seconds after `start` from which on the imbalance is near zero until `end`; None if it never is."""
    return _calm_from(between(windows, start, end), start, lambda window: window.imbalance <= NEAR_ZERO)


def is_quick(calm: float | None, phase: float) -> bool:
    """Whether what settled after `calm` seconds had at least half of a phase of `phase` seconds left."""
    return calm is not None and calm <= QUICKLY * phase


def drained(windows: Sequence[Window], start: float, end: float) -> float | None:
    """Seconds after `start` from which on no tuple waits a minute longer at one worker than at another."""
    return _calm_from(between(windows, start, end), start, lambda window: window.wait <= MINUTE)


def _calm_from(windows: Sequence[Window], start: float, calm: Callable[[Window], bool]) -> float | None:
    first = len(windows)
    while first and calm(windows[first - 1]):
        first -= 1
    return None if first == len(windows) else max(0.0, windows[first].start - start)


def worst(windows: Sequence[Window], quantity: Callable[[Window], float]) -> float:
    return max((quantity(window) for window in windows), default=0.0)


def grows(windows: Sequence[Window], quantity: Callable[[Window], float]) -> bool:
    """Whether it is larger at the end of each third of the day than at the end of the third before."""
    third = max(1, len(windows) // 3)
    ends = [quantity(windows[i * third - 1]) for i in (1, 2, 3) if i * third <= len(windows)]
    return len(ends) == 3 and ends[0] < ends[1] < ends[2]


def hours(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds / HOUR:.1f} h"


def through_the_day(results: Mapping[str, Result], changes: Sequence[float] = ()) -> Any:
    """Queue, latency and utilisation through the day; `changes` of the machines are drawn as lines, in seconds."""
    figure = new_figure(13, 4.0)
    panels: dict[str, Callable[[Window], float]] = {
        "queue length, max - min": lambda window: max(1.0, window.queue),
        "execution latency, max - min (s)": lambda window: max(0.01, window.wait),
        "utilisation, max - min": lambda window: window.spread,
    }
    axes = figure.subplots(1, len(panels))
    for axis, (label, quantity) in zip(axes, panels.items(), strict=True):
        for i, (name, result) in enumerate(results.items()):
            windows = windows_of(result)
            line = [quantity(window) for window in windows]
            axis.plot([w.end / HOUR for w in windows], line, label=name, color=COLOURS[i % len(COLOURS)], linewidth=1.4)
        for change in changes:
            axis.axvline(change / HOUR, color="grey", linestyle=":", linewidth=1)
        axis.set(xlabel="hours", ylabel=label)
        axis.grid(alpha=0.25)
    axes[0].set_yscale("log")
    axes[1].set_yscale("log")
    axes[2].set_ylim(0, None)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8), frameon=False)
    return figure
