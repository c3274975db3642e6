"""Pictures of deployments: medians, with the range over the repetitions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unskew.experiments.deployments.setup import Cell
from unskew.plots import COLOURS, new_figure


def colour_of(kinds: Sequence[str], kind: str) -> str:
    return COLOURS[list(kinds).index(kind) % len(COLOURS)]


def _errors(cell: Cell, kind: str, name: str) -> tuple[float, float, float]:
    """The median, and how far the least and the highest are from it."""
    values, middle = cell.each(kind, name), cell.get(kind, name)
    return middle, middle - min(values), max(values) - middle


def lines(
    cells: Sequence[Cell], xs: Sequence[float], x_label: str, panels: Mapping[str, str], kinds: Sequence[str]
) -> Any:
    """A panel per number, a line per scheme."""
    figure = new_figure(5.2 * len(panels), 3.8)
    for axis, (name, label) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items(), strict=True):
        for kind in kinds:
            values = np.array([_errors(cell, kind, name) for cell in cells]).T
            axis.errorbar(
                xs, values[0], values[1:], marker="o", markersize=4, linewidth=1.2, elinewidth=0.7, label=kind,
                color=colour_of(kinds, kind),
            )  # fmt: skip
        axis.set(xlabel=x_label, ylabel=label, ylim=(0, None))
        axis.grid(alpha=0.25)
    return _with_legend(figure)


def bars(cells: Sequence[Cell], panels: Mapping[str, str], kinds: Sequence[str], log: bool = False) -> Any:
    """A panel per number, a group of bars per point, a bar per scheme."""
    figure = new_figure(5.2 * len(panels), 3.8)
    width = 0.8 / len(kinds)
    for axis, (name, label) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items(), strict=True):
        for number, kind in enumerate(kinds):
            places = [place for place, cell in enumerate(cells) if kind in cell.of]
            values = np.array([_errors(cells[place], kind, name) for place in places]).T
            axis.bar(
                np.array(places) + (number - (len(kinds) - 1) / 2) * width, values[0], width, yerr=values[1:],
                color=colour_of(kinds, kind), label=kind, error_kw={"elinewidth": 0.7},
            )  # fmt: skip
        axis.set_xticks(range(len(cells)), [cell.data for cell in cells], fontsize=8)
        axis.set(ylabel=label)
        if log:
            axis.set_yscale("log")
        axis.grid(alpha=0.25, axis="y")
    return _with_legend(figure)


def _with_legend(figure: Any) -> Any:
    """The figure with a legend below it, which fits under a single panel too."""
    found = figure.axes[0].get_legend_handles_labels()
    figure.legend(*found, loc="outside lower center", ncols=min(6, 3 * len(figure.axes)), frameon=False)
    return figure
