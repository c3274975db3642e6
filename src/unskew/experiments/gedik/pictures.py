"""Lines of all methods over one parameter, as most of the paper's figures have them."""

from collections.abc import Sequence
from typing import Any

from unskew.experiments.gedik.setup import COLOUR, METHODS, mean
from unskew.experiments.grid import Outcomes
from unskew.plots import new_figure

LABEL = {"b": "relative imbalance b", "m": "relative migration m", "entries": "entries", "seconds": "seconds"}


def lines(
    outcomes: Outcomes,
    over: str,
    at: Sequence[float],
    panels: Sequence[tuple[str, dict[str, Any]]],
    xlabel: str,
    methods: Sequence[str] = METHODS,
    metrics: Sequence[str] = ("m", "b"),
    log: Sequence[str] = ("m",),
    xlog: bool = False,
) -> Any:
    """One row per metric, one column per panel (a title and what it selects); a single panel has its metrics in a
    row. Where a line hides another, the dashed one on top shows both."""
    shape = (len(metrics), len(panels)) if len(panels) > 1 else (1, len(metrics))
    figure = new_figure(4.2 * max(shape[1], 1.6), 3.1 * shape[0] + 0.6)
    axes = figure.subplots(*shape, squeeze=False).reshape(len(metrics), len(panels))
    for row, metric in zip(axes, metrics, strict=True):
        for axis, (title, where) in zip(row, panels, strict=True):
            for method in methods:
                present = [x for x in sorted(at) if outcomes.where(algorithm=method, **{over: x}, **where)]
                values = [mean(outcomes, metric, algorithm=method, **{over: x}, **where) for x in present]
                style: dict[str, Any] = {"linestyle": "--", "zorder": 3} if method == "scan" else {}
                axis.plot(present, values, marker="o", markersize=3.5, color=COLOUR[method], label=method, **style)
            if metric in ("b", "m"):
                axis.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
            axis.set(xlabel=xlabel, ylabel=LABEL[metric])
            axis.set_title(title, fontsize=10)
            if metric in log:
                axis.set_yscale("log")
            if xlog:
                axis.set_xscale("log")
            axis.grid(alpha=0.25)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(methods), frameon=False)
    return figure
