"""Writes what an experiment found: results as Parquet and CSV, claims as JSON, pictures, and the page."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from unskew.errors import InputError
from unskew.experiments.claims import DIFFERS, NOT_TESTABLE, REPRODUCED, Claim
from unskew.experiments.grid import Runs
from unskew.experiments.paper import Experiment, Paper, Part, Picture, Settings, Table
from unskew.page import Page

MARKS = {REPRODUCED: "✓ reproduced", DIFFERS: "✗ differs", NOT_TESTABLE: "not testable here"}


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
    runs: Runs,
    claims: Sequence[Claim],
) -> Path:
    """Write claims, pictures and the page into `folder`; returns the page."""
    (folder / "claims.json").write_text(claims_json(paper, claims, indent=2) + "\n", encoding="utf-8")
    page = Page(paper.title, f"The evaluation of {paper.reference}, rerun. {_count(claims)}")
    page.text(*paper.introduction)
    if settings.quick:
        page.text("This was a quick run: fewer and shorter streams than in the paper.")
    page.heading("Published beside measured")
    page.table(
        ["verdict", "claim", "published", "measured"],
        [[MARKS[claim.verdict], claim.claim, claim.published, claim.measured] for claim in claims],
    )
    for experiment in experiments:
        page.heading(experiment.title)
        for part in experiment.parts(runs.where(experiment=experiment.name), settings):
            _add(page, folder, part)
        command = settings.command(experiment.name)
        verdicts = [[claim.id, MARKS[claim.verdict], claim.why] for claim in claims if claim.command == command]
        page.table(["claim", "verdict", "why"], verdicts)
        page.text("Measure it again:")
        page.code(command)
    page.write(folder / "index.html")
    return folder / "index.html"


def claims_json(paper: Paper, claims: Sequence[Claim], indent: int | None = None) -> str:
    """``{"paper": ..., "claims": [...]}``."""
    found = {"paper": paper.reference, "claims": [claim.to_dict() for claim in claims]}
    return json.dumps(found, ensure_ascii=False, indent=indent)


def _count(claims: Sequence[Claim]) -> str:
    numbers = ((sum(claim.verdict == kind for claim in claims), kind) for kind in MARKS)
    return "Of " + str(len(claims)) + " claims: " + ", ".join(f"{n} {kind}" for n, kind in numbers if n) + "."


def _add(page: Page, folder: Path, part: Part) -> None:
    if isinstance(part, Table):
        page.text(part.caption)
        page.table(part.headers, part.rows)
    elif isinstance(part, Picture):
        part.figure.savefig(folder / f"{part.name}.svg", metadata={"Date": None})
        page.figure(part.figure, part.caption)
    else:
        page.text(part)


def write_results(folder: Path, runs: Runs) -> None:
    """Write one row a run (results.parquet, results.csv) into `folder`, and samples through time if there are any."""
    results = pa.Table.from_pylist([run.flat() for run in runs])
    pa.parquet.write_table(results, folder / "results.parquet", compression="zstd")
    pa.csv.write_csv(results, folder / "results.csv")
    samples = [
        {name: row[name] for name in ("experiment", "data", "scheme", "workers", "sources", "estimation", "params")}
        | sample._asdict()
        for run, row in ((run, run.flat()) for run in runs if run.job.samples > 1)
        for sample in run.result.samples
    ]
    if samples:
        pa.parquet.write_table(pa.Table.from_pylist(samples), folder / "samples.parquet", compression="zstd")
