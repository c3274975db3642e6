"""The results of the papers that are committed in docs/papers/results."""

from documents import ROOT
from unskew.experiments.evaluation import Evaluation

RESULTS = ROOT / "docs" / "papers" / "results"


def committed(paper: str) -> Evaluation:
    """What `unskew reproduce` found when it was last run for the documents."""
    return Evaluation.from_json((RESULTS / f"{paper}.json").read_text(encoding="utf-8"))


def ids(found: Evaluation) -> list[str]:
    return [claim.id for claim in found.claims]
