"""Claims: what a paper says beside what was measured, with a verdict that a rule decided."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

REPRODUCED = "reproduced"
DIFFERS = "differs"
NOT_TESTABLE = "not testable here"
MARKS = {REPRODUCED: "✓ reproduced", DIFFERS: "✗ differs", NOT_TESTABLE: "not testable here"}


@dataclass(frozen=True)
class Claim:
    """One statement of a paper and what became of it."""

    id: str
    claim: str  # what the paper says
    published: str
    measured: str
    verdict: str  # REPRODUCED, DIFFERS or NOT_TESTABLE
    why: str  # the rule that decided, and what explains a difference
    experiment: str  # its table, figure or section
    command: str  # measures it again

    def to_dict(self) -> dict[str, str]:
        """Plain values, ready for JSON."""
        return asdict(self)


def verdict(holds: bool) -> str:
    """REPRODUCED if the claim's rule holds, else DIFFERS."""
    return REPRODUCED if holds else DIFFERS


def within(measured: float, published: float, relative: float) -> bool:
    """Whether `measured` is off by at most the share `relative` of `published`."""
    return abs(measured - published) <= relative * abs(published)


def tally(claims: Iterable[Claim]) -> str:
    """How many claims there are of each verdict: ``3 claims: 2 reproduced, 1 differs, 0 not testable here``."""
    verdicts = [claim.verdict for claim in claims]
    counts = {kind: verdicts.count(kind) for kind in MARKS}
    differ = DIFFERS if counts[DIFFERS] == 1 else "differ"
    return (
        f"{len(verdicts)} claim{'' if len(verdicts) == 1 else 's'}: {counts[REPRODUCED]} {REPRODUCED}, "
        f"{counts[DIFFERS]} {differ}, {counts[NOT_TESTABLE]} {NOT_TESTABLE}"
    )
