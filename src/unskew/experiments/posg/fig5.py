"""Fig. 5: the speed-up with more or less capacity than the work needs."""

from collections.abc import Sequence

from unskew.experiments.claims import verdict
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.experiments.posg.pictures import speed_ups
from unskew.experiments.posg.rules import CLOSE, IDLE_READING, is_close, printed_mean
from unskew.experiments.posg.setup import BOTH, IDLE, POSG, Cell, Sweep, of_points, spread

PERCENT = (95, 96, 97, 98, 99, 100, 101, 102, 103, 105, 107, 109, 112, 115)
QUICK_PERCENT = (95, 98, 100, 102, 105, 109, 115)
SIZED = (100, 109)  # "a correctly sized system"
PEAK, PEAK_AT = 1.26, 102
LEAST_SIZED = 1.15
SWEEP = Sweep("fig5", BOTH, "over", PERCENT, QUICK_PERCENT)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = SWEEP.cells(outcomes, settings)
    last = cells[-1]
    return [
        _peak(cells),
        _sized([cell for cell in cells if SIZED[0] <= cell.point.over <= SIZED[1]]),
        printed_mean(
            "fig5-115",
            "even when the system is largely oversized (115 %) there is a speed-up",
            1.07,
            [last],
            f"streams: {spread(last.speed_ups(POSG))}",
            "The more time workers have to spare, the less cumulated time says about their queues.",
        ),
        _edges(cells),
    ]


def _best(cells: Sequence[Cell], name: str) -> Cell:
    return max(cells, key=lambda cell: cell.speed_up(name))


def _peak(cells: Sequence[Cell]) -> Finding:
    def holds(name: str) -> bool:
        best = _best(cells, name)
        return is_close(best.speed_up(name), PEAK) and abs(best.point.over - PEAK_AT) <= 2

    def shown(name: str) -> str:
        best = _best(cells, name)
        return f"{best.speed_up(name):.2f} at {best.point.over:g} %"

    return Finding(
        "fig5-peak",
        "the speed-up peaks where the system is correctly sized",
        f"{PEAK:.2f} at {PEAK_AT} %",
        f"{shown(POSG)}; all: {of_points(cells, POSG, '{:g} %')}",
        verdict(holds(POSG), holds(IDLE)),
        f"Rule: the highest mean speed-up is within {CLOSE:g} of the printed one, and within 2 points of {PEAK_AT} %.",
        IDLE_READING,
        f"{shown(IDLE)}; all: {of_points(cells, IDLE, '{:g} %')}",
    )


def _sized(cells: Sequence[Cell]) -> Finding:
    lowest = {name: min(cell.speed_up(name) for cell in cells) for name in (POSG, IDLE)}
    return Finding(
        "fig5-sized",
        f"from {SIZED[0]} % to {SIZED[1]} % the speed-up is noticeable",
        f"in average at least {LEAST_SIZED:g}",
        f"at least {lowest[POSG]:.2f}",
        verdict(lowest[POSG] >= LEAST_SIZED, lowest[IDLE] >= LEAST_SIZED),
        f"Rule: the mean speed-up is at least {LEAST_SIZED:g} at each of these points.",
        IDLE_READING,
        f"at least {lowest[IDLE]:.2f}",
    )


def _edges(cells: Sequence[Cell]) -> Finding:
    def holds(name: str) -> bool:
        sized = max(cell.speed_up(name) for cell in cells if SIZED[0] <= cell.point.over <= SIZED[1])
        edges = [cell.speed_up(name) for cell in cells if cell.point.over <= 98 or cell.point.over >= 112]
        return max(edges) < sized

    return Finding(
        "fig5-edges",
        "in a strongly undersized (95 to 98 %) and in an oversized system the improvement is smaller",
        "smaller",
        of_points(cells, POSG, "{:g} %"),
        verdict(holds(POSG), holds(IDLE)),
        "Rule: each mean speed-up at 98 % or less, and at 112 % or more, is below the highest from 100 to 109 %.",
        IDLE_READING,
        of_points(cells, IDLE, "{:g} %"),
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    figure = speed_ups(SWEEP.cells(outcomes, settings), "over-provisioning, %")
    return [Picture("fig5", figure, "Speed-up; mean, lowest and highest over all streams.")]


EXPERIMENT = Experiment("fig5", "Figure 5: over-provisioning", SWEEP.jobs, claims, parts)
