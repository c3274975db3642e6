"""Writes what a rerun found: results as Parquet and CSV, claims as JSON and Markdown, pictures, and the page."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from unskew.errors import InputError
from unskew.experiments.claims import MARKS, tally
from unskew.experiments.evaluation import QUICK, Evaluation
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Paper, Part, Picture, Settings, Table
from unskew.page import Page


def check_folder(folder: Path, force: bool) -> None:
    """InputError where writing into `folder` might overwrite something unasked."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"out: {str(folder)!r} is a file; name a folder")
    kept = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if kept and not force:
        names = ", ".join(kept[:5]) + (" ..." if len(kept) > 5 else "")
        raise InputError(f"out: {str(folder)!r} has files, all kept ({names}); add --force, or name another folder")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"out: the folder {str(folder.absolute().parent)!r} does not exist")


def make_folder(folder: Path) -> None:
    """Make `folder` unless it is there, and see that it can be written to."""
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"out: {str(folder)!r} cannot be written to: {error.strerror}") from None


def write_report(
    folder: Path,
    paper: Paper,
    settings: Settings,
    experiments: Sequence[Experiment],
    outcomes: Outcomes,
    found: Evaluation,
) -> Path:
    """Write claims, pictures and the page into `folder`; returns the page."""
    (folder / "claims.json").write_text(found.to_json(indent=2) + "\n", encoding="utf-8")
    (folder / "results.md").write_text(found.markdown(), encoding="utf-8")
    page = Page(paper.title, f"The evaluation of {paper.reference}, rerun. {tally(found.claims)}.")
    page.text(*paper.introduction)
    if found.grid == QUICK:
        page.text("This was a quick run: fewer and shorter streams than in the paper.")
    page.heading("Published beside measured")
    page.table(
        ["verdict", "claim", "published", "measured"],
        [[MARKS[claim.verdict], claim.claim, claim.published, claim.measured] for claim in found.claims],
    )
    for experiment in experiments:
        page.heading(experiment.title)
        for part in experiment.parts(outcomes.where(experiment=experiment.name), settings):
            _add(page, folder, part)
        verdicts = [[claim.id, MARKS[claim.verdict], claim.why] for claim in found.of(experiment.name)]
        page.table(["claim", "verdict", "why"], verdicts)
        page.text("Measure it again:")
        page.code(settings.command(experiment.name))
    page.write(folder / "index.html")
    return folder / "index.html"


def _add(page: Page, folder: Path, part: Part) -> None:
    if isinstance(part, Table):
        page.text(part.caption)
        page.table(part.headers, part.rows)
    elif isinstance(part, Picture):
        _save(part.figure, folder / f"{part.name}.svg")
        page.figure(part.figure, part.caption)
    else:
        page.text(part)


def _save(figure: Any, path: Path) -> None:
    """Write a picture whose bytes depend on nothing but what it shows, so that it can be committed."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "unskew"}):
        figure.savefig(path, metadata={"Date": None})


def write_results(folder: Path, outcomes: Outcomes) -> None:
    """Write results.parquet and results.csv, one row per outcome, and samples through time if there are any."""
    results = pa.Table.from_pylist([outcome.flat() for outcome in outcomes])
    pa.parquet.write_table(results, folder / "results.parquet", compression="zstd")
    pa.csv.write_csv(results, folder / "results.csv")
    samples = [
        {name: row[name] for name in ("experiment", "data", "scheme", "workers", "sources", "estimation", "params")}
        | sample._asdict()
        for outcome, row in ((outcome, outcome.flat()) for outcome in outcomes if outcome.job.samples > 1)
        for sample in outcome.result.samples
    ]
    if samples:
        pa.parquet.write_table(pa.Table.from_pylist(samples), folder / "samples.parquet", compression="zstd")
