"""Figs. 9 to 11: the size of the partitioning function. The lossy counter counts streams of a million tuples."""

from typing import Any

from unskew.experiments.claims import within
from unskew.experiments.gedik.counting import Count
from unskew.experiments.gedik.rules import ABOUT, judged
from unskew.experiments.gedik.setup import (
    KEYS,
    QUICK_RUNS,
    RUNS,
    SIGMA,
    SKEW,
    WORKERS,
    Case,
    mean,
    shown,
)
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.plots import new_figure

SIGMAS, QUICK_SIGMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), (0.01, 0.1, 1.0)
SKEWS, QUICK_SKEWS = (0.1, 0.25, 0.5, 0.75, 1.0), (0.25, 0.5, 1.0)
NUMBERS, QUICK_NUMBERS = (2, 5, 10, 20, 30, 50), (5, 10, 20)
RESOURCES = ("LCL", "LLL", "LQL")
COLOUR = {"LCL": "#4c72b0", "LLL": "#55a868", "LQL": "#dd8452"}


def _case(resources: str, sigma: float = SIGMA, z: float = SKEW) -> Case:
    return Case("redist", resources, sigma, z=z)


def jobs(settings: Settings) -> list[Any]:
    cases = [(_case(r), WORKERS) for r in RESOURCES]
    cases += [(_case(r, sigma), WORKERS) for r in ("LCL", "LQL") for sigma in settings.pick(SIGMAS, QUICK_SIGMAS)]
    cases += [(_case(r, z=z), WORKERS) for r in ("LCL", "LQL") for z in settings.pick(SKEWS, QUICK_SKEWS)]
    cases += [(_case(r), n) for r in ("LCL", "LQL") for n in settings.pick(NUMBERS, QUICK_NUMBERS)]
    unique = tuple(dict.fromkeys(cases))
    runs = settings.pick(RUNS, QUICK_RUNS)
    return [Count("sizes", f"counted, run {run}", KEYS, settings.seed * 100 + run, unique) for run in range(runs)]


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    sigmas, skews = settings.pick(SIGMAS, QUICK_SIGMAS), settings.pick(SKEWS, QUICK_SKEWS)
    numbers = settings.pick(NUMBERS, QUICK_NUMBERS)

    def of(metric: str, resources: str, sigma: float = SIGMA, z: float = SKEW, workers: int = WORKERS) -> float:
        return mean(outcomes, metric, resources=resources, sigma=sigma, z=z, workers=workers)

    def text(metric: str, resources: str) -> str:
        return shown(outcomes, metric, resources=resources, sigma=SIGMA, z=SKEW, workers=WORKERS)

    entries = [of("entries", "LCL", sigma) for sigma in sigmas]
    alike = {r: of("entries", r) for r in RESOURCES}
    memory = [of("in_memory", "LCL", z=z) for z in skews]
    rising = [of("entries", "LCL", z=z) for z in skews]
    slopes = [(b - a) / (y - x) for a, b, x, y in zip(rising, rising[1:], skews, skews[1:], strict=False)]
    growth = {
        metric: of(metric, "LCL", workers=numbers[-1])
        / of(metric, "LCL", workers=numbers[0])
        / (numbers[-1] / numbers[0])
        for metric in ("in_memory", "entries")
    }
    return [
        judged(
            "fig9-memory",
            "the lossy counter holds around 2,500 keys at sigma = 0.1 (LCL)",
            "around 2,500",
            text("in_memory", "LCL"),
            "the average of the runs within 10 % of 2,500",
            within(of("in_memory", "LCL"), 2500, ABOUT),
            "The paper does not say how long the stream is, and when it is looked at. Here it has as many tuples as "
            "there are keys, and the number is the average through the last window. (Until a first quick run it was "
            "that at the end of the stream, which depends on how much of a window is over; the rule is the same.)",
        ),
        judged(
            "fig9-memory-lql",
            "it holds 50,000 keys for LQL",
            "50K",
            text("in_memory", "LQL"),
            "the average of the runs within 10 % of 50,000",
            within(of("in_memory", "LQL"), 50_000, ABOUT),
        ),
        judged(
            "fig9-explicit",
            "the explicit map has around 50 entries at sigma = 0.1",
            "around 50",
            text("entries", "LCL"),
            "the average of the runs within 10 % of 50",
            within(of("entries", "LCL"), 50, ABOUT),
            "By Eq. 17 delta is 0.00176, which 39 of the given frequencies reach, and 43 reach delta - epsilon.",
        ),
        judged(
            "fig9-range",
            "the explicit map has between 1 and 500 entries",
            "1 to 500",
            ", ".join(f"sigma {sigma:g}: {value:.3g}" for sigma, value in zip(sigmas, entries, strict=True)),
            "every average within the range, the largest above 250 and the smallest below 10",
            min(entries) >= 1 and 250 < max(entries) <= 500 and min(entries) < 10,
        ),
        judged(
            "fig9-same",
            "the number of entries is the same for all resource functions",
            "all three lines overlap",
            ", ".join(f"{r}: {value:g}" for r, value in alike.items()),
            "equal averages for LCL, LLL and LQL",
            len(set(alike.values())) == 1,
            "Keys from delta - epsilon on are returned, and epsilon, a tenth of delta, is smaller for LQL: a few keys "
            "between differ.",
        ),
        judged(
            "fig10-memory",
            "skew hardly changes what the lossy counter holds (LCL)",
            "mostly flat",
            ", ".join(f"z {z:g}: {value:.3g}" for z, value in zip(skews, memory, strict=True)),
            "the highest average at most 1.5 times the lowest",
            max(memory) <= 1.5 * min(memory),
        ),
        judged(
            "fig10-explicit",
            "the explicit map grows with skew at an increasing rate",
            "super-linear",
            ", ".join(f"z {z:g}: {value:.3g}" for z, value in zip(skews, rising, strict=True)),
            "it never shrinks from one z to the next, and the last rise per z is the steepest",
            all(slope >= 0 for slope in slopes) and max(slopes) == slopes[-1],
        ),
        judged(
            "fig11-linear",
            "the size grows linearly with the number of workers",
            "linear",
            ", ".join(f"{metric}: {value:.2f} times as much per worker" for metric, value in growth.items())
            + f" with {numbers[-1]} workers as with {numbers[0]}",
            "size per worker with most workers is 0.7 to 1.4 times that with fewest, for both",
            all(0.7 <= value <= 1.4 for value in growth.values()),
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    figure = new_figure(13, 4)
    panels = (
        ("sigma", "sigma", settings.pick(SIGMAS, QUICK_SIGMAS), {"z": SKEW, "workers": WORKERS}),
        ("z", "skew z", settings.pick(SKEWS, QUICK_SKEWS), {"sigma": SIGMA, "workers": WORKERS}),
        ("workers", "workers N", settings.pick(NUMBERS, QUICK_NUMBERS), {"sigma": SIGMA, "z": SKEW}),
    )
    for axis, (over, label, at, where) in zip(figure.subplots(1, 3), panels, strict=True):
        for resources in ("LCL", "LQL"):
            for metric, style, what in (("in_memory", "o-", "lossy counter"), ("entries", "s--", "explicit map")):
                values = [mean(outcomes, metric, resources=resources, **{over: x}, **where) for x in at]
                axis.plot(at, values, style, markersize=3.5, color=COLOUR[resources], label=f"{resources}, {what}")
        axis.set(xlabel=label, ylabel="keys", xscale="log" if over == "sigma" else "linear")
        axis.set_yscale("symlog", linthresh=1)  # no key is tracked where there is little skew
        axis.grid(alpha=0.25)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return [Picture("fig9", figure, "Keys in the lossy counter and entries of the explicit map (Figs. 9, 10 and 11).")]


EXPERIMENT = Experiment("sizes", "Figures 9 to 11: size", jobs, claims, parts)
