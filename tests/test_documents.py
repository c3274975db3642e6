"""The documents are true: their commands run, their links lead somewhere, their snippets work."""

import re
import shlex
import subprocess

import pyarrow as pa
import pyarrow.parquet
import pytest

from command import runner
from documents import ROOT, commands, tables_after_commands
from unskew import SCHEMES

WITHOUT_SPARK = [words[1:] for words in commands("README.md") if words[0] == "unskew" and words[1] != "doctor"]


@pytest.mark.parametrize("arguments", WITHOUT_SPARK, ids=lambda words: words[0])
def test_the_commands_of_the_readme_run(arguments, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    pa.parquet.write_table(pa.table({"key": ["a", "b", "a"]}), "keys.parquet")
    (tmp_path / "words.txt").write_text("to be or not to be")
    outcome = runner(capsys, monkeypatch)(*arguments)
    assert outcome.status == 0, outcome.err
    assert outcome.out


def test_the_numbers_of_the_readme_are_those_of_its_command(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (arguments,) = [words for words in WITHOUT_SPARK if "balance.png" in words]
    runs = runner(capsys, monkeypatch)(*arguments, "--json").json_lines
    rows = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| ")]
    shown = [[cell.strip(" *") for cell in row.split("|")[2:-1]] for row in rows[1:]]
    assert [float(cell) for cell in shown[0]] == [pytest.approx(run["max_over_mean"], abs=0.05) for run in runs]
    assert [float(cell) for cell in shown[1]] == [pytest.approx(run["replicas_over_kg"], abs=0.005) for run in runs]


FIELDS = {
    "max/mean": "max_over_mean",
    "max/mean of work": "work_max_over_mean",
    "replicas per key": "replicas_over_kg",
    "mean latency, s": "latency_mean",
    "p99 latency, s": "latency_p99",
}
MEASURED = list(zip(commands("docs/choosing.md"), tables_after_commands("docs/choosing.md"), strict=True))


@pytest.mark.parametrize(("words", "table"), MEASURED, ids=lambda part: part[-1] if isinstance(part[0], str) else "")
def test_the_numbers_of_choosing_are_those_of_its_commands(words, table, capsys, monkeypatch):
    runs = {run["scheme"]: run for run in runner(capsys, monkeypatch)(*words[1:], "--json").json_lines}
    head, *rows = table
    assert [row[0] for row in rows] == list(runs)
    for row in rows:
        for column, shown in zip(head[1:], row[1:], strict=True):
            assert float(shown) == pytest.approx(runs[row[0]][FIELDS[column]], rel=0.03), f"{row[0]}: {column}"


def test_the_hottest_keys_of_choosing_are_as_hot_as_it_says(capsys, monkeypatch):
    parts = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8").split("## The numbers")[1].split("\n### ")[1:]
    told = [(part, re.search(r"^p1 W = ([0-9.]+)\.", part, re.MULTILINE)) for part in parts]
    assert sum(found is not None for _, found in told) == 5
    for part, found in told:
        if found:
            words = shlex.split(re.search(r"^\$ (.*)", part, re.MULTILINE)[1])
            options = words[words.index("--workers") : words.index("--stream") + 2]
            (run,) = runner(capsys, monkeypatch)("simulate", "--scheme", "hash", *options, "--json").json_lines
            assert float(found[1]) == pytest.approx(run["p1"] * run["workers"], rel=0.1), part[:40]


PAGES = sorted(page.relative_to(ROOT) for page in ROOT.glob("docs/schemes/*.md"))
OF_PAGES = [words for page in PAGES for words in commands(str(page)) if words[0] == "unskew"]


@pytest.mark.parametrize("words", OF_PAGES, ids=lambda words: words[-3])
def test_the_commands_on_the_pages_of_schemes_run(words, capsys, monkeypatch):
    assert runner(capsys, monkeypatch)(*words[1:]).status == 0


def test_choosing_names_every_scheme():
    page = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    decisions, numbers = page.split("## The numbers")
    assert not [name for name in SCHEMES if f"`{name}`" not in decisions]
    assert not [name for name in SCHEMES if f"`{name}`" not in numbers]


def test_the_pictures_that_the_project_draws_are_there_and_shown():
    drawn = re.findall(r'save\("([a-z-]+)"\)', (ROOT / "docs" / "images" / "make.py").read_text(encoding="utf-8"))
    pages = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/**/*.md"))
    assert drawn
    for name in drawn:
        assert (ROOT / "docs" / "images" / f"{name}.svg").exists()
        assert f"images/{name}.svg)" in pages


def test_make_has_the_targets_that_the_documents_name():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for document in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"`?make ([a-z]+)`?", (ROOT / document).read_text()):
            assert f"make {target} " in listed, target


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_every_scheme_has_its_page(name):
    page = (ROOT / "docs" / "schemes" / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# `{name}`: ")
    for part in ("**Paper.**", "## How it decides", "## When to use it", "## What it costs"):
        assert part in page


def test_every_room_is_in_the_architecture():
    rooms = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## The rooms")[1].split("\n## ")[0]
    package = ROOT / "src" / "unskew"
    files = [file.name for file in package.glob("*.py") if not file.name.startswith("_")]
    folders = [f"{file.parent.name}/" for file in package.glob("*/__init__.py")]
    assert not [room for room in files + folders if f"`{room}`" not in rooms]


def test_links_lead_to_files():
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"
