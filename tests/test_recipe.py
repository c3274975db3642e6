"""CONTRIBUTING.md's recipe for a new scheme, followed to the letter in a copy of the project."""

import os
import re
import shutil
import subprocess
import sys

import pytest

import unskew
from documents import ROOT, code_blocks, commands
from samples import every_scheme
from unskew import SCHEMES

ONLY_MINE = "mine and not forgotten and not fresh_process"  # that one would compile all other schemes again
EXAMPLE = "import doctest; from unskew.schemes import mine; print(doctest.testmod(mine))"
CHECKS = ("test_contract.py", "test_abilities.py", "test_schemes.py", "test_golden.py", "test_recipe.py")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The project with the scheme of CONTRIBUTING.md in it."""
    folder = tmp_path_factory.mktemp("project")
    for part in ("src/unskew", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "CONTRIBUTING.md"):
        shutil.copy(ROOT / file, folder)
    scheme, twin = code_blocks("CONTRIBUTING.md", "python")
    (folder / "src/unskew/schemes/mine.py").write_text(scheme)
    (folder / "tests/naive_mine.py").write_text(twin)
    public = folder / "src/unskew/__init__.py"
    text = public.read_text().replace("__all__ = [", '__all__ = [\n    "Mine",')
    public.write_text(text.replace("\n__version__", "\nfrom unskew.schemes.mine import Mine\n__version__", 1))
    (golden,) = [words for words in commands("CONTRIBUTING.md") if "tests/test_golden.py" in words]
    assert run(folder, *golden).returncode == 0
    return folder


def run(folder, *words):
    paths = os.pathsep.join([str(folder / "src"), str(folder / "tests")])
    words = [sys.executable if word == "python" else word for word in words]
    return subprocess.run(words, cwd=folder, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)


def test_a_scheme_that_follows_the_recipe_passes_every_check(copy):
    tests = [f"tests/{name}" for name in CHECKS]
    done = run(copy, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", ONLY_MINE, *tests)
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert int(passed[1]) > 50, done.stdout
    assert "mine" in run(copy, "python", "-c", "import unskew.cli; unskew.cli.main()", "schemes", "--json").stdout
    example = run(copy, "python", "-c", EXAMPLE)
    assert example.stdout == "TestResults(failed=0, attempted=2)\n", example.stdout


@pytest.mark.parametrize(
    ("file", "test", "sentence"),
    [
        (
            "tests/naive_mine.py",
            "tests/test_schemes.py",
            "the scheme mine has no naive twin: write naive_mine(stream, workers, **parameters) in tests/naive_mine.py",
        ),
        (
            "tests/golden/mine.json",
            "tests/test_golden.py",
            "mine has no golden file yet: type python tests/test_golden.py mine",
        ),
    ],
)
def test_a_forgotten_step_is_named_in_one_sentence(copy, file, test, sentence):
    kept = (copy / file).read_text()
    (copy / file).unlink()
    try:
        done = run(copy, "python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", "mine", test)
    finally:
        (copy / file).write_text(kept)
    assert done.returncode == 1
    assert sentence in done.stdout


@every_scheme
def test_every_scheme_can_be_imported_from_unskew(name):
    cls = SCHEMES[name].type.__name__
    assert cls in unskew.__all__, f"{cls} is not public yet: import it in src/unskew/__init__.py, and add it to __all__"
    assert getattr(unskew, cls) is SCHEMES[name].type
