"""Fig. 4: the mean completion time with different frequency distributions."""

from unskew.experiments.claims import verdict
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, Table
from unskew.experiments.posg.pictures import lines
from unskew.experiments.posg.rules import ALIKE, IDLE_READING, printed_mean
from unskew.experiments.posg.setup import ALL, FULL, IDLE, POSG, RR, Cell, Sweep, of_points, spread

SKEWS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
QUICK_SKEWS = (0.0, 1.0, 1.5, 2.5, 3.0)
SWEEP = Sweep("fig4", ALL, "z", SKEWS, QUICK_SKEWS)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = SWEEP.cells(outcomes, settings)
    at = {cell.point.z: cell for cell in cells}
    mild = [cell for cell in cells if cell.point.z <= 0.5]
    strong = [cell for cell in cells if cell.point.z >= 2.5]
    return [
        _order(cells),
        printed_mean(
            "fig4-mild",
            "for uniform or lightly skewed distributions (Zipf-0.5) the gain is limited",
            1.06,
            mild,
            of_points(mild, POSG, "z = {:g}"),
        ),
        printed_mean("fig4-zipf1", "with Zipf-1.0 the gain is much more sizeable", 1.25, [at[1.0]], _spread(at[1.0])),
        _separated(at[1.5]),
        _matches(strong),
        Finding(
            "fig4-skew",
            "all algorithms perform better with highly skewed distributions",
            "better; no numbers in the text",
            "; ".join(
                f"{name}: {at[0.0].time(name):.0f} ms at z = 0, {at[3.0].time(name):.0f} ms at z = 3" for name in ALL
            ),
            verdict(all(at[3.0].time(name) < at[0.0].time(name) for name in (RR, POSG, FULL))),
            "Rule: the mean completion time of round robin, POSG and full knowledge is shorter at z = 3 than at z = 0.",
        ),
    ]


def _spread(cell: Cell) -> str:
    return f"streams: {spread(cell.speed_ups(POSG))}"


def _order(cells: list[Cell]) -> Finding:
    def holds(name: str) -> bool:
        return all(cell.time(FULL) < cell.time(name) < cell.time(RR) for cell in cells)

    return Finding(
        "fig4-order",
        "with all distributions full knowledge outperforms POSG, which always is better than round robin",
        "always",
        f"speed-up of POSG: {of_points(cells, POSG, 'z = {:g}')}; of full knowledge: "
        f"{of_points(cells, FULL, 'z = {:g}')}",
        verdict(holds(POSG), holds(IDLE)),
        "Rule: the means over all streams are in this order for every distribution.",
        IDLE_READING,
        f"speed-up: {of_points(cells, IDLE, 'z = {:g}')}",
    )


def _separated(cell: Cell) -> Finding:
    def holds(name: str) -> bool:
        return max(cell.times(name)) < min(cell.times(RR))

    return Finding(
        "fig4-separated",
        "with Zipf-1.5 the maximum of POSG over all streams is smaller than the minimum of round robin",
        "smaller",
        f"POSG: at most {max(cell.times(POSG)):.0f} ms; round robin: at least {min(cell.times(RR)):.0f} ms",
        verdict(holds(POSG), holds(IDLE)),
        "Rule: so it is at z = 1.5.",
        IDLE_READING,
        f"at most {max(cell.times(IDLE)):.0f} ms",
    )


def _matches(cells: list[Cell]) -> Finding:
    def ratios(name: str) -> list[float]:
        return [cell.time(name) / cell.time(FULL) for cell in cells]

    def shown(name: str) -> str:
        return ", ".join(f"z = {cell.point.z:g}: {ratio:.2f}" for cell, ratio in zip(cells, ratios(name), strict=True))

    return Finding(
        "fig4-match",
        "with Zipf-2.5 POSG matches the performance of full knowledge",
        "matches",
        f"completion time of POSG over that of full knowledge: {shown(POSG)}",
        verdict(max(ratios(POSG)) <= ALIKE, max(ratios(IDLE)) <= ALIKE),
        f"Rule: at most {ALIKE:g} from z = 2.5 on. POSG is round robin until its workers have told what they learnt, "
        "for the first third of the stream at best, and full knowledge never is.",
        IDLE_READING,
        shown(IDLE),
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells = SWEEP.cells(outcomes, settings)
    labels = ["uniform" if cell.point.z == 0 else f"Zipf-{cell.point.z:g}" for cell in cells]
    figure = lines(cells, list(ALL), Cell.times, "frequency distribution", "mean completion time, ms", labels)
    rows = [[label, *(spread(cell.times(name), 0) for name in ALL)] for label, cell in zip(labels, cells, strict=True)]
    return [
        Picture("fig4", figure, "Mean completion time; mean, lowest and highest over all streams."),
        Table("Milliseconds: mean (lowest to highest) over all streams.", ["distribution", *ALL], rows),
    ]


EXPERIMENT = Experiment("fig4", "Figure 4: frequency distributions", SWEEP.jobs, claims, parts)
