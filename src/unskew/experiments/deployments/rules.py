"""The rules that several claims about deployments share. They were committed before the first whole run.

What had been seen by then are single runs that made the machinery work, with a few rows each.

Clusters differ, so absolute milliseconds and tuples per second are not compared, only ratios of two schemes in the same
repetition, which had the same rows at the same time; the median over repetitions decides. A ratio that a paper prints
is met within ABOUT of it. Where a paper prints factors that contradict each other, or that hold "up to", a factor NEAR
is allowed, as on the page about the paper's simulations. Schemes that are called alike differ by at most ALIKE; one
that is called better is better by CLEARLY.
"""

from unskew.experiments.claims import verdict
from unskew.experiments.paper import Finding

ABOUT = 0.10
NEAR = 1.5
ALIKE = 1.10
CLEARLY = 1.05
POINTS = 0.10  # of a share: a printed loss of 60 % is met from 50 % to 70 %


def about(measured: float, printed: float) -> bool:
    return abs(measured - printed) <= ABOUT * printed


def near(measured: float, printed: float) -> bool:
    return printed / NEAR <= measured <= printed * NEAR


def alike(one: float, other: float) -> bool:
    return max(one, other) <= ALIKE * min(one, other)


def judged(
    id: str,
    claim: str,
    published: str,
    measured: str,
    rule: str,
    holds: bool,
    note: str = "",
    reading: str = "",
    measured_so: str = "",
    holds_so: bool = False,
) -> Finding:
    """A statement, and the rule that decides it."""
    text = f"Rule: {rule}. {note}".strip()
    return Finding(id, claim, published, measured, verdict(holds, holds_so), text, reading, measured_so)
