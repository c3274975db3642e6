"""The reruns of the papers: claims, the selection of outcomes, verdict rules. What needs Spark is in tests/spark."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from committed import committed, ids
from unskew import Hash, InputError, PartialKey
from unskew.cli import app
from unskew.experiments.claims import DIFFERS, NOT_TESTABLE, REPRODUCED, Claim, verdict, within
from unskew.experiments.evaluation import evaluate
from unskew.experiments.grid import Fit, Job, Outcome, Outcomes
from unskew.experiments.paper import Experiment, Settings, Table
from unskew.experiments.pkg import PAPER, fig7, section5, table1, table2_grid
from unskew.experiments.pkg.data import REAL, SLASHDOT, label, shown, spread
from unskew.experiments.report import check_folder, write_report, write_results
from unskew.experiments.spread import seeded, spread_of
from unskew.experiments.words import listed, median
from unskew.streams import StandIn, Stream, Zipf
from unskew.streams.stream import Generated

FIELDS = ["id", "claim", "published", "measured", "verdict", "why", "experiment", "command"]
FIELDS += ["reading", "measured_so", "by_construction"]
NOWHERE = Path("no-such-folder")
WITHOUT_STAND_INS = {
    "table1-LN1",
    "table1-LN2",
    "table1-SL2",
    "fig5-drift",
    "fig5-probing-real",
    "fig6-skew",
    "fig6-balance",
} | {
    "fig8-skew-SL2",
    "fig8-low-SL2",
}  # claims of experiments that have stand-ins, but about other streams


def settings(**given: object) -> Settings:
    return Settings("pkg", **({"data": NOWHERE, "quick": True} | given))  # type: ignore[arg-type]


def run(jobs: list[Job]) -> Outcomes:
    return Outcomes(Outcome(job, result) for job in jobs for result in job.run())


def test_a_claim_has_exactly_the_fields_of_the_json() -> None:
    assert list(Claim("a", "b", "c", "d", REPRODUCED, "e", "f", "g").to_dict()) == FIELDS


def test_several_hash_functions_are_told_by_mean_median_and_range() -> None:
    found = spread_of([1.0, 4.0, 1.0])
    assert (found.mean, found.median, found.least, found.most) == (2.0, 1.0, 1.0, 4.0)
    assert found.text() == "mean 2.00, median 1.00, 1.00 to 4.00 (3 hash functions)"
    assert found.count(lambda value: value > 1) == "1 of 3"
    assert spread_of([1.0]).text() == "1.00"
    assert seeded(PartialKey(5), 2) == (PartialKey(5, seed=0), PartialKey(5, seed=1))


def test_verdicts() -> None:
    assert (verdict(True), verdict(False)) == (REPRODUCED, DIFFERS)
    assert within(9.9, 10, 0.01)
    assert not within(9.8, 10, 0.01)


def test_an_unknown_figure_is_refused_with_those_that_exist() -> None:
    with pytest.raises(InputError, match=r"only: 'fig99' is not part of pkg; allowed are table1, .*fig7.*real"):
        PAPER.chosen(["fig99"])
    assert [experiment.name for experiment in PAPER.chosen(["fig7", "table1"])] == ["table1", "fig7"]


def test_the_command_measures_the_same_again() -> None:
    chosen = settings(options=" --quick --seed 3")
    assert chosen.command("fig7") == "unskew reproduce pkg --only fig7 --quick --seed 3"
    assert chosen.command() == "unskew reproduce pkg --quick --seed 3"


def test_a_job_runs_online_and_offline_schemes_of_any_size() -> None:
    job = Job("x", "ZF", Zipf(1.0, 100, 5_000), (PartialKey(5), Hash(3), Fit("off_greedy", 7)), replicas=True)
    results = job.run()
    assert [result.scheme for result in results] == ["pkg", "hash", "off_greedy"]
    assert [result.workers for result in results] == [5, 3, 7]
    assert results[2].replicas == results[2].keys  # a whole key has one worker


def test_runs_are_selected_by_job_result_and_parameters() -> None:
    stream = Zipf(1.0, 100, 1_000)
    outcomes = run([Job("x", name, stream, (PartialKey(5), PartialKey(5, seed=1), Hash(9))) for name in ("A", "B")])
    assert len(outcomes.where(data="A")) == 3
    assert [outcome.result.scheme for outcome in outcomes.where(data="B", workers=9)] == ["hash"]
    assert outcomes.one(data="B", scheme="pkg", seed=1).params["seed"] == 1
    assert outcomes.where(data="A", choices=2, seed=7) == []
    with pytest.raises(KeyError, match="no run with"):
        outcomes.one(data="C")


def test_a_quick_grid_is_a_smaller_grid() -> None:
    for experiment in PAPER.experiments:
        quick, full = (experiment.jobs(settings(quick=kind)) for kind in (True, False))
        assert sum(job.cost for job in quick) <= sum(job.cost for job in full), experiment.name


def test_a_grid_without_real_streams_says_that_they_are_absent() -> None:
    assert SLASHDOT not in {job.data for job in table1.jobs(settings())}
    real = next(experiment for experiment in PAPER.experiments if experiment.name == "real")
    found = real.judged(Outcomes(), settings())
    assert {claim.verdict for claim in found} == {NOT_TESTABLE}
    assert all("absent" in claim.why for claim in found)


def test_section_5_is_reproduced_from_the_seeds_alone() -> None:
    outcomes = run(section5.jobs(settings()))
    verdicts = {finding.id: finding.verdict for finding in section5.claims(outcomes, settings())}
    assert verdicts == {
        "section5-idle": REPRODUCED,
        "section5-imbalance": DIFFERS,
        "section5-theorem": REPRODUCED,
    }


def test_the_bound_of_section_5_holds_on_a_skewed_stream() -> None:
    jobs = [
        Job("fig7", f"K=1000 z={z}", Zipf(z, 1000, 50_000), tuple(map(PartialKey, (5, 10, 50, 100))))
        for z in (1.0, 2.0)
    ]
    findings = {finding.id: finding for finding in fig7.claims(run(jobs), settings())}
    assert findings["fig7-bound"].verdict == REPRODUCED
    assert findings["fig7-bound"].measured.startswith("0 of ")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, Outcomes]:
    """The whole quick grid on the first tuples of each stream, and short files in the place of the real ones."""
    folder = tmp_path_factory.mktemp("data")
    keys = pa.array([f"key {n % 7}" if n % 3 else "hot" for n in range(2_000)])
    table = pa.table({"key": keys, "src": keys, "ts": pa.array(range(2_000), pa.int64())})
    for name in (SLASHDOT, *REAL):
        pq.write_table(table, folder / f"{name}.parquet")
    chosen = settings(data=folder)
    jobs = [job for experiment in PAPER.experiments for job in experiment.jobs(chosen)]
    return chosen, run([job._replace(stream=_first(job.stream, 2_000)) for job in jobs])


def _first(stream: Stream, tuples: int) -> Stream:
    return replace(stream, tuples=tuples) if isinstance(stream, Generated) else stream  # type: ignore[call-arg]


@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda experiment: experiment.name)
def test_a_stand_in_is_never_shown_without_saying_so(experiment: Experiment, tiny: tuple[Settings, Outcomes]) -> None:
    chosen, outcomes = tiny[0], tiny[1].where(experiment=experiment.name)
    claims = experiment.judged(outcomes, chosen)
    for claim in claims:
        assert not re.search(r"\b(WP|TW|CT|LJ)\b(?! \(stand-in, first 2k of )", claim.measured), claim
    if any(isinstance(outcome.job.stream, StandIn) for outcome in outcomes):
        silent = {c.id for c in claims if c.verdict != NOT_TESTABLE and "stand-in" not in c.measured}
        assert silent <= WITHOUT_STAND_INS
    for part in experiment.parts(outcomes, chosen):
        if isinstance(part, Table):
            shown_there = " ".join([part.caption, *(str(row[0]) for row in part.rows)])
            assert not re.search(r"\b(WP|TW|CT|LJ)\b(?! \(stand-in, first 2k of )", shown_there), part


def test_the_committed_results_have_all_claims_in_order(tiny: tuple[Settings, Outcomes]) -> None:
    found = evaluate(PAPER, tiny[0], PAPER.experiments, tiny[1])
    assert ids(committed("pkg")) == ids(found)
    assert committed("pkg").experiments == found.experiments


def test_a_label_says_what_was_used() -> None:
    assert label("TW", 1_200_000_000) == "TW (stand-in)"
    assert label("TW", 120_000_000) == "TW (stand-in, first 120M of 1.2G)"
    assert [label(name, 5) for name in ("LN1", SLASHDOT, REAL[0])] == ["LN1", "SL2 (real)", f"{REAL[0]} (real)"]
    assert listed([("A", "1"), ("A", "2"), ("B", "3")]) == "A: 1, 2; B: 3"


def test_the_whole_of_tw_goes_only_where_its_length_matters() -> None:
    jobs = [job for job in table2_grid.jobs(settings(quick=False)) if (job.stream.length or 0) > table2_grid.PART]
    assert [job.data for job in jobs] == ["TW"]
    tables = {(type(s).__name__, s.workers) for s in jobs[0].schemes if not isinstance(s, PartialKey)}
    assert {workers for _, workers in tables} == {5, 10}
    assert {s.workers for s in jobs[0].schemes if isinstance(s, PartialKey)} == {5, 10, 50, 100}


def test_numbers_are_shown_as_the_paper_prints_them() -> None:
    assert [shown(value) for value in (0.074, 3.4e-10, 0)] == ["7.4e-2", "3.4e-10", "0"]
    assert spread([0.2, 0.1, 0.4]) == "2.0e-1 (1.0e-1 to 4.0e-1)"
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.0


def test_a_report_has_every_file(tmp_path: Path) -> None:
    experiment = PAPER.chosen(["section5"])[0]
    outcomes = run([job._replace(stream=Zipf(0, 100, 10_000)) for job in experiment.jobs(settings())])
    write_results(tmp_path / "out", outcomes)
    found = evaluate(PAPER, settings(), [experiment], outcomes)
    page = write_report(tmp_path / "out", PAPER, settings(), [experiment], outcomes, found)
    assert {path.name for path in page.parent.iterdir()} == {
        "claims.json",
        "index.html",
        "results.csv",
        "results.md",
        "results.parquet",
    }
    text = page.read_text(encoding="utf-8")
    assert "slip of the pen" in text
    assert "http" not in text.replace("http://www.w3.org/", "")  # nothing is loaded from elsewhere


def test_what_would_stop_the_command_is_found_before_the_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(*typed: str) -> str:
        result = CliRunner().invoke(app, ["reproduce", "pkg", "--quick", "--out", str(tmp_path / "out"), *typed])
        assert isinstance(result.exception, InputError)
        return str(result.exception)

    assert "is not a folder" in tried("--data", str(tmp_path / "nowhere"))
    monkeypatch.setenv("UNSKEW_DATA", str(tmp_path / "elsewhere"))
    assert re.match(r"data: '.*elsewhere' .*UNSKEW_DATA.* is not a folder", tried())
    monkeypatch.delenv("UNSKEW_DATA")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert tried() == "plots: matplotlib is not installed; type: pip install 'unskew[plots]'"
    assert tried("--out", "/proc/out").startswith("out: '/proc/out' cannot be written: ")
    assert not any(tmp_path.iterdir())


def test_a_folder_with_files_is_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"has files, all kept \(mine.txt\); add --force"):
        check_folder(tmp_path, force=False)
    check_folder(tmp_path, force=True)
    check_folder(tmp_path / "new", force=False)
    with pytest.raises(InputError, match="is a file"):
        check_folder(tmp_path / "mine.txt", force=True)
    with pytest.raises(InputError, match="does not exist"):
        check_folder(tmp_path / "no" / "where", force=False)
