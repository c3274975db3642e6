"""Fig. 8: the number of keys, 10^4 to 10^8."""

from typing import Any

from unskew.experiments.gedik.pictures import lines
from unskew.experiments.gedik.rules import judged
from unskew.experiments.gedik.setup import METHODS, OURS, Case, builds, mean
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings

KEYS = (10**4, 10**5, 10**6, 10**7, 10**8)
QUICK = (10**4, 10**5, 10**6)
FEW_RUNS = 2  # with a hundred million keys


def jobs(settings: Settings) -> list[Any]:
    cases = [Case(method) for method in METHODS]
    sizes = settings.pick(KEYS, QUICK)
    return [
        job
        for keys in sizes
        for job in builds("fig8", settings, cases, keys=keys, runs=FEW_RUNS if keys > 10**7 else None)
    ]


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    sizes = settings.pick(KEYS, QUICK)

    def of(metric: str, method: str, keys: int) -> float:
        return mean(outcomes, metric, algorithm=method, keys=keys)

    uniform = [of("m", "uniform", keys) for keys in sizes]
    consistent = [of("m", "consistent", keys) for keys in sizes]
    ours = {x: [of("m", x, keys) for keys in sizes] for x in OURS}
    every = [value for numbers in ours.values() for value in numbers]
    b = {x: [of("b", x, keys) for keys in sizes] for x in METHODS}
    above = max(of("b", "redist", keys) / of("b", "readj", keys) - 1 for keys in sizes)

    def row(numbers: list[float]) -> str:
        return ", ".join(f"{value:.3g}" for value in numbers)

    listed = ", ".join(f"{keys:g}" for keys in sizes) + " keys"
    return [
        judged(
            "fig8-uniform",
            "the uniform hash moves 6.5 to 7.5 times the ideal, and more with more keys",
            "6.5 to 7.5",
            f"{row(uniform)} for {listed}",
            "averages from 5.9 to 8.3 (10 % either way), the last above the first",
            min(uniform) >= 5.9 and max(uniform) <= 8.3 and uniform[-1] > uniform[0],
        ),
        judged(
            "fig8-consistent",
            "the consistent hash has a migration below the ideal",
            "below 1",
            row(consistent),
            "every average below 1",
            max(consistent) < 1,
        ),
        judged(
            "fig8-ours",
            "scan, redist and readj move 2.2 to 1.25 times the ideal, less with more keys",
            "from 2.2 down to 1.25",
            "; ".join(f"{x}: {row(numbers)}" for x, numbers in ours.items()),
            "averages from 1.12 to 2.42 (10 % either way), and the last below the first for each",
            min(every) >= 1.12 and max(every) <= 2.42 and all(n[-1] < n[0] for n in ours.values()),
        ),
        judged(
            "fig8-order",
            "of the three, redist moves least and scan most",
            "redist, readj, scan",
            "; ".join(f"{x}: {row(numbers)}" for x, numbers in ours.items()),
            "in the average over the numbers of keys",
            sum(ours["redist"]) < sum(ours["readj"]) < sum(ours["scan"]),
        ),
        judged(
            "fig8-balance",
            "with more keys it becomes easier to balance",
            "decreasing, then flat",
            "; ".join(f"{x}: {row(numbers)}" for x, numbers in b.items()),
            "the average b of each method is lower with most keys than with fewest",
            all(n[-1] < n[0] for n in b.values()),
        ),
        judged(
            "fig8-redist",
            "redist has up to 3 % more imbalance than readj",
            "up to 3 %",
            f"up to {100 * above:.1f} %",
            "the largest excess of the averages from 0 to 6 %",
            0 <= above <= 0.06,
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    figure = lines(outcomes, "keys", KEYS, [("LCL", {})], "keys |D|", xlog=True)
    return [Picture("fig8", figure, "Migration and imbalance by the number of keys: 10 workers, z = 1.")]


EXPERIMENT = Experiment("fig8", "Figure 8: the number of keys", jobs, claims, parts)
