"""The disk cache of compiled kernels: used where it can be, never stale, never in the way. Each run is a process."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

from unskew import kernels

PACKAGE = Path(kernels.__file__).parent

SCHEME = """
from typing import NamedTuple
import numpy as np
from unskew.kernels import kernel
from unskew.scheme import register

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
from unskew.scheme import registration_of

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


@pytest.mark.compiled
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


HELPER = """
import numpy as np
from unskew.kernels import kernel

FIVE = 5
FIVES = np.array([5, 5])

@kernel
def helped():
    return 5
"""


@pytest.mark.compiled
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


@pytest.mark.compiled
def test_a_scheme_typed_at_the_prompt_routes(tmp_path, cache):
    code = SCHEME + ROUTE.format(scheme="Mine(10)")
    assert run(code, tmp_path, NUMBA_CACHE_DIR=str(cache)) == (str([3] * 20), 0)


# ---------------------------------------------------------------- the project's own kernels


@pytest.mark.compiled
def test_no_stale_decision_when_a_helper_of_the_project_changes(tmp_path, cache):
    """Numba alone would serve the old loop: the file of the loop, pkg.py, has not changed."""
    copy_package(tmp_path)
    settings = {"NUMBA_CACHE_DIR": str(cache)}
    before, hits = run(ROUTE_PKG, tmp_path, **settings)
    assert hits == 0
    assert run(ROUTE_PKG, tmp_path, **settings) == (before, 1)
    hashing = tmp_path / "unskew" / "hashing.py"
    hashing.write_text(hashing.read_text().replace("0xCC9E2D51", "0xCC9E2D53"))
    after, hits = run(ROUTE_PKG, tmp_path, **settings)
    assert hits == 0
    assert after != before
    assert after == run(ROUTE_PKG, tmp_path, NUMBA_DISABLE_JIT="1")[0]


@pytest.fixture
def copy_of_the_package(tmp_path, monkeypatch):
    copy_package(tmp_path)
    monkeypatch.setattr(kernels, "PACKAGE", tmp_path / "unskew")
    kernels._package_digest.cache_clear()
    yield tmp_path / "unskew"
    kernels._package_digest.cache_clear()


def fingerprint():
    kernels._package_digest.cache_clear()
    return kernels._fingerprint(fingerprint)


@pytest.mark.parametrize("source", ["hashing.py", "kernels.py", "key_table.py", "scheme.py", "schemes/pkg.py"])
def test_the_fingerprint_changes_with_every_source_that_a_kernel_can_reach(copy_of_the_package, source):
    before = fingerprint()
    assert fingerprint() == before
    with (copy_of_the_package / source).open("a") as file:
        file.write("#")
    assert fingerprint() != before


def test_the_fingerprint_changes_with_a_new_file_and_with_a_file_of_another_name(copy_of_the_package):
    seen = {fingerprint()}
    new = copy_of_the_package / "schemes" / "new.py"
    new.write_text("x = 1\n")
    seen.add(fingerprint())
    new.rename(new.with_name("newer.py"))
    seen.add(fingerprint())
    assert len(seen) == 3


# ---------------------------------------------------------------- where the cache is


@pytest.mark.compiled
def test_the_cache_is_where_numba_cache_dir_says_and_nowhere_else(tmp_path, cache):
    home = tmp_path / "home"
    home.mkdir()
    settings = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "NUMBA_CACHE_DIR": str(cache)}
    (tmp_path / "mine.py").write_text(SCHEME)
    run(ROUTE_MINE, tmp_path, **settings)
    assert "mine.route_mine" in compiled_in(cache)
    assert list(home.iterdir()) == []
    assert compiled_in(tmp_path / "__pycache__") == set()


@pytest.mark.compiled
def test_without_numba_cache_dir_the_cache_is_the_users(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "mine.py").write_text(SCHEME)
    run(ROUTE_MINE, tmp_path, XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert "mine.route_mine" in compiled_in(tmp_path / "xdg" / "unskew")


@pytest.mark.compiled
def test_where_the_users_cache_cannot_be_written_a_private_temporary_folder_is(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "mine.py").write_text(SCHEME)
    (tmp_path / "file").write_text("a file is no folder, even for root")
    (tmp_path / "tmp").mkdir()
    run(ROUTE_MINE, tmp_path, XDG_CACHE_HOME=str(tmp_path / "file"), TMPDIR=str(tmp_path / "tmp"))
    private = tmp_path / "tmp" / f"unskew-{os.getuid()}"
    assert "mine.route_mine" in compiled_in(private)
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in private.iterdir())


@pytest.mark.compiled
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


@pytest.mark.compiled
def test_a_user_without_a_home_gets_the_temporary_folder(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(kernels.tempfile, "tempdir", None)
    monkeypatch.setattr(kernels.Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert kernels._cache_bases() == [tmp_path / f"unskew-{os.getuid()}"]


def test_only_caches_that_are_unused_for_long_are_removed(tmp_path):
    for name, days in (("old", 31), ("young", 29)):
        (tmp_path / name).mkdir()
        then = time.time() - days * 86_400
        os.utime(tmp_path / name, (then, then))
    kernels._remove_unused(tmp_path)
    assert [folder.name for folder in tmp_path.iterdir()] == ["young"]
