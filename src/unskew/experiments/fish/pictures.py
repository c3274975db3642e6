"""Pictures of the FISH paper's kind: panels side by side, a line for each scheme."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from unskew.experiments.fish.setup import Cell
from unskew.plots import COLOURS, new_figure

MARKERS = "osD^vPX*"
BLUE, RED, GREEN, YELLOW, CYAN, PURPLE, GREY = COLOURS
# a scheme looks the same in all pictures; variants of one share its colour
LOOKS = {
    "SG": (GREY, "-", "x"),
    "FG": (YELLOW, "-", "+"),
    "PKG": (CYAN, "-", "v"),
    "D-C": (RED, "-", "s"),
    "D-C1000": (RED, "-", "s"),
    "D-C sized": (RED, "--", "D"),
    "D-C100": (RED, ":", "D"),
    "W-C": (BLUE, "-", "o"),
    "W-C1000": (BLUE, "-", "o"),
    "W-C sized": (BLUE, "--", "^"),
    "W-C100": (BLUE, ":", "^"),
    "W-C1000 estimated": (PURPLE, "-", "P"),
    "W-C100 estimated": (PURPLE, ":", "X"),
    "FISH": (GREEN, "-", "*"),
    "FISH, share of counters": (GREEN, "--", "p"),
    "D-C, 2/W": (RED, ":", "P"),
    "W-C, 2/W": (BLUE, ":", "X"),
    "D-C1000 code": (RED, "-.", "P"),
    "W-C1000 code": (BLUE, "-.", "X"),
    "D-C100 code": (RED, "--", "p"),
    "W-C100 code": (BLUE, "--", "h"),
}
INCHES_PER_LABEL = 1.6  # of a legend
# numbers that a logarithmic axis shows, times powers of ten, if its top is at most so many times its bottom
PLAIN = {8.0: (1.0, 1.5, 2.0, 3.0, 5.0, 7.0), 200.0: (1.0, 2.0, 5.0), float("inf"): (1.0,)}
LEAST_TOP = 1.1  # of an axis that starts at 1: differences of a per mille shall not look large
Value = Callable[[Cell, str], float]


class Row(NamedTuple):
    """Panels that show the same quantity, one for each number of workers (or stream)."""

    label: str  # of the y axis
    value: Value
    log: bool = False


def by_skew(cells: Sequence[Cell], names: Mapping[str, str] | Sequence[str], rows: Sequence[Row]) -> Any:
    """A column of panels for each number of workers, the skew z on the x axis; `names` of schemes (-> shown as)."""
    columns = dict.fromkeys(cell.workers for cell in cells)
    return panels_by_skew({f"W = {w}": [cell for cell in cells if cell.workers == w] for w in columns}, names, rows)


def panels_by_skew(
    panels: Mapping[str, Sequence[Cell]], names: Mapping[str, str] | Sequence[str], rows: Sequence[Row]
) -> Any:
    """A column of panels under each title, the skew z on the x axis."""
    return _draw(panels, names, rows, "skew z", lambda cell: cell.skew)


def by_workers(cells: Sequence[Cell], names: Mapping[str, str] | Sequence[str], rows: Sequence[Row]) -> Any:
    """A column of panels for each stream, the number of workers on the x axis."""
    panels = {name: [c for c in cells if c.data == name] for name in dict.fromkeys(cell.data for cell in cells)}
    figure = _draw(panels, names, rows, "workers W", lambda cell: cell.workers)
    ticks = sorted({cell.workers for cell in cells})
    for axis in figure.axes:
        axis.set_xscale("log", base=2)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.set_xticks([], minor=True)
    return figure


def _draw(
    panels: Mapping[str, Sequence[Cell]],
    names: Mapping[str, str] | Sequence[str],
    rows: Sequence[Row],
    x_label: str,
    x: Callable[[Cell], float],
) -> Any:
    shown = names if isinstance(names, Mapping) else {name: name for name in names}
    figure = new_figure(max(5.5, 2.9 * len(panels)), 0.9 + 2.5 * len(rows))
    axes = figure.subplots(len(rows), len(panels), sharex=True, sharey="row", squeeze=False)
    for row, line_of_axes in zip(rows, axes, strict=True):
        for (title, cells), axis in zip(panels.items(), line_of_axes, strict=True):
            for i, (name, text) in enumerate(shown.items()):
                points = sorted((x(cell), row.value(cell, name)) for cell in cells)
                colour, line, marker = LOOKS.get(name, (COLOURS[i % len(COLOURS)], "-", MARKERS[i % len(MARKERS)]))
                style = {"color": colour, "linestyle": line, "marker": marker, "markersize": 5, "linewidth": 1.2}
                axis.plot(*zip(*points, strict=True), label=text, markerfacecolor="none", **style)
            if row is rows[0]:
                axis.set_title(title, fontsize=9)
            axis.grid(alpha=0.25)
        _scale(line_of_axes[0], row.log)
        line_of_axes[0].set_ylabel(row.label)
    for axis in axes[-1]:
        axis.set_xlabel(x_label)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    columns = max(1, int(figure.get_figwidth() / INCHES_PER_LABEL))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)
    return figure


def _scale(axis: Any, log: bool) -> None:
    """Scale the y axis, which all panels of a row share."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    if not log:
        bottom, top = axis.get_ylim()
        if top < LEAST_TOP:
            axis.set_ylim(bottom - 0.01, LEAST_TOP)
        return
    axis.set_yscale("log")
    bottom, top = axis.get_ylim()
    axis.yaxis.set_major_locator(LogLocator(subs=next(n for most, n in PLAIN.items() if top <= most * bottom)))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
