"""How a source knows the load of the workers. Paper: Partial Key Grouping, sections 3.2 and 6.2 (Q2)."""

from typing import NamedTuple

from unskew.errors import InputError

ALLOWED = "local, global or probe:SECONDS (such as probe:60)"


class Estimation(NamedTuple):
    """How a source knows the load of the workers.

    Parameters
    ----------
    kind
        ``local``: by what it sent itself (L). ``global``: all sources share one state (the oracle G). ``probe``: local,
        and from time to time the estimate is overwritten with the true load (LP), which has no effect on a scheme that
        estimates no load.
    period
        With ``probe``, the seconds of stream time between two probes.

    Examples
    --------
    >>> from unskew.simulate import Estimation
    >>> str(Estimation("probe", period=60.0))
    'probe:60'
    """

    kind: str = "local"
    period: float = 0.0

    def __str__(self) -> str:
        return f"probe:{self.period:g}" if self.kind == "probe" else self.kind


def parse_estimation(text: str) -> Estimation:
    """The `Estimation` that a text stands for.

    Parameters
    ----------
    text
        ``local``, ``global`` or ``probe:SECONDS``.

    Examples
    --------
    >>> from unskew.simulate import parse_estimation
    >>> parse_estimation("probe:60")
    Estimation(kind='probe', period=60.0)
    """
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
