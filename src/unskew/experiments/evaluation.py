"""A paper's evaluation, rerun: which grid, and what became of each claim. It is what `claims.json` holds.

The page `results.md` is made of nothing else, so anybody can make it again from `claims.json`:

    Evaluation.from_json(Path("claims.json").read_text()).markdown()
"""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from unskew import __version__
from unskew.experiments.claims import Claim, tally
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Paper, Settings

WHOLE, QUICK = "whole", "quick"
GRIDS = {WHOLE: "the whole grid", QUICK: "the quick grid (fewer and shorter streams than in the paper)"}
WIDTH = 120  # of a line of the page
RULE = "Rule: "  # how an explanation begins that names the rule of its verdict
# a line of Markdown that starts like this would be a list, a quotation, a heading or a table
SPECIAL_START = re.compile(r" (?=(?:[-+*>=#|]+|\d+[.)])(?: |$))")


@dataclass(frozen=True)
class Evaluation:
    """What was run, and what was found."""

    paper: str  # as the command names it: pkg
    title: str
    reference: str
    version: str  # of unskew
    grid: str  # WHOLE or QUICK
    seed: int
    command: str  # runs all of it again
    experiments: Mapping[str, str]  # name -> title, in order
    claims: Sequence[Claim]  # in the order of the experiments

    def to_json(self, indent: int | None = None) -> str:
        """One JSON object with the fields of this class."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> "Evaluation":
        """What `to_json` wrote."""
        fields = json.loads(text)
        return cls(**fields | {"claims": [Claim(**claim) for claim in fields["claims"]]})

    def of(self, experiment: str) -> list[Claim]:
        """The claims of one experiment."""
        return [claim for claim in self.claims if claim.experiment == experiment]

    def markdown(self) -> str:
        """The page: all verdicts in one table, then published beside measured for each claim."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"# {self.title}: results"
        yield ""
        yield from _wrapped(f"The evaluation of {self.reference}, rerun by")
        yield from ("", "```", self.command, "```", "")
        yield f"with unskew {self.version}, {GRIDS[self.grid]}, seed {self.seed}."
        yield "The command wrote this page; do not edit it."
        yield ""
        yield f"**{tally(self.claims)}.**"
        yield ""
        yield "| claim | verdict | what the paper says |"
        yield "|---|---|---|"
        for claim in self.claims:
            yield f"| [{claim.id}](#{claim.id.lower()}) | {claim.mark} | {claim.claim} |"
        for name, title in self.experiments.items():
            yield from ("", f"## {title}")
            for claim in self.of(name):
                yield from _section(claim)


def _section(claim: Claim) -> Iterator[str]:
    """Everything about one claim, under a heading that links can name by the claim's id."""
    yield from ("", f"### {claim.id}", "")
    yield from _wrapped(f"**{claim.mark}**: {claim.claim}")
    yield ""
    yield from _wrapped(f"- published: {claim.published}", hanging="  ")
    if claim.measured != "-":
        yield from _measured("measured", claim.measured)
    if claim.reading:
        yield from _wrapped(f"- reading: {claim.reading}", hanging="  ")
        yield from _measured("measured so", claim.measured_so)
    rule = claim.why.startswith(RULE)
    yield from _wrapped(f"- {'rule' if rule else 'why'}: {claim.why.removeprefix(RULE)}", hanging="  ")


def _measured(name: str, text: str) -> Iterator[str]:
    """A list item; what semicolons separate becomes a list, so that no number has to be searched for."""
    pieces = text.split("; ")
    if len(pieces) == 1:
        yield from _wrapped(f"- {name}: {text}", hanging="  ")
        return
    yield f"- {name}:"
    for piece in pieces:
        yield from _wrapped(f"  - {piece}", hanging="    ")


def _wrapped(text: str, hanging: str = "") -> Iterator[str]:
    held = SPECIAL_START.sub("\0", text[len(hanging) :])  # what must not begin a line stays with the word before
    lines = textwrap.wrap(
        text[: len(hanging)] + held,
        WIDTH,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return (line.replace("\0", " ") for line in lines)


def evaluate(paper: Paper, settings: Settings, experiments: Sequence[Experiment], outcomes: Outcomes) -> Evaluation:
    """Judge all claims of `experiments` by the outcomes of their grids."""
    judged = [experiment.judged(outcomes.where(experiment=experiment.name), settings) for experiment in experiments]
    return Evaluation(
        paper=paper.name,
        title=paper.title,
        reference=paper.reference,
        version=__version__,
        grid=QUICK if settings.quick else WHOLE,
        seed=settings.seed,
        command=settings.command(*(e.name for e in experiments if len(experiments) < len(paper.experiments))),
        experiments={experiment.name: experiment.title for experiment in experiments},
        claims=[claim for claims in judged for claim in claims],
    )
