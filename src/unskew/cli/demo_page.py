"""The demo's page: the same groupings as in the terminal, as pictures."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from unskew.cli.demo_outcome import HEAVY, Outcome, Told
from unskew.page import Page
from unskew.plots import COLOURS, new_figure

MARKS = ("o", "s", "D", "^")
OK, OVERLOADED, PLANNING = COLOURS[0], COLOURS[1], COLOURS[3]
CODE = """from unskew.spark import repartition

balanced = repartition(df, "word", workers={w})  # instead of df.repartition({w}, "word")
partial = balanced.mapInArrow(work_through_a_partition, "word string, count bigint")
result = partial.groupBy("word").agg(F.sum("count"))"""


def demo_page(headers: Sequence[str], rows: Sequence[Sequence[str]], outcomes: Sequence[Outcome], told: Told) -> Page:
    """The page. `headers` and `rows` are the terminal's table."""
    page = Page("One hot word, and a job that waits for it", told.stream)
    page.add_figure(
        times_figure(outcomes),
        "What every worker did, and when: a bar for each worker while it worked, red where it had more than "
        f"{HEAVY} times the mean number of rows. The line is the end of the job, all counts merged.",
    )
    page.add_table(headers, rows)
    page.add_text(told.work)
    page.add_heading("What was found")
    page.add_text(told.finding, told.checked)
    page.add_heading("What balance costs")
    page.add_figure(
        cost_figure(outcomes),
        "Bottom left is best: no worker longer at work than the mean, and few places that hold a part of a count.",
    )
    page.add_heading("What this does not show")
    page.add_text(told.limits)
    page.add_heading("The code")
    page.add_code(CODE.format(w=len(outcomes[0].load)))
    return page


def times_figure(outcomes: Sequence[Outcome]) -> Any:
    """A panel for each grouping, all on the same clock: the bars of its workers, and the end of the job."""
    workers = len(outcomes[0].load)
    figure = new_figure(11, 1.2 + len(outcomes) * max(1.5, 0.09 * workers))
    panels = figure.subplots(len(outcomes), 1, sharex=True)
    for axes, outcome in zip(panels, outcomes, strict=True):
        heavy = np.array(outcome.load) > HEAVY * outcome.mean
        colours = [OVERLOADED if each else OK for each in heavy]
        axes.barh(range(workers), outcome.busy, left=outcome.started, color=colours, height=0.75)
        axes.axvline(outcome.seconds, color="black", linewidth=1.5)
        planning = f" (yellow: {outcome.planning:.1f} s of counting and planning)" if outcome.planning else ""
        axes.set_title(f"{outcome.label}: {outcome.seconds:.1f} s{planning}", fontsize=13, loc="left")
        axes.set_yticks([])
        axes.set_ylim(workers - 0.3, -0.7)
        axes.set_ylabel("workers")
        if outcome.planning:
            axes.axvspan(0, outcome.planning, color=PLANNING, alpha=0.5, linewidth=0)
        _plain(axes)
    panels[-1].set_xlim(0, 1.02 * max(outcome.seconds for outcome in outcomes))
    panels[-1].set_xlabel("seconds, measured")
    return figure


def cost_figure(outcomes: Sequence[Outcome]) -> Any:
    figure = new_figure(11, 3.2)
    axes = figure.subplots()
    for outcome, colour, mark in zip(outcomes, COLOURS, MARKS, strict=False):
        place = (outcome.replicas, outcome.longest_over_mean)
        axes.plot(*place, mark, color=colour, markersize=11)
        axes.annotate(outcome.label, place, textcoords="offset points", xytext=(12, 5), fontsize=12)
    axes.set_xlabel("replicas: (worker, word) pairs that hold a part of a count")
    axes.set_ylabel("longest worker / mean")
    axes.set_xlim(0, 1.2 * max(outcome.replicas for outcome in outcomes))
    axes.set_ylim(0.8, 0.3 + max(outcome.longest_over_mean for outcome in outcomes))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.axhline(1, color="black", linewidth=1, linestyle=(0, (4, 3)))
    _plain(axes)
    return figure


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=3)
