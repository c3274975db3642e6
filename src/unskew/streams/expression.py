"""Streams from text: ``zipf(z=1.0, keys=10_000, tuples=1_000_000)``, or the name of a file."""

import inspect

from unskew.calls import parse_call
from unskew.errors import InputError
from unskew.streams.costed import Costed
from unskew.streams.drift import Drift
from unskew.streams.evolving import Evolving
from unskew.streams.files import TABLES, WORDS, File, Graph, is_readable
from unskew.streams.lognormal import Lognormal
from unskew.streams.matched import Matched, StandIn
from unskew.streams.stream import Stream, expression_name
from unskew.streams.zipf import Zipf

STREAMS: dict[str, type[Stream]] = {
    expression_name(cls): cls for cls in (Zipf, Lognormal, Matched, StandIn, Drift, Evolving, Costed, File, Graph)
}


def parse(
    text: str, *, key: str | tuple[str, ...] = "", time: str = "", cost: str = "", seed: int | None = None
) -> Stream:
    """The stream that `text` describes.

    Parameters
    ----------
    text
        A call such as ``zipf(z=1.0, keys=10_000, tuples=1_000_000)``, or the name of a file.
    key, time, cost
        Columns of a file; a key of several columns is a tuple of their names.
    seed
        For a call that gives none.

    Examples
    --------
    >>> from unskew.streams import parse
    >>> parse("zipf(z=1.2, keys=1e5, tuples=1e6)", seed=7)
    Zipf(z=1.2, keys=100000, tuples=1000000, seed=7, rate=1000.0)
    """
    if text.endswith((*TABLES, *WORDS)) or is_readable(text):
        return File(text, key=key, time=time, cost=cost)
    for parameter, column in {"key": key, "time": time, "cost": cost}.items():
        if column:
            raise InputError(f"{parameter}: only a file has columns, and {text!r} is not a file")
    return _from_call(text, seed)


def _from_call(text: str, seed: int | None) -> Stream:
    call = parse_call(text)
    if call is None or call.name not in STREAMS:
        allowed = ", ".join(_usage(name) for name in STREAMS)
        raise InputError(f"stream: cannot understand {text!r}; allowed are the name of a file or {allowed}")
    signature = inspect.signature(STREAMS[call.name])
    for name in call.named:
        if name not in signature.parameters:
            raise InputError(f"stream: {call.name} has no parameter {name!r}; it is {_usage(call.name)}")
    try:
        given = signature.bind(*call.positional, **call.named).arguments
    except TypeError as error:
        raise InputError(f"stream: {call.name}: {error}; it is {_usage(call.name)}") from None
    if seed is not None and "seed" in signature.parameters:
        given.setdefault("seed", seed)
    for name, value in given.items():
        if signature.parameters[name].annotation is int and isinstance(value, float) and value.is_integer():
            given[name] = int(value)  # 5e6 tuples
    return STREAMS[call.name](**given)


def _usage(name: str) -> str:
    parameters = inspect.signature(STREAMS[name]).parameters.values()
    shown = (p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)
    return f"{name}({', '.join(shown)})"
