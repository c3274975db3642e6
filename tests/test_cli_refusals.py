"""A user's mistake: one line on standard error that names what is allowed, exit status 2, nothing written."""

import pyarrow as pa
import pyarrow.parquet
import pytest

from command import runner
from unskew import SCHEMES

NAMES = ", ".join(sorted(SCHEMES))
ZIPF = "zipf(1, 10, 100)"
SIMULATE = ("simulate", "--stream", ZIPF)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder that the command runs in, with a few files."""
    monkeypatch.chdir(tmp_path)
    pa.parquet.write_table(pa.table({"k": ["a", "b", "a"], "t": [1.0, 2.0, None], "f": [0.5, 1.5, 2.5]}), "t.parquet")
    pa.parquet.write_table(pa.table({"k": ["a"], "worker": [1]}), "routed.parquet")
    (tmp_path / "t.csv").write_text("k,v\na,1\n")
    (tmp_path / "words.txt").write_text("a b a")
    (tmp_path / "junk.parquet").write_text("junk")
    (tmp_path / "latin.csv").write_bytes(b"k,v\n" + b"a,1\n" * 100 + b"\xff,1\n")
    (tmp_path / "here.parquet").write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "folder.png").mkdir()
    return tmp_path


def route(**options):
    """`unskew route` with good options, but for these."""
    chosen = {"in": "t.parquet", "key": "k", "out": "out.parquet"} | options
    return ("route", *(argument for name, value in chosen.items() for argument in (f"--{name}", value)))


MISTAKES = {
    "scheme": (
        (*SIMULATE, "--scheme", "gkp"),
        f"scheme: 'gkp' is not known; allowed are {NAMES}",
    ),
    "scheme that is no name": (
        (*SIMULATE, "--scheme", "pkg(3)"),
        f"scheme: must be a name or NAME(parameter=value), not 'pkg(3)'; allowed names are {NAMES}",
    ),
    "scheme's parameter": (
        (*SIMULATE, "--scheme", "pkg(colour=3)"),
        "colour: not a parameter of pkg; allowed (with defaults): choices=2, seed=0",
    ),
    "parameter twice": (
        (*SIMULATE, "--scheme", "pkg(choices=3, choices=4)"),
        "scheme: must be a name or NAME(parameter=value), not 'pkg(choices=3, choices=4)'; allowed names are " + NAMES,
    ),
    "parameter of an offline scheme": (
        (*SIMULATE, "--scheme", "off_greedy(seed=1)"),
        "scheme: 'off_greedy(seed=1)': off_greedy has no parameters",
    ),
    "no workers": ((*SIMULATE, "--workers", 0), "workers: must be an integer from 1 to 2147483647, not 0"),
    "too many workers": (
        (*SIMULATE, "--workers", 2 * 10**9, "--scheme", "hash"),
        "workers: must be an integer from 1 to 10000000, not 2000000000",
    ),
    "no sources": ((*SIMULATE, "--sources", 0), "sources: must be an integer from 1 to 1000000, not 0"),
    "seed": ((*SIMULATE, "--seed", -1), "seed: must be an integer from 0 to 2**63 - 1, not -1"),
    "feed": ((*SIMULATE, "--feed", "random"), "feed: must be round_robin or key, not 'random'"),
    "estimation": (
        (*SIMULATE, "--estimation", "probe:often"),
        "estimation: must be local, global, probe:SECONDS (such as probe:60) or probe_whole:SECONDS, not 'probe:often'",
    ),
    "param that no scheme has": (
        (*SIMULATE, "--scheme", "pkg", "--param", "colour=3"),
        "param: no chosen scheme has 'colour'; allowed are choices, seed",
    ),
    "param without a value": (
        (*SIMULATE, "--scheme", "pkg", "--param", "choices"),
        "param: must be NAME=VALUE, such as choices=3, not 'choices'",
    ),
    "param of a wrong value": (
        (*SIMULATE, "--scheme", "pkg", "--param", "choices=0"),
        "choices: must be an integer from 1 to 2147483647, not 0",
    ),
    "param twice": (
        (*SIMULATE, "--scheme", "pkg", "--param", "choices=3", "--param", "choices=4"),
        "param: 'choices' is set twice, to 3 and to 4; set it once",
    ),
    "param in two places": (
        (*SIMULATE, "--scheme", "pkg(choices=3)", "--param", "choices=4"),
        "param: choices=4 would have no effect: 'pkg(choices=3)' sets 'choices' itself; leave one of them out",
    ),
    "no stream": (
        ("simulate", "--stream", ""),
        "stream: cannot understand ''; allowed are the name of a file or zipf(",
    ),
    "stream": (("simulate", "--stream", "zpif(1, 10, 100)"), "stream: cannot understand 'zpif(1, 10, 100)'; allowed "),
    "stream's code": (
        ("simulate", "--stream", "zipf(__import__('os').getcwd())"),
        "stream: cannot understand \"zipf(__import__('os').getcwd())\"; allowed are the name of a file or zipf(z, keys",
    ),
    "stream's parameter": (
        ("simulate", "--stream", "zipf(1, 10)"),
        "stream: zipf: missing a required argument: 'tuples'; it is zipf(z, keys, tuples, seed=0, rate=1000.0)",
    ),
    "impossible stream": (
        ("simulate", "--stream", "matched(10, 100, 0.5)"),
        "keys: no Zipf stream of 10 tuples with p1=0.5 has 100 distinct keys; ask for fewer",
    ),
    "no file": (
        ("simulate", "--stream", "nowhere.csv", "--key", "k"),
        "path: 'nowhere.csv' is not a file; allowed are files that end in .parquet, .csv,",
    ),
    "no key": (("simulate", "--stream", "t.csv"), "key: name the key column of t.csv; its columns are k, v"),
    "no such column": (("simulate", "--stream", "t.csv", "--key", "x"), "key: t.csv has no column 'x'; it has k, v"),
    "no such time": (
        ("simulate", "--stream", "t.csv", "--key", "k", "--time", "x"),
        "time: t.csv has no column 'x'; it has k, v",
    ),
    "columns of words": (
        ("simulate", "--stream", "words.txt", "--key", "k"),
        "key: words.txt is a text file of words; it has no columns",
    ),
    "columns of a generated stream": (
        (*SIMULATE, "--key", "k"),
        f"key: only a file has columns, and {ZIPF!r} is not a file",
    ),
    "time of words": (
        ("simulate", "--stream", "words.txt", "--time", "t"),
        "time: words.txt is a text file of words; it has no columns",
    ),
    "time of a generated stream": (
        (*SIMULATE, "--time", "t"),
        f"time: only a file has columns, and {ZIPF!r} is not a file",
    ),
    "null time": (
        ("simulate", "--stream", "t.parquet", "--key", "k", "--time", "t"),
        "time: column 't' has 1 nulls; every tuple needs its time",
    ),
    "fractional keys": (("simulate", "--stream", "t.parquet", "--key", "f"), "keys: double keys are not supported; a"),
    "unreadable parquet": (
        ("simulate", "--stream", "junk.parquet", "--key", "k"),
        "path: 'junk.parquet' cannot be read as parquet: ",
    ),
    "unreadable csv": (("simulate", "--stream", "latin.csv", "--key", "k"), "path: 'latin.csv' cannot be read: "),
    "picture": ((*SIMULATE, "--plot", "p.gif"), "plot: 'p.gif' must end in one of .png, .svg, .pdf"),
    "picture's folder": ((*SIMULATE, "--plot", "no/p.png"), "plot: the folder "),
    "picture that is a folder": ((*SIMULATE, "--plot", "folder.png"), "plot: 'folder.png' is a folder; name a file"),
    "picture nobody can write": (
        (*SIMULATE, "--plot", "/proc/p.png"),
        "plot: '/proc/p.png' cannot be written: ",
    ),
    "route: no workers": (route(workers=0), "workers: must be an integer from 1 to 2147483647, not 0"),
    "route: scheme": (route(scheme="gkp"), f"scheme: 'gkp' is not known; allowed are {NAMES}"),
    "route: param": (route(param="x=1"), "param: no chosen scheme has 'x'; allowed are choices, seed"),
    "route: param twice": (
        (*route(param="choices=3"), "--param", "choices=3"),
        "param: 'choices' is set twice, to 3 and to 3; set it once",
    ),
    "route: no column": (route(key="x"), "key: t.parquet has no column 'x'; it has k, t, f"),
    "route: no time": (route(time="x"), "time: t.parquet has no column 'x'; it has k, t, f"),
    "route: null time": (route(time="t"), "time: column 't' has 1 nulls; every tuple needs its time"),
    "route: fractional keys": (route(key="f"), "keys: double keys are not supported; allowed are bool, int8"),
    "route: no file": (
        route(**{"in": "no.parquet"}),
        "path: 'no.parquet' is not a file; allowed are files that end in .parquet, .csv,",
    ),
    "route: words": (route(**{"in": "words.txt"}), "in: 'words.txt' must end in .parquet or .csv"),
    "route: junk": (route(**{"in": "junk.parquet"}), "path: 'junk.parquet' cannot be read as parquet: "),
    "route: half good": (route(**{"in": "latin.csv"}), "path: 'latin.csv' cannot be read: "),
    "route: other output": (route(out="out.xlsx"), "out: 'out.xlsx' must end in .parquet or .csv"),
    "route: output exists": (
        route(out="here.parquet"),
        "out: 'here.parquet' exists and was kept; add --force to replace it, or name another file",
    ),
    "route: output is a folder": (route(out="folder.csv"), "out: 'folder.csv' is a folder; name a file"),
    "route: no folder": (route(out="no/out.csv"), "out: the folder "),
    "route: output nobody can write": (route(out="/proc/out.csv"), "out: '/proc/out.csv' cannot be written: "),
    "doctor: no page": (
        ("doctor", "t.parquet", "--key", "k", "--out", "page.pdf"),
        "out: 'page.pdf' must end in .html",
    ),
    "doctor: page nobody can write": (
        ("doctor", "t.parquet", "--key", "k", "--out", "/proc/page.html"),
        "out: '/proc/page.html' cannot be written: ",
    ),
    "demo: no page": (("demo", "--out", "page.pdf"), "out: 'page.pdf' must end in .html"),
    "demo: page nobody can write": (("demo", "--out", "/proc/x.html"), "out: '/proc/x.html' cannot be written: "),
    "demo: no time": (
        ("demo", "--row-cost", "0"),
        "row-cost: must be seconds per row above 0 and up to 1, not 0",
    ),
    "reproduce: folder nobody can write": (
        ("reproduce", "pkg", "--out", "/proc/out"),
        "out: '/proc/out' cannot be written: ",
    ),
    "route: onto itself": ((*route(out="t.parquet"), "--force"), "out: must be another file than --in"),
    "route: routed already": (
        route(**{"in": "routed.parquet"}),
        "in: 'routed.parquet' has a column 'worker' already; it would be overwritten",
    ),
}


def listing(folder):
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
@pytest.mark.parametrize("json", [False, True], ids=["table", "json"])
def test_a_mistake_gets_one_line_that_says_what_is_allowed(folder, capsys, monkeypatch, arguments, message, json):
    before = listing(folder)
    outcome = runner(capsys, monkeypatch)(*arguments, *(["--json"] if json else []))
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith(f"unskew: {message}")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith("\n")
    assert listing(folder) == before


@pytest.mark.parametrize("arguments", [("simulate", "--workers", "ten"), ("route",), ("nonsense",), ("simulate", "-x")])
def test_options_that_the_command_does_not_have_are_refused_with_status_2(capsys, monkeypatch, arguments):
    outcome = runner(capsys, monkeypatch)(*arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("unskew: ")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith("--help\n")
    assert ".;" not in outcome.err


def test_without_arguments_the_command_explains_itself(capsys, monkeypatch):
    outcome = runner(capsys, monkeypatch)()
    assert outcome.status == 0
    assert "unskew demo" in outcome.out
