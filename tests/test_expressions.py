"""Streams as text: nothing in it is executed, and a mistake is answered with what is allowed."""

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew import InputError
from unskew.calls import parse_assignment, parse_call
from unskew.streams import STREAMS, Drift, File, Graph, Lognormal, Matched, StandIn, Zipf, parse

numbers = st.one_of(st.integers(0, 20), st.floats(0, 20))
counts = st.integers(1, 10**9)
seeds = st.integers(0, 2**63 - 1)
rates = st.floats(1e-9, 1e15)

generated = st.one_of(
    st.builds(Zipf, numbers, counts, counts, seeds, rates),
    st.builds(Lognormal, numbers, numbers, counts, seeds, rates),
    st.builds(Drift, numbers, counts, counts, counts, counts, seeds, rates),
    st.builds(Matched, counts, st.integers(10, 10**6), st.floats(0.2, 0.9), seeds, rates),
    st.builds(StandIn, st.sampled_from(["WP", "TW", "CT", "LJ"]), counts, seeds),
)


@given(stream=generated)
@settings(max_examples=200)
def test_a_stream_reads_back_from_its_own_text(stream):
    assert parse(str(stream)) == stream


@pytest.mark.parametrize("name", ["plain.parquet", 'o\'clock [1] "x" ü.parquet'])
def test_streams_of_files_read_back_from_their_own_text(tmp_path, name):
    path = str(tmp_path / name)
    pa.parquet.write_table(pa.table({"src": [1], "key": [2], "at": [3.0]}), path)
    for stream in (File(path, key="key", time="at", source="src"), File(path, key="key"), Graph(path, shuffled=True)):
        assert parse(str(stream)) == stream


def test_texts_may_leave_out_names_and_defaults():
    assert parse("zipf(1, 10, 100)") == Zipf(1, 10, 100)
    assert parse(" zipf( keys=1_000, z=1e0, tuples=1_000_000 ) ") == Zipf(1.0, 1000, 1_000_000)
    assert parse("stand_in('CT')") == StandIn("CT") == StandIn("CT", 690_000)


def test_a_seed_from_outside_is_for_a_text_without_one():
    assert parse("zipf(1, 10, 100)", seed=7) == Zipf(1, 10, 100, seed=7)
    assert parse("zipf(1, 10, 100, seed=3)", seed=7) == Zipf(1, 10, 100, seed=3)


def test_the_name_of_a_file_is_a_stream(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("a b")
    assert parse(str(path)) == File(str(path))
    assert parse(str(path), seed=3) == File(str(path))


NO_STREAM = [
    "",
    " ",
    "zipf(",
    "zipf)",
    "zipf(1, 10, 100) + 1",
    "zipf(1, 10, 100); 1",
    "zpif(1, 10, 100)",
    "1.0",
    "'zipf'",
    "zipf.x(1)",
    "zipf(1)(2)",
    "[zipf]",
    "zipf(*[1, 10, 100])",
    "zipf(1, 10, tuples)",
    "zipf(1, 10, 10**2)",
    "zipf(1, 10, [x for x in (1, 2)])",
    "zipf({[1]: 2}, 10, 100)",
    "zipf(z=1, z=2, keys=10, tuples=100)",
    "zipf(f'{1}', 10, 100)",
    "lambda: 1",
    "zipf\0(1, 10, 100)",
    "zipf(1, 10, 1" + "0" * 5000 + ")",
    "(" * 5000,
    "x" * 5000,
]


@pytest.mark.parametrize("text", NO_STREAM, ids=lambda text: text[:30] or "empty")
def test_what_is_no_stream_is_refused_with_every_stream_that_there_is(text):
    with pytest.raises(InputError, match=r"^stream: cannot understand ") as error:
        parse(text)
    assert all(f"{name}(" in str(error.value) for name in STREAMS)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "zipf(__import__('os').system('touch executed'))",
        "zipf(z=open('executed', 'w'), keys=1, tuples=1)",
        "__import__('os').system('touch executed')",
        "(lambda: open('executed', 'w'))()",
        "zipf([open('executed', 'w') for _ in '1'], 1, 1)",
    ],
)
def test_nothing_in_a_text_is_ever_executed(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^stream: cannot understand "):
        parse(text)
    with pytest.raises(InputError, match=r"^param: must be NAME=VALUE"):
        parse_assignment(text)
    assert list(tmp_path.iterdir()) == []


@given(text=st.text(max_size=60))
@settings(max_examples=200)
def test_any_text_is_a_stream_or_refused(text):
    try:
        parse(text)
    except InputError as error:
        assert str(error)  # noqa: PT017  (either outcome is right; any other exception is not)


@pytest.mark.parametrize("text", ["zipf(1, 2)", "zipf", "zipf()", "zipf(1, 2, 3, nonsense=4)", "zipf(**{'z': 1})"])
def test_wrong_arguments_are_refused_with_those_that_the_stream_has(text):
    with pytest.raises(InputError, match=r"; it is zipf\(z, keys, tuples, seed=0, rate=1000.0\)$"):
        parse(text)


ALLOWED = "allowed are files that end in .parquet, .csv, .txt, .text, .md, .log, and folders of .parquet files"
WRONG_VALUES = {
    "zipf(-1, 10, 10)": "z: must be a number from 0 to 20, not -1",
    "zipf('1', 10, 10)": "z: must be a number from 0 to 20, not '1'",
    "zipf(1e999, 10, 10)": "z: must be a number from 0 to 20, not inf",
    "zipf(1" + "0" * 400 + ", 10, 10)": "z: must be a number from 0 to 20, not 1" + "0" * 76 + "...",
    "zipf(True, 10, 10)": "z: must be a number from 0 to 20, not True",
    "zipf(1, 0, 10)": "keys: must be an integer from 1 to 2**53, not 0",
    "zipf(1, 1.5, 10)": "keys: must be an integer from 1 to 2**53, not 1.5",
    "zipf(1, 10, -1)": "tuples: must be an integer from 0 to 2**63 - 1, not -1",
    "zipf(1, 10, 10, seed=-1)": "seed: must be an integer from 0 to 2**63 - 1, not -1",
    "zipf(1, 10, 10, seed='x')": "seed: must be an integer from 0 to 2**63 - 1, not 'x'",
    "zipf(1, 10, 10, rate=0)": "rate: must be a number of tuples per second from 1e-9 to 1e15, not 0",
    "lognormal('a', 1, 10)": "mu: must be a number from -40 to 40, not 'a'",
    "lognormal(1, None, 10)": "sigma: must be a number from 0 to 40, not None",
    "drift(1, 10, 10, every=0)": "every: must be an integer from 1 to 2**63 - 1, not 0",
    "drift(1, 10, 10, step=-1)": "step: must be an integer from 0 to 2**31, not -1",
    "matched(10, 1, 0.5)": "keys: must be an integer from 2 to 1000000000000, not 1",
    "matched(10, 4, 'x')": "p1: must be a share above 1/keys = 0.25 and at most 0.9999990, not 'x'",
    "stand_in('XX')": "name: must be one of WP, TW, CT, LJ, not 'XX'",
    "stand_in([])": "name: must be one of WP, TW, CT, LJ, not []",
    "stand_in('WP', 1.5)": "tuples: must be an integer from 0 to 2**63 - 1, not 1.5",
    "file(3)": f"path: 3 is not a file; {ALLOWED}",
    "file('nowhere.csv', 'k')": f"path: 'nowhere.csv' is not a file; {ALLOWED}",
    "nowhere.txt": f"path: 'nowhere.txt' is not a file; {ALLOWED}",
    "graph(3)": "path: a graph is a .parquet or .csv file with two columns, not 3",
    "graph('x.txt')": "path: a graph is a .parquet or .csv file with two columns, not 'x.txt'",
    "graph('x.csv', seed=-1)": "seed: must be an integer from 0 to 2**63 - 1, not -1",
}


@pytest.mark.parametrize(("text", "message"), WRONG_VALUES.items(), ids=lambda text: text[:30])
def test_wrong_values_are_refused_by_name_rule_and_value(text, message):
    with pytest.raises(InputError) as error:
        parse(text)
    assert str(error.value) == message


def test_columns_are_for_files_only():
    with pytest.raises(InputError, match=r"^key: only a file has columns, and 'zipf\(1, 10, 10\)' is not a file$"):
        parse("zipf(1, 10, 10)", key="k")


def test_a_folder_is_not_a_file(tmp_path):
    folder = tmp_path / "events.parquet"
    folder.mkdir()
    with pytest.raises(InputError, match=r"^path: .* is not a file; allowed are "):
        parse(str(folder), key="k")


def test_assignments_have_one_name_and_one_value():
    assert parse_assignment("choices=3") == ("choices", 3)
    assert parse_assignment("name='x, y'") == ("name", "x, y")
    assert parse_assignment("name=x") == ("name", "x")
    for wrong in ("choices", "3", "=3", "choices=", "a=1, b=2", "a=1, a=2", "choices=x+1", "**{'a': 1}, b=2", ""):
        with pytest.raises(InputError, match=r"^param: must be NAME=VALUE, such as choices=3, not "):
            parse_assignment(wrong)


def test_a_bare_name_is_a_call_without_arguments():
    assert parse_call("pkg") == parse_call("pkg()") == ("pkg", [], {})


def test_a_bare_word_is_a_text_where_a_parameter_is_named():
    assert parse_call("partitioner(algorithm=scan, alpha=1.5)").named == {"algorithm": "scan", "alpha": 1.5}
    assert parse_call("zipf(1, keys)") is None
