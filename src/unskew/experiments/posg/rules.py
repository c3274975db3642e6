"""The rules that several claims about POSG share.

They were written before the grid was run, but after a look at eight streams of four distributions (z = 0, 1, 1.5 and
2.5 at 100 %), and at four streams with idle time counted, which showed that the literal rule gains little.

The paper gives means over 100 streams, without deviations. A mean speed-up counts as the printed one within CLOSE of
it, in either direction.
"""

from collections.abc import Sequence

from unskew.experiments.claims import verdict
from unskew.experiments.paper import Finding
from unskew.experiments.posg.setup import IDLE, POSG, Cell

CLOSE = 0.05  # of a speed-up: a printed 1.25 is met from 1.20 to 1.30
ALIKE = 1.05  # two completion times within a twentieth are alike
IDLE_READING = (
    "the time that a worker had nothing to do counts in its cumulated time, as it does where an instance's clock is "
    "taken for it; else a worker that is behind in work gets everything until it has caught up"
)


def is_close(measured: float, printed: float) -> bool:
    return abs(measured - printed) <= CLOSE


def mean_of(cells: Sequence[Cell], name: str) -> float:
    """The mean speed-up over these points."""
    return sum(cell.speed_up(name) for cell in cells) / len(cells)


def printed_mean(id: str, claim: str, printed: float, cells: Sequence[Cell], where: str, why: str = "") -> Finding:
    """A claim that the speed-up, in the mean over `cells`, is as printed."""
    literal, idle = mean_of(cells, POSG), mean_of(cells, IDLE)
    return Finding(
        id,
        claim,
        f"{printed:.2f}",
        f"{literal:.2f} ({where})",
        verdict(is_close(literal, printed), is_close(idle, printed)),
        f"Rule: the mean is within {CLOSE:g} of the printed speed-up. {why}".strip(),
        IDLE_READING,
        f"{idle:.2f}",
    )
