"""The doctor's pages: the skew report and the cost report with pictures."""

from pathlib import Path
from typing import Any

import numpy as np

from unskew.page import Page
from unskew.plots import COLOURS, new_figure
from unskew.report import CostReport, Report
from unskew.report.advice import ENOUGH
from unskew.report.cost_report import LEGEND as COST_LEGEND
from unskew.report.counts import percent
from unskew.report.report import LEGEND

COMPARED = ("hash", "pkg")  # drawn beside what is recommended


def doctor_page(report: Report, name: str) -> Page:
    """The report on the file `name` as a page."""
    page = Page(f"How skewed is {', '.join(report.columns)} in {Path(name).name}?", report.recommendation)
    page.add_text(report.facts())
    if report.code:
        page.add_code(report.code)
    if report.forecasts:
        page.add_heading(f"With {report.workers:,} workers")
        page.add_figure(
            stragglers_figure(report),
            "Predicted time of the stage over that of perfect balance (the dashed line), partial results merged.",
        )
        page.add_table(*report.table())
        page.add_text(LEGEND)
        page.add_figure(loads_figure(report), "Rows of each worker over the mean, from the busiest to the idlest.")
    if report.notes:
        page.add_heading("Worth knowing")
        page.add_text(*report.notes)
    if report.top:
        page.add_heading("The keys")
        page.add_text(report.bounds())
        page.add_figure(curve_figure(report), "Share of the rows that each key has, from the hottest key on.")
        rows = [[key.key, f"{key.count:,}", percent(key.share)] for key in report.top]
        page.add_table(["key", "rows", "share"], rows)
    return page


def cost_page(report: CostReport, name: str) -> Page:
    """The report on what rows of the file `name` cost as a page."""
    page = Page(f"How uneven is the work on {Path(name).name}?", report.recommendation)
    if report.facts.rows:
        page.add_text(report.measured())
    if report.code:
        page.add_code(report.code)
    if report.forecasts:
        page.add_heading(f"With {report.workers:,} workers")
        busiest = {f.way: f.over_bound for f in report.forecasts}
        caption = "Work of the busiest worker, predicted, over the least possible (the dashed line)."
        page.add_figure(_bars(busiest, "busiest worker / at best"), caption)
        rows = [[f.way, report.shown(f.busiest), f"{f.over_bound:.2f}"] for f in report.forecasts]
        page.add_table(["way", "busiest", "/ at best"], rows)
        page.add_text(COST_LEGEND)
    if report.notes:
        page.add_heading("Worth knowing")
        page.add_text(*report.notes)
    if report.facts.top and report.total:
        page.add_heading("The most expensive rows")
        rows = [[row, report.shown(cost), percent(cost / report.total)] for row, cost in report.facts.top]
        page.add_table(["row", "cost", "share"], rows)
    return page


def stragglers_figure(report: Report) -> Any:
    return _bars({report.label(f): f.straggler for f in report.forecasts}, "straggler factor")


def _bars(found: dict[str, float], axis: str) -> Any:
    """A bar for each, the first on top, red where it is far from 1."""
    names, values = list(found)[::-1], list(found.values())[::-1]
    figure = new_figure(11, 0.8 + 0.4 * len(found))
    axes = figure.subplots()
    bars = axes.barh(names, values, color=[_colour(value) for value in values], height=0.7)
    axes.bar_label(bars, [f"{value:.2f}x" for value in values], padding=5, fontsize=11)
    axes.axvline(1, color="black", linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xlim(0, 1.1 * max(values))
    axes.set_xlabel(axis)
    _plain(axes)
    return figure


def loads_figure(report: Report) -> Any:
    figure = new_figure(11, 3.6)
    axes = figure.subplots()
    chosen = (report.advice.scheme, report.advice.mode)
    drawn = [f for f in report.forecasts if f.scheme in COMPARED or (f.scheme, f.mode) == chosen]
    for forecast, colour in zip(drawn, COLOURS, strict=False):
        load = np.sort(forecast.load)[::-1]
        axes.plot(np.arange(1, len(load) + 1), load, color=colour, marker=".", label=report.label(forecast))
    axes.axhline(1, color="black", linewidth=1, linestyle=(0, (4, 3)))
    axes.set(xlabel="worker, busiest first", ylabel="rows / mean")
    axes.legend(frameon=False)
    _plain(axes)
    return figure


def curve_figure(report: Report) -> Any:
    figure = new_figure(11, 3.6)
    axes = figure.subplots()
    rank, share = report.counts.curve()
    axes.loglog(rank, share, color=COLOURS[0], linewidth=2)
    axes.axhline(1 / report.workers, color="black", linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        f"a worker's fair share, 1/{report.workers}",
        (1, 1 / report.workers),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        xytext=(0, 5),
        ha="right",
    )
    axes.set(xlabel="rank of the key", ylabel="share of the rows")
    _plain(axes)
    return figure


def _colour(straggler: float) -> str:
    return COLOURS[1] if straggler > ENOUGH else COLOURS[2]


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=3)
