"""`unskew simulate` with queues and events, as a user types it."""

import pytest

from command import runner
from unskew import make
from unskew.cli.output import console
from unskew.simulate import Queues, simulate
from unskew.streams import parse

STREAM = "zipf(z=1.0, keys=100, tuples=700)"


@pytest.fixture
def run(capsys, monkeypatch):
    return runner(capsys, monkeypatch)


def test_the_command_is_the_library(run):
    options = ("--utilisation", 0.9, "--capacity", "0-2:5", "--queue-bound", 50, "--feedback-delay", 1.5)
    events = ("--event", "t=0.3k crash 3", "--event", "t=400 capacity 0:1")
    (told,) = run("simulate", "--scheme", "pkg", "--stream", STREAM, *options, *events, "--json").json_lines
    queues = Queues(utilisation=0.9, capacity="0-2:5", bound=50, feedback_delay=1.5)
    (expected,) = simulate(
        parse(STREAM), [make("pkg", 10)], queues=queues, events=["t=300 crash 3", "t=400 capacity 0:1"]
    )
    costs = {"seconds": 0, "tuples_per_second": 0, "stream_seconds": 0}
    assert told | costs == expected.to_dict() | costs


def test_what_a_scheme_of_whole_keys_moves_is_shown(run):
    scheme = ("--scheme", "partitioner(algorithm=scan, history=200, every=100, error=0.005)", "--workers", 3)
    options = ("--utilisation", 0.5, "--migration", 0.01, "--event", "t=300 add")
    shown = run("simulate", *scheme, "--stream", STREAM, *options)
    assert shown.status == 0, shown.err
    assert all(words in shown.out for words in (" new table", " moved with ", " of state, waited "))
    (told,) = run("simulate", *scheme, "--stream", STREAM, *options, "--json").json_lines
    assert told["moved_keys"] > 0
    assert told["stalled"] > 0


def test_the_table_has_columns_of_queues_only_where_there_are_queues(run, tmp_path):
    choice = ("simulate", "--scheme", "pkg", "--scheme", "hash", "--stream", STREAM)
    assert "makespan" not in run(*choice).out
    picture = ("--plot", tmp_path / "runs.svg")
    shown = run(*choice, "--rate", 5, "--event", "t=500 crash 0", "--event", "t=1M add", *picture)
    assert shown.status == 0
    assert all(word in shown.out for word in ("makespan", "p99", "max U", "lost by crashes", "Workers came or went"))
    assert "event: 't=1M add' was due after the last tuple and did not take place" in shown.err
    assert (tmp_path / "runs.svg").stat().st_size > 1000


LONG = "fish(virtual_nodes=3, epoch=123456, alpha=0.123456, theta=0.125)"


@pytest.mark.parametrize("columns", [20, 80, 200])
@pytest.mark.parametrize("capacity", [1e9, 123.456, 1e-9])
def test_numbers_are_whole_however_narrow_the_terminal_is(run, monkeypatch, columns, capacity):
    monkeypatch.setattr(console, "width", columns)
    stream = "zipf(z=1.0, keys=12345, tuples=1500)"
    queues = ("--utilisation", 0.8, "--capacity", capacity)
    out = run("simulate", "--scheme", LONG, "--scheme", "hash", "--stream", stream, *queues).out
    (hashed,) = simulate(parse(stream), [make("hash", 10)], queues=Queues(utilisation=0.8, capacity=capacity))
    assert "…" not in out
    shown = [line.split()[1:] for line in out.splitlines() if line.split()[:1] == ["hash"]]
    assert [len(numbers) for numbers in shown[:2]] == [7, 8]
    prefixes = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
    told = [float(text.rstrip("".join(prefixes))) * prefixes.get(text[-1], 1) for text in shown[1]]
    latencies = (hashed.latency_mean, hashed.latency_p50, hashed.latency_p95, hashed.latency_p99)
    rest = (hashed.longest_queue, hashed.utilisation_max, hashed.throughput, hashed.makespan)
    assert told == pytest.approx([*latencies, *rest], rel=0.006)


def test_what_comes_all_at_once_has_no_utilisation(run, tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("k,t\n" + "a,5\n" * 20)
    choice = ("simulate", "--scheme", "hash", "--stream", path, "--key", "k", "--time", "t", "--capacity", 2)
    shown = run(*choice)
    row = [line.split() for line in shown.out.splitlines() if line.split()[:1] == ["hash"]][1]
    assert row[6] == "-"
    (told,) = run(*choice, "--json").json_lines
    assert told["utilisation_max"] == "inf"
    assert "late" not in shown.err


def test_a_stream_that_runs_backwards_is_remarked_on(run, tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("k,t\n" + "".join(f"a,{-i}\n" for i in range(2000)))
    choice = ("simulate", "--scheme", "hash", "--stream", path, "--key", "k", "--time", "t")
    assert "1,999 of 2,000 tuples came late" in run(*choice, "--capacity", 2).err
    assert "1,999 of 2,000 tuples came late" in run(*choice, "--scheme", "pkg", "--estimation", "probe:1").err
    assert "came late" not in run(*choice, "--rate", 2).err + run(*choice).err


def test_a_few_late_tuples_are_not_remarked_on(run, tmp_path):
    path = tmp_path / "events.csv"
    for late in (20, 21):
        path.write_text("k,t\n" + "".join(f"a,{i if i < 2000 - late else 0}\n" for i in range(2000)))
        shown = run("simulate", "--scheme", "pkg", "--stream", path, "--key", "k", "--time", "t", "--capacity", 2)
        assert ("21 of 2,000 tuples came late" in shown.err) == (late == 21)


def test_a_stream_without_tuples_has_no_balance(run):
    choice = ("simulate", "--scheme", "pkg", "--scheme", "hash", "--stream", "zipf(1.0, 10, 0)", "--utilisation", 0.8)
    shown = run(*choice)
    assert shown.status == 0
    assert shown.err == "the stream has no tuples: there is no balance to measure\n"
    assert next(line.split()[1] for line in shown.out.splitlines() if line.split()[:1] == ["hash"]) == "-"
    assert [told["max_over_mean"] for told in run(*choice, "--json").json_lines] == [None, None]


def test_schemes_that_listen_in_vain_are_remarked_on(run):
    choice = ("simulate", "--scheme", "cg", "--scheme", "pkg", "--stream", STREAM)
    remark = (
        "cg listens to workers, but hears nothing here: workers report only with --rate, --utilisation or --capacity"
    )
    assert run(*choice).err == f"{remark}\n"
    assert run(*choice, "--scheme", "fish").err.startswith("cg, fish listen to workers, but hear nothing here: ")
    assert run(*choice, "--rate", 1).err == run("simulate", "--scheme", "pkg", "--stream", STREAM).err == ""


MISTAKES = {
    "rate": (("--rate", 0), "rate: must be tuples per second from 1e-09 to 1e+15, not 0.0"),
    "no rate": (("--rate", "nan"), "rate: must be tuples per second from 1e-09 to 1e+15, not nan"),
    "utilisation": (("--utilisation", -1), "utilisation: must be a share of the total capacity from 1e-06 to 1e+06"),
    "both": (("--rate", 1, "--utilisation", 1), "rate: give either rate or utilisation, not both 1.0 and 1.0"),
    "capacity": (
        ("--capacity", "0-2"),
        "capacity: must be tuples per second from 1e-09 to 1e+12 for all workers, such ",
    ),
    "nobody's capacity": (
        ("--capacity", "3,12:4"),
        "capacity: there is no worker 12; workers are 0..9, added ones inc",
    ),
    "two capacities": (
        ("--capacity", "0-2:5", "--capacity", "7:3"),
        "capacity: may be given only once, not 2 times; name workers in one, such as --capacity 0-2:5,7:3",
    ),
    "no capacity": (("--capacity", ""), "capacity: must be tuples per second from 1e-09 to 1e+12 for all workers, "),
    "bound": (("--queue-bound", 0), "queue-bound: must be a whole number of tuples from 1 to 2**63 - 1, not 0"),
    "no number": (("--scheme", "cg(epsilon=nan)"), "epsilon: must be a number from 0 on, or inf, not nan"),
    "delay": (("--rate", 1, "--feedback-delay", -1), "feedback_delay: must be seconds from 0 to 1e+12, not -1.0"),
    "migration alone": (("--migration", 1), "migration: needs queues; add --utilisation, --rate or --capacity"),
    "delay alone": (("--feedback-delay", 1), "feedback-delay: needs queues; add --utilisation, --rate or --capacity"),
    "event": (("--event", "t=5 boom"), "event: must be 't=WHEN add', "),
    "event's capacity": (("--event", "t=5 capacity 2"), "event: 't=5 capacity 2' needs queues: give a rate, a util"),
    "scheme that cannot follow": (
        ("--scheme", "fanout", "--event", "t=5 add"),
        "scheme: fanout cannot go on when workers come or go: what it has stored is for the workers that it was made",
    ),
    "event's worker": (("--event", "t=5 crash 10"), "event: 't=5 crash 10': there is no worker 10; workers are 0..9"),
}


@pytest.mark.parametrize(("options", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_gets_one_line(run, options, message):
    outcome = run("simulate", "--scheme", "pkg", "--stream", STREAM, *options)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"unskew: {message}")
    assert outcome.err.count("\n") == 1


def test_a_file_with_costs_is_served_by_its_costs(run, tmp_path):
    path = tmp_path / "documents.csv"
    path.write_text("kind,seconds\n" + "a,10\nb,1\n" * 50)
    choice = ("simulate", "--scheme", "shuffle", "--workers", 2, "--stream", path, "--key", "kind")
    told = run(*choice, "--cost", "seconds", "--utilisation", 0.5, "--json").json_lines[0]
    assert told["load"] == [50, 50]
    assert told["work"] == [500.0, 50.0]
    shown = run(*choice, "--cost", "seconds")
    assert all(word in shown.out for word in ("of work", "1.818", "max/mean of the cost of what each worker got"))
    assert "of work" not in run(*choice).out
    assert "cost: column 'kind' must hold numbers, not string such as 'a'" in run(*choice, "--cost", "kind").err
