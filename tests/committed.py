"""The results of the papers that are committed in docs/papers/results.

PAPER.json has all claims. PAPER-whole.json, where there is one, has those of the figures that were run whole.
"""

from documents import ROOT
from unskew.experiments.evaluation import Evaluation

RESULTS = ROOT / "docs" / "papers" / "results"
NAMES = sorted(path.stem for path in RESULTS.glob("*.json"))
SOME_WHOLE = "-whole"


def committed(name: str) -> Evaluation:
    """What `unskew reproduce` found when it was last run for the documents."""
    return Evaluation.from_json((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def ids(found: Evaluation) -> list[str]:
    return [claim.id for claim in found.claims]
