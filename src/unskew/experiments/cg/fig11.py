"""Fig. 11 (Q3): CG with 1 to 100 sources, each of which knows only what it sent and hears signals for itself."""

from typing import Any

from unskew.experiments.cg.cluster import ALL_ALIKE, grouping, queues_of
from unskew.experiments.cg.pictures import style
from unskew.experiments.cg.setup import WORKERS, shown, wikipedia, wp_label
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes, max_over_mean
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.plots import new_figure

SOURCES = (1, 10, 50, 100)
QUICK_TUPLES = 1_000_000  # a hundred sources take their time
SAME_ON_A_LOG_SCALE = 10**0.5  # half a decade


def jobs(settings: Settings) -> list[Job]:
    stream = wikipedia(settings, QUICK_TUPLES)
    return [
        Job(
            "fig11",
            "WP",
            stream,
            (grouping(workers),),
            sources=sources,
            replicas=True,
            queues=queues_of(ALL_ALIKE, workers),
        )
        for workers in WORKERS
        for sources in SOURCES
    ]


def _values(outcomes: Outcomes) -> dict[tuple[int, int], tuple[float, float]]:
    """(workers, sources) -> normalised imbalance (at least one tuple), memory."""
    return {
        (outcome.result.workers, outcome.result.sources): (
            max(max_over_mean(outcome.result) - 1.0, outcome.result.workers / outcome.result.tuples),
            outcome.result.replicas_over_kg or 0.0,
        )
        for outcome in outcomes
    }


def _apart(values: list[float]) -> float:
    return max(values) / min(values)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    values = _values(outcomes)
    where = f"{wp_label(outcomes[0].result.tuples)}, S = {', '.join(map(str, SOURCES))}: "
    found = []
    for i, (id, what, why) in enumerate(
        (
            (
                "fig11-imbalance",
                "imbalance",
                "Each source keeps PoRC's bound for its own tuples, so the bound of all together grows only by whole "
                "tuples. What adds to it are virtual workers that move when a worker's window was busy or idle by "
                "chance, in each source on its own.",
            ),
            (
                "fig11-memory",
                "memory footprint",
                "All sources have the same candidates for a key, and each spreads a hot one over about as many.",
            ),
        )
    ):
        apart = _apart([value[i] for value in values.values()])
        over_sources = max((_apart([values[w, s][i] for s in SOURCES]), f"W={w}") for w in WORKERS)
        listed = "; ".join(f"W={w}: {', '.join(shown(values[w, s][i]) for s in SOURCES)}" for w in WORKERS)
        found.append(
            Finding(
                id,
                f"the {what} of CG almost remains the same on a log scale with more workers and more sources",
                "almost the same",
                where + f"{listed}; largest over smallest {shown(apart)}, over sources alone {shown(over_sources[0])} "
                f"({over_sources[1]})",
                verdict(apart < SAME_ON_A_LOG_SCALE),
                f"Rule: less than half a decade (a factor {SAME_ON_A_LOG_SCALE:.2f}) between any two cells. {why}",
            )
        )
    return found


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    values = _values(outcomes)
    figure = new_figure(10, 4.0)
    axes: Any = figure.subplots(1, 2)
    for axis, i, label in zip(axes, (0, 1), ("normalised imbalance I W/m", "memory, over KG"), strict=True):
        for j, workers in enumerate(WORKERS):
            line = [values[workers, sources][i] for sources in SOURCES]
            axis.plot(SOURCES, line, label=f"{workers} workers", markerfacecolor="none", **style(j))
        axis.set(xscale="log", xlabel="sources", ylabel=label, xticks=SOURCES, xticklabels=SOURCES)
        axis.set_xticks([], minor=True)
        axis.grid(alpha=0.25)
    highest, lowest = (choose(value[0] for value in values.values()) for choose in (max, min))
    axes[0].set(yscale="log", ylim=(lowest / 3, highest * 3))
    axes[1].set_ylim(1, None)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    caption = f"{wp_label(outcomes[0].result.tuples)}: CG on equal workers, with sources that know only themselves."
    return [Picture("fig11", figure, caption)]


EXPERIMENT = Experiment("fig11", "Figure 11: many sources", jobs, claims, parts)
