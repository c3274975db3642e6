"""Fig. 15 (RQ3): CHK, which gives a hot key workers by its frequency, against all workers for each as in W-C."""

from unskew.experiments.claims import verdict
from unskew.experiments.fish.pictures import Row, by_skew
from unskew.experiments.fish.rules import NEAR, SAME, Ratio, by_share, largest, near
from unskew.experiments.fish.setup import (
    BACK_PRESSURE,
    BOUND,
    BY_BACK_PRESSURE,
    MOST,
    OF_COUNTERS,
    SG,
    Cell,
    Kinds,
    cells_of,
    jobs_of,
    zipf_streams,
)
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.experiments.words import percent
from unskew.schemes.fish import Fish

WORKERS = (64, MOST)
CHK, ALL_WORKERS, SOLVER = "CHK", "W-C's rule", "D-C's rule"
KINDS: Kinds = {
    **SG,
    CHK: lambda workers: Fish(workers, whole_epoch=True),
    ALL_WORKERS: lambda workers: Fish(workers, least=workers, whole_epoch=True),
    SOLVER: lambda workers: Fish(workers, solver=True, whole_epoch=True),
    CHK + OF_COUNTERS: lambda workers: Fish(workers, whole_epoch=False),
    ALL_WORKERS + OF_COUNTERS: lambda workers: Fish(workers, least=workers, whole_epoch=False),
}
PRINTED = {64: 0.2523, MOST: 0.4534}  # share of the memory that CHK saves


def jobs(settings: Settings) -> list[Job]:
    return jobs_of("fig15", zipf_streams(settings), WORKERS, KINDS, queues=BACK_PRESSURE)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = cells_of(outcomes, KINDS)
    slower = [(cell.gain(CHK, ALL_WORKERS), cell.place) for cell in cells]
    return [
        *(_saving([cell for cell in cells if cell.workers == w], w) for w in WORKERS),
        _grows_with_workers(cells),
        Finding(
            "fig15-time",
            "CHK does not balance worse for it",
            "similar lines; no numbers in the text",
            f"time with CHK over that with W-C's rule: at most {largest(slower)}",
            verdict(max(slower)[0] <= SAME),
            f"Rule: at most {SAME:g} in every cell. d >= f_k W / f_top leaves every key the f_k W workers that it "
            f"needs. {BY_BACK_PRESSURE}",
        ),
        _by_solver(cells),
    ]


def _by_solver(cells: list[Cell]) -> Finding:
    memory = [(cell.memory(SOLVER) / cell.memory(CHK), cell.place) for cell in cells]
    slower = [(cell.gain(SOLVER, CHK), cell.place) for cell in cells]
    local = [(cell.local(SOLVER) / cell.local(CHK), cell.place) for cell in cells]
    return Finding(
        "fig15-dc",
        "with D-C's rule instead of CHK memory is lower in some cases, but the execution time longer",
        "no numbers in the text",
        f"memory over that of CHK: {min(memory)[0]:.2f} ({min(memory)[1]}) to {largest(memory)}; time over that of "
        f"CHK: at most {largest(slower)}; highest load of short windows over that of CHK: at most {largest(local)}",
        verdict(min(memory)[0] < 1 / SAME and max(slower)[0] > SAME),
        f"Rule: memory lower by a factor {SAME:g} in some cell, and the time longer by {SAME:g} in some cell. The "
        "paper does not say how D-C's rule and FISH are joined: here the condition of D-C finds one d for all hot keys "
        f"from the counts of now, every 100 tuples. {BY_BACK_PRESSURE}",
    )


def _savings(cells: list[Cell], ending: str) -> list[Ratio]:
    return [(1 - cell.memory(CHK + ending) / cell.memory(ALL_WORKERS + ending), cell.place) for cell in cells]


def _saving(cells: list[Cell], workers: int) -> Finding:
    def shown(ending: str) -> str:
        savings = _savings(cells, ending)
        saving, place = max(savings)
        return f"up to {percent(saving)} ({place}); " + ", ".join(f"{percent(s, 0)} ({p})" for s, p in savings)

    def holds(ending: str) -> bool:
        return near(max(_savings(cells, ending))[0], PRINTED[workers])

    return Finding(
        f"fig15-{workers}",
        f"CHK saves memory against W-C's rule with {workers} workers",
        f"up to {percent(PRINTED[workers])}",
        why=f"Rule: the largest saving is within a factor {NEAR:g} of the printed one, either way; a larger one "
        "differs too. Where f_k is a share of the counters, each key that is called hot for a single tuple (see "
        "fig11-fish) costs W replicas with W-C's rule.",
        **by_share(holds, shown),
    )


def _grows_with_workers(cells: list[Cell]) -> Finding:
    def best(ending: str) -> dict[int, float]:
        return {w: max(_savings([cell for cell in cells if cell.workers == w], ending))[0] for w in WORKERS}

    def shown(ending: str) -> str:
        return ", ".join(f"up to {percent(saving)} (W={w})" for w, saving in best(ending).items())

    def holds(ending: str) -> bool:
        few, many = best(ending).values()
        return many > few

    return Finding(
        "fig15-growth",
        "what CHK saves becomes more as the number of workers increases",
        "25.23 % with 64 workers, 45.34 % with 128",
        why=f"Rule: the largest saving is larger with {WORKERS[1]} workers than with {WORKERS[0]}.",
        **by_share(holds, shown),
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    rows = [Row("memory, over FG", Cell.memory), Row(f"execution time, bound {BOUND}", Cell.time)]
    caption = (
        "FISH with its classification of hot keys (CHK), with every hot key on any worker as in W-C, and with one "
        "number of workers for all hot keys as in D-C."
    )
    return [Picture("fig15", by_skew(cells_of(outcomes, KINDS), [CHK, ALL_WORKERS, SOLVER], rows), caption)]


EXPERIMENT = Experiment("fig15", "Figure 15: as many workers as a key needs, or all", jobs, claims, parts)
