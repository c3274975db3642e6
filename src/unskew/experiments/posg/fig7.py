"""Fig. 7: the mean completion time with different numbers of costs."""

from unskew.experiments.claims import verdict
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.experiments.posg.pictures import lines
from unskew.experiments.posg.rules import printed_mean
from unskew.experiments.posg.setup import BOTH, POSG, RR, Cell, Sweep, of_points

VALUES = (2, 4, 8, 16, 32, 64, 128, 256)
QUICK_VALUES = (2, 16, 64)
FEW, ENOUGH = 2, 16  # "only slight changes for w_n >= 16"
SLIGHT = 1.15
SWEEP = Sweep("fig7", BOTH, "values", VALUES, QUICK_VALUES)


def _range(cell: Cell, name: str) -> float:
    return max(cell.times(name)) - min(cell.times(name))


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = SWEEP.cells(outcomes, settings)
    few = next(cell for cell in cells if cell.point.values == FEW)
    enough = [cell for cell in cells if cell.point.values >= ENOUGH]
    names = (RR, POSG)
    means = {name: [cell.time(name) for cell in enough] for name in names}
    return [
        printed_mean("fig7-mean", "the average gain over all numbers of costs", 1.19, cells, of_points(cells, POSG)),
        Finding(
            "fig7-falls",
            "completion times and their variance decrease with the number of costs",
            "decrease",
            "; ".join(
                f"{name}: {few.time(name):.0f} ms with 2 costs, {_range(few, name):.0f} ms from the lowest to the "
                f"highest stream, and {cells[-1].time(name):.0f} and {_range(cells[-1], name):.0f} ms with "
                f"{cells[-1].point.values}"
                for name in names
            ),
            verdict(
                all(
                    few.time(name) > cell.time(name) and _range(few, name) > _range(cell, name)
                    for name in names
                    for cell in enough
                )
            ),
            "Rule: with 2 costs both the mean and the range over the streams are larger than with 16 or more.",
        ),
        Finding(
            "fig7-slight",
            "there are only slight changes from 16 costs on",
            "slight",
            "; ".join(f"{name}: {min(each):.0f} to {max(each):.0f} ms" for name, each in means.items()),
            verdict(all(max(each) <= SLIGHT * min(each) for each in means.values())),
            f"Rule: the highest mean from 16 costs on is at most {SLIGHT:g} times the lowest.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells = SWEEP.cells(outcomes, settings)
    figure = lines(cells, list(BOTH), Cell.times, "number of costs", "mean completion time, ms", log=True)
    return [Picture("fig7", figure, "Mean completion time; mean, lowest and highest over all streams.")]


EXPERIMENT = Experiment("fig7", "Figure 7: the number of costs", SWEEP.jobs, claims, parts)
