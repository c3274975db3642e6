"""`unskew demo`: a skewed stream of words on a local Spark, grouped in four ways, with time measured."""

import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.checks import is_number, require_integer
from unskew.cli.demo_outcome import LABELS, Outcome, summary, tell
from unskew.cli.demo_screen import finished, progress, show, workers_at_work
from unskew.cli.demo_words import FILES, Words, write_words
from unskew.cli.output import console, print_json
from unskew.errors import InputError
from unskew.page import check_page, fresh_path
from unskew.writing import check_can_write

if TYPE_CHECKING:
    from unskew.spark import Timesheet

LEAST_TUPLES = 20_000
LOOK = 0.2  # seconds between two looks at the workers


def demo(
    tuples: Annotated[int, typer.Option(help="Words in the stream, 20,000 to 100,000,000.")] = 120_000,
    workers: Annotated[int, typer.Option(help="Workers W, 2 to 64.")] = 16,
    row_cost: Annotated[float, typer.Option(help="Seconds that each row takes, up to 1.")] = 0.0004,
    seed: Annotated[int, typer.Option(help="Another seed, another stream.")] = 0,
    out: Annotated[Path, typer.Option(help="The page to write (.html); a name that is taken gets a number.")] = Path(
        "unskew-demo.html"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object instead of bars.")] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="A stream instead, in eight micro-batches, whose hot words change.")
    ] = False,
) -> None:
    """See a job wait for one overloaded worker, and what unskew does about it. Takes about a minute.

    A local Spark works through the same skewed stream of words four times. Every row takes a little time,
    which the worker spends asleep, so that 16 workers run side by side on any machine. Watch who finishes when:

    [bold]plain hash[/bold]: all rows of a word on one worker, Spark's own repartition. The job waits for the hot word.
    [bold]round robin[/bold]: every worker gets the same, but each word's count is then spread over many of them.
    [bold]PKG[/bold]: each word on one or two workers. Enough for 8 workers with this stream, not for 16.
    [bold]unskew[/bold]: its default scheme, fanout. Hot words are counted first, and get just enough workers.

    All four must give the same counts. Then a page with the pictures is written.

    With [bold]--stream[/bold]: a drifting stream, hash beside a plan that adapts from one micro-batch to the next.

    Example: [bold]unskew demo --workers 8 --out eight-workers.html[/bold]
    """
    require_integer("tuples", tuples, LEAST_TUPLES, 100_000_000)
    require_integer("workers", workers, 2, 64)
    require_integer("seed", seed, 0, 2**63 - 1)
    if not is_number(row_cost, 0.0, 1.0) or row_cost == 0:
        raise InputError(f"row-cost: must be seconds per row above 0 and up to 1, not {row_cost:g}")
    check_page("out", out)
    check_can_write("out", fresh_path(out), force=False)
    for package, extra in (("pyspark", "spark"), ("pandas", "spark"), ("matplotlib", "plots")):
        if importlib.util.find_spec(package) is None:
            raise InputError(f"demo: {package} is not installed; type: pip install 'unskew[{extra}]'")

    if stream:
        from unskew.cli.demo_stream import demo_stream

        demo_stream(tuples, workers, row_cost, seed, out, as_json)
        return
    words, outcomes = _run(tuples, workers, row_cost, seed)
    from unskew.cli.demo_page import demo_page  # matplotlib takes a while

    headers, rows = summary(outcomes)
    told = tell(outcomes, words, row_cost)
    page = fresh_path(out)
    demo_page(headers, rows, outcomes, told).write(page)
    if as_json:
        settings = {"tuples": tuples, "workers": workers, "row_cost": row_cost, "seed": seed}
        found = {"words": len(words.counts), "p1": words.hottest, "schemes": [o.to_dict() for o in outcomes]}
        print_json(settings | found | {"results_equal": True, "page": str(page)})
    else:
        show(headers, rows, outcomes, told)
        why = "" if page == out else f" ({out.name} exists and was kept)"
        console.print(f"\nThe pictures: [bold]{page}[/bold]{why}", soft_wrap=True)


def _run(tuples: int, workers: int, row_cost: float, seed: int) -> tuple[Words, list[Outcome]]:
    """Make the stream, count it in each way on a local Spark, and check that the counts are the stream's."""
    from unskew.spark import QUICK_START, local_spark, require_java

    require_java()
    settings = QUICK_START | {
        "spark.master": f"local[{workers}]",  # as many workers at once as there are, however few the cores
        "spark.sql.shuffle.partitions": str(FILES),
    }
    with tempfile.TemporaryDirectory(prefix="unskew-demo-") as folder, progress() as say:
        say("starting a local Spark", None)
        with local_spark(Path(folder), settings) as spark:
            say(f"writing {tuples:,} words as Parquet", None)
            words = write_words(Path(folder), tuples, seed)
            df = spark.read.parquet(f"{folder}/*.parquet")
            few = df.sample(LEAST_TUPLES / tuples, seed=0)
            longest_bar = float(words.hashed(workers).max())
            for scheme in LABELS:  # each of them: else the first to be timed pays for the JVM's compiler
                say("warming up, so that the first is not the slowest", None)
                _count(few, scheme, workers, 0.0, Path(folder, f"warm-up-{scheme}"))
            outcomes: list[Outcome] = []
            for scheme, label in LABELS.items():
                before = f"   (so far: {finished(outcomes)})" if outcomes else ""
                step = f"{label} over {workers} workers{before}"

                def watch(sheet: "Timesheet", step: str = step) -> None:
                    say(step, workers_at_work(sheet.load, sheet.ended, sheet.age, longest_bar))

                counted, outcome = _count(df, scheme, workers, row_cost, Path(folder, scheme), watch)
                if not words.are(counted):
                    raise RuntimeError(f"{label}: the counts differ from the stream's; please report this")
                outcomes.append(outcome)
    return words, outcomes


def _count(
    df: Any,
    scheme: str,
    workers: int,
    row_cost: float,
    path: Path,
    watch: Callable[["Timesheet"], None] = lambda sheet: None,
) -> tuple[dict[str, int], Outcome]:
    """Count the words, and measure it. `watch` sees the timesheet, a file at `path`, meanwhile."""
    from unskew.spark import Timesheet, count_words, run_watched

    sheet = Timesheet(path, workers)
    done = run_watched(lambda: count_words(df, scheme, row_cost, sheet), lambda: watch(sheet), LOOK)
    times = (sheet.load, sheet.started, sheet.ended)
    return done.words, Outcome(scheme, *times, done.replicas, done.planning, done.seconds)
