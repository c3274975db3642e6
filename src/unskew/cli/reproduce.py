"""`unskew reproduce`: a paper's evaluation again, published beside measured."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from unskew.cli.output import console, notes, progress_bar
from unskew.errors import InputError
from unskew.experiments.claims import DIFFERS, NOT_TESTABLE, REPRODUCED, Claim
from unskew.experiments.grid import run_on_spark
from unskew.experiments.paper import Paper, Settings
from unskew.experiments.pkg import PAPER as PKG
from unskew.experiments.report import check_folder, claims_json, write_report, write_results

PAPERS: dict[str, Paper] = {PKG.name: PKG}
DEFAULT_DATA = Path("../shared/data")
DEFAULT_MASTER = "local[*]"
STYLED = {
    REPRODUCED: f"[green]{REPRODUCED}[/green]",
    DIFFERS: f"[red]{DIFFERS}[/red]",
    NOT_TESTABLE: f"[dim]{NOT_TESTABLE}[/dim]",
}


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"Which paper: {', '.join(PAPERS)}.")],
    only: Annotated[list[str] | None, typer.Option(help="One table or figure, such as fig7; repeat for more.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller grid: minutes, not an hour.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for results, pictures and the page.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --out replace files in a folder that has some.")] = False,
    data: Annotated[Path, typer.Option(help="Folder of real streams; absent ones are skipped.")] = DEFAULT_DATA,
    master: Annotated[str, typer.Option(help="The Spark master that runs the grid.")] = DEFAULT_MASTER,
    seed: Annotated[int, typer.Option(help="Seed of the generated streams.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as one JSON object.")] = False,
) -> None:
    """Run a paper's evaluation again on Spark, and put published beside measured with a verdict for each claim.

    Example: [bold]unskew reproduce pkg --quick[/bold], or one figure: [bold]unskew reproduce pkg --only fig7[/bold]
    """
    if paper not in PAPERS:
        raise InputError(f"paper: {paper!r} is not known; allowed are {', '.join(PAPERS)}")
    chosen = PAPERS[paper].chosen(only or [])
    folder = out or _free_folder("-".join(["unskew-reproduce", paper, *(only or [])]))
    check_folder(folder, force)
    settings = Settings(paper, data, quick, seed, _options(quick, data, seed))
    jobs = [job for experiment in chosen for job in experiment.jobs(settings)]
    with _spark(master) as spark, progress_bar(f"simulating ({len(jobs)} passes)", len(jobs)) as done:
        runs = run_on_spark(spark, jobs, done)
    write_results(folder, runs)  # first of all: they are dear
    claims = [
        claim for experiment in chosen for claim in experiment.judged(runs.where(experiment=experiment.name), settings)
    ]
    page = write_report(folder, PAPERS[paper], settings, chosen, runs, claims)
    if as_json:
        print(claims_json(PAPERS[paper], claims))
    else:
        _show(claims)
    notes.print(f"results, pictures and the page: {page}", soft_wrap=True)


def _free_folder(name: str) -> Path:
    """The folder `name` here, or the first of name-2, name-3, ... that does not exist: a default never overwrites."""
    names = (Path(name if number == 1 else f"{name}-{number}") for number in count(1))
    return next(path for path in names if not path.exists())


def _options(quick: bool, data: Path, seed: int) -> str:
    """The options that change what is measured, to be typed again."""
    typed = [" --quick"] if quick else []
    typed += [f" --seed {seed}"] if seed else []
    typed += [f" --data '{data}'"] if data != DEFAULT_DATA else []
    return "".join(typed)


@contextmanager
def _spark(master: str) -> Iterator[Any]:
    """The active session, or a new one that ends with the command."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError("spark: pyspark is not installed; type: pip install 'unskew[spark]'") from None
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
    elif master.startswith("local"):
        from unskew.spark.local import local_spark

        with (
            tempfile.TemporaryDirectory(prefix="unskew-") as folder,
            local_spark(Path(folder), {"spark.master": master}) as session,
        ):
            yield session
    else:
        session = SparkSession.builder.master(master).appName("unskew reproduce").getOrCreate()
        try:
            yield session
        finally:
            session.stop()


def _show(claims: list[Claim]) -> None:
    for claim in claims:
        console.print(f"[bold]{claim.id}[/bold]  {STYLED[claim.verdict]}  {escape(claim.claim)}", soft_wrap=True)
        console.print(f"    published: {escape(claim.published)}", soft_wrap=True)
        console.print(f"    measured:  {escape(claim.measured)}", soft_wrap=True)
    counts = (f"{sum(claim.verdict == verdict for claim in claims)} {verdict}" for verdict in STYLED)
    console.print(f"[bold]{len(claims)} claims[/bold]: {', '.join(counts)}")
