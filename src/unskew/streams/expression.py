"""Streams from text: ``zipf(z=1.0, keys=10_000, messages=1_000_000)``, or the name of a file."""

import ast
import inspect
from pathlib import Path
from typing import Any

from unskew.errors import InputError
from unskew.streams.drift import Drift
from unskew.streams.files import TABLES, WORDS, File, Graph
from unskew.streams.lognormal import Lognormal
from unskew.streams.matched import Matched, StandIn
from unskew.streams.stream import Stream, expression_name
from unskew.streams.zipf import Zipf

STREAMS: dict[str, type[Stream]] = {
    expression_name(cls): cls for cls in (Zipf, Lognormal, Matched, StandIn, Drift, File, Graph)
}


def parse(text: str, *, key: str = "", time: str = "", seed: int | None = None) -> Stream:
    """The stream that `text` describes; `key` and `time` are columns of a file, `seed` is for a text without one."""
    if text.endswith((*TABLES, *WORDS)) or Path(text).is_file():
        return File(text, key=key, time=time)
    if key or time:
        raise InputError(f"key: only a file has columns, and {text!r} is not a file")
    return _call(text, seed)


def _call(text: str, seed: int | None) -> Stream:
    allowed = ", ".join(_usage(name) for name in STREAMS)
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in STREAMS:
            raise ValueError
        positional = [ast.literal_eval(argument) for argument in call.args]
        named: dict[str, Any] = {str(argument.arg): ast.literal_eval(argument.value) for argument in call.keywords}
    except (ValueError, SyntaxError):
        raise InputError(f"stream: cannot understand {text!r}; allowed are a file name or {allowed}") from None
    name = call.func.id
    try:
        signature = inspect.signature(STREAMS[name])
        given = signature.bind(*positional, **named).arguments
    except TypeError as error:
        raise InputError(f"stream: {name}: {error}; it is {_usage(name)}") from None
    if seed is not None and "seed" in signature.parameters:
        given.setdefault("seed", seed)
    return STREAMS[name](**given)


def _usage(name: str) -> str:
    parameters = inspect.signature(STREAMS[name]).parameters.values()
    shown = (p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)
    return f"{name}({', '.join(shown)})"
