"""Times cases side by side: interleaved, after a warm-up, several rounds. Ratios within one run are what counts."""

import statistics
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

console = Console(highlight=False, width=110)

Case = Callable[[], object]


def interleaved(cases: dict[str, Case], rounds: int = 5) -> dict[str, list[float]]:
    """Seconds of each case in each round; every round runs all cases once, so that noise hits all alike."""
    for case in cases.values():
        case()
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            started = time.perf_counter()
            case()
            seconds[name].append(time.perf_counter() - started)
    return seconds


def show(title: str, seconds: dict[str, list[float]], tuples: int, baseline: str) -> None:
    """Median rate, ratio to the baseline's median time, and the raw times."""
    table = Table(
        "case", "M tuples/s", "ns/tuple", f"time / {baseline}", "raw seconds", title=title, title_justify="left"
    )
    for column in table.columns[1:4]:
        column.justify = "right"
    base = statistics.median(seconds[baseline])
    for name, times in seconds.items():
        median = statistics.median(times)
        raw = " ".join(f"{t:.3f}" for t in times)
        table.add_row(name, f"{tuples / median / 1e6:.1f}", f"{median / tuples * 1e9:.1f}", f"{median / base:.2f}", raw)
    console.print(table)
