"""Fig. 13 (RQ2): the threshold theta from which on a key is hot."""

from functools import partial

from unskew.contract import Scheme
from unskew.experiments.claims import verdict
from unskew.experiments.fish.pictures import Row, by_skew
from unskew.experiments.fish.rules import SAME, largest
from unskew.experiments.fish.setup import MOST, SG, Cell, Kinds, cells_of, jobs_of, sizes, zipf_streams
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


def _fish(times_n: float, workers: int) -> Scheme:
    return Fish(workers, theta=times_n / workers)


SWEEP: Kinds = {name: partial(_fish, times_n) for name, times_n in TIMES_N.items()}
KINDS: Kinds = {**SG, **SWEEP}


def jobs(settings: Settings) -> list[Job]:
    return jobs_of("fig13", zipf_streams(settings), sizes(settings), KINDS)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = cells_of(outcomes, KINDS)
    others = [name for name in SWEEP if name != COARSEST]
    against_finest = [(cell.gain(CHOSEN, FINEST), cell.place) for cell in cells]
    spread = [(max(map(cell.makespan, others)) / min(map(cell.makespan, others)), cell.place) for cell in cells]
    coarse = [(cell.gain(COARSEST, FINEST), cell.place) for cell in cells]
    memory = [(cell.memory(CHOSEN) / cell.memory(COARSEST), cell.place) for cell in cells]
    corner = min((cell for cell in cells if cell.workers == MOST), key=lambda cell: cell.skew)
    more = corner.memory(FINEST) / corner.memory(CHOSEN)
    return [
        Finding(
            "fig13-time",
            "theta = 1/(4n) balances as well as 1/(8n)",
            "similar execution time",
            f"time of 1/(4n) over that of 1/(8n): at most {largest(against_finest)}",
            verdict(max(against_finest)[0] <= SAME),
            f"Rule: at most {SAME:g} in every cell.",
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
            "keys that share a worker for long, which did not happen here.",
        ),
        Finding(
            "fig13-memory",
            "as for memory, theta = 1/(4n) is almost no different from 2/n",
            "almost no difference",
            f"1/(4n) over 2/n: at most {largest(memory)}, at least {min(memory)[0]:.2f}",
            verdict(max(memory)[0] <= SAME),
            f"Rule: at most {SAME:g} in every cell. At W = {MOST} and low skew the counters sum to less than 4 W after "
            "each decay, and one tuple makes its key hot for a moment: replicas for nothing, which a larger theta "
            "avoids.",
        ),
        Finding(
            "fig13-finest",
            "theta = 1/(8n) produces more memory for many workers and little skew",
            "more; no numbers in the text",
            f"1/(8n) over 1/(4n) at {corner.place}: {more:.2f}",
            verdict(more > SAME),
            f"Rule: more by a factor {SAME:g} at the largest W and the smallest skew.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    rows = [Row("execution time, over SG", Cell.time), Row("memory, over FG", Cell.memory)]
    caption = "FISH with different thresholds from which on a key is hot; n is the number of workers."
    return [Picture("fig13", by_skew(cells_of(outcomes, KINDS), list(SWEEP), rows), caption)]


EXPERIMENT = Experiment("fig13", "Figure 13: when a key is hot", jobs, claims, parts)
