"""Claims: what a paper says beside what was measured, with a verdict that a rule decided."""

from dataclasses import asdict, dataclass

REPRODUCED = "reproduced"
DIFFERS = "differs"
NOT_TESTABLE = "not testable here"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper and what became of it."""

    id: str
    claim: str  # what the paper says
    published: str
    measured: str
    verdict: str  # REPRODUCED, DIFFERS or NOT_TESTABLE
    why: str  # the rule that decided, and what explains a difference
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
