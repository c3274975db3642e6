"""The applications without Spark: their samples, their pure functions, and what `unskew run` refuses."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command import runner
from unskew.apps import samples
from unskew.apps.enrich import COSTS, look_up
from unskew.apps.job import Job
from unskew.apps.samples import MENTIONS, TEXTS, TRADES, WAVES
from unskew.apps.source import Source
from unskew.apps.vwap import advance

APPLICATIONS = ("wordcount", "naive-bayes", "decision-tree", "heavy-hitters", "vwap", "enrich")
SAMPLES = {"texts": TEXTS, "trades": TRADES, "mentions": MENTIONS, "waves": WAVES}


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(capsys, monkeypatch)


# ---------------------------------------------------------------- samples


@pytest.mark.parametrize("name", SAMPLES)
def test_a_row_of_a_sample_depends_on_its_number_and_the_seed_alone(name):
    rows = SAMPLES[name].rows
    whole = rows(np.arange(50), 3)
    assert whole.slice(20, 10).equals(rows(np.arange(20, 30), 3))
    assert whole.take(pa.array([7, 3])).combine_chunks().equals(rows(np.array([7, 3]), 3).combine_chunks())
    assert not whole.equals(rows(np.arange(50), 4))
    assert whole.column_names == list(SAMPLES[name].columns)


def hottest(values):
    _, counts = np.unique(np.asarray(values), return_counts=True)
    return counts.max() / counts.sum()


def test_samples_are_as_skewed_as_the_real_thing():
    """Cashtags of stocknet: 8.7 %; mentions in POSG's tweets: 6.5 %; words of Wikipedia: 9.3 %."""
    numbers = np.arange(20_000)
    assert hottest(TRADES.rows(numbers, 0)["ticker"].to_pylist()) == pytest.approx(0.08, abs=0.01)
    assert hottest(MENTIONS.rows(numbers, 0)["entity"].to_pylist()) == pytest.approx(0.065, abs=0.01)
    words = [word for text in TEXTS.rows(numbers, 0)["text"].to_pylist() for word in text.split()]
    assert hottest(words) == pytest.approx(0.09, abs=0.02)
    assert len(set(samples._tickers())) == samples.TICKERS


# ---------------------------------------------------------------- average prices


def trades(*rows):
    return pa.table({"price": [float(price) for price, _ in rows], "volume": [volume for _, volume in rows]})


def test_the_average_price_is_weighted_by_volume():
    (state,) = advance(trades((10, 100), (12, 300))).to_pylist()
    assert state["vwap"] == (10 * 100 + 12 * 300) / 400
    assert (state["trades"], state["shares"]) == (2, 400)


def test_a_crossing_is_a_change_of_side_and_a_trade_at_the_average_is_on_neither():
    assert advance(trades((10, 1), (12, 1), (8, 1), (10, 1), (12, 1))).to_pylist()[0]["crossings"] == 2


def test_trades_in_two_batches_give_the_state_of_one():
    table = TRADES.rows(np.arange(400), 5)
    (whole,) = advance(table).to_pylist()
    state = advance(table.slice(0, 123))
    rest = table.slice(123)
    (parts,) = advance(pa.concat_tables([rest, state], promote_options="default")).to_pylist()
    assert parts["vwap"] == pytest.approx(whole.pop("vwap"), rel=1e-12)
    assert parts["value"] == pytest.approx(whole.pop("value"), rel=1e-12)
    assert {name: parts[name] for name in whole} == whole


def test_a_ticker_without_new_trades_keeps_its_state():
    state = advance(trades((10, 100), (12, 300)))
    price = pa.array([None], pa.float64())
    waiting = state.append_column("price", price).append_column("volume", price.cast(pa.int64()))
    assert advance(waiting).equals(state)


# ---------------------------------------------------------------- mentions


def test_looking_up_takes_as_long_as_the_paper_says(monkeypatch):
    naps = []
    monkeypatch.setattr("unskew.apps.enrich.time.sleep", naps.append)
    batch = MENTIONS.rows(np.arange(1000), 0).to_batches()[0]
    (found,) = look_up(iter([batch]))
    kinds = batch["kind"].to_pylist()
    assert naps == [pytest.approx(sum(COSTS[kind] for kind in kinds))]
    assert found["tweet"].to_pylist() == list(range(1000))
    assert COSTS == {"media": 0.025, "politician": 0.005, "other": 0.001}


# ---------------------------------------------------------------- the command line


def test_run_lists_the_applications_with_a_line_each(run):
    for arguments in (["run"], ["run", "--help"]):
        outcome = run(*arguments)
        assert outcome.status == 0
        for name in APPLICATIONS:
            assert name in outcome.out


@pytest.mark.parametrize("name", APPLICATIONS)
def test_help_teaches_with_an_example(run, name):
    outcome = run("run", name, "--help")
    assert outcome.status == 0
    assert f"Example: unskew run {name} --" in " ".join(outcome.out.split())
    for option in ("--scheme", "--workers", "--json", "--rate", "--batches", "--out"):
        assert option in outcome.out


MISTAKES = {
    "no application": (["nothing"], "No such command 'nothing'; applications are "),
    "no option": (["vwap", "--xyz"], "No such option: --xyz; see: unskew run vwap --help"),
    "no file": (["vwap", "nowhere.parquet"], "path: there is no 'nowhere.parquet'"),
    "no format": (["vwap", "plain"], "format: the name 'plain' does not tell; add --format with one of parquet, csv,"),
    "workers": (["vwap", "--workers", 0], "workers: must be an integer from 1 to 256, not 0"),
    "rows": (["vwap", "--rows", 0], "rows: must be an integer from 1 to 1000000000, not 0"),
    "rate": (["vwap", "--rate", 0], "rate: must be an integer from 1 to 100000000, not 0"),
    "seconds": (["vwap", "--rate", 5, "--seconds", 0], "seconds: must be a number from 1 to 86400, not 0.0"),
    "two places": (
        ["vwap", "--rate", 5, "--batches", 2],
        "rate: rows come from one place, and batches is given; leave",
    ),
    "fewer rows than batches": (
        ["vwap", "--rows", 3, "--batches", 5],
        "rows: must be at least one per batch, 5, not 3",
    ),
    "whole keys": (
        ["vwap", "--scheme", "pkg"],
        "scheme: must be one of scan, redist, readj, which keep keys whole, not 'pkg'",
    ),
    "add to a batch": (["vwap", "--add", 2], "add: workers are added between micro-batches; give a folder, --batches"),
    "no key": (
        ["enrich", "--scheme", "hash"],
        "scheme: must be one of learned, told, shuffle, since rows have no key here, not 'hash'",
    ),
    "offline scheme": (["wordcount", "--scheme", "off_greedy"], "scheme: off_greedy cannot run on Spark; allowed are "),
    "no scheme": (["wordcount", "--scheme", "gkp"], "scheme: 'gkp' is not known; allowed are "),
    "no name": (
        ["naive-bayes", "--scheme", "pkg(3)"],
        "scheme: must be a name or NAME(parameter=value), not 'pkg(3)'; allowed are ",
    ),
    "scheme's parameter": (
        ["wordcount", "--scheme", "pkg(choices=0)"],
        "choices: must be an integer from 1 to 2147483647",
    ),
    "top": (["wordcount", "--top", 0], "top: must be an integer from 1 to 10000, not 0"),
    "depth": (["decision-tree", "--depth", 0], "depth: must be an integer from 1 to 30, not 0"),
    "bins": (["decision-tree", "--bins", 1], "bins: must be an integer from 2 to 1000, not 1"),
    "counters": (["heavy-hitters", "--counters", 0], "counters: must be an integer from 1 to 10000000, not 0"),
    "key": (["heavy-hitters", "--key", "a b"], "key: must be a name of letters, digits and underscores, not 'a b'"),
    "no file to classify": (["naive-bayes", "--classify", "new.csv"], "path: there is no 'new.csv'"),
    "its own result": (
        ["heavy-hitters", "ran/result.parquet", "--out", "ran", "--force"],
        "path: 'ran/result.parquet' is what this run would replace; write to another folder with --out",
    ),
    "out is a file": (["vwap", "--out", "plain"], "out: 'plain' is a file; name a folder"),
    "out has files": (["vwap", "--out", "full"], "out: 'full' has files, all kept (mine.txt); add --force, or name"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_nothing_is_written(run, name, tmp_path):
    (tmp_path / "plain").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "ran").mkdir()
    pq.write_table(pa.table({"entity": ["a"]}), tmp_path / "ran" / "result.parquet")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    arguments, message = MISTAKES[name]
    outcome = run("run", *arguments)
    assert outcome.status == 2
    assert outcome.err.startswith(f"unskew: {message}")
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    assert (tmp_path / "plain").read_text() == (tmp_path / "full" / "mine.txt").read_text() == "mine"


def test_a_folder_is_a_stream_and_a_file_is_a_batch(tmp_path):
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "one.parquet")
    assert Source(str(tmp_path)).is_stream
    assert not Source(str(tmp_path / "one.parquet")).is_stream
    assert not Source().is_stream
    assert Source(batches=2).is_stream
    assert Source(rate=10).is_stream


class FailsAtTheEnd:
    """Stands for a stream whose last micro-batch is still at work when the time is over, and then fails."""

    isStreaming, isActive = True, True  # noqa: N815

    def __getattr__(self, name):
        return self

    def __call__(self, *arguments, **options):
        return self

    def foreachBatch(self, take):  # noqa: N802
        self.take = take
        return self

    def isEmpty(self):  # noqa: N802
        return False

    def awaitTermination(self, seconds):  # noqa: N802
        with pytest.raises(ValueError, match="the last"):
            self.take(self, 0)


def test_an_error_in_the_last_micro_batch_is_not_lost(tmp_path):
    job = Job(None, Source(rate=10), 2, None, tmp_path / "out", tmp_path)
    job.batches_done = 1

    def work(rows, number):
        raise ValueError("the last")

    with pytest.raises(ValueError, match="the last"):
        job.each_batch(FailsAtTheEnd(), work)
