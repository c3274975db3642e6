"""Fig. 7: utility functions, for readj (7a) and redist (7b)."""

from typing import Any

from unskew.experiments.gedik.rules import judged
from unskew.experiments.gedik.setup import Case, builds, mean, shown
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Settings, Table
from unskew.partitioning.objective import UTILITIES

RESOURCES = ("CCL", "LCL", "LLL", "LQL")
ALGORITHMS = ("readj", "redist")


def jobs(settings: Settings) -> list[Any]:
    cases = [Case(x, r, utility=u) for x in ALGORITHMS for r in RESOURCES for u in UTILITIES]
    return builds("fig7", settings, cases)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    def of(metric: str, algorithm: str, resources: str, utility: str) -> float:
        return mean(outcomes, metric, algorithm=algorithm, resources=resources, utility=utility)

    def table(metric: str, algorithm: str) -> str:
        return "; ".join(
            f"{r}: " + ", ".join(f"{u} {of(metric, algorithm, r, u):.3g}" for u in UTILITIES) for r in RESOURCES
        )

    dearest = [r for r in RESOURCES if max(UTILITIES, key=lambda u: of("m", "readj", r, u)) == "A"]
    cheapest = {r: min(UTILITIES, key=lambda u: of("m", "readj", r, u)) for r in RESOURCES}
    spread = {
        r: max(of("b", "readj", r, u) for u in UTILITIES) / min(of("b", "readj", r, u) for u in UTILITIES)
        for r in RESOURCES
    }
    best = {r: sorted(UTILITIES, key=lambda u: of("b", "redist", r, u))[:2] for r in RESOURCES}
    gain = max(of("b", "redist", "LQL", u) for u in UTILITIES) / of("b", "redist", "LQL", "APM")
    dear = of("m", "redist", "LCL", "APLM") / of("m", "redist", "LCL", "APM") - 1
    cheap = [1 - of("m", "redist", "LCL", u) / of("m", "redist", "LCL", "APM") for u in ("ATM", "ATLM")]
    return [
        judged(
            "fig7a-a",
            "readj: A, which ignores migration, has a poor migration",
            "performs poorly",
            table("m", "readj"),
            "the highest average of the five in at least three of the four settings",
            len(dearest) >= 3,
        ),
        judged(
            "fig7a-apm",
            "readj: APM has the lowest migration, but for LCL, where APLM has",
            "APM; APLM for LCL",
            ", ".join(f"{r}: {u}" for r, u in cheapest.items()),
            "the lowest average of the five in each setting",
            cheapest == {"CCL": "APM", "LCL": "APLM", "LLL": "APM", "LQL": "APM"},
        ),
        judged(
            "fig7a-balance",
            "readj: utilities hardly differ in imbalance, but for LQL",
            "almost no difference",
            ", ".join(f"{r}: highest over lowest {value:.3f}" for r, value in spread.items()),
            "averages within 5 % of each other for CCL, LCL and LLL, and further apart for LQL",
            all(spread[r] <= 1.05 for r in ("CCL", "LCL", "LLL")) and spread["LQL"] > 1.05,
        ),
        judged(
            "fig7b-balance",
            "redist: APM and APLM have the lowest imbalance",
            "the best",
            table("b", "redist"),
            "they have the two lowest averages of the five in each setting",
            all(set(two) == {"APM", "APLM"} for two in best.values()),
        ),
        judged(
            "fig7b-lql",
            "redist, LQL: APM lowers the imbalance up to 3 times",
            "up to 3 times lower",
            f"the worst utility has {gain:.2f} times the imbalance of APM",
            "the worst of the five has 2 to 4 times the average b of APM",
            2 <= gain <= 4,
        ),
        judged(
            "fig7b-aplm",
            "redist: APLM has 30 to 35 % more migration than APM",
            "30 to 35 %",
            f"{100 * dear:.0f} % (LCL)",
            "20 to 45 % more on average (LCL, the default)",
            0.2 <= dear <= 0.45,
        ),
        judged(
            "fig7b-products",
            "redist: ATM and ATLM have 35 to 40 % less migration than APM",
            "35 to 40 %",
            ", ".join(f"{100 * value:.0f} %" for value in cheap) + " less (LCL)",
            "25 to 50 % less on average for both (LCL, the default)",
            all(0.25 <= value <= 0.5 for value in cheap),
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    rows = [
        [x, r, u, *(shown(outcomes, metric, algorithm=x, resources=r, utility=u) for metric in ("m", "b"))]
        for x in ALGORITHMS
        for r in RESOURCES
        for u in UTILITIES
    ]
    return [Table("10 workers, z = 1, a million keys.", ["algorithm", "resources", "utility", "m", "b"], rows)]


EXPERIMENT = Experiment("fig7", "Figure 7: utility functions", jobs, claims, parts)
