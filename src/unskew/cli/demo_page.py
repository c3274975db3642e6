"""The demo's page: the same three groupings as in the terminal, as pictures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.cli.demo_words import PHASES, TRENDING
from unskew.page import Page
from unskew.plots import COLOURS, new_figure

HEAVY = 1.2  # times its fair share: from here on a worker is drawn in red
MARKS = ("o", "s", "D")


def demo_page(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    outcomes: Sequence[dict[str, Any]],
    shares: npt.NDArray[np.float64],
    paragraphs: Sequence[str],
    code: str,
) -> Page:
    """The page. `headers` and `rows` are the terminal's summary; `outcomes` as in the demo's JSON."""
    page = Page("Three ways to group a skewed stream", paragraphs[0])
    page.table(headers, rows)
    page.heading("What every worker got")
    page.figure(loads_figure(outcomes), "Rows on each worker, as a multiple of its fair share (the dashed line).")
    page.heading("What balance costs")
    page.text(*paragraphs[1:3])
    page.figure(
        cost_figure(outcomes),
        "Bottom left is best: no worker above its fair share, and few places that hold a part of a word's count.",
    )
    page.heading("The stream")
    page.text(
        "The hottest word changes through the day, so no list of hot words made in the morning lasts to the evening."
    )
    page.figure(shares_figure(shares), "Share of the stream that each trending word has, through the day.")
    page.heading("What this does not show")
    page.text(*paragraphs[3:])
    page.heading("The code")
    page.code(code)
    return page


def loads_figure(outcomes: Sequence[dict[str, Any]]) -> Any:
    figure = new_figure(11, 3.4)
    for axes, outcome in zip(figure.subplots(1, len(outcomes), sharey=True), outcomes, strict=True):
        load = np.array(outcome["load"]) / np.mean(outcome["load"])
        axes.bar(
            range(len(load)), load, color=[COLOURS[1] if share > HEAVY else COLOURS[0] for share in load], width=0.8
        )
        axes.axhline(1, color="black", linewidth=1, linestyle=(0, (4, 3)))
        axes.set_title(f"{outcome['label']}: busiest {outcome['max_over_mean']:.2f}x", fontsize=12, loc="left")
        axes.set_xlabel("worker")
        axes.set_xticks(range(0, len(load), max(1, len(load) // 8)))
        _plain(axes)
    figure.axes[0].set_ylabel("load / fair share")
    return figure


def cost_figure(outcomes: Sequence[dict[str, Any]]) -> Any:
    figure = new_figure(11, 3.2)
    axes = figure.subplots()
    for outcome, colour, mark in zip(outcomes, COLOURS, MARKS, strict=False):
        place = (outcome["replicas"], outcome["max_over_mean"])
        axes.plot(*place, mark, color=colour, markersize=11)
        axes.annotate(outcome["label"], place, textcoords="offset points", xytext=(12, 5), fontsize=12)
    axes.set_xlabel("replicas: (worker, word) pairs that hold a part of the count")
    axes.set_ylabel("busiest worker / fair share")
    axes.set_xlim(0, 1.2 * max(outcome["replicas"] for outcome in outcomes))
    axes.set_ylim(0.9, 0.15 + max(outcome["max_over_mean"] for outcome in outcomes))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.axhline(1, color="black", linewidth=1, linestyle=(0, (4, 3)))
    _plain(axes)
    return figure


def shares_figure(shares: npt.NDArray[np.float64]) -> Any:
    figure = new_figure(11, 3)
    axes = figure.subplots()
    hours = np.linspace(0, 24, len(shares))
    for phase, (word, share, colour) in enumerate(zip(TRENDING, shares.T, COLOURS, strict=False)):
        axes.plot(hours, 100 * share, color=colour, linewidth=2.2)
        middle = int((phase + 0.5) * len(shares) / PHASES)
        place = (hours[middle], 100 * share.max())
        axes.annotate(word, place, textcoords="offset points", xytext=(0, 6), ha="center", color=colour, fontsize=12)
    axes.set_xticks(range(0, 25, 6))
    axes.set_xlabel("hour of the day")
    axes.set_ylabel("% of all words")
    axes.set_ylim(0, 125 * shares.max())
    _plain(axes)
    return figure


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=3)
