"""`unskew reproduce`: a paper's evaluation again, published beside measured."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from unskew.cli.output import console, notes, progress_bar
from unskew.errors import InputError
from unskew.experiments.cg import PAPER as CG
from unskew.experiments.claims import BY_CONSTRUCTION, DIFFERS, NOT_TESTABLE, READING, REPRODUCED, Claim, tally
from unskew.experiments.deployments import PAPER as DEPLOYMENTS
from unskew.experiments.evaluation import evaluate
from unskew.experiments.fish import PAPER as FISH
from unskew.experiments.gedik import PAPER as GEDIK
from unskew.experiments.kept_passes import KeptPasses
from unskew.experiments.paper import Paper, Settings
from unskew.experiments.pkg import PAPER as PKG
from unskew.experiments.posg import PAPER as POSG
from unskew.experiments.report import check_folder, results_in, write_report, write_results
from unskew.page import fresh_path
from unskew.plots import new_figure

PAPERS: dict[str, Paper] = {paper.name: paper for paper in (PKG, FISH, CG, POSG, GEDIK, DEPLOYMENTS)}
DEFAULT_DATA = Path("../shared/data")
DATA_VARIABLE = "UNSKEW_DATA"
DATA_HELP = (
    "a folder with the real streams (see docs/papers/README.md); "
    f"default ${DATA_VARIABLE}, else {DEFAULT_DATA} if it is there"
)
STYLED = {
    REPRODUCED: f"[green]{REPRODUCED}[/green]",
    READING: f"[cyan]{READING}[/cyan]",
    DIFFERS: f"[red]{DIFFERS}[/red]",
    NOT_TESTABLE: f"[dim]{NOT_TESTABLE}[/dim]",
}


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"Which paper: {', '.join(PAPERS)} (all five on Spark).")],
    only: Annotated[list[str] | None, typer.Option(help="One table or figure, such as fig7; repeat for more.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller grid: two minutes, not half an hour.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for results, pictures and the page.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --out replace files in a folder that has some.")] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", envvar=DATA_VARIABLE, show_envvar=False, help=DATA_HELP)
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="The Spark master that runs the grid.", show_default="local[*]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the generated streams.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as one JSON object.")] = False,
) -> None:
    """Run a paper's evaluation again on Spark, and put published beside measured with a verdict for each claim.

    Example: [bold]unskew reproduce pkg --quick[/bold], or one figure: [bold]unskew reproduce pkg --only fig7[/bold]
    """
    if paper not in PAPERS:
        raise InputError(f"paper: {paper!r} is not known; allowed are {', '.join(PAPERS)}")
    chosen = PAPERS[paper].chosen(only or [])
    folder = out or fresh_path(Path("-".join(["unskew-reproduce", paper, *(only or [])])))
    check_folder(folder, force)
    streams = _data_folder(data)
    session = _session_on(PAPERS[paper], master)
    new_figure()  # if pictures cannot be drawn, this says so now rather than after the grid
    settings = Settings(paper, streams, quick, seed, _options(quick, streams, seed))
    grids = [(experiment, experiment.jobs(settings)) for experiment in chosen]
    jobs = [job for _, grid in grids for job in grid]
    kept = KeptPasses(folder, [job for experiment, grid in grids if not experiment.timed for job in grid], streams)
    with kept.open(), _saying_how_to_go_on(kept, folder):
        with session as spark, progress_bar(f"{PAPERS[paper].doing} ({len(jobs)} passes)", len(jobs)) as done:
            outcomes = PAPERS[paper].run(spark, jobs, done, kept)
        write_results(folder, outcomes)  # first of all: they are dear
        found = evaluate(PAPERS[paper], settings, chosen, outcomes)
        page = write_report(folder, PAPERS[paper], settings, chosen, outcomes, found)
        kept.remove()
    if as_json:
        print(found.to_json())
    else:
        _show(found.claims)
    notes.print(f"results, pictures and the page: {page}", soft_wrap=True)


@contextmanager
def _saying_how_to_go_on(kept: KeptPasses, folder: Path) -> Iterator[None]:
    """Where the grid ends early, say what is kept of it."""
    try:
        yield
    except BaseException:
        if kept.number:
            force = " --force" if results_in(folder) else ""
            again = f"passes kept: {kept.number}; the same command goes on from there with --out {folder}{force}"
            notes.print(escape(again), soft_wrap=True)
        raise


def _data_folder(named: Path | None) -> Path:
    """The folder of real streams. Only one that somebody named has to exist."""
    if named is not None and not named.is_dir():
        raise InputError(f"data: {str(named)!r} (from --data or ${DATA_VARIABLE}) is not a folder")
    return named or DEFAULT_DATA


def _options(quick: bool, data: Path, seed: int) -> str:
    """The options that change what is measured, to be typed again."""
    typed = [" --quick"] if quick else []
    typed += [f" --seed {seed}"] if seed else []
    typed += [f" --data '{data}'"] if data != DEFAULT_DATA else []
    return "".join(typed)


def _session_on(paper: Paper, master: str | None) -> AbstractContextManager[Any]:
    """The active session, or a new one that ends with the command."""
    try:
        from unskew.spark import session_on
    except ImportError:
        raise InputError("spark: pyspark is not installed; type: pip install 'unskew[spark]'") from None
    return session_on(master or paper.master, paper.settings)


def _show(claims: Sequence[Claim]) -> None:
    for claim in claims:
        mark = STYLED[claim.verdict] + (f" ({BY_CONSTRUCTION})" if claim.by_construction else "")
        console.print(f"[bold]{claim.id}[/bold]  {mark}  {escape(claim.claim)}", soft_wrap=True)
        console.print(f"    published: {escape(claim.published)}", soft_wrap=True)
        console.print(f"    measured:  {escape(claim.measured)}", soft_wrap=True)
        if claim.reading:
            console.print(f"    reading:   {escape(claim.reading)}", soft_wrap=True)
            console.print(f"    so:        {escape(claim.measured_so)}", soft_wrap=True)
    console.print(f"[bold]{tally(claims)}[/bold]")
