"""The rules that several claims about FISH share, fixed before the grid was run (but after a first run of Fig. 10).

The paper's numbers come from other data (MT, AM), an unknown number of sources and an unknown unit of time, and most
are read as "up to". So a printed factor counts as reproduced if the largest measured one is within a factor NEAR of it,
and a comparison of two schemes if they are apart by SAME or more.

Readings. Execution time is judged at the paper's word by the makespan, and, as a reading, by the makespan under
back-pressure, where a worker holds at most 10 tuples (ours; see `setup`). Beside it stands a measure without any queue:
the highest load of windows of 10 tuples per worker. The bound, the windows and the rules were fixed before the grid was
run, but when an audit had found 8.9 (D-C) and 5.4 (W-C) with this bound on congress_hashtags.
"""

from collections.abc import Callable, Iterable
from typing import Any

from unskew.experiments.claims import verdict
from unskew.experiments.fish.setup import OF_COUNTERS, SHARE_READING, Cell
from unskew.experiments.paper import Finding

NEAR = 1.5  # a printed "up to" is met within this factor, either way
SAME = 1.1  # two execution times or memories within a tenth are alike: less is no straggler that anybody notices

Ratio = tuple[float, str]  # and where it was measured


def near(measured: float, printed: float) -> bool:
    return printed / NEAR <= measured <= printed * NEAR


def largest(ratios: Iterable[Ratio]) -> str:
    ratio, place = max(ratios)
    return f"{ratio:.2f} ({place})"


def up_to(
    id: str,
    claim: str,
    printed: float,
    ratios: list[Ratio],
    why: str,
    reading: str = "",
    ratios_so: list[Ratio] | None = None,
) -> Finding:
    """A claim that some ratio is up to `printed`; under `reading` the ratios are `ratios_so`."""

    def holds(found: list[Ratio] | None) -> bool:
        return found is not None and near(max(found)[0], printed)

    return Finding(
        id,
        claim,
        f"up to {printed:.2f}x",
        _range_of(ratios),
        verdict(holds(ratios), holds(ratios_so)),
        f"Rule: the largest ratio is within a factor {NEAR:g} of the printed one, either way. {why}",
        reading,
        _range_of(ratios_so) if ratios_so else "",
    )


def _range_of(ratios: list[Ratio]) -> str:
    return f"up to {largest(ratios)}; at least {min(ratios)[0]:.2f} in all of {len(ratios)} cells"


def at_most(id: str, claim: str, printed: float, ratios: list[Ratio], why: str) -> Finding:
    """A claim that some ratio is nowhere above `printed`."""
    return Finding(
        id,
        claim,
        f"at most {printed:.2f}x",
        f"at most {largest(ratios)}, {len(ratios)} cells",
        verdict(max(ratios)[0] <= printed),
        f"Rule: in no cell above the printed factor. {why}",
    )


def by_share(holds: Callable[[str], bool], shown: Callable[[str], str]) -> dict[str, Any]:
    """Fields of a finding on memory, for f_k as a share of the counters, and, as a reading, of at least an epoch.

    `holds` and `shown` take how the names of the schemes end: OF_COUNTERS, or nothing.
    """
    return {
        "measured": shown(OF_COUNTERS),
        "verdict": verdict(holds(OF_COUNTERS), holds("")),
        "reading": SHARE_READING,
        "measured_so": shown(""),
    }


def gains(cells: Iterable[Cell], other: str, name: str) -> list[Ratio]:
    """How many times as long as `name` the scheme `other` takes, in each cell."""
    return [(cell.gain(other, name), cell.place) for cell in cells]


def local_gains(cells: Iterable[Cell], other: str, name: str) -> list[Ratio]:
    """The same, by the highest load of short windows instead of by queues."""
    return [(cell.local(other) / cell.local(name), cell.place) for cell in cells]
