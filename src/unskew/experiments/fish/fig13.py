"""Fig. 13 (RQ2): the threshold theta from which on a key is hot."""

from functools import partial

from unskew.contract import Scheme
from unskew.experiments.claims import verdict
from unskew.experiments.fish.pictures import Row, by_skew
from unskew.experiments.fish.rules import SAME, Ratio, by_share, largest
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
    sizes,
    zipf_streams,
)
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.schemes.fish import Fish

TIMES_N = {
    "theta = 2/n": 2.0,
    "theta = 1/n": 1.0,
    "theta = 1/(2n)": 1 / 2,
    "theta = 1/(4n)": 1 / 4,
    "theta = 1/(8n)": 1 / 8,
}
COARSEST, CHOSEN, FINEST = "theta = 2/n", "theta = 1/(4n)", "theta = 1/(8n)"


def _fish(times_n: float, whole_epoch: bool, workers: int) -> Scheme:
    return Fish(workers, theta=times_n / workers, whole_epoch=whole_epoch)


SWEEP: Kinds = {name: partial(_fish, times_n, True) for name, times_n in TIMES_N.items()}
OTHERS: Kinds = {name + OF_COUNTERS: partial(_fish, TIMES_N[name], False) for name in (COARSEST, CHOSEN, FINEST)}
KINDS: Kinds = {**SG, **SWEEP, **OTHERS}


def jobs(settings: Settings) -> list[Job]:
    return jobs_of("fig13", zipf_streams(settings), sizes(settings), KINDS, queues=BACK_PRESSURE)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = cells_of(outcomes, KINDS)
    others = [name for name in SWEEP if name != COARSEST]
    against_finest = [(cell.gain(CHOSEN, FINEST), cell.place) for cell in cells]
    spread = [(max(map(cell.makespan, others)) / min(map(cell.makespan, others)), cell.place) for cell in cells]
    coarse = [(cell.gain(COARSEST, FINEST), cell.place) for cell in cells]
    corner = min((cell for cell in cells if cell.workers == MOST), key=lambda cell: cell.skew)

    def memory(ending: str) -> list[Ratio]:
        return [(cell.memory(CHOSEN + ending) / cell.memory(COARSEST + ending), cell.place) for cell in cells]

    def more(ending: str) -> float:
        return corner.memory(FINEST + ending) / corner.memory(CHOSEN + ending)

    return [
        Finding(
            "fig13-time",
            "theta = 1/(4n) balances as well as 1/(8n)",
            "similar execution time",
            f"time of 1/(4n) over that of 1/(8n): at most {largest(against_finest)}",
            verdict(max(against_finest)[0] <= SAME),
            f"Rule: at most {SAME:g} in every cell. {BY_BACK_PRESSURE}",
        ),
        Finding(
            "fig13-coarse",
            "significant load imbalance occurs only with theta = 2/n",
            "only 2/n; no numbers in the text",
            f"2/n over 1/(8n): at most {largest(coarse)}; slowest over fastest of the others: at most "
            f"{largest(spread)}",
            verdict(max(coarse)[0] > SAME >= max(spread)[0]),
            f"Rule: 2/n is more than {SAME:g} times as slow as 1/(8n) in some cell, and the others are within {SAME:g} "
            "of each other in all. Two workers can just carry a key with a share of 2/n. An imbalance takes two such "
            f"keys that share a worker for a while. {BY_BACK_PRESSURE}",
        ),
        Finding(
            "fig13-memory",
            "as for memory, theta = 1/(4n) is almost no different from 2/n",
            "almost no difference",
            why=f"Rule: at most {SAME:g} in every cell. Where f_k is a share of the counters, one tuple makes its key "
            f"hot for a moment at W = {MOST} and low skew: replicas for nothing, which a larger theta avoids.",
            **by_share(
                lambda ending: max(memory(ending))[0] <= SAME,
                lambda ending: (
                    f"1/(4n) over 2/n: at most {largest(memory(ending))}, at least {min(memory(ending))[0]:.2f}"
                ),
            ),
        ),
        Finding(
            "fig13-finest",
            "theta = 1/(8n) produces more memory for many workers and little skew",
            "more; no numbers in the text",
            why=f"Rule: more by a factor {SAME:g} at the largest W and the smallest skew.",
            **by_share(
                lambda ending: more(ending) > SAME,
                lambda ending: f"1/(8n) over 1/(4n) at {corner.place}: {more(ending):.2f}",
            ),
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    rows = [Row(f"execution time, bound {BOUND}", Cell.time), Row("memory, over FG", Cell.memory)]
    caption = (
        "FISH with different thresholds from which on a key is hot; n is the number of workers. A worker holds at most "
        f"{BOUND} tuples, and the stream waits for room."
    )
    return [Picture("fig13", by_skew(cells_of(outcomes, KINDS), list(SWEEP), rows), caption)]


EXPERIMENT = Experiment("fig13", "Figure 13: when a key is hot", jobs, claims, parts)
