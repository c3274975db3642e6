"""How a source knows the load of the workers. Paper: Partial Key Grouping, sections 3.2 and 6.2 (Q2)."""

from typing import NamedTuple

from unskew.errors import InputError

ALLOWED = "local, global, probe:SECONDS (such as probe:60) or probe_whole:SECONDS"
PROBES = ("probe", "probe_whole")


class Estimation(NamedTuple):
    """How a source knows the load of the workers.

    Parameters
    ----------
    kind
        ``local``: by what it sent itself (L). ``global``: all sources share one state (the oracle G). ``probe``: local,
        and from time to time the estimate is overwritten with this source's share of the true load (LP), that is the
        true load over the number of sources, as in the authors' code. ``probe_whole``: with all of the true load, as
        their text has it. Probes have no effect on a scheme that estimates no load.
    period
        The seconds of stream time between two probes.

    Why the share: each of S sources closes the gap that it sees with tuples of its own. If all see the whole gap, they
    close it S times over, and it becomes (1 - S) times itself. For S > 2 that diverges.

    Examples
    --------
    >>> from unskew.simulate import Estimation
    >>> str(Estimation("probe", period=60.0))
    'probe:60'
    """

    kind: str = "local"
    period: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind}:{self.period:g}" if self.kind in PROBES else self.kind

    @property
    def probes(self) -> bool:
        """Whether sources are told the load from time to time."""
        return self.kind in PROBES


def parse_estimation(text: str) -> Estimation:
    """The `Estimation` that a text stands for.

    Parameters
    ----------
    text
        ``local``, ``global``, ``probe:SECONDS`` or ``probe_whole:SECONDS``.

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
    if kind not in PROBES or not 1e-9 <= seconds < float("inf"):
        raise InputError(f"estimation: must be {ALLOWED}, not {text!r}")
    return Estimation(kind, seconds)
