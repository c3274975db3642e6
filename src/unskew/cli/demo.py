"""`unskew demo`: a skewed word stream on a local Spark, grouped by hash, round robin and PKG, side by side."""

import importlib.util
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.bar import Bar
from rich.columns import Columns
from rich.panel import Panel
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from unskew.checks import require_integer
from unskew.cli.demo_page import HEAVY, demo_page
from unskew.cli.demo_words import FILES, Words, write_words
from unskew.cli.output import console, notes, print_json
from unskew.errors import InputError
from unskew.page import fresh_path

GROUPINGS = {"hash": "plain hash", "shuffle": "round robin", "pkg": "PKG"}
ROWS_GO = {"hash": "by word", "shuffle": "in turns", "pkg": "by word and salt"}
WARM_UP = 20_000  # rows
NARROWEST = 26  # columns of a panel: below it they stand one under the other
EXAMPLE = """from unskew.spark import SALT, salted

routed = salted(df, "word", workers={w}, scheme="pkg", mode="online").repartition({w}, "word", SALT)
partial = routed.mapInArrow(work_on_a_whole_partition, "word string, count bigint")
result = partial.groupBy("word").agg(F.sum("count"))"""


def demo(
    tuples: Annotated[int, typer.Option(help="Words in the stream, 20,000 to 100,000,000.")] = 1_500_000,
    workers: Annotated[int, typer.Option(help="Workers W, 2 to 64.")] = 16,
    seed: Annotated[int, typer.Option(help="Another seed, another stream.")] = 0,
    out: Annotated[Path, typer.Option(help="The page to write; a name that is taken gets a number.")] = Path(
        "unskew-demo.html"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object instead of bars.")] = False,
) -> None:
    """See a skewed stream overload one worker, and what unskew does about it. Takes under a minute.

    A local Spark counts a stream of trending words three times, over the same workers, and gets the same counts:

    [bold]plain hash[/bold]: all of a word on one worker. The worker with the hot word does the work of two.
    [bold]round robin[/bold]: every worker gets the same, but each word's count is then spread over all of them.
    [bold]PKG[/bold]: a word is on at most two workers, and each row goes to the one that got less so far.

    For each it shows the load of every worker, how many (worker, word) pairs hold a part of a count, and the rows a
    second on this machine. Then it writes a page with the pictures.

    Example: [bold]unskew demo --workers 8 --out eight-workers.html[/bold]
    """
    require_integer("tuples", tuples, WARM_UP, 100_000_000)
    require_integer("workers", workers, 2, 64)
    require_integer("seed", seed, 0, 2**63 - 1)
    for package, extra in (("pyspark", "spark"), ("pandas", "spark"), ("matplotlib", "plots")):
        if importlib.util.find_spec(package) is None:
            raise InputError(f"demo: {package} is not installed; type: pip install 'unskew[{extra}]'")
    if not out.absolute().parent.is_dir():
        raise InputError(f"out: the folder {str(out.absolute().parent)!r} does not exist")

    words, outcomes = _run(tuples, workers, seed)
    page = fresh_path(out)
    headers, rows = _summary(outcomes)
    said = _explanation(tuples, workers, words, outcomes)
    demo_page(headers, rows, outcomes, words.shares, said, EXAMPLE.format(w=workers)).write(page)
    if as_json:
        result = {"tuples": tuples, "words": len(words.counts), "workers": workers, "seed": seed}
        print_json(result | {"schemes": outcomes, "results_equal": True, "page": str(page)})
    else:
        _show(headers, rows, outcomes, said)
        why = "" if page == out else f" ({out.name} exists and was kept)"
        console.print(f"\nThe pictures: [bold]{page}[/bold]{why}", soft_wrap=True)


def _run(tuples: int, workers: int, seed: int) -> tuple[Words, list[dict[str, Any]]]:
    """Make the stream, count it in each way on a local Spark, and check that the counts are the same."""
    from unskew.spark import count_words, local_spark

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="unskew-demo-") as folder,
        Progress(*columns, console=notes, transient=True) as progress,
    ):
        task = progress.add_task("", total=3 + len(GROUPINGS))

        def now(step: str) -> None:
            progress.update(task, description=f"{step:<48}", completed=next(steps))

        steps = iter(range(99))
        now("starting a local Spark")
        with local_spark(Path(folder), {"spark.sql.shuffle.partitions": str(FILES)}) as spark:
            now(f"writing {tuples:,} words as Parquet")
            words = write_words(Path(folder), tuples, seed)
            df = spark.read.parquet(f"{folder}/*.parquet")
            now("warming up, so that the first is not the slowest")
            for scheme in GROUPINGS:  # each of them: else the first to be timed pays for the JVM's compiler
                count_words(df.limit(WARM_UP), scheme, workers)
            outcomes = []
            for scheme, label in GROUPINGS.items():
                now(f"counting by {label} over {workers} workers")
                counted = count_words(df, scheme, workers)
                if counted.words != words.counts:
                    raise RuntimeError(f"{label}: the counts differ from the stream's; please report this")
                outcomes.append(
                    {
                        "scheme": scheme,
                        "label": label,
                        "load": counted.load,
                        "max_over_mean": max(counted.load) * workers / tuples,
                        "replicas": counted.replicas,
                        "seconds": round(counted.seconds, 3),
                        "rows_per_second": round(tuples / counted.seconds),
                    }
                )
    return words, outcomes


def _summary(outcomes: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The table of the terminal and the page: one column a grouping."""
    rows = [
        ["busiest worker / fair share", *(f"{o['max_over_mean']:.2f}x" for o in outcomes)],
        ["replicas (worker, word)", *(f"{o['replicas']:,}" for o in outcomes)],
        [
            f"time at 1 ms a row, {len(outcomes[0]['load'])} machines",
            *(_duration(max(o["load"]) / 1000) for o in outcomes),
        ],
        ["rows a second, this machine", *(f"{o['rows_per_second']:,}" for o in outcomes)],
    ]
    return ["", *(o["label"] for o in outcomes)], rows


def _explanation(tuples: int, workers: int, words: Words, outcomes: Sequence[dict[str, Any]]) -> list[str]:
    by_hash, robin, pkg = outcomes
    distinct = len(words.counts)
    useful = workers / by_hash["max_over_mean"]
    even = "as even" if pkg["max_over_mean"] < 1.05 else "nearly as even"
    return [
        f"{tuples:,} words, {distinct:,} different ones, counted over {workers} workers. At its peak one word is "
        f"{words.shares.max():.0%} of the stream, and which word that is changes.",
        f"By plain hash the busiest worker gets {by_hash['max_over_mean']:.1f} times its fair share, and all wait for "
        f"it: {workers} workers do the work of {useful:.1f}. Round robin is even, but keeps the count of a word in "
        f"{robin['replicas'] / distinct:.1f} places on average. PKG is {even}, with {pkg['replicas'] / distinct:.1f}: "
        f"it gives a word two workers, which is enough while no word has more than 2/{workers} of the stream.",
        "All three gave the same counts, and they are the stream's own: checked word by word.",
        "For a plain count you need none of this: Spark's groupBy().count() adds up before the shuffle and is faster "
        "than all three. This is what happens to work that cannot be added up first: expensive Python for each row, "
        "models or big state for each key, stateful streaming.",
        f"The rows a second are of this machine's {os.cpu_count()} cores, on which the {workers} workers take turns. "
        f"The time at 1 ms a row is computed, not measured: the busiest worker's rows, all {workers} side by side.",
    ]


def _show(headers: list[str], rows: list[list[str]], outcomes: Sequence[dict[str, Any]], said: Sequence[str]) -> None:
    console.print(f"\n{said[0]}\n")
    most = max(max(outcome["load"]) for outcome in outcomes)
    width = max(NARROWEST, (console.width - len(outcomes) + 1) // len(outcomes))
    console.print(Columns([_bars(outcome, most, width) for outcome in outcomes], padding=(0, 1)))
    table = Table(box=None, expand=True, pad_edge=False)
    table.add_column("")
    for header in headers[1:]:
        table.add_column(header, justify="right", style="bold" if header == "PKG" else "")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"\n{said[1]}\n\n[green]✓[/green] {said[2]}\n\n[dim]{said[3]} {said[4]}[/dim]")


def _bars(outcome: dict[str, Any], most: int, width: int) -> Panel:
    """One grouping's panel: a bar a worker, all panels on the same scale."""
    mean = sum(outcome["load"]) / len(outcome["load"])
    bars = Table.grid(expand=True, padding=(0, 1, 0, 0))
    bars.add_column(justify="right", style="dim")
    bars.add_column(ratio=1)
    bars.add_column(justify="right")
    for worker, load in enumerate(outcome["load"]):
        heavy = load > HEAVY * mean
        style = "red" if heavy else "green"
        bars.add_row(
            str(worker), Bar(most, 0, load, color=style), Text(f"{load / mean:.1f}x", "bold red" if heavy else "dim")
        )
    return Panel(
        bars, title=f"[bold]{outcome['label']}[/bold]", subtitle=f"[dim]{ROWS_GO[outcome['scheme']]}[/dim]", width=width
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
