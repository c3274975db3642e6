"""The applications on a real Spark: the commands of docs/applications.md, their results, and what they refuse."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from command import Outcome, runner
from documents import commands
from unskew.apps.samples import TRADES
from unskew.apps.vwap import advance

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
OF_DOCUMENT = [words[2:] for words in commands("docs/applications.md")]

Run = Callable[..., Outcome]


@pytest.fixture
def run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    """`unskew run` in this process and on the session of the tests, with its own state store."""
    before = spark.conf.get(STATE_STORE)
    spark.conf.set(STATE_STORE, ROCKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("unskew.spark.local_spark", lambda folder, settings: nullcontext(spark))
    typed = runner(capsys, monkeypatch)
    yield lambda *arguments: typed("run", *arguments)
    spark.conf.set(STATE_STORE, before)


def typed_in_the_document(run: Run, name: str, number: int = 0) -> dict[str, Any]:
    """What the command of an application in its document prints as JSON; its folder is called out."""
    arguments = [words for words in OF_DOCUMENT if words[0] == name][number]
    outcome = run(*arguments, "--out", "out", "--json")
    assert outcome.status == 0, outcome.err
    assert "<svg" in Path("out/page.html").read_text()
    return outcome.json_lines[0]


def test_the_document_runs_every_application() -> None:
    assert {words[0] for words in OF_DOCUMENT} == {*("vwap", "enrich")}


# ---------------------------------------------------------------- average prices


def test_average_prices_follow_the_trades_and_few_tickers_move_when_workers_are_added(run: Run) -> None:
    steps = typed_in_the_document(run, "vwap")["batches"]
    assert [step["workers"] for step in steps] == [8, 12]
    assert [step["trades"] for step in steps] == [3000] * 2
    assert steps[0]["tickers_moved"] == steps[0]["tickers_moved_by_hash"] == 0
    assert 0 < steps[1]["tickers_moved"] < steps[1]["tickers_moved_by_hash"]
    assert all(sum(step["load"]) == sum(step["load_by_hash"]) == 3000 for step in steps)
    assert all(step["max_over_mean"] <= step["hash_max_over_mean"] for step in steps)
    assert sorted(path.name for path in Path("out").iterdir()) == ["checkpoint", "page.html", "result.parquet"]
    trades = TRADES.rows(np.arange(6000), 0)
    found = {row["ticker"]: row for row in pq.read_table("out/result.parquet").to_pylist()}
    assert set(found) == set(trades["ticker"].to_pylist())
    for ticker, row in found.items():
        (whole,) = advance(trades.filter(pa.compute.equal(trades["ticker"], ticker))).to_pylist()
        assert row["vwap"] == pytest.approx(whole["vwap"], rel=1e-9)
        assert (row["trades"], row["crossings"]) == (whole["trades"], whole["crossings"])


# ---------------------------------------------------------------- mentions


def test_mentions_are_enriched_once_each_while_their_costs_are_learnt(run: Run) -> None:
    steps = typed_in_the_document(run, "enrich")["batches"]
    assert [step["mentions"] for step in steps] == [200, 200]
    assert sorted(pq.read_table("out/result.parquet")["tweet"].to_pylist()) == list(range(400))
    for step in steps:
        assert sum(step["work"]) == pytest.approx(sum(step["work_in_turn"]))
        assert len(step["work"]) == 5


def test_with_known_costs_workers_have_the_same_work_and_a_table_is_shown(run: Run) -> None:
    outcome = run("enrich", "--rows", 200, "--workers", 3, "--scheme", "told")
    assert outcome.status == 0, outcome.err
    said = " ".join(outcome.out.split())
    assert "200 mentions. In the last batch the busiest of 3 workers had 1.0" in said
    assert "The result: unskew-enrich/result.parquet The pictures: unskew-enrich/page.html" in said
    again = run("enrich", "--out", "unskew-enrich")
    assert again.status == 2
    assert "out: 'unskew-enrich' has files, all kept (page.html, result.parquet); add --force" in again.err


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other.csv", "path: 'other.csv' has no column 'time'; needed are ticker, time, price, volume; it has ticker,"),
        ("bad.csv", "path: Spark cannot work on 'bad.csv': The value 'cheap' of the type"),
        ("empty.csv", "path: 'empty.csv' has no rows to read"),
        ("folder", "path: 'folder' has no rows to read"),
    ],
)
def test_rows_that_cannot_be_used_are_one_line(run: Run, tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "other.csv").write_text("ticker,price\nABC,1.5\n")
    (tmp_path / "bad.csv").write_text("ticker,time,price,volume\nABC,1,cheap,100\n")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "empty.csv", tmp_path / "folder" / "empty.csv"):
        path.write_text("ticker,time,price,volume\n")
    outcome = run("vwap", name, "--out", "out")
    assert outcome.status == 2
    assert outcome.err.strip().splitlines()[-1].startswith(f"unskew: {message}")
    assert outcome.out == ""
    assert not Path("out/result.parquet").exists()
