"""Compiles the project's inner loops.

``kernel`` compiles one function. ``loop_over`` makes a batch loop of one scheme: Numba never caches a loop that gets
its kernel as an argument, so the loop's source is compiled once for each scheme, as if it stood in the scheme's file.

What is compiled is kept on disk (`kernel_cache`).
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from unskew.kernel_cache import KernelCache

Function = TypeVar("Function", bound=Callable[..., Any])


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


def loop_over(source: str, name: str, **steps: Any) -> Callable[..., Any]:
    """The loop `source` (which defines a function ``loop``), compiled for one scheme: `steps` are the names in it.

    It takes the file and module of the first of them, so that Numba caches it like a function that is written there.
    """
    first = next(iter(steps.values()))
    python_step = getattr(first, "py_func", first)
    namespace = {"__name__": python_step.__module__, **steps}
    code = compile(source.replace("def loop(", f"def {name}("), python_step.__code__.co_filename, "exec")
    exec(code, namespace)  # our own constant source; see the module's docstring for why
    options = [getattr(step, "targetoptions", {}) for step in steps.values() if callable(step)]
    counts_references = any(each.get("_nrt", True) for each in options)  # as does what Numba alone has compiled
    return _compile(cast(Callable[..., Any], namespace[name]), source, _nrt=counts_references)


def _compile(function: Function, source: str = "", **options: Any) -> Function:
    compiled: Any = numba.njit(function, error_model="numpy", nogil=True, **options)
    if compiled is not function:  # else the compiler is switched off
        compiled._cache = KernelCache(compiled, source)  # where Numba puts its own with cache=True
    return cast(Function, compiled)
