"""Claims: what a paper says beside what was measured, with a verdict that a rule decided."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

REPRODUCED = "reproduced"
READING = "reproduced under a stated reading"
DIFFERS = "differs"
NOT_TESTABLE = "not testable here"
MARKS = {
    REPRODUCED: "✓ reproduced",
    READING: "(✓) reproduced under a stated reading",
    DIFFERS: "✗ differs",
    NOT_TESTABLE: "not testable here",
}
BY_CONSTRUCTION = "by construction, not counted"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper and what became of it."""

    id: str
    claim: str  # what the paper says
    published: str
    measured: str  # with the paper taken at its word
    verdict: str  # one of MARKS
    why: str  # the rule that decided, and what explains a difference
    experiment: str  # its table, figure or section
    command: str  # measures it again
    reading: str = ""  # how else the paper can be read, and what speaks for it
    measured_so: str = ""  # what was measured under this reading
    by_construction: bool = False  # whether it cannot but hold here, so that it says nothing about the paper

    def to_dict(self) -> dict[str, str | bool]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @property
    def mark(self) -> str:
        """The verdict as pages show it."""
        return MARKS[self.verdict] + (f" ({BY_CONSTRUCTION})" if self.by_construction else "")


def verdict(holds: bool, so_read: bool = False) -> str:
    """REPRODUCED if the claim's rule holds, READING if it holds only under the claim's reading, else DIFFERS."""
    return REPRODUCED if holds else READING if so_read else DIFFERS


def within(measured: float, published: float, relative: float) -> bool:
    """Whether `measured` is off by at most the share `relative` of `published`."""
    return abs(measured - published) <= relative * abs(published)


def tally(claims: Iterable[Claim]) -> str:
    """How many claims there are of each verdict.

    ``4 claims: 2 reproduced, 1 reproduced under a stated reading, 1 differs, 0 not testable here; 1 more holds by
    construction and is not counted``
    """
    told = list(claims)
    verdicts = [claim.verdict for claim in told if not claim.by_construction]
    counts = {kind: verdicts.count(kind) for kind in MARKS}
    shown = {DIFFERS: DIFFERS if counts[DIFFERS] == 1 else "differ"}
    each = ", ".join(f"{count} {shown.get(kind, kind)}" for kind, count in counts.items())
    besides = len(told) - len(verdicts)
    more = "; 1 more holds by construction and is not counted"
    if besides > 1:
        more = f"; {besides} more hold by construction and are not counted"
    return f"{len(verdicts)} claim{'' if len(verdicts) == 1 else 's'}: {each}{more if besides else ''}"
