"""Fig. 4 (section V-A): imbalance and memory of six schemes over the skew, with 10, 100 and 1000 bins."""

from unskew.experiments.cg.pictures import Row, panels_by_bins
from unskew.experiments.cg.setup import (
    ALIKE,
    BALANCED,
    BOUND_RULE,
    CH,
    CH_SPREAD,
    HIGH,
    KG,
    KINDS,
    PKG,
    PORC,
    POTC,
    SG,
    Cell,
    bounded_measured,
    cells_of,
    excess_of,
    jobs_of,
    largest,
    shown,
)
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.streams import Zipf

BINS = (10, 100, 1000)
SKEWS = tuple(round(0.1 * i, 1) for i in range(1, 21))  # section VII-A: 0.1, ..., 2.0
QUICK_SKEWS = (0.1, 0.8, 1.4, 2.0)
KEYS, TUPLES, QUICK_TUPLES = 100_000, 10_000_000, 1_000_000  # Table I
EVEN = (POTC, PORC, CH, SG)  # the schemes that "perform fairly well in terms of imbalance"


def jobs(settings: Settings) -> list[Job]:
    tuples = settings.tuples(TUPLES, QUICK_TUPLES)
    streams = {f"z={z}": Zipf(z, KEYS, tuples, settings.seed) for z in settings.pick(SKEWS, QUICK_SKEWS)}
    return jobs_of("fig4", streams, BINS, KINDS)


def skew(cell: Cell) -> float:
    return float(cell.data.removeprefix("z="))


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = cells_of(outcomes, KINDS)
    return [_high(cells), _even(cells), _bound(outcomes), *_memory(cells)]


def _high(cells: list[Cell]) -> Finding:
    first, last = (choose(map(skew, cells)) for choose in (min, max))
    low = {cell.bins: cell for cell in cells if skew(cell) == first}
    top = {cell.bins: cell for cell in cells if skew(cell) == last}
    rises = all(top[n].imbalance(name) > low[n].imbalance(name) for n in top for name in (KG, PKG))
    values = {name: [top[n].imbalance(name) for n in sorted(top)] for name in (KG, PKG)}
    grows = all(line == sorted(line) and line[0] >= HIGH for line in values.values())
    return Finding(
        "fig4-high",
        "KG and PKG generate high imbalance as the skew and the number of virtual workers increase",
        "rising with skew and bins; no numbers in the text",
        f"at z={last}, n = {', '.join(map(str, sorted(top)))}: "
        + "; ".join(f"{name} {', '.join(map(shown, line))}" for name, line in values.items()),
        verdict(rises and grows),
        f"Rule: at the largest skew both have a normalised imbalance of at least {HIGH:g} with every n, more with more "
        "bins, and more than at the smallest skew.",
    )


def _even(cells: list[Cell]) -> Finding:
    worst = {name: [(cell.imbalance(name), cell.place) for cell in cells] for name in EVEN}
    return Finding(
        "fig4-even",
        "the other schemes (PoTC, PoRC, CH, SG) perform fairly well in terms of imbalance",
        "fairly well; no numbers in the text",
        "largest: " + "; ".join(f"{name} {largest(values)}" for name, values in worst.items()),
        verdict(all(max(values)[0] <= BALANCED for values in worst.values())),
        f"Rule: normalised imbalance of at most {BALANCED:g} (twice epsilon) in every cell.",
    )


def _bound(outcomes: Outcomes) -> Finding:
    excess = excess_of(outcomes.results(scheme="porc"))
    return Finding(
        "fig4-bound",
        "PoRC's imbalance is bounded by the factor epsilon at any time (section VI-A)",
        "I(m) <= epsilon m/n",
        bounded_measured(excess),
        verdict(excess.none),
        BOUND_RULE,
        by_construction=True,
    )


def _memory(cells: list[Cell]) -> list[Finding]:
    uneven = [cell for cell in cells if cell.imbalance(PKG) > BALANCED]
    cheapest = [(min(cell.memory(name) for name in EVEN) / cell.memory(PKG), cell.place) for cell in uneven]
    to_pkg = [(cell.memory(PORC) / cell.memory(PKG), cell.place) for cell in uneven]
    to_shuffle = [(cell.memory(PORC) / min(cell.memory(SG), cell.memory(POTC)), cell.place) for cell in cells]
    to_ring = [(cell.memory(PORC) / cell.memory(CH), cell.place) for cell in cells]
    to_even_ring = [(cell.memory(PORC) / cell.memory(CH_SPREAD), cell.place) for cell in cells]
    near = sum(ratio <= ALIKE for ratio, _ in to_pkg)
    return [
        Finding(
            "fig4-cost",
            "load balance is achieved at the cost of memory",
            "balanced schemes have more memory; no numbers in the text",
            f"PKG is unbalanced in {len(uneven)} of {len(cells)} cells; the cheapest balanced scheme there has "
            f"{min(cheapest)[0]:.2f} ({min(cheapest)[1]}) to {largest(cheapest)} times PKG's memory",
            verdict(min(cheapest)[0] > 1.0),
            f"Rule: wherever PKG's normalised imbalance is above {BALANCED:g}, each of PoTC, PoRC, CH and SG has more "
            "replicas than PKG. In a short stream with mild skew PoRC can be below: PKG puts nearly every key on two "
            "bins, PoRC moves only what does not fit.",
        ),
        Finding(
            "fig4-porc-shuffle",
            "PoRC's memory is lower than that of SG and PoTC (section VI-B)",
            "lower; no numbers in the text",
            f"PoRC over the lower of both: {min(to_shuffle)[0]:.2f} to {largest(to_shuffle)}",
            verdict(max(to_shuffle)[0] < 1.0),
            "Rule: lower in every cell.",
        ),
        Finding(
            "fig4-porc-pkg",
            "PoRC's memory is as low as PKG's, and PoRC is balanced where PKG is not (said of WP in section VII-B; "
            "here on Zipf streams)",
            "as low as PKG",
            f"PoRC over PKG where PKG is unbalanced: {min(to_pkg)[0]:.2f} ({min(to_pkg)[1]}) to {largest(to_pkg)}; "
            f"at most {ALIKE:g} in {near} of {len(uneven)} cells",
            verdict(max(to_pkg)[0] <= ALIKE),
            f"Rule: at most {ALIKE:g} times PKG's replicas in every cell where PKG is unbalanced. It cannot be so for "
            "large skew: the hottest key alone needs p1 n bins where PKG stops at two, and while it fills them, cold "
            "keys whose first bin is full wander too. Against SG PoRC still saves most of the memory.",
        ),
        Finding(
            "fig4-porc-ch",
            "PoRC needs less memory than CH, which always takes the next bin of the ring (section VII-B, Q2)",
            "less; no numbers in the text",
            f"PoRC over CH with equal arcs: {min(to_ring)[0]:.2f} ({min(to_ring)[1]}) to {largest(to_ring)}; "
            f"over {CH_SPREAD}: {min(to_even_ring)[0]:.2f} ({min(to_even_ring)[1]}) to {largest(to_even_ring)}",
            verdict(max(to_ring)[0] < 1.0),
            "Rule: less than CH with equal arcs, as in the authors' public code, in every cell. It is the order of the "
            "search that costs: bins next to a full one are full too, since hot keys overflow into the same "
            "neighbours. Many nodes per bin put a random bin next to each, and most of the difference goes away: the "
            "paper's own explanation.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    rows = [Row("normalised imbalance I n/m", Cell.drawable), Row("memory, over KG", Cell.memory)]
    return [
        Picture(
            "fig4",
            panels_by_bins(cells_of(outcomes, KINDS), list(KINDS), rows, "skew z", skew),
            "Zipf streams with 100,000 keys. Above: how much the busiest of n bins has over the mean (an imbalance of "
            "less than one tuple is drawn as one). Below: (bin, key) pairs over those of key grouping. KG and PKG "
            "keep a key on one or two bins and pay with imbalance, SG and PoTC forget the key and pay with memory; "
            "PoRC and CH spread just what does not fit.",
        )
    ]


EXPERIMENT = Experiment("fig4", "Figure 4: power of random choices", jobs, claims, parts)
