"""Figs. 12 and 14 (RQ2, RQ3): the decay alpha, and counting for life in its place."""

from functools import partial

from unskew.experiments.claims import verdict
from unskew.experiments.fish.fig9 import BACKED_UP
from unskew.experiments.fish.fig11 import TEN_RANKINGS
from unskew.experiments.fish.pictures import Row, by_skew
from unskew.experiments.fish.rules import NEAR, SAME, by_share, gains, largest, local_gains, near, up_to
from unskew.experiments.fish.setup import (
    BACK_PRESSURE,
    BOUND,
    KEYS,
    MOST,
    OF_COUNTERS,
    SATURATED,
    SG,
    Cell,
    Kinds,
    cells_of,
    jobs_of,
    queued,
    sizes,
    ten_rankings,
    zipf_streams,
)
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.schemes.fish import Fish

ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
FORGETS, CHOSEN, LIFE = "alpha = 0", "alpha = 0.2", "alpha = 1"
EXACT, ALL_WORKERS = "alpha = 1, exact counts", "alpha = 1, W-C's rule"
SWEEP: Kinds = {f"alpha = {alpha:g}": partial(Fish, alpha=alpha, whole_epoch=True) for alpha in ALPHAS}
# with the other reading of f_k
FORGOTTEN: Kinds = {
    f"alpha = {alpha:g}{OF_COUNTERS}": partial(Fish, alpha=alpha, whole_epoch=False) for alpha in (0.0, 0.2)
}
# what is wrong with counting for life: the sketch, or that CHK compares with the top of old days?
TAKEN_APART: Kinds = {
    EXACT: partial(Fish, alpha=1.0, counters=KEYS, whole_epoch=True),
    ALL_WORKERS: lambda workers: Fish(workers, alpha=1.0, least=workers, whole_epoch=True),
}
KINDS: Kinds = {**SG, **SWEEP, **FORGOTTEN, **TAKEN_APART}
READING = f"{TEN_RANKINGS}; and {BACKED_UP}"
PRINTED_FORGET = 2.65


def jobs(settings: Settings) -> list[Job]:
    return [
        *jobs_of("fig12", zipf_streams(settings), sizes(settings), KINDS),
        *jobs_of("fig12", ten_rankings(settings), (MOST,), {**SG, **SWEEP, **TAKEN_APART}, queues=BACK_PRESSURE),
    ]


def _literal(outcomes: Outcomes) -> list[Cell]:
    return cells_of(queued(outcomes, SATURATED), KINDS)


def _backed_up(outcomes: Outcomes) -> list[Cell]:
    return cells_of(queued(outcomes, BACK_PRESSURE), {**SG, **SWEEP, **TAKEN_APART})


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells, backed_up = _literal(outcomes), _backed_up(outcomes)
    most = [cell for cell in cells if cell.workers == MOST]
    best = [cell for cell in cells if _is_best(cell)]
    return [
        up_to(
            "fig12-life",
            "alpha = 1 takes longer than alpha = 0.2",
            12.14,
            gains(cells, LIFE, CHOSEN),
            _why(cells, backed_up, LIFE),
            READING,
            gains(backed_up, LIFE, CHOSEN),
        ),
        _grows_with_skew(
            "fig12-life-skew", "with alpha = 1 the execution time grows with the skew", LIFE, most, backed_up
        ),
        _larger_is_longer(most, backed_up),
        *_forgetting(most),
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
            gains(cells, EXACT, CHOSEN),
            "Counting for life is alpha = 1 here with a counter for every key, all else being FISH; fig12-life has the "
            f"sketch of FISH. {_why(cells, backed_up, EXACT)}",
            READING,
            gains(backed_up, EXACT, CHOSEN),
        ),
        _grows_with_skew(
            "fig14-skew",
            "the advantage over counting for life becomes more pronounced as the skew increases",
            EXACT,
            most,
            backed_up,
        ),
    ]


def _grows_with_skew(id: str, claim: str, name: str, most: list[Cell], backed_up: list[Cell]) -> Finding:
    def by_z(cells: list[Cell]) -> list[tuple[float, float]]:
        return sorted((cell.skew, cell.gain(name, CHOSEN)) for cell in cells)

    def shown(cells: list[Cell]) -> str:
        return f"W={MOST}, over {CHOSEN}: " + ", ".join(f"{gain:.2f} (z={z})" for z, gain in by_z(cells))

    def holds(cells: list[Cell]) -> bool:
        (_, first), *_, (_, last) = by_z(cells)
        return last >= SAME * first

    return Finding(
        id,
        claim,
        "rising lines; no numbers in the text",
        shown(most),
        verdict(holds(most), holds(backed_up)),
        f"Rule: at W={MOST} the time over that of {CHOSEN} is at least {SAME:g} times as long at the largest skew as "
        "at the smallest.",
        READING,
        shown(backed_up),
    )


def _larger_is_longer(most: list[Cell], backed_up: list[Cell]) -> Finding:
    def shown(cells: list[Cell]) -> str:
        return "; ".join(
            f"{cell.place}: " + ", ".join(f"{cell.time(name):.2f} ({name})" for name in SWEEP) for cell in cells
        )

    def holds(cells: list[Cell]) -> bool:
        def rises(cell: Cell) -> bool:
            times = [cell.time(name) for name in SWEEP]
            return all(later * SAME >= earlier for earlier, later in zip(times, times[1:], strict=False))

        slower = [max(cell.time(LIFE), cell.time("alpha = 0.8")) / cell.time(CHOSEN) for cell in cells]
        return all(map(rises, cells)) and max(slower) >= SAME

    return Finding(
        "fig12-alpha",
        "overall, a large alpha leads to a long execution time",
        "rising with alpha; no numbers in the text",
        shown(most),
        verdict(holds(most), holds(backed_up)),
        f"Rule: at W={MOST} the time falls nowhere by more than a factor {SAME:g} from one alpha to the next larger "
        f"one, and alpha = 0.8 or 1 is slower than 0.2 by {SAME:g} in some cell.",
        READING,
        shown(backed_up),
    )


def _forgetting(most: list[Cell]) -> list[Finding]:
    def ratios(ending: str) -> dict[float, float]:
        return {cell.skew: cell.memory(FORGETS + ending) / cell.memory(CHOSEN + ending) for cell in most}

    def shown(ending: str) -> str:
        return f"W={MOST}: " + ", ".join(f"{value:.2f} (z={z})" for z, value in ratios(ending).items())

    def as_printed(ending: str) -> bool:
        found = ratios(ending)
        return near(found[min(found)], PRINTED_FORGET)

    def falls(ending: str) -> bool:
        found = ratios(ending)
        return found[min(found)] >= found[max(found)]

    return [
        Finding(
            "fig12-forget",
            "alpha = 0 needs more memory than alpha = 0.2, on streams of low skew",
            f"{PRINTED_FORGET}x",
            why=f"Rule: at W={MOST} and the smallest skew within a factor {NEAR:g} of the printed one, either way. "
            "With alpha = 0 nothing is known at the start of an epoch. Where f_k is a share of the counters, every key "
            "that comes is hot until 4 W tuples have come, which is half of an epoch with 128 workers.",
            **by_share(as_printed, shown),
        ),
        Finding(
            "fig12-forget-skew",
            "alpha = 0 needs more memory especially with little skew",
            f"{PRINTED_FORGET}x is at low skew",
            why=f"Rule: at W={MOST} the ratio is at least as large at the smallest skew as at the largest.",
            **by_share(falls, shown),
        ),
    ]


def _is_best(cell: Cell) -> bool:
    balanced = [name for name in SWEEP if cell.makespan(name) <= SAME * min(map(cell.makespan, SWEEP))]
    return CHOSEN in balanced and cell.memory(CHOSEN) <= SAME * min(map(cell.memory, balanced))


def _why(cells: list[Cell], backed_up: list[Cell], name: str) -> str:
    def worst(found: list[Cell], kind: str) -> str:
        return largest(gains(found, kind, CHOSEN))

    return (
        f"Taken apart: with exact counts for life instead of 1000 counters the largest ratio is {worst(cells, EXACT)}, "
        f"so the sketch is not the reason. With W-C's rule instead of CHK it is {worst(cells, ALL_WORKERS)}: counting "
        "for life does notice a hot key in time, but CHK gives it workers by comparison with the top key so far, and "
        "in the last fifth no key comes near the top of old days. Under back-pressure: "
        f"{worst(backed_up, EXACT)} with exact counts, {worst(backed_up, ALL_WORKERS)} with W-C's rule; by the highest "
        f"load of windows of 10 tuples per worker {largest(local_gains(backed_up, name, CHOSEN))}."
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells, backed_up = _literal(outcomes), _backed_up(outcomes)
    rows = [Row("execution time, over SG", Cell.time), Row("memory, over FG", Cell.memory)]
    local = [Row(f"execution time, bound {BOUND}", Cell.time, log=True), Row("memory, over FG", Cell.memory)]
    return [
        Picture(
            "fig12",
            by_skew(cells, list(SWEEP), rows),
            "FISH with different decays. With alpha = 1 it counts for life (Fig. 14); with alpha = 0 it forgets all "
            "after each epoch of 1000 tuples.",
        ),
        Picture(
            "fig12-local",
            by_skew(backed_up, [*SWEEP, EXACT], local),
            f"The same on ten rankings, where a worker holds at most {BOUND} tuples and the stream waits for room.",
        ),
        Picture(
            "fig14",
            by_skew(cells, [CHOSEN, LIFE, EXACT, ALL_WORKERS], rows),
            "Counting for life, taken apart: with exact counts, and with W-C's rule (any hot key on any worker) in the "
            "place of CHK.",
        ),
    ]


EXPERIMENT = Experiment("fig12", "Figures 12 and 14: decay, and counting for life", jobs, claims, parts)
