"""Fig. 16 (RQ3): heuristic worker assignment, with half of the workers twice as fast as the others."""

from unskew.experiments.fish.pictures import Row, by_skew
from unskew.experiments.fish.rules import at_most, gains, up_to
from unskew.experiments.fish.setup import SG, SPEED, Cell, Kinds, cells_of, jobs_of, sizes, zipf_streams
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.schemes.fish import Fish
from unskew.simulate import Queues

WITH, WITHOUT = "with", "without"
KINDS: Kinds = {**SG, WITH: Fish, WITHOUT: lambda workers: Fish(workers, interval=float("inf"))}


def unequal(workers: int) -> Queues:
    """As many tuples as all workers together can execute, of which the first half is twice as fast."""
    return Queues(utilisation=1.0, capacity=f"{SPEED:g}, 0-{workers // 2 - 1}:{2 * SPEED:g}")


def jobs(settings: Settings) -> list[Job]:
    streams = zipf_streams(settings)
    return [job for w in sizes(settings) for job in jobs_of("fig16", streams, (w,), KINDS, queues=unequal(w))]


def ideal(cell: Cell) -> float:
    """Seconds in which all workers together can execute the stream."""
    result = cell.of[WITH]
    return result.tuples / sum(result.capacity or [1.0])


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = cells_of(outcomes, KINDS)
    return [
        up_to(
            "fig16",
            "heuristic assignment is faster with half of the workers twice as fast",
            2.61,
            gains(cells, WITHOUT, WITH),
            "Without it every worker gets the same number of tuples. A slow one then has 1/W of them and 1/(1.5 W) of "
            "the capacity, so it takes 1.5 times as long as it should, at any W and skew. Heeding speed cannot gain "
            "more than that, unless the scheme it is compared with is unbalanced as well.",
        ),
        at_most(
            "fig16-ideal",
            "with it, all workers are used fully (ours, not the paper's)",
            1.1,
            [(cell.makespan(WITH) / ideal(cell), cell.place) for cell in cells],
            "Against the time in which all workers together could execute the stream. The rest comes from the first "
            "10 s, before the first report, when the source does not know who is slow: the shorter the stream, the "
            "more it shows.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    def over_ideal(cell: Cell, name: str) -> float:
        return cell.makespan(name) / ideal(cell)

    caption = (
        "Half of the workers are twice as fast. Execution time over the least possible, with FISH's inference of "
        "waiting times, without it (as many tuples for each), and of SG."
    )
    names = {WITH: "FISH", WITHOUT: "FISH without inference", "SG": "SG"}
    rows = [Row("execution time, over ideal", over_ideal)]
    return [Picture("fig16", by_skew(cells_of(outcomes, KINDS), names, rows), caption)]


EXPERIMENT = Experiment("fig16", "Figure 16: workers of unequal speed", jobs, claims, parts)
