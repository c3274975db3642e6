"""Fig. 8 (Q2): CG against the other groupings on clusters of 5 to 100 equal workers."""

from functools import partial

from unskew.experiments.cg.cluster import ALL_ALIKE, CG, grouping, queues_of
from unskew.experiments.cg.pictures import Row, panels_by_row
from unskew.experiments.cg.setup import (
    CH,
    CH_WORKERS,
    EPSILON,
    KG,
    PKG,
    POTC,
    SG,
    WORKERS,
    Cell,
    Kinds,
    cells_of,
    on_ring,
    shown,
    wikipedia,
    wp_label,
)
from unskew.experiments.cg.setup import KINDS as TO_BINS
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.schemes.bounded import BoundedLoads

# What the same authors call nearly optimal: PKG has 3.6M counters where KG has 2.9M (PKG paper, section 6.2, Q5).
NEARLY_OPTIMAL = 3.6 / 2.9
KINDS: Kinds = {
    **{name: TO_BINS[name] for name in (KG, PKG, POTC)},
    CH: partial(on_ring, virtual=10),  # caption: "each worker spawns 10 virtual workers"
    CH_WORKERS: partial(BoundedLoads, epsilon=EPSILON, virtual_nodes=10),
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
            verdict(all(cell.memory(PKG) <= NEARLY_OPTIMAL * cell.memory(KG) for cell in cells if cell.bins in SMALL)),
            f"Rule: at most {NEARLY_OPTIMAL:.2f} times KG's, which is the optimum, at W = 5 and 10: what the same "
            "authors counted on WP with 8 workers in the PKG paper. (An earlier rule, 1.1, was tighter than their own "
            "numbers.) A key that comes twice may be on both of its candidates.",
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
                all(cell.of[CH].imbalance < EPSILON * cell.of[CH].tuples / cell.bins + 10 for cell in cells)
                and all(cell.memory(CH) < min(cell.memory(POTC), cell.memory(SG)) for cell in cells)
            ),
            "Rule: I(m) under epsilon m/n + 10 and less memory than both, with every W: each of a worker's 10 virtual "
            "workers keeps its own bound, up to a tuple.",
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
            where + memory(CG, CH, CH_WORKERS),
            verdict(all(cell.memory(CG) < cell.memory(CH) for cell in cells)),
            "Rule: less than CH with every W. In CH the bound is one of each virtual worker (the caption gives each "
            "worker 10), the arcs are equal, and who finds his full goes to the next: as in the authors' public code. "
            "With a bound per worker on a ring of uneven arcs CH has less memory (shown beside).",
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
