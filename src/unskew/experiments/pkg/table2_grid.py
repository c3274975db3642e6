"""Table 2 as printed, and its grid of simulations: WP and TW, with one source."""

from collections.abc import Sequence
from typing import Any

from unskew import Hash, OnGreedy, PartialKey, StaticPotc
from unskew.experiments.grid import Fit, Job, Outcomes
from unskew.experiments.paper import Settings
from unskew.experiments.pkg.data import WORKERS, fractions, label, stand_in
from unskew.simulate import Result

# The table as printed: fraction of average imbalance. Most numbers of the rows PKG and PoTC are not legible in the
# text that was used; that the two numbers left in a cell are Off-Greedy and On-Greedy follows from their agreement with
# p1 - 1/W.
PRINTED: dict[str, dict[str, tuple[float | None, ...]]] = {
    "WP": {
        "pkg": (None, None, None, None),
        "off_greedy": (3.7e-8, 4.1e-8, 7.4e-2, 8.3e-2),
        "on_greedy": (3.6e-7, 6.4e-3, 7.4e-2, 8.3e-2),
        "potc": (None, None, None, None),
        "hash": (6.4e-2, 7.8e-2, 9.2e-2, 9.2e-2),
    },
    "TW": {
        "pkg": (3.4e-10, None, None, None),
        "off_greedy": (3.4e-10, 6e-10, 6.7e-3, 1.7e-2),
        "on_greedy": (7.2e-9, 7.9e-8, 1.0e-2, 1.7e-2),
        "potc": (1.9e-5, None, None, None),
        "hash": (3.5e-2, 3.2e-2, 2.0e-2, 2.8e-2),
    },
}
NAMES = {"pkg": "PKG", "off_greedy": "Off-Greedy", "on_greedy": "On-Greedy", "potc": "PoTC", "hash": "Hashing (KG)"}
UNBALANCED = (50, 100)  # of WORKERS: here p1 > 1/W on both data sets, so whole keys cannot be balanced
A_FEW = 10  # tuples: what we call no imbalance at all
P1 = {"WP": 0.0932, "TW": 0.0267}
WHOLE = {"WP": WORKERS, "TW": (5, 10)}  # the W at which schemes with a table of keys get the whole stream
PART = 120_000_000  # tuples: what they get elsewhere, and what several hash functions are tried on
SEEDS = ", several hash functions"


def jobs(settings: Settings) -> list[Job]:
    """One pass counts the keys for Off-Greedy at all W, one runs all schemes (on the whole of TW with 5 GB of tables).

    The whole length matters in cells that can be balanced, where I(m)/m is about 1/m. Elsewhere it is p1 - 1/W,
    whatever m: there the first tenth of TW will do.
    """
    made = []
    for name, whole in WHOLE.items():
        stream, part = (stand_in(name, settings, most, quick=1_500_000) for most in (10**12, PART))
        rest = [workers for workers in WORKERS if workers not in whole]
        made.append(Job("table2", name, stream, (*_all_schemes(whole), *map(PartialKey, rest))))
        if rest:
            made.append(Job("table2", name, part, _all_schemes(rest)))
        seeds = range(settings.pick(5, 3))
        again = tuple(kind(workers, seed=seed) for workers in WORKERS for seed in seeds for kind in (PartialKey, Hash))
        made.append(Job("table2", name + SEEDS, part, again))
    return made


def _all_schemes(sizes: Sequence[int]) -> tuple[Any, ...]:
    return tuple(
        scheme for w in sizes for scheme in (PartialKey(w), Fit("off_greedy", w), OnGreedy(w), StaticPotc(w), Hash(w))
    )


def cell(outcomes: Outcomes, name: str, scheme: str, workers: int) -> Result:
    """The run with the first hash functions, on the whole stream if there is one."""
    return max(outcomes.results(data=name, scheme=scheme, workers=workers), key=lambda result: result.tuples)


def as_long(outcomes: Outcomes, other: Result, name: str, scheme: str, workers: int) -> Result:
    """The run with the first hash functions on as many tuples as `other`."""
    return outcomes.one(data=name, scheme=scheme, workers=workers, tuples=other.tuples)


def over_seeds(outcomes: Outcomes, name: str, scheme: str, workers: int) -> list[float]:
    return fractions(outcomes.results(data=name + SEEDS, scheme=scheme, workers=workers))


def seeds_label(outcomes: Outcomes, name: str) -> str:
    return label(name, outcomes.one(data=name + SEEDS).tuples)


def ratio_of(above: Result, below: Result) -> float:
    """One imbalance over another, which counts as one tuple if it is less: less cannot be told from none."""
    return above.imbalance_fraction / max(below.imbalance_fraction, 1 / below.tuples)
