"""What an application hands back: sentences, a table, facts for JSON, and pictures; and the page made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unskew.page import Page
from unskew.plots import COLOURS, new_figure


@dataclass(frozen=True)
class Found:
    title: str
    said: Sequence[str]  # sentences, the most important first
    columns: Mapping[str, str]  # of the table: a head, and how its cells are written, such as "{rows:,}"
    lines: Sequence[Mapping[str, Any]]  # of the table: what the cells are written of
    facts: Mapping[str, Any]  # for JSON
    pictures: Sequence[tuple[Any, str]]  # figures and what is to be seen in them
    code: str  # the heart of it
    notes: Sequence[str] = field(default=())  # what to know before believing it

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Heads and rows."""
        return list(self.columns), [[cell.format(**line) for cell in self.columns.values()] for line in self.lines]

    def page(self) -> Page:
        page = Page(self.title, self.said[0])
        page.add_text(*self.said[1:])
        for figure, caption in self.pictures:
            page.add_figure(figure, caption)
        page.add_table(*self.table())
        if self.notes:
            page.add_heading("Worth knowing")
            page.add_text(*self.notes)
        page.add_heading("The code")
        page.add_code(self.code)
        return page


def bars(groups: Mapping[str, Sequence[float]], ylabel: str, xlabel: str = "worker, busiest first") -> Any:
    """A panel per group, all of the same height: the values from the highest to the lowest, and their mean."""
    figure = new_figure(11, 3.4)
    panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for axes, (label, values), colour in zip(panels, groups.items(), COLOURS * len(groups), strict=False):
        axes.bar(range(1, len(values) + 1), sorted(values, reverse=True), color=colour)
        axes.axhline(sum(values) / max(1, len(values)), color="black", linewidth=1, linestyle=(0, (4, 3)))
        axes.set_title(label, fontsize=11, loc="left")
        axes.set_xlabel(xlabel)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(ylabel)
    return figure


def lines(series: Mapping[str, Sequence[float]], ylabel: str, xlabel: str = "micro-batch", least: float = 0.0) -> Any:
    """A line per label, over 1, 2, 3, ..."""
    figure = new_figure(11, 3.4)
    axes = figure.subplots()
    for (label, values), colour in zip(series.items(), COLOURS * len(series), strict=False):
        axes.plot(range(1, len(values) + 1), values, marker="o", label=label, color=colour)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.set_ylim(bottom=least)
    axes.locator_params(axis="x", integer=True)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def ranking(names: Sequence[str], values: Sequence[float], xlabel: str) -> Any:
    """A bar per name, the first at the top."""
    figure = new_figure(11, 0.8 + 0.26 * max(4, len(names)))
    axes = figure.subplots()
    axes.barh(range(len(names)), values, color=COLOURS[0], height=0.7)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel(xlabel)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def max_over_mean(values: Sequence[float]) -> float:
    """The busiest over the mean; 1 where there is nothing."""
    return max(values) * len(values) / sum(values) if any(values) else 1.0
