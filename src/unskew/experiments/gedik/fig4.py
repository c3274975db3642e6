"""Fig. 4: skew."""

from typing import Any

from unskew.experiments.gedik.pictures import lines
from unskew.experiments.gedik.rules import judged
from unskew.experiments.gedik.setup import METHODS, OURS, Case, builds, mean
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings

SKEWS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
QUICK = (0.1, 0.4, 0.6, 0.8, 1.0)
LQL_SKEWS, LQL_QUICK = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5), (0.25, 0.4, 0.5)
RESOURCES = ("LCL", "LLL", "LQL")


def skews(settings: Settings, resources: str) -> tuple[float, ...]:
    chosen: tuple[float, ...] = settings.pick(SKEWS, QUICK)
    return settings.pick(LQL_SKEWS, LQL_QUICK) if resources == "LQL" else chosen


def jobs(settings: Settings) -> list[Any]:
    cases = [
        Case(method, resources, z=z)
        for resources in RESOURCES
        for z in skews(settings, resources)
        for method in METHODS
    ]
    return builds("fig4", settings, cases)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    def of(metric: str, method: str, resources: str, z: float) -> float:
        return mean(outcomes, metric, algorithm=method, resources=resources, z=z)

    every = [(r, z) for r in ("LCL", "LLL") for z in skews(settings, r)]
    low = [of("m", "uniform", r, z) for r, z in every]
    mild = {(x, z): of("m", x, "LLL", z) for x in OURS for z in skews(settings, "LLL") if z <= 0.8}
    at_one = {x: of("m", x, "LLL", 1.0) for x in OURS}
    first = {
        (r, x): next((z for z in skews(settings, r) if of("b", x, r, z) > 1), 9.0) for r in RESOURCES for x in METHODS
    }
    starts = {r: min(first[r, x] for x in METHODS) for r in RESOURCES}
    quiet = {x: of("b", x, "LLL", 0.1) for x in METHODS}
    gain = max(of("b", x, "LLL", 1.0) for x in ("redist", "scan")) / of("b", "readj", "LLL", 1.0) - 1
    lql = [
        max(of("b", x, "LQL", z) for x in OURS) / min(of("b", x, "LQL", z) for x in OURS) - 1
        for z in skews(settings, "LQL")
    ]
    return [
        judged(
            "fig4-uniform",
            "the uniform hash has a very high migration, more than 8 times the ideal",
            "more than 8",
            f"{min(low):.3g} to {max(low):.3g}",
            "above 8 for LCL and LLL at every z",
            min(low) > 8,
        ),
        judged(
            "fig4-until-0.8",
            "the migration of scan, redist and readj is close to ideal until z = 0.8",
            "close to ideal; starts increasing after z = 0.8",
            f"highest at z <= 0.8: {max(mild.values()):.3g}; at z = 1: {max(at_one.values()):.3g}",
            "at most 1.1 at every z up to 0.8, and more at z = 1",
            max(mild.values()) <= 1.1 < max(at_one.values()),
        ),
        judged(
            "fig4-order",
            "scan has the worst migration of the three, readj and redist follow",
            "scan, readj, redist",
            ", ".join(f"{x} {value:.3g}" for x, value in at_one.items()) + " (LLL, z = 1)",
            "at z = 1 (LLL) the averages of m fall in this order",
            at_one["scan"] > at_one["readj"] > at_one["redist"],
        ),
        judged(
            "fig4-consistent-first",
            "the consistent hash is the first to violate the balance as skew increases",
            "the first",
            "; ".join(f"{r}: " + ", ".join(f"{x} {first[r, x]:g}" for x in METHODS) for r in RESOURCES)
            + " (first z with b > 1; 9 for none)",
            "no other method has b > 1 at a smaller z of the grid, in any setting",
            all(first[r, "consistent"] == starts[r] for r in RESOURCES),
        ),
        judged(
            "fig4-resources",
            "violations start earliest for LQL and latest for LCL",
            "LQL, LLL, LCL",
            ", ".join(f"{r}: z = {z:g}" for r, z in starts.items()),
            "the first z of the grid with b > 1 for any method rises from LQL to LLL, and not falls from there to LCL",
            starts["LQL"] < starts["LLL"] <= starts["LCL"],
        ),
        judged(
            "fig4-mild",
            "for very low skews all are acceptable, and the uniform hash is the best",
            "below the ideal line; uniform performs the best",
            ", ".join(f"{x} {value:.3g}" for x, value in quiet.items()) + " (LLL, z = 0.1)",
            "at z = 0.1 (LLL) all have b <= 1, and uniform the lowest",
            max(quiet.values()) <= 1 and min(quiet, key=lambda x: quiet[x]) == "uniform",
        ),
        judged(
            "fig4-readj",
            "LLL at z = 1: readj is up to 8 % below redist and scan",
            "up to 8 %",
            f"{100 * gain:.1f} %",
            "the larger of the two is 4 to 12 % above readj, on average",
            0.04 <= gain <= 0.12,
        ),
        judged(
            "fig4-lql",
            "LQL: scan, redist and readj are close; readj is 1 to 2 % higher",
            "close",
            f"apart by at most {100 * max(lql):.1f} %",
            "averages of b within 3 % of each other at every z",
            max(lql) <= 0.03,
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    panels = [(r, {"resources": r}) for r in RESOURCES]
    figure = lines(outcomes, "z", sorted({*SKEWS, *LQL_SKEWS}), panels, "skew z")
    return [
        Picture("fig4", figure, "Migration and imbalance by skew: 10 workers, a million keys, averages of the runs.")
    ]


EXPERIMENT = Experiment("fig4", "Figure 4: skew", jobs, claims, parts)
