"""The disk cache of compiled kernels: it is kept from process to process, and never serves stale code.

Numba's own disk cache looks only at the file that holds the cached function: change a helper in another file, and the
old machine code is still served. So each kernel is cached in a folder that is named after its *fingerprint*, made of
everything that the machine code depends on:

- the files of all functions that it reaches through the names it uses, however many calls away,
- the constants and the classes that these functions name,
- the fields of the named tuples that it is compiled for. They may come from a file that it does not know,
- whether Numba checks the bounds of arrays (``NUMBA_BOUNDSCHECK=1``), as the tests have it.

A change in any of them starts an empty folder; a change anywhere else compiles nothing again. The fingerprint is made
when a kernel is first called, since a kernel may call another that is defined after it. But its file is read when it is
defined: a file that is edited while the program runs does not describe the code that runs.

The folder is in ``$NUMBA_CACHE_DIR`` if set, else in the user's cache folder, else in a private folder for temporary
files. Where none can be written, kernels are compiled in memory for each process: slower to start, never wrong.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum
from functools import cache
from pathlib import Path
from threading import Lock
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.caching import FunctionCache

UNUSED_DAYS = 30  # after which a folder that no process has opened is removed
CONSTANTS = (bool, int, float, complex, str, bytes, type(None), Enum, np.generic, np.dtype)
COMPILER = {"numba", "numpy", "math"}  # Numba has its own code for what a kernel uses of these
_one_at_a_time = Lock()  # while Numba's setting is changed


class KernelCache:
    """What Numba asks for compiled code: one kernel's part of the disk cache. `source`: of a kernel made from text."""

    cache_path: None = None  # there is one for each fingerprint

    def __init__(self, kernel: Any, source: str = "") -> None:
        self._kernel = kernel
        self._source = source
        self._caches: dict[str, Any] = {}  # by fingerprint
        _digest_of(kernel.py_func.__code__.co_filename)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The machine code for these types, or None."""
        found = self._cache_for(signature)
        return found.load_overload(signature, target) if found else None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep the machine code for these types."""
        found = self._cache_for(signature)
        if found:
            found.save_overload(signature, compiled)

    def flush(self) -> None:
        """Forget what is on disk."""
        for found in self._caches.values():
            found.flush()

    def _cache_for(self, signature: Any) -> Any:
        name = fingerprint(self._kernel, self._source, _named_tuples(getattr(signature, "args", signature)))
        folder = _cache_folder(name) if name else None
        if name is None or folder is None:
            return None
        if name not in self._caches:
            with _one_at_a_time:
                before = numba.config.CACHE_DIR
                numba.config.CACHE_DIR = str(folder)  # Numba reads it now, and only now
                try:
                    self._caches[name] = FunctionCache(self._kernel.py_func)
                finally:
                    numba.config.CACHE_DIR = before
        return self._caches[name]


def fingerprint(kernel: Any, source: str = "", classes: Iterable[type] = ()) -> str | None:
    """Of all that the machine code of `kernel` depends on; None if part of it is in no file.

    `source` is the text of a kernel that was made from text, and `classes` are those of its arguments.
    """
    digest = hashlib.sha256(repr((_digest_of(__file__), np.__version__, numba.config.BOUNDSCHECK, source)).encode())
    seen, waiting = set(), [*classes, kernel]
    while waiting:
        value = waiting.pop()
        options = getattr(value, "targetoptions", {})  # of a compiled function
        value = getattr(value, "py_func", value)
        if isinstance(value, CONSTANTS):
            digest.update(f"{type(value)} {value!r}".encode())
        elif isinstance(value, np.ndarray):
            digest.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
        elif isinstance(value, tuple):
            waiting += [type(value), len(value), *value]
        elif id(value) not in seen and (getattr(value, "__module__", None) or "").split(".")[0] not in COMPILER:
            seen.add(id(value))
            if isinstance(value, FunctionType):
                content = _digest_of(value.__code__.co_filename)
                if content is None:
                    return None
                digest.update(f"{value.__module__}.{value.__qualname__} {content} {options}".encode())
                waiting += _values_used(value)
            elif isinstance(value, type):
                digest.update(_layout(value).encode())
            else:
                waiting += [value.__wrapped__] if hasattr(value, "__wrapped__") else []
    return digest.hexdigest()[:16]


def _values_used(function: FunctionType) -> list[Any]:
    """The values of the names that a function uses, and what it may use of the modules among them."""
    names = set(_names(function.__code__))
    values = [function.__globals__[name] for name in sorted(names) if name in function.__globals__]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            values.append(cell.cell_contents)
    values += function.__defaults__ or ()
    modules = [value for value in values if isinstance(value, ModuleType)]
    for module in modules:  # which grows: a package has modules
        if module.__name__ not in COMPILER:
            used = [getattr(module, name) for name in sorted(names) if hasattr(module, name)]
            modules += [value for value in used if isinstance(value, ModuleType) and value not in modules]
            values += used
    return [value for value in values if not isinstance(value, ModuleType)]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):  # a function inside of the function
            yield from _names(constant)


def _layout(cls: Any) -> str:
    """What a kernel can know of a class: the fields of a named tuple, the members of an enumeration, or its file."""
    if issubclass(cls, tuple):
        content = repr((getattr(cls, "_fields", ()), getattr(cls, "_field_defaults", {})))
    elif issubclass(cls, Enum):
        content = repr(list(cls))
    else:
        content = repr(_digest_of(getattr(sys.modules.get(cls.__module__), "__file__", None) or ""))
    return f"{cls.__module__}.{cls.__qualname__} {content}"


def _named_tuples(types: Iterable[Any]) -> Iterator[type]:
    """The classes of the named tuples among Numba's `types`, and of those inside of them."""
    for kind in types:
        if hasattr(kind, "instance_class"):
            yield kind.instance_class
        yield from _named_tuples(getattr(kind, "types", ()))


@cache
def _digest_of(file: str) -> str | None:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:  # what is typed at the prompt is in no file
        return None


@cache
def _cache_folder(name: str) -> Path | None:
    for base in _cache_bases():
        folder = base / name
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and folder.stat().st_uid == os.getuid():
            os.utime(folder)
            _remove_unused(base)
            return folder
    return None


@cache  # once per process is enough
def _remove_unused(base: Path) -> None:
    """Remove the folders that no process has opened for long: those of other versions."""
    for folder in base.iterdir():
        with suppress(OSError):  # another process removes it too
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
