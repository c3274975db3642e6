"""Fig. 6: the mean completion time with different highest costs."""

from unskew.experiments.claims import verdict
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.experiments.posg.pictures import lines
from unskew.experiments.posg.rules import printed_mean
from unskew.experiments.posg.setup import BOTH, POSG, RR, Cell, Sweep, of_points

MOST = (16, 32, 64, 128, 256, 512)  # milliseconds; the paper's axis has no numbers in the text
QUICK_MOST = (16, 64, 256)
MOST_IMPROVED = 0.1  # "only slightly improves"
SWEEP = Sweep("fig6", BOTH, "most", MOST, QUICK_MOST)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = SWEEP.cells(outcomes, settings)
    shown = of_points(cells, POSG, "{:g} ms")
    grown = cells[-1].speed_up(POSG) - cells[0].speed_up(POSG)
    times = {name: [cell.time(name) for cell in cells] for name in (RR, POSG)}
    return [
        printed_mean("fig6-mean", "the average speed-up over all highest costs", 1.19, cells, shown),
        Finding(
            "fig6-grows",
            "the average completion time increases with the highest cost",
            "as expected",
            "; ".join(f"{name}: {', '.join(f'{time:.0f}' for time in times[name])} ms" for name in times),
            verdict(all(a < b for each in times.values() for a, b in zip(each, each[1:], strict=False))),
            "Rule: the mean grows from each point to the next, for round robin and POSG. All costs but the lowest grow "
            "in proportion, and so does everything else.",
            by_construction=True,
        ),
        Finding(
            "fig6-slightly",
            "the gain only slightly improves for growing highest costs",
            "slightly",
            f"from the lowest to the highest: {grown:+.2f}",
            verdict(abs(grown) <= MOST_IMPROVED),
            f"Rule: the mean speed-up changes by at most {MOST_IMPROVED:g}. Costs from 1 to w are nearly those from 1 "
            "to 2 w halved, so that nothing but the unit of time changes.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells = SWEEP.cells(outcomes, settings)
    figure = lines(cells, list(BOTH), Cell.times, "highest cost, ms", "mean completion time, ms", log=True)
    figure.axes[0].set_yscale("log")
    figure.axes[0].set_yticks([200, 500, 1000, 2000, 5000], ["200", "500", "1000", "2000", "5000"])
    figure.axes[0].set_yticks([], minor=True)
    return [Picture("fig6", figure, "Mean completion time; mean, lowest and highest over all streams.")]


EXPERIMENT = Experiment("fig6", "Figure 6: the highest cost", SWEEP.jobs, claims, parts)
