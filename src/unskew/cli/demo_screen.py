"""The demo in the terminal: workers while they work, and all groupings side by side at the end."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.bar import Bar
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from unskew.cli.demo_outcome import HEAVY, LABELS, ROWS_GO, Outcome, Told
from unskew.cli.output import console, notes

NARROWEST = 26  # columns of a panel: below it they stand one under the other
TALLEST = 16  # lines of bars while they run: more workers stand in several columns
WIDEST = 100

Show = Callable[[str, RenderableType | None], None]


@contextmanager
def progress() -> Iterator[Show]:
    """A function that says what is being done, perhaps with a picture of it. Elsewhere than in a terminal: lines."""
    said = ""
    if not notes.is_terminal:

        def print_once(step: str, picture: RenderableType | None) -> None:
            nonlocal said
            if step != said:
                notes.print(step, style="dim", soft_wrap=True)
            said = step

        yield print_once
        return
    spinner = Spinner("dots")
    with Live(console=notes, transient=True, refresh_per_second=5) as live:

        def draw(step: str, picture: RenderableType | None) -> None:
            nonlocal said
            if step != said:
                said = step
                spinner.update(text=step)
            live.update(Group(spinner, picture) if picture is not None else spinner)

        yield draw


def workers_at_work(load: Sequence[int], ended: Sequence[float], now: float, scale: float) -> RenderableType:
    """A bar for each worker, as long as its rows so far; green, with its time, when it is done."""
    height = min(TALLEST, len(load))
    columns = -(-len(load) // height)
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    for _ in range(columns):
        grid.add_column(justify="right", style="dim", width=2)
        grid.add_column(ratio=1)
        grid.add_column(justify="right", width=6)
    for line in range(height):
        cells: list[RenderableType] = []
        for worker in range(line, len(load), height):
            done = ended[worker] > 0
            cells += [
                str(worker),
                Bar(scale, 0, load[worker], color="green" if done else "yellow"),
                Text(f"{ended[worker]:.1f} s" if done else "", "green"),
            ]
        grid.add_row(*cells)
    at_work = sum(1 for end in ended if not end)
    title = f"{now:.0f} s, {at_work} of {len(load)} workers at work" if at_work else f"{now:.0f} s, merging"
    return Panel(grid, title=title, width=min(console.width, WIDEST))


def finished(outcomes: Sequence[Outcome]) -> str:
    """The groupings that have been measured, in one line."""
    return ", ".join(f"{o.label} {o.seconds:.1f} s" for o in outcomes)


def show(headers: list[str], rows: list[list[str]], outcomes: Sequence[Outcome], told: Told) -> None:
    """All that was measured."""
    console.print(f"\n{told.stream} {told.work}\n")
    longest = max(max(outcome.busy) for outcome in outcomes)
    across = max(1, min(len(outcomes), console.width // (NARROWEST + 1)))
    across -= len(outcomes) % across  # two and two rather than three and one
    width = min(WIDEST // 2, (console.width - across + 1) // across)
    console.print(Columns([_panel(outcome, longest, width) for outcome in outcomes], padding=(0, 1)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    for header in headers[1:]:
        table.add_column(header, justify="right", style="bold" if header == LABELS["fanout"] else "", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print()
    console.print(table)
    console.print(f"\n{told.finding}\n\n[green]✓[/green] {told.checked}\n\n[dim]{told.limits}[/dim]")


def _panel(outcome: Outcome, longest: float, width: int) -> Panel:
    """One grouping: a bar per worker, as long as it worked, all panels on the same scale."""
    bars = Table.grid(expand=True, padding=(0, 1, 0, 0))
    bars.add_column(justify="right", style="dim")
    bars.add_column(ratio=1)
    bars.add_column(justify="right")
    for worker, (load, seconds) in enumerate(zip(outcome.load, outcome.busy, strict=True)):
        heavy = load > HEAVY * outcome.mean
        bar = Bar(longest, 0, seconds, color="red" if heavy else "green")
        bars.add_row(str(worker), bar, Text(f"{seconds:.1f} s", "bold red" if heavy else "dim"))
    return Panel(
        bars,
        title=f"[bold]{outcome.label}: {outcome.seconds:.1f} s[/bold]",
        subtitle=f"[dim]{ROWS_GO[outcome.scheme]}[/dim]",
        width=width,
    )
