"""The cost report: how uneven the work on rows is, and what balancing it would gain.

One sentence of advice, by the first of these rules that applies:

- nothing, where there are no rows, one worker, fewer rows than workers, or no costs;
- nothing, where the partitions as they are come within `ENOUGH` of the best possible;
- `df.repartition`, into as many partitions as workers or into many small ones, where that does;
- `map_balanced`, where it is `WORTHWHILE` times as fast as the best of these three;
- otherwise the best of these three.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from unskew.checks import require_workers
from unskew.report.cost_forecast import SMALL_TASKS, CostForecast, CostLots, Floats, forecast_costs
from unskew.report.costs import WORTHWHILE, duration
from unskew.report.counts import percent
from unskew.report.printing import as_html, as_text

ENOUGH = 1.1  # times the best possible
LONGEST_BAR = 30  # characters
LEGEND = (
    "busiest: the work of the worker that has most, at best the mean or the most expensive row. as it is: the "
    "partitions of df now, each taken by the next free worker. round robin: df.repartition(W). small tasks: "
    f"df.repartition({SMALL_TASKS} W). balanced: map_balanced, which reads the rows once more to add up costs."
)


class CostFacts(NamedTuple):
    """What was measured of the rows.

    Parameters
    ----------
    rows
        How many there are.
    unknown
        How many of them have no cost.
    median, p99
        Of the costs of single rows.
    top
        The most expensive rows, as text, and what they cost.

    Examples
    --------
    >>> from unskew.report import CostFacts
    >>> CostFacts(rows=3, unknown=0, median=2.0, p99=9.0, top=(("a long text", 9.0),)).p99
    9.0
    """

    rows: int
    unknown: int
    median: float
    p99: float
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class CostReport:
    """How uneven the work on rows is, what each way to deal it would do with W workers, and a recommendation.

    Made by `unskew.spark.cost_report`. Print it, show it in a notebook, or take `to_dict` for JSON.

    Attributes
    ----------
    workers
        W, the number of workers.
    unit
        "s" for seconds, "" where it is the user's own.
    sampled
        How many rows were timed; None where the cost of all rows is known.
    facts
        What was measured of the rows.
    total, longest
        The cost of all rows, and of the most expensive one.
    forecasts
        What each way to deal the rows would do, the recommended one first.
    recommendation, code
        What to do in a sentence, and the call to make; no call where nothing is to be done.
    notes
        What else to know.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.report import CostFacts, CostLots, cost_report_on
    >>> lots = CostLots(rows=np.ones(100), cost=np.array([50.0] * 4 + [1.0] * 96), longest=50.0)
    >>> facts = CostFacts(rows=100, unknown=0, median=1.0, p99=50.0, top=(("row 0", 50.0),))
    >>> report = cost_report_on(lots, facts, workers=4)
    >>> report.best.way, report.best.busiest
    ('balanced', 74.0)
    """

    workers: int
    unit: str
    sampled: int | None
    facts: CostFacts
    total: float
    longest: float
    forecasts: tuple[CostForecast, ...]
    recommendation: str
    code: str
    notes: tuple[str, ...] = field(default=())

    @property
    def best(self) -> CostForecast:
        """The way that is recommended, or the one with the least to do for the busiest worker."""
        return self.forecasts[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        plain = {name: value for name, value in vars(self).items() if name not in ("facts", "forecasts", "notes")}
        top = [{"row": row, "cost": cost} for row, cost in self.facts.top]
        return plain | {
            **self.facts._asdict(),
            "top": top,
            "forecasts": [forecast._asdict() for forecast in self.forecasts],
            "notes": list(self.notes),
        }

    def shown(self, cost: float) -> str:
        """A cost with its unit."""
        return duration(cost) if self.unit == "s" else f"{cost:,.4g}"

    def measured(self) -> str:
        """The measured numbers in one line."""
        rows, mean = self.facts.rows, self.total / max(1, self.facts.rows)
        how = f", {self.sampled:,} of them timed" if self.sampled is not None else ""
        numbers = {"median": self.facts.median, "mean": mean, "p99": self.facts.p99, "most": self.longest}
        return f"{rows:,} rows{how} · " + " · ".join(f"{name} {self.shown(cost)}" for name, cost in numbers.items())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        block = "#" if options.ascii_only else "━"
        yield Text("Cost of the rows", "bold")
        if self.facts.rows:
            yield Text(self.measured().replace("·", "|") if options.ascii_only else self.measured())
        if self.facts.top and self.total:
            yield Text("\nMost expensive rows", "bold")
            yield Padding(self._top_table(block), (0, 0, 0, 2))
        if self.forecasts:
            yield Text(f"\nWith {self.workers:,} workers, predicted", "bold")
            yield self._forecast_table(block)
            yield Text(LEGEND, "dim")
        yield Text.assemble("\n", (self.recommendation, "bold yellow" if "map_balanced" in self.code else "bold green"))
        for note in self.notes:
            yield Text(f"- {note}", "dim")
        if self.code:
            yield Padding(Text(self.code, "cyan"), (1, 0, 0, 2))

    def _top_table(self, block: str) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(max_width=48, no_wrap=True, overflow="ellipsis")
        for _ in range(2):
            table.add_column(justify="right", no_wrap=True)
        for row, cost in self.facts.top:
            bar = block * max(1, round(LONGEST_BAR * cost / max(self.longest, 1e-300)))
            table.add_row(Text(row), self.shown(cost), percent(cost / self.total), Text(bar, "cyan"))
        return table

    def _forecast_table(self, block: str) -> Table:
        table = Table("way", "busiest", "/ at best", "", box=None, padding=(0, 2, 0, 0))
        for column in table.columns[1:3]:
            column.justify = "right"
        worst = max(f.over_bound for f in self.forecasts)
        for f in self.forecasts:
            bar = Text(block * max(1, round(LONGEST_BAR * f.over_bound / worst)))
            bar.stylize("red" if f.over_bound > ENOUGH else "green")
            table.add_row(f.way, self.shown(f.busiest), f"{f.over_bound:.2f}x", bar)
        return table

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def cost_report_on(
    lots: CostLots,
    facts: CostFacts,
    workers: int,
    *,
    partitions: Floats | None = None,
    unit: str = "",
    sampled: int | None = None,
    call: str = "map_balanced(df, function, schema, workers={workers}, cost=...)",
) -> CostReport:
    """The report on measured costs.

    Parameters
    ----------
    lots
        The rows in groups that were formed at random.
    facts
        What was measured of them.
    workers
        W, the number of workers.
    partitions
        The cost of each partition as it is, in their order; None where it is not known.
    unit
        "s" where costs are seconds.
    sampled
        How many rows were timed, where the cost of the others is not known.
    call
        The call to recommend where balancing pays.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.report import CostFacts, CostLots, cost_report_on
    >>> lots = CostLots(rows=np.ones(1000), cost=np.ones(1000), longest=1.0)
    >>> facts = CostFacts(rows=1000, unknown=0, median=1.0, p99=1.0, top=())
    >>> print(cost_report_on(lots, facts, 4, partitions=np.full(4, 250.0)).recommendation)
    Do nothing: the partitions are even as they are; the busiest worker has 1.00 times what it must.
    """
    require_workers(workers)
    total = float(lots.cost.sum())
    found = forecast_costs(lots, workers, partitions) if total and workers > 1 else []
    way, sentence = _advise(facts.rows, workers, found)
    found.sort(key=lambda f: (f.way != way, f.busiest))
    code = {
        "balanced": f"from unskew.spark import map_balanced\n\ndone = {call.format(workers=workers)}",
        "round robin": f"df.repartition({workers}).mapInArrow(function, schema)",
        "small tasks": f"df.repartition({SMALL_TASKS * workers}).mapInArrow(function, schema)",
    }.get(way, "")
    notes = _remarks(lots, facts, workers, sampled)
    return CostReport(workers, unit, sampled, facts, total, lots.longest, tuple(found), sentence, code, tuple(notes))


def _advise(rows: int, workers: int, found: Sequence[CostForecast]) -> tuple[str, str]:
    """The way that is recommended, "" for none, and the sentence."""
    if not rows:
        return "", "Do nothing: there are no rows."
    if workers == 1:
        return "", "Do nothing: with one worker there is nothing to balance."
    if rows < workers:
        return "", f"Do nothing, or use fewer workers: {rows:,} rows leave most of {workers:,} idle."
    if not found:
        return "", "Do nothing: the rows cost nothing."
    ways = {f.way: f for f in found}
    as_it_is, balanced = ways.get("as it is"), ways["balanced"]
    round_robin, small = ways["round robin"], ways["small tasks"]
    if as_it_is is not None and as_it_is.over_bound <= ENOUGH:
        return "", (
            "Do nothing: the partitions are even as they are; the busiest worker has "
            f"{as_it_is.over_bound:.2f} times what it must."
        )
    for forecast, parts in ((round_robin, workers), (small, SMALL_TASKS * workers)):
        if forecast.over_bound <= ENOUGH:
            return forecast.way, (
                f"Use plain df.repartition({parts}): the busiest worker has {forecast.over_bound:.2f} times what it "
                "must, and no cost has to be known."
            )
    plain = min((f for f in (as_it_is, round_robin, small) if f is not None), key=lambda f: f.busiest)
    if plain.busiest < WORTHWHILE * balanced.busiest:
        return plain.way if plain.way != "as it is" else "", (
            f"Do nothing more than {plain.way}: the busiest worker has {plain.over_bound:.2f} times what it must, and "
            f"balanced {balanced.over_bound:.2f} times."
        )
    faster = plain.busiest / balanced.busiest
    return "balanced", (
        f"Use map_balanced: the busiest worker has {balanced.over_bound:.2f} times what it must, instead of "
        f"{plain.over_bound:.2f} by {plain.way}, so the work is done {faster:.1f} times as fast."
    )


def _remarks(lots: CostLots, facts: CostFacts, workers: int, sampled: int | None) -> Iterator[str]:
    mean = float(lots.cost.sum()) / workers
    if workers > 1 and facts.rows >= workers and lots.longest > mean:
        yield (
            f"The most expensive row alone is {lots.longest / mean:.1f} times the mean of a worker: nothing is faster "
            "than that row. Split it, or use fewer workers."
        )
    if facts.unknown:
        yield f"{facts.unknown:,} rows have no cost (null): they are taken as the mean of the others."
    if sampled is not None and sampled < facts.rows:
        yield (
            f"From {sampled:,} rows that were timed on the driver: rarer and more expensive rows may be missing, and "
            "map_balanced can only do as well if it is told, or learns, what rows cost."
        )
