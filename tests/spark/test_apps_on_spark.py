"""The applications on a real Spark: the commands of docs/applications.md, their results, and what they refuse."""

from collections import Counter
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
from documents import ROOT, commands
from unskew.apps.heavy_hitters import merge as merge_summaries
from unskew.apps.heavy_hitters import summaries_of
from unskew.apps.naive_bayes import Model, train
from unskew.apps.samples import MENTIONS, TEXTS, TRADES
from unskew.apps.vwap import advance

DATA = ROOT.parent / "shared" / "data"
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
    assert {words[0] for words in OF_DOCUMENT} == {
        *("wordcount", "naive-bayes", "decision-tree", "heavy-hitters", "vwap", "enrich")
    }


# ---------------------------------------------------------------- average prices


def test_columns_of_a_file_that_are_called_as_those_of_the_state_do_not_matter(run: Run, tmp_path: Path) -> None:
    trades = TRADES.rows(np.arange(40), 0)
    for number, some in enumerate((trades.slice(0, 20), trades.slice(20))):
        more = some.append_column("trades", pa.array([9] * 20)).append_column("side", pa.array(["B"] * 20))
        (tmp_path / "days").mkdir(exist_ok=True)
        pq.write_table(more, tmp_path / "days" / f"{number}.parquet")
    outcome = run("vwap", "days", "--workers", 2, "--out", "out", "--json")
    assert outcome.status == 0, outcome.err
    assert sum(row["trades"] for row in pq.read_table("out/result.parquet").to_pylist()) == 40


def test_average_prices_follow_the_trades_and_few_tickers_move_when_workers_are_added(run: Run) -> None:
    printed = typed_in_the_document(run, "vwap")
    steps = printed["batches"]
    assert printed["scheme"] == "readj"  # where none is asked for
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
    forced = run("enrich", "--rows", 60, "--workers", 3, "--scheme", "told", "--out", "unskew-enrich", "--force")
    assert forced.status == 0, forced.err
    assert pq.read_table("unskew-enrich/result.parquet").num_rows == 60


# ---------------------------------------------------------------- words


def test_the_top_words_of_a_stream_are_those_of_a_batch(run: Run) -> None:
    batch = typed_in_the_document(run, "wordcount")
    Path("out").rename("batch")
    stream = typed_in_the_document(run, "wordcount", 1)
    words = [word for text in TEXTS.rows(np.arange(2000), 0)["text"].to_pylist() for word in text.split()]
    expected = sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))[:20]
    assert [(each["word"], each["count"]) for each in batch["top"]] == expected
    assert stream["top"] == batch["top"]
    assert [period["period"] for period in stream["periods"]] == [1, 2]
    assert stream["periods"][0]["words"] < stream["periods"][1]["words"] == len(words)
    by_hash, pkg, in_turn = batch["dealt"]
    assert by_hash["replicas"] == len(set(words)) < pkg["replicas"] < 2 * len(set(words)) < in_turn["replicas"]
    assert pkg["max_over_mean"] < by_hash["max_over_mean"]
    table = pq.read_table("out/result.parquet")
    assert table.slice(20)["word"].to_pylist() == [word for word, _ in expected]


# ---------------------------------------------------------------- naive Bayes


def counted(first: int, rows: int) -> dict[tuple[str, str], int]:
    """How often each word occurs in texts of each label; the empty word stands for texts."""
    table = TEXTS.rows(np.arange(first, first + rows), 0)
    pairs = zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True)
    return Counter((word, label) for text, label in pairs for word in ("", *text.split()))


@pytest.mark.slow
def test_the_model_of_a_stream_is_that_of_all_its_texts(run: Run) -> None:
    found = typed_in_the_document(run, "naive-bayes")
    learnt = {(row["word"], row["label"]): row["count"] for row in pq.read_table("out/model.parquet").to_pylist()}
    assert learnt == counted(0, 2000)
    counts: dict[str, dict[str, int]] = {}
    for (word, label), count in learnt.items():
        counts.setdefault(word, {})[label] = count
    result = pq.read_table("out/result.parquet").to_pylist()
    assert [row["predicted"] for row in result] == Model(counts).classify([row["text"].split() for row in result])
    assert found["accuracy"] == pytest.approx(np.mean([row["predicted"] == row["label"] for row in result]))
    assert found["accuracy"] > 0.7
    assert found["classified"] == len(result) == 500


@pytest.mark.parametrize("scheme", ["pkg", "shuffle"])
def test_the_model_does_not_depend_on_the_scheme(spark: SparkSession, scheme: str) -> None:
    rows = train(spark.createDataFrame(TEXTS.rows(np.arange(300), 0)), 4, scheme).collect()
    assert {(row["word"], each["label"]): each["count"] for row in rows for each in row["counts"]} == counted(0, 300)


def test_texts_of_a_file_are_classified_and_need_no_label(run: Run, tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text("text,label\ncheap pills,spam\nlunch today,ham\ncheap cheap,spam\n")
    (tmp_path / "new.csv").mkdir()  # a folder, as Spark writes it, but no stream
    (tmp_path / "new.csv" / "part-0.csv").write_text("text\nCheap lunch cheap!\nlunch?\n")
    outcome = run("naive-bayes", "known.csv", "--classify", "new.csv", "--workers", 2, "--out", "out", "--json")
    assert outcome.status == 0, outcome.err
    (found,) = outcome.json_lines
    assert "accuracy" not in found
    labels = {row["text"]: row["predicted"] for row in pq.read_table("out/result.parquet").to_pylist()}
    assert labels == {"Cheap lunch cheap!": "spam", "lunch?": "ham"}
    assert found["dealt"][0]["replicas"] == 5  # cheap, pills, lunch, today, and the texts themselves


# ---------------------------------------------------------------- decision trees


def test_columns_of_numbers_of_a_csv_are_features(run: Run, tmp_path: Path) -> None:
    lines = [f"{'left' if i % 2 else 'right'},{i % 2 + i / 1000},{i % 7},note {i}" for i in range(200)]
    (tmp_path / "points.csv").write_text("\n".join(["label,x,y,note", *lines]))
    outcome = run("decision-tree", "points.csv", "--depth", 1, "--workers", 2, "--json")
    assert outcome.status == 0, outcome.err
    assert outcome.json_lines[0]["leaves"] == 2


@pytest.mark.slow
def test_a_tree_has_at_most_two_histograms_of_a_kind_under_pkg_and_one_per_worker_in_turn(run: Run) -> None:
    found = typed_in_the_document(run, "decision-tree")
    kinds, workers = 21 * 3, 8  # D * C, of one leaf
    by_hash, pkg, in_turn = found["dealt"]
    assert by_hash["replicas"] == kinds
    assert kinds < pkg["replicas"] <= 2 * kinds
    assert in_turn["replicas"] == workers * kinds
    assert pkg["max_over_mean"] < by_hash["max_over_mean"]
    assert [each["leaves"] for each in found["rounds"]] == [1, 2]
    assert found["leaves"] == 4
    assert found["accuracy"] > 0.55
    nodes = pq.read_table("out/model.parquet").to_pylist()
    assert len(nodes) == 7
    assert nodes[0]["feature"].startswith("x")


@pytest.mark.slow
def test_a_stream_grows_a_tree_round_by_round(run: Run) -> None:
    outcome = run("decision-tree", "--rows", 800, "--batches", 2, "--workers", 2, "--scheme", "hash", "--json")
    assert outcome.status == 0, outcome.err
    assert [each["leaves"] for each in outcome.json_lines[0]["rounds"]] == [1, 2]
    assert outcome.json_lines[0]["accuracy"] > 0.4


# ---------------------------------------------------------------- heavy hitters


def test_errors_of_heavy_hitters_have_one_two_or_all_terms(run: Run) -> None:
    found = typed_in_the_document(run, "heavy-hitters")
    schemes = {each["scheme"]: each for each in found["schemes"]}
    assert [schemes[name]["terms"] for name in ("hash", "pkg", "shuffle")] == [1, 2, 8]
    assert schemes["pkg"]["error"] < schemes["shuffle"]["error"]
    true = Counter(MENTIONS.rows(np.arange(20_000), 0)["entity"].to_pylist())
    for hitter in pq.read_table("out/result.parquet").to_pylist():
        assert hitter["count"] - hitter["error"] <= true[hitter["key"]] <= hitter["count"]


def test_a_scheme_is_compared_with_its_own_parameters(run: Run) -> None:
    outcome = run("heavy-hitters", "--rows", 500, "--workers", 4, "--scheme", "pkg(choices=3)", "--json")
    assert outcome.status == 0, outcome.err
    terms = {each["scheme"]: each["terms"] for each in outcome.json_lines[0]["schemes"]}
    assert terms == {"hash": 1, "pkg": 3, "shuffle": 4}


def test_bounds_hold_on_a_real_stream(spark: SparkSession) -> None:
    path = DATA / "stocknet_cashtags.parquet"
    if not path.is_file():
        pytest.skip(f"the data set {path.name} is not in ../shared/data beside the checkout")
    rows, true = spark.read.parquet(str(path)), Counter(pq.read_table(path)["key"].to_pylist())
    errors = {}
    for scheme, terms in (("hash", 1), ("pkg", 2), ("shuffle", 8)):
        found = summaries_of(rows, "key", 8, scheme, counters=60)
        assert sum(seen for _, seen in found) == sum(true.values())
        hitters = merge_summaries([summary for summary, _ in found], scheme)
        assert max(hitter.terms for hitter in hitters[:20]) == terms
        for hitter in hitters:
            assert hitter.count - hitter.error <= true[hitter.key] <= hitter.count
        errors[scheme] = np.mean([hitter.error for hitter in hitters[:20]])
    assert errors["pkg"] < errors["shuffle"] / 2


@pytest.mark.slow
def test_rows_of_the_rate_source_are_those_of_the_sample(run: Run) -> None:
    outcome = run("heavy-hitters", "--rate", 300, "--seconds", 6, "--workers", 2, "--top", 3, "--json")
    assert outcome.status == 0, outcome.err
    (found,) = outcome.json_lines
    true = Counter(MENTIONS.rows(np.arange(found["rows"]), 0)["entity"].to_pylist())
    for hitter in found["top"]:
        assert hitter["count"] - hitter["error"] <= true[hitter["key"]] <= hitter["count"]


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
