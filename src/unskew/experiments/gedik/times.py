"""Figs. 12 to 14: how long it takes to construct a function, its ring included.

Best of three where it is short. The tasks of a grid share the machine, so the times are upper bounds.
"""

from typing import Any

from unskew.experiments.gedik.pictures import lines
from unskew.experiments.gedik.rules import judged
from unskew.experiments.gedik.setup import OURS, SIGMA, SKEW, WORKERS, Case, builds, mean, shown
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings

SIGMAS, QUICK_SIGMAS = (0.008, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), (0.008, 0.02, 0.1, 1.0)
NUMBERS, QUICK_NUMBERS = (5, 10, 20, 30, 50, 75, 100), (5, 10, 20, 30)
SKEWS = (0.2, 0.4, 0.6, 0.8, 1.0)
FEW_RUNS = 3  # as many hash functions as time asks for


def jobs(settings: Settings) -> list[Any]:
    by_sigma = [Case(x, sigma=sigma) for x in OURS for sigma in settings.pick(SIGMAS, QUICK_SIGMAS)]
    by_skew = [Case(x, z=z) for x in OURS for z in SKEWS if z != SKEW]
    by_number = [Case(x) for x in OURS]
    runs = settings.pick(FEW_RUNS, 1)
    return [
        *builds("times", settings, by_sigma + by_skew, runs=runs),
        *builds("times", settings, by_number, settings.pick(NUMBERS, QUICK_NUMBERS), runs=runs),
    ]


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    numbers = settings.pick(NUMBERS, QUICK_NUMBERS)

    def of(method: str, sigma: float = SIGMA, workers: int = WORKERS, z: float = SKEW) -> float:
        return mean(outcomes, "seconds", algorithm=method, sigma=sigma, workers=workers, z=z)

    def text(method: str, sigma: float) -> str:
        return f"{method} " + shown(outcomes, "seconds", algorithm=method, sigma=sigma, workers=WORKERS, z=SKEW)

    default = {x: of(x) for x in OURS}
    rise = {x: of(x, workers=numbers[-1]) / of(x, workers=numbers[0]) / (numbers[-1] / numbers[0]) for x in OURS}
    flat = {x: of(x, z=0.8) / of(x, z=0.2) for x in OURS}
    after = {x: of(x, z=1.0) / of(x, z=0.8) for x in OURS}
    return [
        judged(
            "fig12-default",
            "at the default sigma a construction takes less than 0.05 s",
            "below 0.05 s",
            "; ".join(text(x, SIGMA) for x in OURS),
            "the average of each algorithm below 0.05 s",
            max(default.values()) < 0.05,
        ),
        judged(
            "fig12-readj",
            "at sigma = 0.008 readj takes around 10 s",
            "around 10 s; ours must not be slower",
            text("readj", 0.008),
            "at most 10 s",
            of("readj", 0.008) <= 10,
        ),
        judged(
            "fig12-redist",
            "at sigma = 0.008 redist takes slightly above 0.5 s",
            "0.5 s; ours must not be slower",
            text("redist", 0.008),
            "at most 0.5 s",
            of("redist", 0.008) <= 0.5,
        ),
        judged(
            "fig12-order",
            "at low sigma readj is slower than redist, and redist than scan",
            "cubic, quadratic, linear",
            "; ".join(text(x, 0.008) for x in OURS),
            "in this order at sigma = 0.008",
            of("readj", 0.008) > of("redist", 0.008) > of("scan", 0.008),
        ),
        judged(
            "fig13-super-linear",
            "all algorithms are super-linear in the number of workers; scan is the cheapest",
            "super-linear; scan the cheapest",
            ", ".join(f"{x}: {value:.2f} times as long per worker" for x, value in rise.items())
            + f" with {numbers[-1]} workers as with {numbers[0]}",
            "time per worker rises for all three, and scan is the quickest with most workers",
            min(rise.values()) > 1 and min(OURS, key=lambda x: of(x, workers=numbers[-1])) == "scan",
        ),
        judged(
            "fig14-flat",
            "construction time is flat until z = 0.8 and rises after, fastest for readj",
            "flat until 0.8; scan insensitive",
            ", ".join(f"{x}: {flat[x]:.2f} from z 0.2 to 0.8, {after[x]:.2f} from 0.8 to 1" for x in OURS),
            "at z = 0.8 at most 1.5 times that at 0.2 for all; from 0.8 to 1 readj rises most and scan least",
            max(flat.values()) <= 1.5 and after["readj"] > after["redist"] > after["scan"],
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    panels = (
        ("sigma", SIGMAS, {"workers": WORKERS, "z": SKEW}, True),
        ("workers", NUMBERS, {"sigma": SIGMA, "z": SKEW}, False),
        ("z", SKEWS, {"sigma": SIGMA, "workers": WORKERS}, False),
    )
    pictures: list[Part] = []
    for (over, at, where, xlog), name in zip(panels, ("fig12", "fig13", "fig14"), strict=True):
        figure = lines(outcomes, over, at, [("LCL", where)], over, OURS, ("seconds",), ("seconds",), xlog)
        pictures.append(Picture(name, figure, f"Seconds to construct a function, by {over}."))
    return pictures


EXPERIMENT = Experiment("times", "Figures 12 to 14: construction time", jobs, claims, parts, timed=True)
