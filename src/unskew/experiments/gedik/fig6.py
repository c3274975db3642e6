"""Fig. 6: the number of workers, 2 to 32."""

from typing import Any

from unskew.experiments.gedik.pictures import lines
from unskew.experiments.gedik.rules import about, judged
from unskew.experiments.gedik.setup import METHODS, OURS, Case, builds, mean, shown
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings

WORKERS = (2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32)
QUICK = (2, 6, 10, 20, 26, 32)


def jobs(settings: Settings) -> list[Any]:
    return builds("fig6", settings, [Case(method) for method in METHODS], settings.pick(WORKERS, QUICK))


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    numbers = settings.pick(WORKERS, QUICK)

    def of(metric: str, method: str, workers: int) -> float:
        return mean(outcomes, metric, algorithm=method, workers=workers)

    lowest = {n: min(METHODS, key=lambda method: of("b", method, n)) for n in numbers}
    highest = {n: max(METHODS, key=lambda method: of("b", method, n)) for n in numbers}
    late = [n for n in numbers if n > 20]
    flat = [of("m", "redist", n) for n in numbers if n >= 10]
    above = max(of("b", "uniform", n) / of("b", "readj", n) - 1 for n in numbers if n <= 20)
    return [
        about(
            "fig6-uniform-32",
            "the migration of the uniform hash with 32 workers",
            22,
            outcomes,
            "m",
            algorithm="uniform",
            workers=32,
            note="All but about one key in N moves, so m is about N - 1 with even loads, and less where a hot key "
            "happens to stay.",
        ),
        about(
            "fig6-redist-32",
            "the migration of redist stays flat, with 32 workers too",
            1.15,
            outcomes,
            "m",
            algorithm="redist",
            workers=32,
        ),
        judged(
            "fig6-redist-flat",
            "redist shows almost flat migration as workers are added",
            "around 1.15",
            ", ".join(f"N={n}: {of('m', 'redist', n):.3g}" for n in numbers),
            "from 10 workers on the highest average is at most 1.25 times the lowest",
            max(flat) <= 1.25 * min(flat),
        ),
        judged(
            "fig6-scan-32",
            "with 32 workers the migration of scan is above 3, and that of readj is lower",
            "above 3; readj slightly lower",
            f"scan {shown(outcomes, 'm', algorithm='scan', workers=32)}; "
            f"readj {shown(outcomes, 'm', algorithm='readj', workers=32)}",
            "the average of scan above 3, and that of readj below it",
            of("m", "scan", 32) > 3 and of("m", "readj", 32) < of("m", "scan", 32),
        ),
        judged(
            "fig6-consistent-32",
            "with 32 workers the imbalance of the consistent hash is above 2",
            "above 2",
            shown(outcomes, "b", algorithm="consistent", workers=32),
            "the average above 2",
            of("b", "consistent", 32) > 2,
        ),
        judged(
            "fig6-consistent-worst",
            "the consistent hash has the highest imbalance at every number of workers",
            "the highest",
            ", ".join(f"N={n}: {x}" for n, x in highest.items()),
            "the highest average at every N of the grid",
            set(highest.values()) == {"consistent"},
        ),
        judged(
            "fig6-readj-to-20",
            "readj has the lowest imbalance from 2 to 20 workers",
            "performs the best",
            "; ".join(f"N={n}: " + ", ".join(f"{x} {of('b', x, n):.3g}" for x in METHODS) for n in numbers if n <= 20),
            "the lowest average at every N of the grid up to 20",
            all(lowest[n] == "readj" for n in numbers if n <= 20),
        ),
        judged(
            "fig6-readj-overtaken",
            "with more than 20 workers the imbalance of readj is above that of redist and scan",
            "goes above",
            "; ".join(f"N={n}: " + ", ".join(f"{x} {of('b', x, n):.3g}" for x in OURS) for n in late),
            "its average is above both at every N of the grid beyond 20",
            all(of("b", "readj", n) > max(of("b", "redist", n), of("b", "scan", n)) for n in late),
        ),
        judged(
            "fig6-uniform-36",
            "up to 20 workers the uniform hash is up to 36 % above readj",
            "up to 36 %",
            f"up to {100 * above:.0f} %",
            "the largest excess over the N of the grid up to 20 is from 26 to 46 %",
            0.26 <= above <= 0.46,
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    figure = lines(outcomes, "workers", WORKERS + QUICK[4:5], [("LCL", {})], "workers N")
    return [Picture("fig6", figure, "Migration and imbalance as workers are added one by one: z = 1, a million keys.")]


EXPERIMENT = Experiment("fig6", "Figure 6: the number of workers", jobs, claims, parts)
