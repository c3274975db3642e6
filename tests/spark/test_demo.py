"""`unskew demo` in a process of its own, small: what it prints, writes and refuses."""

import io
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console
from typer.testing import CliRunner

from command import runner
from unskew.cli import app, demo_screen
from unskew.cli.demo_words import write_words

COMMAND = [sys.executable, "-c", "from unskew_command import main; main()", "demo"]


def _demo(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_demo_prints_json_and_writes_a_page_of_its_own(tmp_path: Path) -> None:
    kept = tmp_path / "unskew-demo.html"
    kept.write_text("mine")
    done = _demo(
        tmp_path, "--tuples", "60000", "--workers", "8", "--row-cost", "0.0001", "--json", TMPDIR=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stderr
    result = json.loads(done.stdout)
    assert result["results_equal"] is True
    assert result["p1"] == pytest.approx(0.2, abs=0.02)
    assert [scheme["scheme"] for scheme in result["schemes"]] == ["hash", "shuffle", "pkg", "fanout"]
    for scheme in result["schemes"]:
        assert len(scheme["load"]) == 8
        assert sum(scheme["load"]) == 60_000
        assert scheme["max_over_mean"] == pytest.approx(max(scheme["load"]) / 7500)
        busy = [end - start for start, end in zip(scheme["started"], scheme["ended"], strict=True)]
        assert all(seconds >= 0.99e-4 * rows for seconds, rows in zip(busy, scheme["load"], strict=True))  # asleep
        assert scheme["longest_over_mean"] == pytest.approx(max(busy) * 8 / sum(busy), rel=0.01)
        assert max(scheme["ended"]) < scheme["seconds"] + 0.1  # another clock
    by_hash, robin, pkg, ours = result["schemes"]
    assert by_hash["replicas"] == result["words"]
    assert by_hash["replicas"] < pkg["replicas"] <= 2 * result["words"]
    assert by_hash["replicas"] <= ours["replicas"] < pkg["replicas"] < robin["replicas"]
    assert ours["max_over_mean"] < 1.1 < by_hash["max_over_mean"]
    assert pkg["max_over_mean"] < by_hash["max_over_mean"]
    assert ours["planning"] > 0
    assert by_hash["planning"] == robin["planning"] == pkg["planning"] == 0
    assert result["page"] == "unskew-demo-2.html"
    assert "<svg" in (tmp_path / "unskew-demo-2.html").read_text()
    assert kept.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["unskew-demo-2.html", "unskew-demo.html"]


def test_the_demo_shows_bars_and_says_what_it_checked(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unskew.spark.local_spark", lambda folder, settings: nullcontext(spark))
    page = tmp_path / "page.html"
    asked = ["demo", "--tuples", "20000", "--workers", "4", "--row-cost", "0.00005", "--out", str(page)]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    for said in ("plain hash", "round robin", "PKG", "unskew", "█", "time, measured", "checked word by word"):
        assert said in " ".join(done.stdout.split())
    assert "page.html" in done.stdout
    assert page.read_text().count("<svg") == 2


@pytest.mark.slow
def test_the_demo_of_a_stream_follows_the_hot_words(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unskew.spark.local_spark", lambda folder, settings: nullcontext(spark))
    monkeypatch.setattr("unskew.cli.demo_stream.BATCHES", 4)
    monkeypatch.setattr("unskew.cli.demo_stream.ANEW", 2)
    page = tmp_path / "page.html"
    asked = [
        "demo",
        "--stream",
        "--tuples",
        "40000",
        "--workers",
        "4",
        "--row-cost",
        "1e-6",
        "--out",
        str(page),
        "--json",
    ]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["batches"]
    assert (
        [batch["batch"] for batch in found["hash"]] == [batch["batch"] for batch in found["adaptive"]] == [0, 1, 2, 3]
    )
    assert found["adaptive"][1]["max_over_mean"] < 1.1 < found["hash"][1]["max_over_mean"]
    assert found["adaptive"][2]["max_over_mean"] > found["adaptive"][3]["max_over_mean"]
    assert "<svg" in page.read_text()


def test_plain_hash_is_spark_s_own(tmp_path: Path, spark: SparkSession) -> None:
    words = write_words(tmp_path, 20_000, seed=1)
    placed = spark.read.parquet(str(tmp_path)).repartition(7, "word")
    found = placed.groupBy(F.spark_partition_id().alias("worker")).count().orderBy("worker").collect()
    assert words.hashed(7).tolist() == [row["count"] for row in found]


@pytest.mark.parametrize("workers", [2, 16, 64])
def test_bars_of_workers_fit_a_small_terminal(workers: int) -> None:
    terminal = Console(width=80, record=True, file=io.StringIO())
    ended = [3.0] * (workers - 1) + [0.0]
    terminal.print(demo_screen.workers_at_work([100] * workers, ended, 4.0, 200.0))
    shown = terminal.export_text()
    assert f"4 s, 1 of {workers} workers at work" in shown
    assert shown.count("3.0 s") == workers - 1
    assert len(shown.splitlines()) <= 18


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--workers", "0"], {}, "workers: must be an integer from 2 to 64, not 0"),
        (["--tuples", "5"], {}, "tuples: must be an integer from 20000 to 100000000, not 5"),
        (["--out", "missing/page.html"], {}, "out: the folder"),
        (["--out", "page.pdf"], {}, "out: 'page.pdf' must end in .html"),
        ([], {"JAVA_HOME": "", "PATH": "/nowhere"}, "java: Spark needs Java 17 or newer, and there is none"),
        ([], {"JAVA_HOME": "/nowhere"}, "none in JAVA_HOME (/nowhere)"),
    ],
)
def test_what_it_cannot_do_is_one_line(
    tmp_path: Path,
    arguments: list[str],
    environment: dict[str, str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = runner(capsys, monkeypatch)("demo", *arguments)
    assert done.status == 2
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not any(tmp_path.iterdir())
