"""Fig. 8: the speed-up with different numbers of workers."""

from unskew.experiments.claims import verdict
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.experiments.posg.pictures import speed_ups
from unskew.experiments.posg.rules import IDLE_READING
from unskew.experiments.posg.setup import BOTH, IDLE, POSG, Sweep, of_points

WORKERS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
QUICK_WORKERS = (1, 2, 3, 9, 10)
FIRST, LAST = 1.04, 1.01  # growth of the speed-up from 2 to 3 workers, and from 9 to 10
WITHIN = 0.02
SWEEP = Sweep("fig8", BOTH, "workers", WORKERS, QUICK_WORKERS)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = SWEEP.cells(outcomes, settings)
    at = {cell.point.workers: cell for cell in cells}

    def growth(name: str) -> tuple[float, float]:
        return at[3].speed_up(name) / at[2].speed_up(name), at[10].speed_up(name) / at[9].speed_up(name)

    def holds(name: str) -> bool:
        first, last = growth(name)
        return abs(first - FIRST) <= WITHIN and abs(last - LAST) <= WITHIN

    def shown(name: str) -> str:
        first, last = growth(name)
        return f"2 to 3: {first - 1:+.1%}, 9 to 10: {last - 1:+.1%}"

    return [
        Finding(
            "fig8-one",
            "with one worker the speed-up is 1: POSG adds no delay",
            "1",
            f"{at[1].speed_up(POSG):.2f}",
            verdict(at[1].speed_up(POSG) == 1.0),
            "Rule: exactly 1. In a simulation messages take no time from anybody.",
            by_construction=True,
        ),
        Finding(
            "fig8-grows",
            "the speed-up grows with the workers, and the growth converges",
            "+4 % from 2 to 3 workers, +1 % from 9 to 10",
            f"{shown(POSG)}; all: {of_points(cells, POSG)}",
            verdict(holds(POSG), holds(IDLE)),
            f"Rule: both growths are within {100 * WITHIN:g} points of the printed ones.",
            IDLE_READING,
            f"{shown(IDLE)}; all: {of_points(cells, IDLE)}",
        ),
        Finding(
            "fig8-more",
            "with more than one worker POSG is faster than round robin",
            "above 1 from 2 workers on",
            of_points(cells[1:], POSG),
            verdict(
                all(cell.speed_up(POSG) > 1 for cell in cells[1:]), all(cell.speed_up(IDLE) > 1 for cell in cells[1:])
            ),
            "Rule: the mean speed-up is above 1 for each number of workers from 2 on.",
            IDLE_READING,
            of_points(cells[1:], IDLE),
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    figure = speed_ups(SWEEP.cells(outcomes, settings), "workers k")
    return [Picture("fig8", figure, "Speed-up; mean, lowest and highest over all streams.")]


EXPERIMENT = Experiment("fig8", "Figure 8: the number of workers", SWEEP.jobs, claims, parts)
