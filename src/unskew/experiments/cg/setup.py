"""What the experiments on Consistent Grouping share: streams, schemes under the paper's names, and the common rules.

Normalised imbalance is (max - mean) / mean of the bins' loads, that is I(m) n/m. The paper does not define it, but only
so does hashing's imbalance grow "linearly with the increase in the number of workers" and PoRC's stay at epsilon
(section VII-B, Fig. 7). Memory is the number of (bin, key) pairs, over that of key grouping, which has one of each key.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from unskew import Hash, PartialKey, Scheme, Shuffle
from unskew.experiments.grid import Job, Outcomes, max_over_mean
from unskew.experiments.paper import Settings
from unskew.experiments.words import size
from unskew.ring import VIRTUAL_NODES
from unskew.schemes.bounded import BoundedLoads
from unskew.schemes.cg import ConsistentGrouping
from unskew.schemes.porc import RandomChoices
from unskew.schemes.random_two import RandomTwo
from unskew.simulate import Result
from unskew.streams import PUBLISHED, StandIn, Stream

EPSILON = 0.01  # section VII-B, Q1: "we use the value of epsilon = 0.01 henceforth"
WORKERS = (5, 10, 50, 100)
WP = PUBLISHED["WP"]
WHOLE_WP, QUICK_WP, QUICK_DAY = WP.tuples, 1_100_000, 5_500_000

Kinds = Mapping[str, Callable[[int], Scheme]]  # a scheme's name in the paper -> the scheme for a number of bins
KG, PKG, POTC, PORC, CH, SG = "KG", "PKG", "PoTC", "PoRC", "CH", "SG"
CH_SPREAD = f"CH, {VIRTUAL_NODES} nodes per bin"  # ours: bins of many small arcs, so that any bin may come next
CH_WORKERS = "CH, bound per worker"  # the other reading of Fig. 8: 10 nodes per worker on a ring of uneven arcs
# No worker is ever busy or idle: virtual workers stay where they are.
NOBODY_ASKS: dict[str, Any] = {"idle": 0.0, "busy": float("inf")}


def on_ring(workers: int, virtual: int = 1) -> ConsistentGrouping:
    """CH: equal arcs of a ring, each with a bound of its own; who finds his full goes to the next."""
    return ConsistentGrouping(workers, virtual, EPSILON, ring=True, **NOBODY_ASKS)


KINDS: Kinds = {
    KG: Hash,
    PKG: PartialKey,
    POTC: RandomTwo,
    PORC: partial(RandomChoices, epsilon=EPSILON),
    CH: on_ring,
    CH_SPREAD: partial(BoundedLoads, epsilon=EPSILON, virtual_nodes=VIRTUAL_NODES),
    SG: Shuffle,
}

# Rules that several claims share, fixed before the grid was run.
BALANCED = 2 * EPSILON  # normalised imbalance: twice the slack that PoRC and CH are given
HIGH = 1.0  # normalised imbalance: the busiest bin has twice the mean
ALIKE = 1.1  # two memories within a tenth are alike


class Cell(NamedTuple):
    """All schemes on one stream with one number of bins."""

    data: str
    bins: int
    of: dict[str, Result]

    @property
    def place(self) -> str:
        return f"{self.data} n={self.bins}"

    def imbalance(self, name: str) -> float:
        """I(m) n/m."""
        return max_over_mean(self.of[name]) - 1.0

    def drawable(self, name: str) -> float:
        """For logarithmic axes: an imbalance of less than one tuple is drawn as one."""
        return max(self.imbalance(name), self.bins / self.of[name].tuples)

    def memory(self, name: str) -> float:
        return self.of[name].replicas_over_kg or 0.0


def jobs_of(experiment: str, streams: Mapping[str, Stream], bins: Iterable[int], kinds: Kinds) -> list[Job]:
    """One job for each stream and number of bins, with all `kinds` of schemes."""
    return [
        Job(experiment, name, stream, tuple(kind(n) for kind in kinds.values()), replicas=True, samples=100)
        for name, stream in streams.items()
        for n in bins
    ]


def cells_of(outcomes: Outcomes, kinds: Kinds) -> list[Cell]:
    """The cells of the grid that `jobs_of` makes."""
    places = dict.fromkeys((outcome.job.data, outcome.result.workers) for outcome in outcomes)
    return [
        Cell(data, n, {name: outcomes.where(data=data, workers=n).of(kind(n)) for name, kind in kinds.items()})
        for data, n in places
    ]


def wikipedia(settings: Settings, quick: int | None = None) -> StandIn:
    """The stand-in for WP; in a quick run its first `quick` tuples, by default a twentieth."""
    return StandIn("WP", settings.tuples(WHOLE_WP, quick or QUICK_WP), seed=settings.seed)


def day_of_wikipedia(settings: Settings) -> StandIn:
    """The same where the course of the day matters: a quick run has a day of 6 hours."""
    return StandIn("WP", settings.tuples(WHOLE_WP, QUICK_DAY), seed=settings.seed)


def wp_label(tuples: int) -> str:
    part = "" if tuples >= WP.tuples else f", first {size(tuples)} of {size(WP.tuples)}"
    return f"WP (stand-in{part})"


Ratio = tuple[float, str]  # and where it was measured


def largest(ratios: Iterable[Ratio]) -> str:
    ratio, place = max(ratios)
    return f"{shown(ratio)} ({place})"


def shown(number: float) -> str:
    """Three digits: 0.0123, 4.56, 789."""
    return f"{number:.3g}"


class Excess(NamedTuple):
    """By how much runs exceeded the bound on their imbalance."""

    tuples: float  # most of I(t) - epsilon t/n over all samples
    share: float  # most of I(t) / (epsilon t/n) over samples after warm-up
    samples: int

    @property
    def none(self) -> bool:
        """Whether all kept the bound, but for whole tuples and rounding."""
        return self.tuples < 1.0 + 1e-6


WARM = 10  # a run has warmed up when the slack epsilon t/n is this many tuples: then whole tuples hardly matter


def excess_of(results: Iterable[Result]) -> Excess:
    """PoRC's bound I(t) <= epsilon t/n (section VI-A) at every sample of `results`."""
    over, shares, samples = [0.0], [0.0], 0
    for result in results:
        slack = float(result.params["epsilon"]) / result.workers
        over += [sample.imbalance - slack * sample.tuples for sample in result.samples]
        warm = [sample for sample in result.samples if slack * sample.tuples >= WARM]
        shares += [sample.imbalance / (slack * sample.tuples) for sample in warm]
        samples += len(result.samples)
    return Excess(max(over), max(shares), samples)


def bounded_measured(excess: Excess) -> str:
    return (
        f"largest I(t) - epsilon t/n: {excess.tuples:.3f} tuples in {excess.samples:,} samples; "
        f"I(t) / (epsilon t/n) after warm-up at most {excess.share:.3f}"
    )


BOUND_RULE = (
    "Rule: I(t) < epsilon t/n + 1 at every sample. The 1 is for whole tuples: a bin that has room takes a whole one. "
    f"After warm-up (epsilon t/n of at least {WARM} tuples) the quotient shows how tight it is."
)
