"""What all subcommands share: consoles, progress, JSON, bars."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from unskew.simulate.simulator import Progress as Report

console = Console(highlight=False)
notes = Console(stderr=True, highlight=False)

MOST_BARS = 64
EIGHTHS = " ▁▂▃▄▅▆▇█"
PLAIN_EIGHTHS = " .:-=+*%#"  # for a terminal that has ASCII only
LINE_EVERY = 30.0  # seconds between two lines of progress where there is no terminal for a bar
UNITS = (("year", 365 * 86_400), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def print_json(value: Any) -> None:
    """One JSON document on one line of standard output, in ASCII: it can be printed wherever."""
    print(json.dumps(_without_infinity(value), allow_nan=False))


def _without_infinity(value: Any) -> Any:
    """JSON has no infinity and no NaN: they become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _without_infinity(each) for name, each in value.items()}
    return [_without_infinity(each) for each in value] if isinstance(value, list | tuple) else value


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Report]:
    """Show progress on standard error; yields the function to report it with.

    On a terminal that is a bar, gone when done. Elsewhere (a log, a pipe) it is a line now and then, so that nobody
    waits for years without knowing it.
    """
    if not notes.is_terminal:
        yield _ProgressLines(title, total).report
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, advance=done)


class _ProgressLines:
    """Progress as a line every `LINE_EVERY` seconds, none for what is done sooner."""

    def __init__(self, title: str, total: int | None) -> None:
        self._title, self._total, self._done = title, total, 0
        self._started = self._last = time.monotonic()

    def report(self, done: int) -> None:
        self._done += done
        now = time.monotonic()
        if now - self._last < LINE_EVERY or self._done == self._total:
            return
        self._last = now
        left = ""
        if self._total is not None and self._done:
            seconds = (now - self._started) * (self._total - self._done) / self._done
            left = f" of {self._total:,}, about {_duration(seconds)} left"
        notes.print(f"{self._title}: {self._done:,} done{left}", markup=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    """In the largest unit of which there are two or more, such as ``90 minutes``; from 1 second on."""
    name, length = next((unit for unit in UNITS if seconds >= 2 * unit[1]), UNITS[-1])
    number = max(1, round(seconds / length))
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def group_size(values: int, width: int = MOST_BARS) -> int:
    """How many values share a bar of a sparkline."""
    return max(1, -(-values // width))


def sparkline(values: Sequence[float], highest: float, width: int = MOST_BARS) -> str:
    """The values as a row of small bars, at most `width` of them (then the highest of each group). 0 has no bar."""
    group = group_size(len(values), width)
    tops = [max(values[i : i + group]) for i in range(0, len(values), group)]
    bars = PLAIN_EIGHTHS if console.options.ascii_only else EIGHTHS
    return "".join(bars[max(1, round(8 * top / highest))] if top else bars[0] for top in tops)
