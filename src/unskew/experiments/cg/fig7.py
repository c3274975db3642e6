"""Fig. 7 (Q1): the same schemes on WP, dealt to the 50 to 1000 virtual workers of 5 to 100 workers."""

from unskew.experiments.cg.pictures import Row, panels_by_row
from unskew.experiments.cg.setup import (
    ALIKE,
    BOUND_RULE,
    EPSILON,
    HIGH,
    KG,
    KINDS,
    PKG,
    PORC,
    POTC,
    SG,
    WORKERS,
    Cell,
    bounded_measured,
    cells_of,
    excess_of,
    jobs_of,
    shown,
    wikipedia,
    wp_label,
)
from unskew.experiments.claims import verdict, within
from unskew.experiments.grid import Job, Outcomes, max_over_mean
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings

EACH = 10  # virtual workers of a worker
BINS = tuple(EACH * workers for workers in WORKERS)
LINEAR = 0.25  # a growth in proportion to the bins, off by at most this share


def jobs(settings: Settings) -> list[Job]:
    return jobs_of("fig7", {"WP": wikipedia(settings)}, BINS, KINDS)


def _listed(cells: list[Cell], name: str, memory: bool = False) -> str:
    values = [cell.memory(name) if memory else cell.imbalance(name) for cell in cells]
    return f"{name} {', '.join(map(shown, values))}"


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = sorted(cells_of(outcomes, KINDS), key=lambda cell: cell.bins)
    where = f"{wp_label(cells[0].of[KG].tuples)}, n = {', '.join(str(cell.bins) for cell in cells)}: "
    ratio = max(cells[-1].bins / cells[0].bins, 1.0)
    growth = {name: max_over_mean(cells[-1].of[name]) / max_over_mean(cells[0].of[name]) for name in (KG, PKG)}
    bounded = [outcome.result for outcome in outcomes if outcome.result.scheme in ("porc", "bounded", "cg")]
    excess = excess_of(bounded)
    return [
        Finding(
            "fig7-imbalance",
            "KG and PKG generate high imbalance, PoTC and SG nearly perfect balance",
            "no numbers in the text",
            where + "; ".join(_listed(cells, name) for name in (KG, PKG, POTC, SG)),
            verdict(
                all(cell.imbalance(name) >= HIGH for cell in cells for name in (KG, PKG))
                and all(cell.imbalance(name) <= EPSILON for cell in cells for name in (POTC, SG))
            ),
            f"Rule: normalised imbalance at least {HIGH:g} for KG and PKG and at most {EPSILON:g} for PoTC and SG, "
            "with every n.",
        ),
        Finding(
            "fig7-linear",
            "the imbalance of KG and PKG grows linearly with the number of workers",
            "linear: both restrict a key to a constant number of workers",
            where + f"highest over mean load grows {', '.join(f'{g:.1f}x ({name})' for name, g in growth.items())} "
            f"where n grows {ratio:.0f}x",
            verdict(all(within(g, ratio, LINEAR) for g in growth.values())),
            f"Rule: from the least n to the largest, the highest over the mean load grows as n does, give or take "
            f"{100 * LINEAR:.0f} %.",
        ),
        Finding(
            "fig7-bound",
            "CH and PoRC bound the imbalance close to a constant factor of epsilon",
            "I(m) <= epsilon m/n",
            where + bounded_measured(excess),
            verdict(excess.none),
            BOUND_RULE,
            by_construction=True,
        ),
        _memory_claim(cells, where, PKG, "fig7-memory-pkg", "PoRC keeps the memory as low as PKG's", "as low as PKG"),
        _memory_claim(cells, where, KG, "fig7-memory-kg", "PoRC operates very close to KG in memory", "nearly perfect"),
    ]


def _memory_claim(cells: list[Cell], where: str, other: str, id: str, claim: str, published: str) -> Finding:
    ratios = [cell.memory(PORC) / cell.memory(other) for cell in cells]
    over_shuffle = [cell.memory(PORC) / cell.memory(SG) for cell in cells]
    return Finding(
        id,
        claim,
        published,
        where
        + f"PoRC over {other} {', '.join(map(shown, ratios))}; PoRC over SG {', '.join(map(shown, over_shuffle))}",
        verdict(max(ratios) <= ALIKE),
        f"Rule: at most {ALIKE:g} times the replicas with every n. PoRC has several replicas of hot keys, which need "
        "many bins, and of cold keys that come while their first bin is full. Many bins are full at any moment, since "
        "the hottest keys fill every bin that they are sent to.",
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells = cells_of(outcomes, KINDS)
    rows = [Row("normalised imbalance I n/m", Cell.drawable), Row("memory, over KG", Cell.memory, log=False)]
    return [
        Picture(
            "fig7",
            panels_by_row(cells, list(KINDS), rows, "bins n", lambda cell: cell.bins),
            f"{wp_label(cells[0].of[KG].tuples)}: imbalance and memory when the stream is dealt to n bins, "
            f"{EACH} for each of 5, 10, 50 and 100 workers.",
        )
    ]


EXPERIMENT = Experiment("fig7", "Figure 7: how tuples get to virtual workers", jobs, claims, parts)
