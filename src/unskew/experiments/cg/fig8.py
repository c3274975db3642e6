"""Fig. 8 (Q2): CG against the other groupings on clusters of 5 to 100 equal workers."""

from functools import partial

from unskew.experiments.cg.cluster import ALL_ALIKE, CG, grouping, queues_of
from unskew.experiments.cg.pictures import Row, panels_by_row
from unskew.experiments.cg.setup import (
    ALIKE,
    CH,
    CH_SPREAD,
    EPSILON,
    KG,
    PKG,
    POTC,
    SG,
    WORKERS,
    Cell,
    Kinds,
    cells_of,
    shown,
    wikipedia,
    wp_label,
)
from unskew.experiments.cg.setup import KINDS as TO_BINS
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.schemes.bounded import BoundedLoads

KINDS: Kinds = {
    **{name: TO_BINS[name] for name in (KG, PKG, POTC)},
    CH: partial(BoundedLoads, epsilon=EPSILON, virtual_nodes=10),  # caption: "each worker spawns 10 virtual workers"
    CH_SPREAD: TO_BINS[CH_SPREAD],
    SG: TO_BINS[SG],
    CG: grouping,
}
SMALL, LARGE = (5, 10), (50, 100)


def jobs(settings: Settings) -> list[Job]:
    stream = wikipedia(settings)
    return [
        Job(
            "fig8",
            "WP",
            stream,
            tuple(kind(workers) for kind in KINDS.values()),
            replicas=True,
            queues=queues_of(ALL_ALIKE, workers),
        )
        for workers in WORKERS
    ]


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = sorted(cells_of(outcomes, KINDS), key=lambda cell: cell.bins)
    where = f"{wp_label(cells[0].of[KG].tuples)}, W = {', '.join(str(cell.bins) for cell in cells)}: "

    def imbalance(*names: str) -> str:
        return "; ".join(f"{name} {', '.join(shown(cell.imbalance(name)) for cell in cells)}" for name in names)

    def memory(*names: str) -> str:
        return "memory " + "; ".join(
            f"{name} {', '.join(shown(cell.memory(name)) for cell in cells)}" for name in names
        )

    others = [name for name in KINDS if name != KG]
    pkg = {cell.bins: cell.imbalance(PKG) for cell in cells}
    return [
        Finding(
            "fig8-kg",
            "KG performs the worst in terms of imbalance, with the optimal memory footprint",
            "worst imbalance, least memory",
            where + imbalance(KG, PKG, CG) + "; " + memory(KG, CG),
            verdict(
                all(cell.imbalance(KG) > max(map(cell.imbalance, others)) for cell in cells)
                and all(cell.memory(KG) <= min(map(cell.memory, others)) for cell in cells)
            ),
            "Rule: the highest normalised imbalance and the least memory of all with every W.",
        ),
        Finding(
            "fig8-pkg",
            "PKG provides nearly perfect imbalance for 5 and 10 workers, but it grows with the workers",
            "nearly perfect at 5 and 10; grows",
            where + imbalance(PKG),
            verdict(all(pkg[w] <= EPSILON for w in SMALL) and EPSILON < pkg[LARGE[0]] < pkg[LARGE[1]]),
            f"Rule: at most {EPSILON:g} at W = 5 and 10, above it at 50, and more at 100. PKG stops being balanced at "
            "W = 2/p1, which is 21 here.",
        ),
        Finding(
            "fig8-pkg-memory",
            "PKG provides optimal memory footprint for 5 and 10 workers",
            "optimal at 5 and 10",
            where + memory(PKG, KG),
            verdict(all(cell.memory(PKG) <= ALIKE * cell.memory(KG) for cell in cells if cell.bins in SMALL)),
            f"Rule: at most {ALIKE:g} times KG's, which is the optimum, at W = 5 and 10. A key that comes twice may "
            "be on both of its candidates; only those that come once have one replica for sure.",
        ),
        Finding(
            "fig8-shuffle",
            "PoTC and SG are alike: nearly perfect imbalance, higher memory footprint",
            "nearly perfect, most memory",
            where + imbalance(POTC, SG) + "; " + memory(POTC, SG),
            verdict(
                all(cell.imbalance(name) <= EPSILON for cell in cells for name in (POTC, SG))
                and all(
                    min(cell.memory(POTC), cell.memory(SG))
                    > max(cell.memory(name) for name in KINDS if name not in (POTC, SG))
                    for cell in cells
                )
            ),
            f"Rule: normalised imbalance at most {EPSILON:g} and more memory than all others with every W.",
        ),
        Finding(
            "fig8-ch",
            "CH provides bounded imbalance and less memory than PoTC and SG",
            f"epsilon = {EPSILON:g}",
            where + imbalance(CH) + "; " + memory(CH, POTC, SG),
            verdict(
                all(cell.of[CH].imbalance < EPSILON * cell.of[CH].tuples / cell.bins + 1 for cell in cells)
                and all(cell.memory(CH) < min(cell.memory(POTC), cell.memory(SG)) for cell in cells)
            ),
            "Rule: I(m) under epsilon m/n + 1 and less memory than both, with every W.",
        ),
        Finding(
            "fig8-cg",
            "CG provides bounded imbalance",
            f"epsilon = {EPSILON:g}",
            where + imbalance(CG),
            verdict(all(cell.of[CG].imbalance < EPSILON * cell.of[CG].tuples / cell.bins + 10 for cell in cells)),
            "Rule: I(m) under epsilon m/n + 10 with every W: each of a worker's 10 virtual workers keeps the bound of "
            "PoRC. That holds while each worker has 10 of them: whenever a worker's utilisation leaves 0.75 to 0.85 "
            "for a window by chance, CG may move one, a tenth of a worker.",
        ),
        Finding(
            "fig8-cg-memory",
            "CG improves the memory footprint compared to CH",
            "less; no numbers in the text",
            where + memory(CG, CH, CH_SPREAD),
            verdict(all(cell.memory(CG) < cell.memory(CH) for cell in cells)),
            "Rule: less than CH with 10 nodes per worker, with every W. (PoRC over rings with one node or many: see "
            "fig4-porc-ch.) Several virtual workers of a hot key may be with the same worker, which saves replicas.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells = cells_of(outcomes, KINDS)
    rows = [Row("normalised imbalance I W/m", Cell.drawable), Row("memory, over KG", Cell.memory, log=False)]
    return [
        Picture(
            "fig8",
            panels_by_row(cells, list(KINDS), rows, "workers W", lambda cell: cell.bins),
            f"{wp_label(cells[0].of[KG].tuples)}: clusters of equal workers. CG has 10 virtual workers per worker.",
        )
    ]


EXPERIMENT = Experiment("fig8", "Figure 8: equal workers", jobs, claims, parts)
