"""How a source knows the load of the workers. Paper: Partial Key Grouping, sections 3.2 and 6.2 (Q2)."""

from typing import NamedTuple

from unskew.errors import InputError

ALLOWED = "local, global or probe:SECONDS (such as probe:60)"


class Estimation(NamedTuple):
    """``local``: by what it sent itself (L). ``global``: all sources share one state (the oracle G). ``probe``: local,
    and every `period` seconds of stream time the estimate is overwritten with the true load (LP); no effect on a scheme
    that estimates no load."""

    kind: str = "local"
    period: float = 0.0

    def __str__(self) -> str:
        return f"probe:{self.period:g}" if self.kind == "probe" else self.kind


def parse_estimation(text: str) -> Estimation:
    """An Estimation from ``local``, ``global`` or ``probe:SECONDS``."""
    kind, _, period = text.partition(":")
    if kind in ("local", "global") and not period:
        return Estimation(kind)
    try:
        seconds = float(period)
    except ValueError:
        seconds = 0.0
    if kind != "probe" or not 1e-9 <= seconds < float("inf"):
        raise InputError(f"estimation: must be {ALLOWED}, not {text!r}")
    return Estimation("probe", seconds)
