"""Compiles the project's inner loops, and keeps the result on disk without ever serving a stale one.

Numba's own disk cache looks only at the file that holds the cached function: change a helper in another file, and the
old machine code is still served. So every kernel of the project is cached in a folder named after a fingerprint of all
the sources that a kernel can reach. A change in any of them starts an empty folder.

``kernel`` compiles one function. ``loop_over`` makes the batch loop of one scheme: Numba never caches a loop that gets
its kernel as an argument, so the loop's source is compiled once for each scheme, as if it stood in the scheme's file.

The folder is ``$NUMBA_CACHE_DIR`` if set, else the user's cache folder, else a private folder for temporary files.
Where none can be written, kernels are compiled in memory for each process: slower to start, never wrong.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, TypeVar, cast

import numba
import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent
UNUSED_DAYS = 30  # after which the cache of another version is removed
_one_at_a_time = Lock()  # while Numba's setting is changed
WITHOUT_KERNELS = {"cli", "experiments", "spark", "calls.py", "errors.py", "page.py", "plots.py"}


def kernel(function: Function) -> Function:
    """Compile `function` with Numba; integer division and array bounds are the caller's to check.

    It may make no array. Then Numba need not count references, which takes some nanoseconds for each array of a state
    at each call: several times as long as a scheme's decision.
    """
    return _compile(function, _nrt=False)


def allocating_kernel(function: Function) -> Function:
    """A kernel that makes arrays, or gets one from such a kernel."""
    return _compile(function, _nrt=True)


def inlined(function: Function) -> Function:
    """A kernel that is copied into its callers: for the inmost step of a loop, where a call costs as much as it."""
    return _compile(function, _nrt=False, inline="always")


def loop_over(source: str, name: str, choose: Callable[..., Any]) -> Callable[..., Any]:
    """The loop `source` (which defines a function ``loop`` that calls ``choose``), compiled for one scheme.

    It takes the file and module of `choose`, so that Numba caches it like a function that is written there.
    """
    python_choose = _python_function(choose)
    namespace = {"__name__": python_choose.__module__, "choose": choose}
    code = compile(source.replace("def loop(", f"def {name}("), python_choose.__code__.co_filename, "exec")
    exec(code, namespace)  # our own constant source; see the module's docstring for why
    options = getattr(choose, "targetoptions", {})  # of a user's own choice where Numba alone has compiled it
    return _compile(cast(Callable[..., Any], namespace[name]), _nrt=options.get("_nrt", True))


def _compile(function: Function, **options: Any) -> Function:
    has_file = Path(function.__code__.co_filename).is_file()  # not so at the prompt
    folder = _cache_folder(_fingerprint(function)) if has_file else None
    with _one_at_a_time:
        before = numba.config.CACHE_DIR
        if folder is not None:
            numba.config.CACHE_DIR = str(folder)  # Numba reads it when it decorates, and only then
        try:
            options |= {"cache": folder is not None, "error_model": "numpy", "nogil": True}
            compiled: Function = numba.njit(function, **options)
            return compiled
        finally:
            numba.config.CACHE_DIR = before


def _python_function(function: Any) -> Any:
    return getattr(function, "py_func", function)


def _fingerprint(function: Any) -> str:
    """Of the package, and of what a user's kernel reaches outside of it: the files of its helpers, its constants."""
    digest = hashlib.sha256(_package_digest())
    seen, waiting = set(), [function]
    while waiting:
        reached = waiting.pop()
        path = Path(reached.__code__.co_filename)
        if reached in seen or PACKAGE in path.parents or not path.is_file():
            continue
        seen.add(reached)
        digest.update(path.read_bytes())
        for value in _values_used(reached):
            if hasattr(value, "__code__"):
                waiting.append(value)
            elif isinstance(value, np.ndarray):
                digest.update(value.tobytes())
            elif isinstance(value, int | float | tuple | np.generic):
                digest.update(repr(value).encode())
    return digest.hexdigest()[:16]


def _values_used(function: Any) -> list[Any]:
    """The global names that a function uses, and what it may use of the modules among them."""
    names = function.__code__.co_names
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    modules = [value for value in values if isinstance(value, ModuleType)]
    values += [getattr(module, name) for module in modules for name in names if hasattr(module, name)]
    return [_python_function(value) for value in values]


@cache
def _package_digest() -> bytes:
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] not in WITHOUT_KERNELS:
            digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.digest()


@cache
def _cache_folder(fingerprint: str) -> Path | None:
    for base in _cache_bases():
        folder = base / fingerprint
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and folder.stat().st_uid == os.getuid():
            os.utime(folder)
            _remove_unused(base)
            return folder
    return None


def _remove_unused(base: Path) -> None:
    """Remove the caches of other versions that no process has opened for long."""
    for folder in base.iterdir():
        if time.time() - folder.stat().st_mtime > UNUSED_DAYS * 86_400:
            shutil.rmtree(folder, ignore_errors=True)


def _cache_bases() -> list[Path]:
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named:
        return [Path(named) / "unskew"]
    temporary = Path(tempfile.gettempdir()) / f"unskew-{os.getuid()}"
    try:
        user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home, as in many containers
        return [temporary]
    return [user / "unskew", temporary]
