"""Fig. 15 (RQ3): CHK, which gives a hot key workers by its frequency, against all workers for each as in W-C."""

from unskew.experiments.claims import verdict
from unskew.experiments.fish.pictures import Row, by_skew
from unskew.experiments.fish.rules import NEAR, SAME, largest, near
from unskew.experiments.fish.setup import MOST, SG, Cell, Kinds, cells_of, jobs_of, zipf_streams
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, not_testable
from unskew.experiments.words import percent
from unskew.schemes.fish import Fish

WORKERS = (64, MOST)
CHK, ALL_WORKERS = "CHK", "W-C's rule"
KINDS: Kinds = {**SG, CHK: Fish, ALL_WORKERS: lambda workers: Fish(workers, least=workers)}
PRINTED = {64: 0.2523, MOST: 0.4534}  # share of the memory that CHK saves


def jobs(settings: Settings) -> list[Job]:
    return jobs_of("fig15", zipf_streams(settings), WORKERS, KINDS)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = cells_of(outcomes, KINDS)
    slower = [(cell.gain(CHK, ALL_WORKERS), cell.place) for cell in cells]
    return [
        *(_saving([cell for cell in cells if cell.workers == w], w) for w in WORKERS),
        Finding(
            "fig15-time",
            "CHK does not balance worse for it",
            "similar lines; no numbers in the text",
            f"time with CHK over that with W-C's rule: at most {largest(slower)}",
            verdict(max(slower)[0] <= SAME),
            f"Rule: at most {SAME:g} in every cell. d >= f_k W / f_top leaves every key the f_k W workers that it "
            "needs.",
        ),
        not_testable(
            "fig15-dc",
            "with D-C's rule instead of CHK memory is lower in some cases, but the execution time longer",
            "no numbers in the text",
            "FISH with the solver of D-C on recent counts is not part of this library; the paper does not say how the "
            "two are joined.",
        ),
    ]


def _saving(cells: list[Cell], workers: int) -> Finding:
    savings = [(1 - cell.memory(CHK) / cell.memory(ALL_WORKERS), cell.place) for cell in cells]
    best = max(savings)
    return Finding(
        f"fig15-{workers}",
        f"CHK saves memory against W-C's rule with {workers} workers",
        f"up to {percent(PRINTED[workers])}",
        f"up to {percent(best[0])} ({best[1]}); " + ", ".join(f"{percent(s, 0)} ({p})" for s, p in savings),
        verdict(near(best[0], PRINTED[workers])),
        f"Rule: the largest saving is within a factor {NEAR:g} of the printed one, either way; a larger one differs "
        "too. With W-C's rule each key that is called hot for a single tuple (see fig11-fish) costs W replicas.",
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    rows = [Row("memory, over FG", Cell.memory), Row("execution time, over SG", Cell.time)]
    caption = "FISH with its classification of hot keys (CHK), and with every hot key on any worker as in W-C."
    return [Picture("fig15", by_skew(cells_of(outcomes, KINDS), [CHK, ALL_WORKERS], rows), caption)]


EXPERIMENT = Experiment("fig15", "Figure 15: as many workers as a key needs, or all", jobs, claims, parts)
