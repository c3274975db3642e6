"""`unskew reproduce` end to end, with the cheapest part of the PKG paper."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from unskew import InputError, PartialKey
from unskew.cli import app
from unskew.experiments.evaluation import Evaluation
from unskew.experiments.grid import Job, run_on_spark
from unskew.experiments.kept_passes import KeptPasses
from unskew.streams import Zipf


def test_the_grid_gives_what_the_simulator_gives_here(spark: SparkSession, tmp_path: Path) -> None:
    jobs = [Job("x", f"z={z}", Zipf(z, 100, 2_000), (PartialKey(5), PartialKey(9))) for z in (0.5, 1.5)]
    done: list[int] = []
    kept = KeptPasses(tmp_path, jobs, tmp_path)
    with kept.open():
        outcomes = run_on_spark(spark, jobs, done.append, kept)
        assert sum(done) == len(jobs)
        assert run_on_spark(None, jobs, done.append, kept) == outcomes  # kept: it needs no Spark
        assert done[-1] == len(jobs)
    for job in jobs:
        here = [result.load for result in job.run()]
        assert [result.load for result in outcomes.results(data=job.data)] == here
        assert outcomes.one(data=job.data).samples == job.run()[0].samples


def test_a_failing_job_is_one_clear_line_and_what_is_done_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    jobs = [Job("x", "ZF", Zipf(1.0, 10, 100), (PartialKey(5),), estimation=how) for how in ("local", "telepathy")]
    kept = KeptPasses(tmp_path, jobs, tmp_path)
    with kept.open():
        kept.keep(jobs[0], [result.to_dict() for result in jobs[0].run()])
        with pytest.raises(InputError, match=r"^spark: the grid failed: .*estimation: must be local"):
            run_on_spark(spark, jobs, lambda done: None, kept)
    assert list(kept.load(jobs)) == [0]


def test_reproduce_writes_everything_and_prints_the_claims(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    typed = ["reproduce", "pkg", "--quick", "--only", "section5", "--out", str(out), "--json"]
    result = CliRunner().invoke(app, typed, catch_exceptions=False)
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert printed == json.loads((out / "claims.json").read_text(encoding="utf-8"))
    assert {claim["id"] for claim in printed["claims"]} == {"section5-idle", "section5-imbalance", "section5-theorem"}
    assert {claim["command"] for claim in printed["claims"]} == {"unskew reproduce pkg --only section5 --quick"}
    assert (out / "results.md").read_text(encoding="utf-8") == Evaluation.from_json(result.stdout).markdown()
    assert (out / "index.html").exists()
    assert (out / "results.parquet").exists()
    assert not (out / "unskew-passes").exists()
    again = CliRunner().invoke(app, typed)
    assert isinstance(again.exception, InputError)
    assert "kept" in str(again.exception)


def test_an_impossible_master_is_one_line_with_those_that_exist() -> None:
    found = CliRunner().invoke(app, ["reproduce", "cg", "--master", "foo://x"])
    assert isinstance(found.exception, InputError)
    assert str(found.exception).startswith("master: Spark does not start on 'foo://x'; allowed are local[N], spark://")
