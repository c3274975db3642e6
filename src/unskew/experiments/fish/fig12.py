"""Figs. 12 and 14 (RQ2, RQ3): the decay alpha, and counting for life in its place."""

from functools import partial

from unskew.experiments.claims import verdict
from unskew.experiments.fish.pictures import Row, by_skew
from unskew.experiments.fish.rules import SAME, Ratio, gains, up_to
from unskew.experiments.fish.setup import KEYS, MOST, SG, Cell, Kinds, cells_of, jobs_of, sizes, zipf_streams
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.schemes.fish import Fish

ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
CHOSEN, LIFE = "alpha = 0.2", "alpha = 1"
EXACT, ALL_WORKERS = "alpha = 1, exact counts", "alpha = 1, W-C's rule"
SWEEP: Kinds = {f"alpha = {alpha:g}": partial(Fish, alpha=alpha) for alpha in ALPHAS}
# what is wrong with counting for life: the sketch, or that CHK compares with the top of old days?
TAKEN_APART: Kinds = {
    EXACT: partial(Fish, alpha=1.0, counters=KEYS),
    ALL_WORKERS: lambda workers: Fish(workers, alpha=1.0, least=workers),
}
KINDS: Kinds = {**SG, **SWEEP, **TAKEN_APART}


def jobs(settings: Settings) -> list[Job]:
    return jobs_of("fig12", zipf_streams(settings), sizes(settings), KINDS)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = cells_of(outcomes, KINDS)
    slower = gains(cells, LIFE, CHOSEN)
    memory = [(cell.memory("alpha = 0") / cell.memory(CHOSEN), cell.place) for cell in cells]
    best = [cell for cell in cells if _is_best(cell)]
    return [
        up_to("fig12-life", "alpha = 1 takes longer than alpha = 0.2", 12.14, slower, _why(cells)),
        up_to(
            "fig12-forget",
            "alpha = 0 needs more memory than alpha = 0.2",
            2.65,
            memory,
            "With alpha = 0 nothing is known at the start of an epoch. Every key that comes is hot until 4 W tuples "
            "have come, which is half of an epoch with 128 workers; and the fewer other keys have been seen, the more "
            "workers it gets.",
        ),
        _with_little_skew(cells),
        Finding(
            "fig12-best",
            "alpha = 0.2 has the best effect on load balance and memory for many cases",
            "many cases",
            f"{len(best)} of {len(cells)} cells",
            verdict(2 * len(best) > len(cells)),
            f"Rule: in more than half of the cells no alpha is faster by more than a factor {SAME:g}, and none that is "
            f"as fast needs less memory by more than {SAME:g}.",
        ),
        up_to(
            "fig14-epoch",
            "epoch-based identification is faster than counting over the entire lifetime",
            11.91,
            slower,
            "Counting for life is alpha = 1 here, all else being FISH; so this is fig12-life again.",
        ),
    ]


def _with_little_skew(cells: list[Cell]) -> Finding:
    here = [cell for cell in cells if cell.workers == MOST]
    ratio = {cell.skew: cell.memory("alpha = 0") / cell.memory(CHOSEN) for cell in here}
    return Finding(
        "fig12-forget-skew",
        "alpha = 0 needs more memory especially with little skew",
        "2.65x is at low skew",
        f"W={MOST}: " + ", ".join(f"{value:.2f} (z={z})" for z, value in ratio.items()),
        verdict(ratio[min(ratio)] >= ratio[max(ratio)]),
        f"Rule: at W={MOST} the ratio is at least as large at the smallest skew as at the largest.",
    )


def _is_best(cell: Cell) -> bool:
    balanced = [name for name in SWEEP if cell.makespan(name) <= SAME * min(map(cell.makespan, SWEEP))]
    return CHOSEN in balanced and cell.memory(CHOSEN) <= SAME * min(map(cell.memory, balanced))


def _why(cells: list[Cell]) -> str:
    def worst(name: str) -> Ratio:
        return max(gains(cells, name, CHOSEN))

    exact, anywhere = worst(EXACT), worst(ALL_WORKERS)
    return (
        "Taken apart: with exact counts for life instead of 1000 counters the largest ratio is "
        f"{exact[0]:.2f} ({exact[1]}), so the sketch is not the reason. With W-C's rule instead of CHK it is "
        f"{anywhere[0]:.2f} ({anywhere[1]}). So counting for life does notice a hot key in time. But CHK gives it "
        "workers by comparison with the top key so far, and in the last fifth no key comes near the top of old days. "
        "Decay repairs what CHK's relative rule breaks."
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells = cells_of(outcomes, KINDS)
    rows = [Row("execution time, over SG", Cell.time), Row("memory, over FG", Cell.memory)]
    return [
        Picture(
            "fig12",
            by_skew(cells, list(SWEEP), rows),
            "FISH with different decays. With alpha = 1 it counts for life (Fig. 14); with alpha = 0 it forgets all "
            "after each epoch of 1000 tuples.",
        ),
        Picture(
            "fig14",
            by_skew(cells, [CHOSEN, LIFE, EXACT, ALL_WORKERS], rows),
            "Counting for life, taken apart: with exact counts, and with W-C's rule (any hot key on any worker) in the "
            "place of CHK.",
        ),
    ]


EXPERIMENT = Experiment("fig12", "Figures 12 and 14: decay, and counting for life", jobs, claims, parts)
