"""Fig. 3: resource functions. Ten workers, z = 1, a million keys; the text prints most of its numbers here."""

from typing import Any

from unskew.experiments.gedik.rules import ALIKE, about, judged
from unskew.experiments.gedik.setup import METHODS, OURS, Case, builds, mean, shown, values
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Settings, Table

RESOURCES = ("CCL", "LCL", "LLL", "LQL")
METRICS = {"m": "m", "b": "b", "b_state": "b_s", "b_computation": "b_c", "b_communication": "b_n"}
B = {"readj": 1.2, "redist": 1.32, "scan": 1.32, "uniform": 1.55, "consistent": 1.75}
M = {"readj": 1.34, "redist": 1.23, "scan": 1.23}
LQL = ("uniform", *OURS)


def jobs(settings: Settings) -> list[Any]:
    return builds("fig3", settings, [Case(method, resources) for method in METHODS for resources in RESOURCES])


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    def b(method: str, resources: str) -> float:
        return mean(outcomes, "b", algorithm=method, resources=resources)

    def m(method: str, resources: str) -> float:
        return mean(outcomes, "m", algorithm=method, resources=resources)

    numbers = [
        about(
            f"fig3-b-{method}",
            f"LLL: the relative imbalance b of {method}",
            published,
            outcomes,
            "b",
            algorithm=method,
            resources="LLL",
        )
        for method, published in B.items()
    ] + [
        about(
            f"fig3-m-{method}",
            f"LLL: the relative migration m of {method}",
            published,
            outcomes,
            "m",
            algorithm=method,
            resources="LLL",
        )
        for method, published in M.items()
    ]
    uniform = [m("uniform", resources) for resources in RESOURCES]
    lowest = {resources: min(METHODS, key=lambda method: b(method, resources)) for resources in RESOURCES}
    highest = {resources: max(METHODS, key=lambda method: b(method, resources)) for resources in RESOURCES}
    cheapest = {resources: min(METHODS, key=lambda method: m(method, resources)) for resources in RESOURCES}
    gap = abs(b("redist", "LLL") / b("scan", "LLL") - 1)
    computation = {method: mean(outcomes, "b_computation", algorithm=method, resources="LQL") for method in LQL}
    printed = {method: mean(outcomes, "b_printed", algorithm=method, resources="LQL") for method in METHODS}
    return [
        *numbers,
        judged(
            "fig3-m-uniform",
            "the uniform hash has a migration of more than 8 times the ideal",
            "up to more than 8",
            "; ".join(f"{r}: {shown(outcomes, 'm', algorithm='uniform', resources=r)}" for r in RESOURCES),
            "the highest average of the four settings above 8",
            max(uniform) > 8,
        ),
        judged(
            "fig3-readj-lowest",
            "readj has the lowest relative imbalance, whatever the resource functions",
            "consistently across all settings",
            "; ".join(f"{r}: {', '.join(f'{x} {b(x, r):.3g}' for x in METHODS)}" for r in RESOURCES),
            "readj has the lowest average in each of the four settings",
            set(lowest.values()) == {"readj"},
        ),
        judged(
            "fig3-consistent-worst",
            "the consistent hash has the worst balance",
            "worse than all alternatives",
            ", ".join(f"{r}: {x}" for r, x in highest.items()) + " is the worst",
            "it has the highest average in each of the four settings",
            set(highest.values()) == {"consistent"},
        ),
        judged(
            "fig3-consistent-cheapest",
            "the consistent hash has the best migration, below 1 in some cases",
            "the best; below 1 in some",
            "; ".join(f"{r}: {shown(outcomes, 'm', algorithm='consistent', resources=r)}" for r in RESOURCES),
            "the lowest average in each setting, and one run below 1",
            set(cheapest.values()) == {"consistent"} and min(values(outcomes, "m", algorithm="consistent")) < 1,
        ),
        judged(
            "fig3-redist-scan",
            "redist and scan are indistinguishable (LLL)",
            "one marker covers the other",
            f"b {b('redist', 'LLL'):.3g} and {b('scan', 'LLL'):.3g}, "
            f"m {m('redist', 'LLL'):.3g} and {m('scan', 'LLL'):.3g}",
            "averages of b and of m within 3 % of each other",
            gap < ALIKE and abs(m("redist", "LLL") / m("scan", "LLL") - 1) < ALIKE,
        ),
        judged(
            "fig3-lql",
            "LQL: the relative imbalance of computation is in the 30s for all but the consistent hash",
            "in the 30s",
            "; ".join(f"{x}: {shown(outcomes, 'b_computation', algorithm=x, resources='LQL')}" for x in METHODS),
            "30 to 40 on average for uniform, scan, redist and readj",
            all(30 <= value < 40 for value in computation.values()),
            "With the load f * beta(f) that Eq. 3 prints it would be "
            + ", ".join(f"{x} {value:.3g}" for x, value in printed.items())
            + ": so the load is beta(f), as the rest of the paper has it.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    rows = [
        [resources, method, *(shown(outcomes, metric, algorithm=method, resources=resources) for metric in METRICS)]
        for resources in RESOURCES
        for method in METHODS
    ]
    return [
        Table("Averages of the runs, with the lowest and highest.", ["resources", "method", *METRICS.values()], rows)
    ]


EXPERIMENT = Experiment("fig3", "Figure 3: resource functions", jobs, claims, parts)
