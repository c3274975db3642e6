"""The Python of README.md and of the guides runs as it stands, and `unskew doctor` as the README types it."""

import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pyspark
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from documents import ROOT, code_blocks, commands
from unskew import SCHEMES
from unskew.cli import app


def run_all(document: str, **names: object) -> None:
    for block in code_blocks(document, "python"):
        exec(compile(block, document, "exec"), names)


def test_the_readme(spark: SparkSession) -> None:
    words = [(f"word{i % 7 * (i % 2)}", i) for i in range(2000)]
    run_all("README.md", df=spark.createDataFrame(words, "word string, v bigint"))


@pytest.mark.slow
def test_the_walk_through(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_all("docs/spark.md")


def test_the_streaming_guide(spark: SparkSession) -> None:
    names: dict[str, Any] = {}
    for block in code_blocks("docs/streaming.md", "python"):
        exec(compile(block, "docs/streaming.md", "exec"), names)
    assert names["by_hour"].columns == ["window", "page", "views", "last"]
    records = names["watched"].records()["route"]
    assert [sum(record.load) for record in records][:3] == [8000] * 3
    assert records[0].max_over_mean > 2
    assert records[2].max_over_mean < 1.2


@pytest.mark.slow
def test_queries_that_the_streaming_guide_only_builds_run(spark: SparkSession) -> None:
    names: dict[str, Any] = {}
    for block in code_blocks("docs/streaming.md", "python"):
        exec(compile(block, "docs/streaming.md", "exec"), names)
    checkpoints = {
        "by_hour": "another",
        "told": "none",
        "learned": "a-third",
        "medians": "a-fourth",
        "worked": "a-fifth",
        "conversed": "a-sixth",
    }
    for name, checkpoint in checkpoints.items():
        writer = names[name].writeStream.format("noop").option("checkpointLocation", f"{names['folder']}/{checkpoint}")
        query = writer.start()
        query.processAllAvailable()
        assert query.lastProgress is not None
        query.stop()


@pytest.mark.slow
def test_the_applications(spark: SparkSession) -> None:
    """Their commands are run by test_apps_on_spark.py."""
    run_all("docs/applications.md")


def test_doctor_as_the_readme_types_it(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unskew.spark.local_spark", lambda folder, *settings: nullcontext(spark))
    path = str(tmp_path / "keys.parquet")  # this Spark's own folder is another one
    pa.parquet.write_table(pa.table({"key": ["a", "b", "a"] * 100}), path)
    (words,) = [words for words in commands("README.md") if words[:2] == ["unskew", "doctor"]]
    done = CliRunner().invoke(app, [path if word == "keys.parquet" else word for word in words[1:]])
    assert done.exit_code == 0, done.output
    assert "do nothing" in done.stdout.lower() or "fanout" in done.stdout


def test_the_running_version_is_in_the_table_of_versions() -> None:
    series = ".".join(pyspark.__version__.split(".")[:2])
    rows = [row.split("|") for row in (ROOT / "docs/spark.md").read_text().splitlines() if row.startswith("| 4.")]
    (python,) = [cells[2] for cells in rows if cells[1].strip() == series]
    assert sys.version_info >= tuple(int(part) for part in python.split()[0].split("."))


def test_the_table_of_modes_knows_every_scheme() -> None:
    (row,) = [row for row in (ROOT / "docs/spark.md").read_text().splitlines() if row.startswith("| schemes ")]
    _, _, planned, online, _ = row.split("|")
    by_plan = {name for name, entry in SCHEMES.items() if "planned" in entry.modes}
    never_live = {name for name, entry in SCHEMES.items() if "online" not in entry.modes}
    assert by_plan == set(re.findall("`([a-z_]+)`", planned))
    assert never_live == set(re.findall("`([a-z_]+)`", online))
