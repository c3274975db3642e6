"""The disk cache of compiled kernels: used where it can be, never stale, never in the way. Each run is a process."""

import importlib
import os
import shutil
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import numba
import numpy as np
import pytest

from unskew import kernel_cache, kernels

PACKAGE = Path(kernels.__file__).parent

SCHEME = """
from typing import NamedTuple
import numpy as np
from unskew.kernels import kernel
from unskew.registry import register

class State(NamedTuple):
    nothing: np.ndarray

@kernel
def choose(scheme, state, key, now):
    return 3

@register("mine", choose=choose, paper="none", when="never")
class Mine(NamedTuple):
    workers: int

    def check(self):
        pass

    def new_state(self):
        return State(np.zeros(0, np.int64))
"""

ROUTE = """
import numpy as np
from unskew import Router
from unskew.registry import registration_of

scheme = {scheme}
decisions = Router(scheme).route(np.arange(20, dtype=np.uint64) << np.uint64(32)).tolist()
stats = getattr(registration_of(scheme).loop, "stats", None)
print(decisions, sum(stats.cache_hits.values()) if stats else 0)
"""
ROUTE_MINE = "import mine\n" + ROUTE.format(scheme="mine.Mine(10)")
ROUTE_PKG = "from unskew import PartialKey\n" + ROUTE.format(scheme="PartialKey(10)")


def run(code, modules, **environment):
    """Run `code` in a fresh process that finds `modules` first: its decisions, and the loops found in the cache."""
    path = f"{modules}{os.pathsep}{PACKAGE.parent}"
    everything = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | environment
    done = subprocess.run([sys.executable, "-c", code], env=everything, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    decisions, _, hits = done.stdout.strip().rpartition(" ")
    return decisions, int(hits)


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def copy_package(folder):
    shutil.copytree(PACKAGE, folder / "unskew", ignore=shutil.ignore_patterns("__pycache__"))


def compiled_in(folder):
    return {path.name.split("-")[0] for path in folder.rglob("*.nbc")}


# ---------------------------------------------------------------- a scheme in a file of the user's own


def test_a_users_scheme_is_cached_and_compiled_again_when_its_file_changes(tmp_path, cache):
    copy_package(tmp_path)  # whose sources nobody edits between two runs
    file = tmp_path / "mine.py"
    file.write_text(SCHEME)
    settings = {"NUMBA_CACHE_DIR": str(cache)}
    assert run(ROUTE_MINE, tmp_path, **settings) == (str([3] * 20), 0)
    assert "mine.route_mine" in compiled_in(cache)
    assert run(ROUTE_MINE, tmp_path, **settings) == (str([3] * 20), 1)
    times = file.stat()
    file.write_text(SCHEME.replace("return 3", "return 4"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # same size, same time: only the content tells
    assert run(ROUTE_MINE, tmp_path, **settings)[0] == str([4] * 20)


def test_a_users_scheme_routes_without_the_compiler(tmp_path):
    (tmp_path / "mine.py").write_text(SCHEME)
    assert run(ROUTE_MINE, tmp_path, NUMBA_DISABLE_JIT="1") == (str([3] * 20), 0)


def test_with_bounds_checked_an_index_out_of_range_is_an_error_and_the_cache_keeps_both_apart(tmp_path, cache):
    (tmp_path / "mine.py").write_text(SCHEME.replace("return 3", "return 3 if key == key else state.nothing[7]"))
    settings = {"NUMBA_CACHE_DIR": str(cache)}
    for checked, hits in (("0", 0), ("1", 0), ("0", 1), ("1", 1)):
        assert run(ROUTE_MINE, tmp_path, NUMBA_BOUNDSCHECK=checked, **settings) == (str([3] * 20), hits)
    (tmp_path / "mine.py").write_text(SCHEME.replace("return 3", "return state.nothing[7]"))
    with pytest.raises(AssertionError, match="IndexError: index is out of bounds"):
        run(ROUTE_MINE, tmp_path, NUMBA_BOUNDSCHECK="1", **settings)


HELPER = """
import numpy as np
from unskew.kernels import kernel

FIVE = 5
FIVES = np.array([5, 5])

@kernel
def helped():
    return 5
"""


@pytest.mark.parametrize(
    ("imported", "used"),
    [
        ("from helper import helped", "helped()"),
        ("from helper import FIVE", "FIVE"),
        ("from helper import FIVES", "FIVES[1]"),
        ("import helper", "helper.helped()"),
        ("import helper", "helper.FIVE"),
    ],
)
def test_a_users_scheme_is_compiled_again_when_a_helper_in_another_file_changes(tmp_path, cache, imported, used):
    settings = {"NUMBA_CACHE_DIR": str(cache)}
    (tmp_path / "mine.py").write_text(imported + SCHEME.replace("return 3", f"return {used}"))
    (tmp_path / "helper.py").write_text(HELPER)
    assert run(ROUTE_MINE, tmp_path, **settings)[0] == str([5] * 20)
    (tmp_path / "helper.py").write_text(HELPER.replace("5", "6"))
    assert run(ROUTE_MINE, tmp_path, **settings)[0] == str([6] * 20)


def test_a_scheme_typed_at_the_prompt_routes(tmp_path, cache):
    code = SCHEME + ROUTE.format(scheme="Mine(10)")
    assert run(code, tmp_path, NUMBA_CACHE_DIR=str(cache)) == (str([3] * 20), 0)


# ---------------------------------------------------------------- the project's own kernels


def test_no_stale_decision_when_a_helper_of_the_project_changes(tmp_path, cache):
    """Numba alone would serve the old loop: the file of the loop, pkg.py, has not changed."""
    copy_package(tmp_path)
    settings = {"NUMBA_CACHE_DIR": str(cache)}
    before, hits = run(ROUTE_PKG, tmp_path, **settings)
    assert hits == 0
    assert run(ROUTE_PKG, tmp_path, **settings) == (before, 1)
    hashing = tmp_path / "unskew" / "spark_hashes.py"
    hashing.write_text(hashing.read_text().replace("0xCC9E2D51", "0xCC9E2D53"))
    after, hits = run(ROUTE_PKG, tmp_path, **settings)
    assert hits == 0
    assert after != before
    assert after == run(ROUTE_PKG, tmp_path, NUMBA_DISABLE_JIT="1")[0]


def test_a_change_in_a_file_that_no_kernel_reaches_compiles_nothing_again(tmp_path, cache):
    copy_package(tmp_path)
    settings = {"NUMBA_CACHE_DIR": str(cache)}
    decisions, _ = run(ROUTE_PKG, tmp_path, **settings)
    folders = set((cache / "unskew").iterdir())
    for path in (tmp_path / "unskew").rglob("*.py"):
        if path.name not in ("hashing.py", "kernel_cache.py", "pkg.py", "spark_hashes.py"):
            path.write_text(path.read_text() + "# another sentence\n")
    assert run(ROUTE_PKG, tmp_path, **settings) == (decisions, 1)
    assert set((cache / "unskew").iterdir()) == folders


FILES = {  # a kernel that calls a kernel of another file, that calls one of a third; all defined in no special order
    "near": """
from typing import NamedTuple
import far
from unskew.kernels import kernel

class Pair(NamedTuple):
    left: int
    right: int

@kernel
def total(pair):
    return doubled(pair.left) + pair.right

@kernel
def doubled(x):
    return far.scaled(x, 2)

@kernel
def makes_a_pair():
    return Pair(1, 2).left
""",
    "far": """
import farther
from unskew.kernels import kernel

@kernel
def scaled(x, by):
    return x * by + farther.zero() + sum([farther.NOTHING for _ in range(3)])
""",
    "farther": """
from unskew.kernels import kernel

NOTHING = 0

@kernel
def zero():
    return 0
""",
    "unrelated": """
from unskew.kernels import kernel

@kernel
def none():
    return 0
""",
}


@pytest.fixture
def fingerprints(tmp_path, monkeypatch):
    """A function that writes `FILES`, imports them anew and returns the fingerprints of the kernels of `near`."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def of_the_files(changed="", old="", new=""):
        for name, text in FILES.items():
            assert name != changed or old in text
            (tmp_path / f"{name}.py").write_text(text.replace(old, new) if name == changed else text)
            monkeypatch.delitem(sys.modules, name, raising=False)
        kernel_cache._digest_of.cache_clear()
        importlib.invalidate_caches()
        near = importlib.import_module("near")
        importlib.import_module("unrelated")
        return [kernel_cache.fingerprint(kernel) for kernel in (near.total, near.makes_a_pair)]

    yield of_the_files
    kernel_cache._digest_of.cache_clear()
    for name in FILES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("changed", "old", "new"),
    [
        ("near", "+ pair.right", "- pair.right"),
        ("far", "x * by", "x + by"),  # reached through a kernel that is defined after the one that calls it
        ("farther", "return 0", "return 1"),  # two files away
        ("farther", "NOTHING = 0", "NOTHING = 1"),  # used in a comprehension
    ],
)
def test_the_fingerprint_changes_with_every_file_that_a_kernel_reaches(fingerprints, changed, old, new):
    before, _ = fingerprints()
    assert fingerprints() == [before, _]
    assert fingerprints(changed, old, new)[0] != before


def test_the_fingerprint_is_left_alone_by_files_that_a_kernel_does_not_reach(fingerprints):
    before = fingerprints()
    assert fingerprints("unrelated", "return 0", "return 1") == before
    assert fingerprints("farther", "return 0", "return 1")[1] == before[1], "makes_a_pair calls nobody"


def test_the_fingerprint_changes_with_constants_that_are_set_from_outside(fingerprints, monkeypatch):
    before, _ = fingerprints()
    monkeypatch.setattr(sys.modules["farther"], "NOTHING", np.array([0, 1]))
    with_an_array = kernel_cache.fingerprint(sys.modules["near"].total)
    sys.modules["farther"].NOTHING[1] = 2
    assert len({before, with_an_array, kernel_cache.fingerprint(sys.modules["near"].total)}) == 3


def test_the_fingerprint_changes_with_the_fields_of_the_named_tuples_that_a_kernel_is_compiled_for(fingerprints):
    """The kernels of a sketch are compiled for the states of schemes, whose files they know nothing of."""
    first = namedtuple("first", "left right")
    swapped = namedtuple("first", "right left")
    fingerprints()
    kernel = sys.modules["farther"].zero
    made = {kernel_cache.fingerprint(kernel, classes=classes) for classes in ([], [first], [swapped])}
    assert len(made) == 3


def test_no_stale_field_when_the_fields_of_a_state_change_places(tmp_path, cache):
    """`field` is compiled for a class of another file. Numba tells the class by its name, not by its fields."""
    (tmp_path / "field.py").write_text("from unskew.kernels import kernel\n@kernel\ndef left(x):\n    return x.left\n")
    module = "from typing import NamedTuple\nclass Pair(NamedTuple):\n    {}: int\n    {}: int\n"
    code = (
        "import field, pairs\nprint(field.left(pairs.Pair(left=1, right=2)), sum(field.left.stats.cache_hits.values()))"
    )
    for fields, hits in ((("left", "right"), 0), (("left", "right"), 1), (("right", "left"), 0)):
        (tmp_path / "pairs.py").write_text(module.format(*fields))
        assert run(code, tmp_path, NUMBA_CACHE_DIR=str(cache)) == ("1", hits)


def test_a_kernel_that_is_partly_in_no_file_has_no_fingerprint(fingerprints):
    fingerprints()
    typed = {"__name__": "typed"}
    exec("def zero(): return 0", typed)
    sys.modules["farther"].zero = typed["zero"]
    assert kernel_cache.fingerprint(sys.modules["near"].total) is None
    assert kernel_cache.fingerprint(sys.modules["near"].makes_a_pair) is not None


def test_code_that_runs_while_its_file_is_edited_is_not_taken_for_that_of_the_edited_file(tmp_path, cache):
    file = tmp_path / "edited.py"
    text = "from unskew.kernels import kernel\n@kernel\ndef number():\n    return 1\n"
    code = "import edited\nprint(edited.number(), sum(edited.number.stats.cache_hits.values()))"
    editing = code.replace("\n", f"\nopen({str(file)!r}, 'w').write({text.replace('1', '2')!r})\n", 1)
    file.write_text(text)
    settings = {"NUMBA_CACHE_DIR": str(cache)}
    assert run(editing, tmp_path, **settings)[0] == "1"
    assert run(code, tmp_path, **settings) == ("2", 0)


# ---------------------------------------------------------------- where the cache is


def test_the_cache_is_where_numba_cache_dir_says_and_nowhere_else(tmp_path, cache):
    home = tmp_path / "home"
    home.mkdir()
    settings = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "NUMBA_CACHE_DIR": str(cache)}
    (tmp_path / "mine.py").write_text(SCHEME)
    run(ROUTE_MINE, tmp_path, **settings)
    assert "mine.route_mine" in compiled_in(cache)
    assert list(home.iterdir()) == []
    assert compiled_in(tmp_path / "__pycache__") == set()


def test_without_numba_cache_dir_the_cache_is_the_users(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "mine.py").write_text(SCHEME)
    run(ROUTE_MINE, tmp_path, XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert "mine.route_mine" in compiled_in(tmp_path / "xdg" / "unskew")


def test_where_the_users_cache_cannot_be_written_a_private_temporary_folder_is(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "mine.py").write_text(SCHEME)
    (tmp_path / "file").write_text("a file is no folder, even for root")
    (tmp_path / "tmp").mkdir()
    run(ROUTE_MINE, tmp_path, XDG_CACHE_HOME=str(tmp_path / "file"), TMPDIR=str(tmp_path / "tmp"))
    private = tmp_path / "tmp" / f"unskew-{os.getuid()}"
    assert "mine.route_mine" in compiled_in(private)
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in private.iterdir())


def test_where_no_cache_can_be_written_kernels_are_compiled_in_memory(tmp_path):
    (tmp_path / "mine.py").write_text(SCHEME)
    (tmp_path / "file").write_text("a file is no folder, even for root")
    for _ in range(2):
        assert run(ROUTE_MINE, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "file")) == (str([3] * 20), 0)
    assert compiled_in(tmp_path) == set()


def test_the_users_numba_setting_is_left_alone():
    before = numba.config.CACHE_DIR
    doubled = kernels.kernel(lambda x: 2 * x)
    assert before == numba.config.CACHE_DIR
    assert doubled(4) == 8


def test_a_user_without_a_home_gets_the_temporary_folder(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(kernel_cache.tempfile, "tempdir", None)
    monkeypatch.setattr(kernel_cache.Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert kernel_cache._cache_bases() == [tmp_path / f"unskew-{os.getuid()}"]


def test_only_caches_that_are_unused_for_long_are_removed(tmp_path):
    for name, days in (("old", 31), ("young", 29)):
        (tmp_path / name).mkdir()
        then = time.time() - days * 86_400
        os.utime(tmp_path / name, (then, then))
    kernel_cache._remove_unused(tmp_path)
    assert [folder.name for folder in tmp_path.iterdir()] == ["young"]
