"""Fig. 5: sigma, which decides how many keys are tracked."""

from typing import Any

import numpy as np

from unskew.experiments.gedik.pictures import lines
from unskew.experiments.gedik.rules import judged
from unskew.experiments.gedik.setup import METHODS, OURS, Case, builds, mean
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings

SIGMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
QUICK = (0.01, 0.05, 0.1, 0.2, 1.0)
RESOURCES = ("LCL", "LQL")


def jobs(settings: Settings) -> list[Any]:
    sigmas = settings.pick(SIGMAS, QUICK)
    cases = [Case(x, r, sigma) for r in RESOURCES for sigma in sigmas for x in METHODS]
    return builds("fig5", settings, cases)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    sigmas = settings.pick(SIGMAS, QUICK)

    def of(metric: str, method: str, sigma: float, resources: str = "LCL") -> float:
        return mean(outcomes, metric, algorithm=method, sigma=sigma, resources=resources)

    ends = {x: (of("b", x, 0.01), of("b", x, 0.1), of("b", x, 1.0)) for x in OURS}
    costs = {x: (of("m", x, 0.01), of("m", x, 0.1), of("m", x, 1.0)) for x in OURS}
    over_all = {x: float(np.mean([of("m", x, sigma) for sigma in sigmas])) for x in METHODS}
    best = {sigma: min(OURS, key=lambda x: of("b", x, sigma)) for sigma in sigmas}
    lowest = min(sigmas)
    steps = {r: of("b", "redist", 1.0, r) / of("b", "redist", 0.01, r) for r in RESOURCES}
    return [
        judged(
            "fig5-balance",
            "lower sigma brings lower imbalance (LCL)",
            "lower",
            "; ".join(f"{x}: b {a:.3g}, {b:.3g}, {c:.3g}" for x, (a, b, c) in ends.items()) + " at sigma 0.01, 0.1, 1",
            "for each algorithm b rises from sigma 0.01 to 0.1 to 1",
            all(a < b < c for a, b, c in ends.values()),
        ),
        judged(
            "fig5-migration",
            "lower sigma brings higher migration (LCL)",
            "higher",
            "; ".join(f"{x}: m {a:.3g}, {b:.3g}, {c:.3g}" for x, (a, b, c) in costs.items()) + " at sigma 0.01, 0.1, 1",
            "for each algorithm m falls from sigma 0.01 to 0.1 to 1",
            all(a > b > c for a, b, c in costs.values()),
        ),
        judged(
            "fig5-order",
            "of the three, redist has the lowest migration and scan the highest",
            "redist best, scan worst",
            ", ".join(f"{x} {over_all[x]:.3g}" for x in METHODS) + " (LCL, average over sigma)",
            "averages of m over all sigmas of the grid (LCL)",
            over_all["redist"] < over_all["readj"] < over_all["scan"],
        ),
        judged(
            "fig5-readj",
            "in the middle readj has the lowest imbalance, for very low sigma it has not (LCL)",
            "slightly lower in the middle; unable to keep lower for very low sigma",
            ", ".join(f"sigma {sigma:g}: {x}" for sigma, x in best.items()),
            "readj has the lowest average b at sigma 0.1 and 0.2, and another one at the lowest sigma",
            best[0.1] == best[0.2] == "readj" != best[lowest],
        ),
        judged(
            "fig5-lql",
            "the improvement by lower sigma is less pronounced for LQL than for LCL",
            "not as pronounced",
            ", ".join(f"{r}: b at sigma 1 is {step:.2f} times that at 0.01" for r, step in steps.items()) + " (redist)",
            "b at sigma 1 over b at sigma 0.01 (redist) is smaller for LQL",
            steps["LQL"] < steps["LCL"],
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    panels = [(r, {"resources": r}) for r in RESOURCES]
    figure = lines(outcomes, "sigma", SIGMAS, panels, "sigma", xlog=True)
    return [Picture("fig5", figure, "Migration and imbalance by sigma: 10 workers, z = 1, a million keys.")]


EXPERIMENT = Experiment("fig5", "Figure 5: the frequency threshold", jobs, claims, parts)
