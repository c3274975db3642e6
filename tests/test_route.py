"""`unskew route`: the file with two more columns, which hold the router's decisions and Spark's salts."""

import datetime
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from command import runner
from unskew import SCHEMES, Router, candidate, key_ids, make, salts_for
from unskew.simulate.metrics import KeyCounter

KEYS = ["a", None, "", "ü", "a", "日本", "b", "a", "x" * 5000, "a", "c", None]
TABLE = {"id": list(range(12)), "k": KEYS, "other": [None, "x"] * 6, "at": [float(i) for i in range(12)]}


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    pa.parquet.write_table(pa.table(TABLE), "in.parquet", row_group_size=5)
    return runner(capsys, monkeypatch)


def scheme_of(name, workers, ids, **parameters):
    """As the command makes it: an offline scheme knows the keys in their order of arrival."""
    if not SCHEMES[name].offline:
        return make(name, workers, **parameters)
    counter = KeyCounter()
    counter.count(ids)
    return SCHEMES[name].type.fit(workers, counter.ids, counter.counts)


def check_decisions(routed, keys, scheme):
    """Decisions are the router's, and each salt leads Spark to the worker."""
    ids = key_ids(keys)
    workers, salts = np.asarray(routed["worker"], np.int32), np.asarray(routed["salt"], np.int32)
    assert workers.tolist() == Router(scheme).route(ids).tolist()
    assert salts.tolist() == salts_for(ids, workers, scheme.workers).tolist()
    placed = [int(candidate(key, int(salt), scheme.workers)) for key, salt in zip(ids, salts, strict=True)]
    assert placed == workers.tolist()


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_decisions_are_the_routers_and_salts_lead_to_the_workers(run, name):
    arguments = ("--in", "in.parquet", "--key", "k", "--out", "out.parquet", "--workers", 7, "--scheme", name, "--json")
    outcome = run("route", *arguments)
    assert outcome.json_lines == [{"scheme": name, "workers": 7, "rows": 12, "late": 0, "out": "out.parquet"}]
    routed = pa.parquet.read_table("out.parquet")
    assert routed.column_names == [*TABLE, "worker", "salt"]
    assert routed.select(list(TABLE)).equals(pa.parquet.read_table("in.parquet"))
    assert (routed.schema.field("worker").type, routed.schema.field("salt").type) == (pa.int32(), pa.int32())
    check_decisions(routed, pa.array(KEYS), scheme_of(name, 7, key_ids(KEYS)))


@pytest.mark.parametrize("name", ["cg", "fish", "posg"])
def test_a_scheme_that_listens_is_said_to_hear_nothing(run, name):
    outcome = run("route", "--in", "in.parquet", "--key", "k", "--out", "out.parquet", "--scheme", name)
    assert outcome.err.strip() == f"{name} listens to workers, but hears nothing here: a file has none"


@pytest.mark.parametrize(("text", "param"), [("pkg(choices=4)", []), ("pkg", ["--param", "choices=4"])])
def test_parameters_are_taken_from_the_scheme_or_beside_it(run, text, param):
    run("route", "--in", "in.parquet", "--key", "k", "--out", "out.parquet", "--scheme", text, *param)
    check_decisions(pa.parquet.read_table("out.parquet"), pa.array(KEYS), make("pkg", 10, choices=4))


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([7, -1, None, 7], pa.int32()),
        pa.array([7, 2**40, None, 7], pa.int64()),
        pa.array([b"a", b"\xff", None, b"a"]),
        pa.array(["a", "b", None, "a"]).dictionary_encode(),
        pa.array([datetime.date(2020, 1, 1), None] * 2),
    ],
    ids=lambda keys: str(keys.type)[:10],
)
def test_keys_of_every_kind_are_routed_by_their_values_and_written_back(run, keys):
    pa.parquet.write_table(pa.table({"k": keys}), "kinds.parquet")
    assert run("route", "--in", "kinds.parquet", "--key", "k", "--out", "out.parquet").status == 0
    routed = pa.parquet.read_table("out.parquet")
    assert routed["k"].to_pylist() == keys.to_pylist()
    check_decisions(routed, keys, make("pkg", 10))


def test_chunks_of_the_file_change_no_decision(run, monkeypatch):
    run("route", "--in", "in.parquet", "--key", "k", "--out", "whole.parquet")
    monkeypatch.setattr(sys.modules["unskew.cli.route"], "CHUNK", 2)
    run("route", "--in", "in.parquet", "--key", "k", "--out", "cut.parquet")
    assert pa.parquet.read_table("cut.parquet").equals(pa.parquet.read_table("whole.parquet"))


def test_csv_goes_in_and_comes_out_with_its_text_as_it_was(run, tmp_path):
    (tmp_path / "in.csv").write_text('k,n\n007,1.50\n"a, b",\n\n7,NULL\n"line\nbreak",x\n007,ü\n')
    outcome = run("route", "--in", "in.csv", "--key", "k", "--out", "out.csv", "--workers", 3)
    assert (outcome.status, outcome.out) == (0, "5 rows routed over 3 workers: out.csv\n")
    as_text = pa.csv.ConvertOptions(column_types={"k": pa.string(), "n": pa.string()})
    parsing = pa.csv.ParseOptions(newlines_in_values=True)
    routed = pa.csv.read_csv("out.csv", parse_options=parsing, convert_options=as_text)
    assert routed.column_names == ["k", "n", "worker", "salt"]
    assert routed["k"].to_pylist() == ["007", "a, b", "7", "line\nbreak", "007"]
    assert routed["n"].to_pylist() == ["1.50", "", "NULL", "x", "ü"]
    check_decisions(routed, routed["k"], make("pkg", 3))


def test_csv_and_parquet_of_the_same_strings_are_routed_alike(run):
    pa.csv.write_csv(pa.table({"k": ["a", "b", "a", "c", "a"]}), "in.csv")
    pa.parquet.write_table(pa.table({"k": ["a", "b", "a", "c", "a"]}), "same.parquet")
    run("route", "--in", "in.csv", "--key", "k", "--out", "one.parquet")
    run("route", "--in", "same.parquet", "--key", "k", "--out", "two.csv")
    assert pa.csv.read_csv("two.csv").to_pydict() == pa.parquet.read_table("one.parquet").to_pydict()


@pytest.mark.parametrize("name", sorted(SCHEMES))
@pytest.mark.parametrize(("source", "out"), [("zero.parquet", "out.csv"), ("zero.csv", "out.parquet")])
def test_no_rows_are_routed_to_no_rows_with_the_same_columns(run, tmp_path, name, source, out):
    pa.parquet.write_table(pa.table({"k": pa.array([], pa.string()), "v": pa.array([], pa.int64())}), "zero.parquet")
    (tmp_path / "zero.csv").write_text("k,v\n")
    outcome = run("route", "--in", source, "--key", "k", "--out", out, "--scheme", name, "--json")
    assert outcome.json_lines[0]["rows"] == 0
    written = pa.parquet.read_table(out) if out.endswith("parquet") else pa.csv.read_csv(out)
    assert (written.column_names, written.num_rows) == (["k", "v", "worker", "salt"], 0)


def test_time_may_be_a_column_of_timestamps(run):
    times = pa.array([datetime.datetime(2020, 1, 1, 0, i) for i in range(4)], pa.timestamp("ns"))
    pa.parquet.write_table(pa.table({"k": list("abab"), "t": times}), "timed.parquet")
    assert run("route", "--in", "timed.parquet", "--key", "k", "--time", "t", "--out", "out.parquet").status == 0
    assert pa.parquet.read_table("out.parquet")["t"].to_pylist() == times.to_pylist()


def test_an_output_is_replaced_only_when_told_to(run, tmp_path):
    out = tmp_path / "out.parquet"
    out.write_text("mine")
    arguments = ("route", "--in", "in.parquet", "--key", "k", "--out", out)
    assert run(*arguments).status == 2
    assert out.read_text() == "mine"
    assert run(*arguments, "--force").status == 0
    assert pa.parquet.read_table(out).num_rows == 12


def test_what_cannot_be_written_leaves_nothing_behind(run, tmp_path):
    pa.parquet.write_table(pa.table({"k": ["a"], "list": [[1, 2]]}), "nested.parquet")
    before = sorted(tmp_path.iterdir())
    outcome = run("route", "--in", "nested.parquet", "--key", "k", "--out", "out.csv")
    assert outcome.status == 2
    assert outcome.err.startswith("unskew: out: 'out.csv' cannot be written: Unsupported Type:list")
    assert outcome.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError("No space left on device")])
@pytest.mark.parametrize("existing", [None, "mine"])
def test_a_failure_in_the_middle_leaves_what_was_there(run, tmp_path, monkeypatch, failure, existing):
    out = tmp_path / "out.parquet"
    if existing:
        out.write_text(existing)
    before = sorted(tmp_path.iterdir())

    def fail(*_):
        raise failure

    monkeypatch.setattr(pa.parquet.ParquetWriter, "write_batch", fail)
    assert run("route", "--in", "in.parquet", "--key", "k", "--out", out, "--force").status != 0
    assert sorted(tmp_path.iterdir()) == before
    assert not existing or out.read_text() == existing


def test_a_million_workers_are_all_right(run):
    arguments = ("--in", "in.parquet", "--key", "k", "--out", "out.parquet", "--workers", 1_000_000)
    assert run("route", *arguments).status == 0
    check_decisions(pa.parquet.read_table("out.parquet"), pa.array(KEYS), make("pkg", 1_000_000))


def test_a_name_is_shown_as_it_is(run, tmp_path):
    out = tmp_path / ("long" * 30 + "[bold] ü.parquet")
    outcome = run("route", "--in", "in.parquet", "--key", "k", "--out", out)
    assert outcome.out == f"12 rows routed over 10 workers: {out}\n"


def test_a_key_may_have_several_columns(run):
    arguments = ("--in", "in.parquet", "--key", "k", "--key", "other", "--out", "out.parquet", "--workers", 7)
    assert run("route", *arguments).status == 0
    routed = pa.parquet.read_table("out.parquet")
    ids = key_ids(pa.array(KEYS), pa.array(TABLE["other"]))
    assert np.asarray(routed["worker"]).tolist() == Router(make("pkg", 7)).route(ids).tolist()
    assert run("route", *arguments, "--key", "nope", "--force").err.startswith("unskew: key: in.parquet has no column")
    both = run("simulate", "--stream", "in.parquet", "--key", "k", "--key", "other", "--scheme", "hash", "--json")
    assert both.json_lines[0]["keys"] == len(set(ids.tolist()))


def test_times_that_run_backwards_are_pointed_out(run):
    pa.parquet.write_table(pa.table({"k": list("abcd"), "t": [1.0, 3.0, 2.0, 2.5]}), "timed.parquet")
    arguments = ("route", "--in", "timed.parquet", "--key", "k", "--time", "t", "--out", "out.parquet")
    outcome = run(*arguments)
    assert outcome.status == 0
    assert outcome.err == "time: 2 of 4 rows have an earlier time than one before them\n"
    assert run(*arguments, "--force", "--json").json_lines[0]["late"] == 2
