"""What a rerun evaluation is made of: a paper, its experiments, and the parts that a page shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from unskew.errors import InputError
from unskew.experiments.claims import NOT_TESTABLE, Claim
from unskew.experiments.grid import Outcomes, run_on_spark
from unskew.experiments.kept_passes import KeptPasses


@dataclass(frozen=True)
class Settings:
    """What the user asked for; every experiment makes its grid from it."""

    paper: str
    data: Path  # folder of real streams
    quick: bool = False
    seed: int = 0  # of the generated streams
    options: str = ""  # as typed, to be repeated in each claim's command

    def pick(self, full: Any, quick: Any) -> Any:
        """`full`, or `quick` in a quick run."""
        return quick if self.quick else full

    def tuples(self, full: int, quick: int) -> int:
        """As `pick`, but a quick run is never the longer one."""
        return min(full, quick) if self.quick else full

    def command(self, *experiments: str) -> str:
        """What to type to measure the claims of `experiments` again; without any, of the whole paper."""
        return f"unskew reproduce {self.paper}{''.join(f' --only {name}' for name in experiments)}{self.options}"


class Table(NamedTuple):
    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]


class Picture(NamedTuple):
    name: str  # of its file, without ending
    figure: Any
    caption: str


Part = str | Table | Picture  # a string is a paragraph


class Finding(NamedTuple):
    """A claim before it is tied to a command."""

    id: str
    claim: str
    published: str
    measured: str
    verdict: str
    why: str
    reading: str = ""
    measured_so: str = ""
    by_construction: bool = False


def not_testable(id: str, claim: str, published: str, why: str) -> Finding:
    """A claim that cannot be measured here, with the reason."""
    return Finding(id, claim, published, "-", NOT_TESTABLE, why)


@dataclass(frozen=True)
class Experiment:
    """A table, figure or statement of a paper."""

    name: str
    title: str
    jobs: Callable[[Settings], Sequence[Any]]  # what the paper's `run` takes
    claims: Callable[[Outcomes, Settings], list[Finding]]
    parts: Callable[[Outcomes, Settings], list[Part]]
    timed: bool = False  # its claims are about how long passes take: those of another run do not count

    def judged(self, outcomes: Outcomes, settings: Settings) -> list[Claim]:
        """The claims, each with the command that measures it."""
        command = settings.command(self.name)
        return [
            Claim(**found._asdict(), experiment=self.name, command=command) for found in self.claims(outcomes, settings)
        ]


@dataclass(frozen=True)
class Paper:
    """A paper whose evaluation is rerun."""

    name: str
    title: str
    reference: str
    introduction: Sequence[str]
    experiments: Sequence[Experiment]
    run: Callable[[Any, Sequence[Any], Callable[[int], None], KeptPasses], Outcomes] = run_on_spark
    doing: str = "simulating"  # what the progress bar says
    master: str = "local[*]"  # where it runs unless the user says otherwise
    settings: Mapping[str, str] = field(default_factory=dict)  # of a local Spark

    def chosen(self, names: Sequence[str]) -> list[Experiment]:
        """The experiments called `names`, all without any."""
        known = {experiment.name: experiment for experiment in self.experiments}
        for name in names:
            if name not in known:
                raise InputError(f"only: {name!r} is not part of {self.name}; allowed are {', '.join(known)}")
        return [experiment for experiment in self.experiments if not names or experiment.name in names]
