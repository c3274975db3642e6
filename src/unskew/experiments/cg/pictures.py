"""Pictures of the experiments on Consistent Grouping."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from unskew.experiments.cg.cluster import CG
from unskew.experiments.cg.setup import CH_SPREAD, CH_WORKERS, KINDS, PORC, Cell
from unskew.plots import COLOURS, new_figure

MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*")


# a scheme looks the same in every figure; CG as PoRC, which it stands for
PLACES = {name: place for place, name in enumerate(KINDS)} | {
    CG: list(KINDS).index(PORC),
    CH_WORKERS: list(KINDS).index(CH_SPREAD),
}


class Row(NamedTuple):
    """A row of panels: one quantity."""

    label: str
    value: Callable[[Cell, str], float]
    log: bool = True


def style(i: int) -> dict[str, Any]:
    """Of the i-th line: its own colour and marker."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)], "markersize": 5}


def panels_by_bins(
    cells: Sequence[Cell], names: Sequence[str], rows: Sequence[Row], x_label: str, x: Callable[[Cell], float]
) -> Any:
    """A column of panels for each number of bins, a row for each quantity."""
    columns = sorted({cell.bins for cell in cells})
    figure = new_figure(max(6.0, 3.6 * len(columns)), 0.9 + 2.7 * len(rows))
    axes = figure.subplots(len(rows), len(columns), sharex=True, sharey="row", squeeze=False)
    for row, line_of_axes in zip(rows, axes, strict=True):
        for bins, axis in zip(columns, line_of_axes, strict=True):
            here = [cell for cell in cells if cell.bins == bins]
            _lines(axis, here, names, row, x)
            if row is rows[0]:
                axis.set_title(f"n = {bins}", fontsize=10)
        line_of_axes[0].set_ylabel(row.label)
    for axis in axes[-1]:
        axis.set_xlabel(x_label)
    _legend(figure, axes.flat[0])
    return figure


def panels_by_row(
    cells: Sequence[Cell], names: Sequence[str], rows: Sequence[Row], x_label: str, x: Callable[[Cell], float]
) -> Any:
    """One panel for each quantity, side by side; the x axis is logarithmic."""
    figure = new_figure(5.2 * len(rows), 4.2)
    axes = figure.subplots(1, len(rows), squeeze=False)[0]
    for row, axis in zip(rows, axes, strict=True):
        _lines(axis, cells, names, row, x)
        axis.set(xlabel=x_label, ylabel=row.label, xscale="log")
        ticks = sorted({x(cell) for cell in cells})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_xticks([], minor=True)
    _legend(figure, axes[0])
    return figure


def _lines(axis: Any, cells: Sequence[Cell], names: Sequence[str], row: Row, x: Callable[[Cell], float]) -> None:
    for name in names:
        points = sorted((x(cell), row.value(cell, name)) for cell in cells if name in cell.of)
        axis.plot(*zip(*points, strict=True), label=name, markerfacecolor="none", linewidth=1.2, **style(PLACES[name]))
    if row.log:
        axis.set_yscale("log")
    axis.grid(alpha=0.25)


def _legend(figure: Any, axis: Any) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 7), frameon=False)
