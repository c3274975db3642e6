"""`unskew demo` in a process of its own, small: what it prints, writes and refuses."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from unskew.cli import app

COMMAND = [sys.executable, "-c", "from unskew.cli import main; main()", "demo"]


def _demo(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )


def test_the_demo_prints_json_and_writes_a_page_of_its_own(tmp_path: Path) -> None:
    kept = tmp_path / "unskew-demo.html"
    kept.write_text("mine")
    done = _demo(tmp_path, "--tuples", "60000", "--workers", "8", "--json", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stderr
    result = json.loads(done.stdout)
    assert result["results_equal"] is True
    assert [scheme["scheme"] for scheme in result["schemes"]] == ["hash", "shuffle", "pkg"]
    for scheme in result["schemes"]:
        assert len(scheme["load"]) == 8
        assert sum(scheme["load"]) == 60_000
        assert scheme["max_over_mean"] == pytest.approx(max(scheme["load"]) / 7500)
        assert scheme["rows_per_second"] > 0
    by_hash, robin, pkg = result["schemes"]
    assert by_hash["replicas"] == result["words"]
    assert by_hash["replicas"] < pkg["replicas"] <= 2 * result["words"]
    assert pkg["replicas"] < robin["replicas"]
    assert pkg["max_over_mean"] < by_hash["max_over_mean"]
    assert result["page"] == "unskew-demo-2.html"
    assert "<svg" in (tmp_path / "unskew-demo-2.html").read_text()
    assert kept.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["unskew-demo-2.html", "unskew-demo.html"]


def test_the_demo_shows_bars_and_says_what_it_checked(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unskew.spark.local_spark", lambda folder, settings: nullcontext(spark))
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["demo", "--tuples", "20000", "--workers", "4", "--out", str(page)])
    assert done.exit_code == 0, done.output
    for said in ("plain hash", "round robin", "PKG", "█", "checked word by word", "page.html"):
        assert said in " ".join(done.stdout.split())
    assert page.exists()


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--workers", "0"], {}, "workers: must be an integer from 2 to 64, not 0"),
        (["--tuples", "5"], {}, "tuples: must be an integer from 20000 to 100000000, not 5"),
        (["--out", "missing/page.html"], {}, "out: the folder"),
        ([], {"JAVA_HOME": "", "PATH": "/nowhere"}, "java: Spark needs Java 17 or newer, and there is none"),
        ([], {"JAVA_HOME": "/nowhere"}, "none in JAVA_HOME (/nowhere)"),
    ],
)
def test_what_it_cannot_do_is_one_line(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], message: str
) -> None:
    done = _demo(tmp_path, *arguments, **environment)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not any(tmp_path.iterdir())
