"""Writes what a rerun found: results as Parquet and CSV, claims as JSON and Markdown, pictures, and the page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from unskew.errors import InputError
from unskew.experiments.claims import Claim, tally
from unskew.experiments.evaluation import QUICK, Evaluation
from unskew.experiments.grid import Outcomes
from unskew.experiments.kept_passes import NAME as PASSES
from unskew.experiments.paper import Experiment, Paper, Part, Picture, Settings, Table
from unskew.page import Page
from unskew.writing import check_folder_of, whole_file


def results_in(folder: Path) -> list[str]:
    """The names of all that is in `folder`, but for the passes that are kept there."""
    return sorted(path.name for path in folder.iterdir() if path.name != PASSES) if folder.is_dir() else []


def check_folder(folder: Path, force: bool) -> None:
    """InputError where writing into `folder` cannot work or might overwrite something unasked."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"out: {str(folder)!r} is a file; name a folder")
    kept = results_in(folder)
    if kept and not force:
        names = ", ".join(kept[:5]) + (" ..." if len(kept) > 5 else "")
        raise InputError(f"out: {str(folder)!r} has files, all kept ({names}); add --force, or name another folder")
    check_folder_of("out", folder / "index.html" if folder.exists() else folder)


def write_report(
    folder: Path,
    paper: Paper,
    settings: Settings,
    experiments: Sequence[Experiment],
    outcomes: Outcomes,
    found: Evaluation,
) -> Path:
    """Write claims, pictures and the page into `folder`; returns the page."""
    with whole_file(folder / "claims.json") as file:
        file.write_text(found.to_json(indent=2) + "\n", encoding="utf-8")
    with whole_file(folder / "results.md") as file:
        file.write_text(found.markdown(), encoding="utf-8")
    page = Page(paper.title, f"The evaluation of {paper.reference}, rerun. {tally(found.claims)}.")
    page.add_text(*paper.introduction)
    if found.grid == QUICK:
        page.add_text("This was a quick run: fewer and shorter streams than in the paper.")
    page.add_heading("Published beside measured")
    page.add_table(
        ["verdict", "claim", "published", "measured"],
        [[claim.mark, claim.claim, claim.published, _both(claim)] for claim in found.claims],
    )
    for experiment in experiments:
        page.add_heading(experiment.title)
        for part in experiment.parts(outcomes.where(experiment=experiment.name), settings):
            _add(page, folder, part)
        verdicts = [[claim.id, claim.mark, claim.why] for claim in found.of(experiment.name)]
        page.add_table(["claim", "verdict", "why"], verdicts)
        page.add_text("Measure it again:")
        page.add_code(settings.command(experiment.name))
    page.write(folder / "index.html")
    return folder / "index.html"


def _both(claim: Claim) -> str:
    """What was measured, literally and under the claim's reading."""
    if not claim.reading:
        return claim.measured
    return f"{claim.measured} | read so: {claim.reading} | measured so: {claim.measured_so}"


def _add(page: Page, folder: Path, part: Part) -> None:
    if isinstance(part, Table):
        page.add_text(part.caption)
        page.add_table(part.headers, part.rows)
    elif isinstance(part, Picture):
        _save(part.figure, folder / f"{part.name}.svg")
        page.add_figure(part.figure, part.caption)
    else:
        page.add_text(part)


def _save(figure: Any, path: Path) -> None:
    """Write a picture whose bytes depend on nothing but what it shows, so that it can be committed."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "unskew"}), whole_file(path) as file:
        figure.savefig(file, metadata={"Date": None})


def write_results(folder: Path, outcomes: Outcomes) -> None:
    """Write results.parquet and results.csv, one row per outcome, and samples through time if there are any."""
    results = pa.Table.from_pylist([outcome.flat() for outcome in outcomes])
    folder.mkdir(exist_ok=True)
    _write_parquet(results, folder / "results.parquet")
    with whole_file(folder / "results.csv") as file:
        pa.csv.write_csv(results, file)
    samples = [
        {name: row[name] for name in ("experiment", "data", "scheme", "workers", "sources", "estimation", "params")}
        | sample._asdict()
        for outcome, row in ((outcome, outcome.flat()) for outcome in outcomes if outcome.job.samples > 1)
        for sample in outcome.result.samples
    ]
    if samples:
        _write_parquet(pa.Table.from_pylist(samples), folder / "samples.parquet")


def _write_parquet(table: pa.Table, path: Path) -> None:
    with whole_file(path) as file:
        pa.parquet.write_table(table, file, compression="zstd")
