"""The rules of the verdicts.

They were written down before the first whole run of the grid. Two trial runs of LLL with 10 workers, in which nothing
but Fig. 3's b and m of that setting was looked at, had been seen by then.

Published numbers are read off text that says "around" and "about": 10 % either way. The text gives few others; claims
about charts are judged by what the text says of them.
"""

from unskew.experiments.claims import verdict, within
from unskew.experiments.gedik.setup import mean, shown
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Finding

ABOUT = 0.10
ALIKE = 0.03  # "indistinguishable", "almost the same"


def about(
    id: str, claim: str, published: float, outcomes: Outcomes, metric: str, note: str = "", **where: object
) -> Finding:
    """A printed number: the average of the runs is within 10 % of it."""
    measured = mean(outcomes, metric, **where)
    return Finding(
        id,
        claim,
        f"about {published:g}",
        f"{shown(outcomes, metric, **where)} (average, lowest and highest run)",
        verdict(within(measured, published, ABOUT)),
        f"Rule: the average of the runs within 10 % of {published:g}. {note}".strip(),
    )


def judged(id: str, claim: str, published: str, measured: str, rule: str, holds: bool, note: str = "") -> Finding:
    """A statement, and the rule that decides it."""
    return Finding(id, claim, published, measured, verdict(holds), f"Rule: {rule}. {note}".strip())
