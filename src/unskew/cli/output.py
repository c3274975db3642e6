"""What all subcommands share: consoles, progress, JSON, bars."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from unskew.errors import InputError
from unskew.simulate.simulator import Progress as Report

console = Console(highlight=False)
notes = Console(stderr=True, highlight=False)

MOST_BARS = 64
EIGHTHS = " ▁▂▃▄▅▆▇█"
PLAIN_EIGHTHS = " .:-=+*%#"  # for a terminal that has ASCII only


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
    """A progress bar on standard error, gone when done; yields the function to report progress with."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, advance=done)


def group_size(values: int, width: int = MOST_BARS) -> int:
    """How many values share a bar of a sparkline."""
    return max(1, -(-values // width))


def sparkline(values: Sequence[float], highest: float, width: int = MOST_BARS) -> str:
    """The values as a row of small bars, at most `width` of them (then the highest of each group). 0 has no bar."""
    group = group_size(len(values), width)
    tops = [max(values[i : i + group]) for i in range(0, len(values), group)]
    bars = PLAIN_EIGHTHS if console.options.ascii_only else EIGHTHS
    return "".join(bars[max(1, round(8 * top / highest))] if top else bars[0] for top in tops)


def check_can_write(path: Path, force: bool) -> None:
    """InputError where writing `path` would overwrite something unasked, or cannot work."""
    if path.is_dir():
        raise InputError(f"out: {str(path)!r} is a folder; name a file")
    if path.exists() and not force:
        raise InputError(f"out: {str(path)!r} exists and was kept; add --force to replace it, or name another file")
    if not path.absolute().parent.is_dir():
        raise InputError(f"out: the folder {str(path.absolute().parent)!r} does not exist")
