"""`unskew schemes` and `unskew simulate`, as a user types them."""

import io
import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

import unskew
from command import runner
from samples import scheme_for
from unskew import SCHEMES, make
from unskew.simulate import count_keys, simulate
from unskew.streams import File, Zipf, parse

STREAM = "zipf(z=1.0, keys=100, tuples=700)"
FIELDS = {
    *("scheme", "params", "stream", "workers", "sources", "tuples", "keys", "imbalance", "imbalance_fraction"),
    *("mean_imbalance_fraction", "max_over_mean", "replicas", "replicas_over_kg", "replicas_lower_bound", "seconds"),
    "tuples_per_second",
}
COSTS = {"seconds", "tuples_per_second", "stream_seconds"}


@pytest.fixture
def run(capsys, monkeypatch):
    return runner(capsys, monkeypatch)


def without_costs(result):
    return {name: value for name, value in result.items() if name not in COSTS}


# ---------------------------------------------------------------- help, schemes


@pytest.mark.parametrize("command", ["schemes", "simulate", "route"])
def test_help_shows_an_example_that_starts_with_the_command(run, command):
    outcome = run(command, "--help")
    assert outcome.status == 0
    assert "Example" in outcome.out
    assert f"unskew {command} --" in outcome.out
    assert "--json" in outcome.out


def test_the_version_is_that_of_the_package(run):
    assert run("--version") == (0, f"unskew {unskew.__version__}\n", "")


def test_help_lists_the_commands(run):
    outcome = run("--help")
    assert outcome.status == 0
    assert all(command in outcome.out for command in ("demo", "schemes", "simulate", "route", "reproduce"))


def test_schemes_lists_paper_parameters_and_use_of_every_scheme(run):
    (listed,) = run("schemes", "--json").json_lines
    assert [entry["scheme"] for entry in listed] == sorted(SCHEMES)
    for entry in listed:
        assert entry["paper"]
        assert entry["when"]
        assert entry["parameters"] == SCHEMES[entry["scheme"]].parameters
    table = run("schemes")
    assert table.status == 0
    assert all(name in table.out for name in SCHEMES)
    assert "choices=2" in table.out


def test_the_command_runs_as_a_program_of_its_own():
    program = [sys.executable, "-c", "from unskew.cli import main; main()"]
    done = subprocess.run([*program, "simulate", "--scheme", "gkp"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"unskew: scheme: 'gkp' is not known; allowed are {', '.join(sorted(SCHEMES))}\n"
    arguments = ["simulate", "--scheme", "hash", "--stream", "zipf(1, 10, 100)", "--json"]
    done = subprocess.run([*program, *arguments], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["tuples"] == 100
    assert done.stderr == ""


# ---------------------------------------------------------------- simulate


def test_an_event_that_is_said_twice_happens_twice(run):
    events = ["--event", "t=10 add", "--event", "t=10 add"]
    (result,) = run("simulate", "--scheme", "pkg", "--workers", 3, "--stream", STREAM, *events, "--json").json_lines
    assert result["members"] == [0, 1, 2, 3, 4]


def test_infinity_can_be_said_and_json_has_it_as_text(run):
    for said in (["--scheme", "fish(interval=inf)"], ["--scheme", "fish", "--param", "interval=inf"]):
        (result,) = run("simulate", *said, "--stream", STREAM, "--json").json_lines
        assert result["params"]["interval"] == "inf"


def test_json_has_every_field_and_nothing_else_is_on_standard_output(run):
    outcome = run("simulate", "--scheme", "pkg", "--workers", 10, "--sources", 5, "--stream", STREAM, "--json")
    assert outcome.status == 0
    (result,) = outcome.json_lines
    assert set(result) >= FIELDS
    assert (result["scheme"], result["params"]) == ("pkg", {"choices": 2, "seed": 0})
    assert (result["stream"], result["workers"], result["sources"]) == (STREAM, 10, 5)
    assert result["tuples"] == 700
    assert outcome.err == ""


def test_numbers_are_those_of_the_library(run):
    options = ("--estimation", "probe:0.1", "--feed", "key", "--oracle", "--seed", 1, "--json")
    choice = ("--scheme", "pkg", "--param", "choices=3", "--sources", 4, "--stream", STREAM)
    (told,) = run("simulate", *choice, *options).json_lines
    (expected,) = simulate(
        Zipf(1.0, 100, 700, seed=1),
        [make("pkg", 10, choices=3)],
        sources=4,
        estimation="probe:0.1",
        feed="key",
        oracle=True,
    )
    assert without_costs(told) == without_costs(expected.to_dict())


def test_the_same_seed_gives_the_same_output_and_another_seed_another(run):
    def told(seed):
        outcome = run("simulate", "--scheme", "hash", "--stream", STREAM, "--seed", seed, "--json")
        return without_costs(outcome.json_lines[0])

    assert told(1) == told(1)
    assert told(1)["load"] != told(2)["load"]


def test_several_schemes_are_compared_on_one_stream(run):
    texts = ["hash", "pkg(choices=4)", "pkg", "off_greedy", "potc"]
    options = [argument for text in texts for argument in ("--scheme", text)]
    results = run("simulate", *options, "--param", "choices=3", "--stream", STREAM, "--json").json_lines
    assert [result["scheme"] for result in results] == ["hash", "pkg", "pkg", "off_greedy", "potc"]
    assert [result["params"].get("choices") for result in results] == [None, 4, 3, None, 3]
    for result, text in zip(results, texts, strict=True):
        param = ["--param", "choices=3"] if text in ("pkg", "potc") else []
        (alone,) = run("simulate", "--scheme", text, *param, "--stream", STREAM, "--json").json_lines
        assert without_costs(result) == without_costs(alone)


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_every_scheme_can_be_simulated_offline_ones_with_the_streams_own_frequencies(run, name):
    (result,) = run("simulate", "--scheme", name, "--workers", 7, "--stream", STREAM, "--json").json_lines
    stream = parse(STREAM)
    counted = count_keys(stream)
    offline = SCHEMES[name].offline
    fitted = SCHEMES[name].type.fit(7, counted.key_ids, counted.counts) if offline else None
    scheme = fitted or scheme_for(name, 7, counted.key_ids)
    assert result["load"] == simulate(stream, [scheme])[0].load


def test_the_table_shows_every_scheme_with_its_bars(run):
    outcome = run("simulate", "--scheme", "hash", "--scheme", "pkg(choices=3)", "--stream", STREAM, "--oracle")
    assert outcome.status == 0
    assert outcome.err == ""
    assert STREAM in outcome.out
    assert "700 tuples" in outcome.out
    assert "pkg(choices=3)" in outcome.out
    bars = [line for line in outcome.out.splitlines() if line.count("|") == 2]
    assert [line.split()[0] for line in bars] == ["hash", "pkg(choices=3)"]
    assert [len(line.split("|")[1]) for line in bars] == [10, 10]
    assert "█" in bars[0]  # the highest load of all
    assert "█" not in bars[1]
    assert outcome.out.count("agrees with the oracle on 100.0%") == 2


@pytest.mark.parametrize("name", ["plain", "odd [bold] ü [x]"])
def test_a_file_is_a_stream_whatever_its_name_and_keys(run, tmp_path, name):
    path = tmp_path / f"{name}.parquet"
    pa.parquet.write_table(pa.table({"k": ["a", None, "", "ü", "a"], "t": [5.0, 1.0, 2.0, 9.0, -1.0]}), path)
    outcome = run("simulate", "--scheme", "hash", "--stream", path, "--key", "k", "--time", "t")
    assert outcome.status == 0
    assert f"{name}.parquet" in outcome.out.replace("\n", "")
    (result,) = run("simulate", "--scheme", "hash", "--stream", path, "--key", "k", "--time", "t", "--json").json_lines
    assert (result["tuples"], result["keys"], result["p1"]) == (5, 4, 0.4)
    assert result["stream"] == str(File(str(path), key="k", time="t"))


@pytest.mark.parametrize("picture", ["runs.png", "runs.svg", "runs.pdf"])
def test_plot_writes_a_picture_and_says_so_beside_the_json(run, tmp_path, picture):
    path = tmp_path / picture
    outcome = run("simulate", "--stream", STREAM, "--plot", path, "--json")
    assert outcome.status == 0
    assert len(outcome.json_lines) == 3
    assert outcome.err == f"picture written to {path}\n"
    begins = {"runs.png": b"\x89PNG", "runs.svg": b"<?xml", "runs.pdf": b"%PDF"}
    assert path.read_bytes().startswith(begins[picture])


def test_a_picture_is_replaced_only_when_told_to(run, tmp_path):
    path = tmp_path / "runs.svg"
    path.write_text("mine")
    refused = run("simulate", "--stream", STREAM, "--plot", path)
    assert (refused.status, path.read_text()) == (2, "mine")
    assert run("simulate", "--stream", STREAM, "--plot", path, "--force").status == 0
    assert path.read_text() != "mine"


# ---------------------------------------------------------------- the edges


@pytest.mark.parametrize(
    "arguments",
    [
        ("--stream", "zipf(1, 10, 0)"),
        ("--stream", "zipf(1, 1, 300)"),
        ("--stream", "zipf(1, 10, 300)", "--workers", "1"),
        ("--stream", "zipf(1, 10, 1)", "--sources", "50"),
        ("--stream", "zipf(1, 10, 30)", "--workers", "100000", "--scheme", "pkg"),
    ],
    ids=["zero rows", "one key", "one worker", "one row", "many workers"],
)
def test_edges_are_shown_like_anything_else(run, arguments, tmp_path):
    shown = run("simulate", *arguments, "--oracle", "--plot", tmp_path / "runs.png")
    assert shown.status == 0
    assert "agrees with the oracle" in shown.out
    assert (tmp_path / "runs.png").stat().st_size > 1000
    assert run("simulate", *arguments, "--oracle", "--json").json_lines


def test_a_text_without_words_has_no_tuples(run, tmp_path):
    path = tmp_path / "empty.txt"
    path.write_text("\n \n")
    (result,) = run("simulate", "--stream", path, "--scheme", "off_greedy", "--json").json_lines
    assert (result["tuples"], result["keys"]) == (0, 0)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_terminal_with_ascii_only_gets_plain_bars(run, monkeypatch, options):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True))
    assert run("simulate", "--scheme", "hash", "--stream", STREAM, *options).status == 0
    shown = sys.stdout.buffer.getvalue().decode("ascii")
    assert "hash |" in shown or json.loads(shown)["scheme"] == "hash"


def test_output_is_the_same_in_another_process_under_another_hash_seed(run):
    arguments = ["simulate", "--scheme", "pkg", "--scheme", "off_greedy", "--stream", STREAM, "--seed", "5", "--json"]
    here = run(*arguments).json_lines
    program = [sys.executable, "-c", "from unskew.cli import main; main()", *arguments]
    there = subprocess.run(program, env=os.environ | {"PYTHONHASHSEED": "77"}, capture_output=True, check=True)
    assert [without_costs(json.loads(line)) for line in there.stdout.splitlines()] == list(map(without_costs, here))
