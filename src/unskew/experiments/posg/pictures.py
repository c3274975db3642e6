"""Pictures of the paper's kind: mean, lowest and highest over all streams, a line for each scheme."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unskew.experiments.posg.setup import FULL, IDLE, POSG, RR, Cell
from unskew.plots import COLOURS, new_figure

BLUE, RED, GREEN, YELLOW, CYAN, PURPLE, GREY = COLOURS
LOOKS = {RR: (GREY, "x"), POSG: (BLUE, "o"), IDLE: (CYAN, "D"), FULL: (GREEN, "s")}
Values = Callable[[Cell, str], list[float]]


def lines(
    cells: Sequence[Cell],
    names: Sequence[str],
    values: Values,
    x_label: str,
    y_label: str,
    labels: Sequence[str] | None = None,
    log: bool = False,
) -> Any:
    """Over the points of a figure: the mean as a line, lowest to highest as a bar; `labels` in the place of numbers."""
    figure = new_figure(6.4, 3.8)
    axis = figure.subplots()
    xs = np.arange(len(cells)) if labels is not None else np.array([cell.point.x for cell in cells])
    step = (np.diff(np.log(xs) if log else xs).min() if len(xs) > 1 else 1.0) / (3.0 * len(names))
    for number, name in enumerate(names):
        each = [values(cell, name) for cell in cells]
        means = np.array([np.mean(numbers) for numbers in each])
        below, above = (np.abs(means - [pick(numbers) for numbers in each]) for pick in (min, max))
        moved = (number - (len(names) - 1) / 2) * step
        places = xs * np.exp(moved) if log else xs + moved
        colour, marker = LOOKS[name]
        axis.errorbar(
            places,
            means,
            (below, above),
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.2,
            elinewidth=0.7,
            label=name,
        )
    if log:
        axis.set_xscale("log")
        axis.set_xticks(xs, [f"{x:g}" for x in xs], fontsize=8)
        axis.set_xticks([], minor=True)
    if labels is not None:
        axis.set_xticks(xs, labels)
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=len(names), frameon=False, fontsize=8)
    return figure


def speed_ups(cells: Sequence[Cell], x_label: str, log: bool = False) -> Any:
    """Speed-up over round robin, with a line at 1."""
    figure = lines(cells, [POSG, IDLE], Cell.speed_ups, x_label, "speed-up over round robin", log=log)
    figure.axes[0].axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
    return figure
