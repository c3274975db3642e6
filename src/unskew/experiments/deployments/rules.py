"""The rules that several claims about deployments share. They were committed before the first whole run.

What had been seen by then are single runs that made the machinery work, with a few rows each.

Clusters differ, so absolute milliseconds and tuples per second are not compared, only ratios of two schemes in the same
repetition, which had the same rows at the same time; the median over repetitions decides. A ratio that a paper prints
is met within ABOUT of it. Where a paper prints factors that contradict each other, or that hold "up to", a factor NEAR
is allowed, as on the page about the paper's simulations. Schemes that are called alike differ by at most ALIKE; one
that is called better is better by CLEARLY.

A machine that is busy with something else wakes up sleeping workers late, and measures itself. So nothing is judged
where workers woke up later than TOO_LATE, by the median over all runs of the 99th percentile of their rows.
"""

from collections.abc import Callable
from typing import Any

from unskew.experiments.claims import NOT_TESTABLE, verdict
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Finding, Settings
from unskew.experiments.words import median

ABOUT = 0.10
NEAR = 1.5
ALIKE = 1.10
CLEARLY = 1.05
TOO_LATE = 0.020  # seconds: two rows of 10 ms
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


Claims = Callable[[Outcomes, Settings], list[Finding]]


def in_time(claims: Claims) -> Claims:
    """The same claims, all of them not testable where the machine was too busy to measure."""

    def judged_in_time(outcomes: Outcomes, settings: Settings) -> list[Finding]:
        findings = claims(outcomes, settings)
        results: list[Any] = [outcome.result for outcome in outcomes]
        late = median([result.late_p99 for result in results]) if results else 0.0
        if late <= TOO_LATE:
            return findings
        why = (
            f"The machine was too busy: workers woke up to {1000 * late:.0f} ms late (99th percentile, median of all "
            f"runs; at most {1000 * TOO_LATE:.0f} ms are allowed). Run it on a quiet one. "
        )
        return [
            found._replace(verdict=NOT_TESTABLE, why=why + found.why, reading="", measured_so="", by_construction=False)
            for found in findings
        ]

    return judged_in_time
