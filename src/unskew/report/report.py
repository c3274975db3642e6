"""The report: numbers, forecasts and advice in one object that prints, goes to a notebook and to JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from unskew.checks import require_workers
from unskew.registry import lookup
from unskew.report.advice import ENOUGH, Advice, advise, purpose, reason, remarks
from unskew.report.costs import Work, check_work, duration, seconds
from unskew.report.counts import KeyCounts, TopKey, ZipfFit, percent
from unskew.report.forecast import MOST_WORKERS, WHOLE, Forecast, forecasts
from unskew.report.printing import as_html, as_text

SHOWN = 10  # top keys
NOT_IN_DICT = ("counts", "advice", "for_", "reasons", "seconds")  # or under another name
LONGEST_BAR = 30  # characters
SHORTEST_BAR = 6
TABLE = 73  # characters beside the bars
TIME = 8  # more where times are shown
LEGEND = (
    "max/mean: rows of the busiest worker over the mean. straggler: how much longer the stage takes than with perfect "
    "balance, merging of partial results included. replicas: (worker, key) pairs. Spark's hash: df.repartition(W, key)."
    " whole: apply_whole, which places keys and splits none."
)


@dataclass(frozen=True)
class Report:
    """How skewed the keys are, what each scheme would make of it with W workers, and a recommendation.

    Made by `report_on`. Print it, show it in a notebook, or take `to_dict` for JSON. With a `sample` below 1, `tuples`
    and the counts are those of the sample; `recommendation` and `notes` say what is an estimate.

    Attributes
    ----------
    columns, workers, for_, sample
        What was asked: the key columns, W, the purpose, and the share of the rows that was counted.
    row_cost
        Seconds per row, where it is known.
    tuples, keys, p1
        How many rows and distinct keys there are, and the share of the hottest key.
    top, zipf
        The most frequent keys, and the Zipf law that fits them best, if one does.
    most_workers_one_choice, most_workers_two_choices
        1/p1 and 2/p1: with more workers the hottest key alone overloads its worker, or the two that PKG gives it.
    forecasts, reasons
        What each scheme would do, and why it is recommended or not. The recommended one is first, the others follow by
        straggler factor.
    seconds
        What the stage takes by each forecast, where `row_cost` is known.
    advice, notes
        The recommendation, and what else to know.
    counts
        What was counted of the keys.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import key_ids
    >>> from unskew.report import KeyCounts, report_on
    >>> report = report_on(KeyCounts.of(key_ids(["the", "cat"]), np.array([9000, 1000])), workers=1)
    >>> print(report.recommendation)
    Do nothing: with one worker there is nothing to balance.
    """

    columns: tuple[str, ...]
    workers: int
    for_: str | None
    sample: float
    row_cost: float | None
    tuples: int
    keys: int
    p1: float
    top: tuple[TopKey, ...]
    zipf: ZipfFit | None
    most_workers_one_choice: int | None
    most_workers_two_choices: int | None
    forecasts: tuple[Forecast, ...]
    reasons: tuple[str, ...]
    seconds: tuple[float | None, ...]
    advice: Advice
    notes: tuple[str, ...]
    counts: KeyCounts = field(repr=False)

    @property
    def recommendation(self) -> str:
        return self.advice.sentence

    @property
    def code(self) -> str:
        """The call to make, empty where nothing is to be done."""
        if self.advice.scheme is None:
            return ""
        keys = repr(self.columns[0]) if len(self.columns) == 1 else repr(list(self.columns))
        if self.advice.scheme == WHOLE:
            call = f"apply_whole(df, {keys}, function, schema, workers={self.workers})"
            return f"from unskew.spark import apply_whole\n\nresult = {call}"
        how = f'workers={self.workers}, scheme="{self.advice.scheme}"'
        if self.advice.mode != lookup(self.advice.scheme).modes[0]:
            how += f', mode="{self.advice.mode}"'
        if self.for_ == "stateful":
            return f"from unskew.spark import add_salt\n\nrouted = add_salt(df, {keys}, {how})"
        return (
            f"from unskew.spark import apply_split\n\nresult = apply_split(df, {keys}, partial, merge, schema, {how})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        found = {name: value for name, value in vars(self).items() if name not in NOT_IN_DICT}
        return found | {
            "for": self.for_,
            "columns": list(self.columns),
            "top": [asdict(key) for key in self.top],
            "zipf": None if self.zipf is None else self.zipf._asdict(),
            "forecasts": [
                forecast.to_dict() | {"reason": why, "seconds": taken}
                for forecast, why, taken in zip(self.forecasts, self.reasons, self.seconds, strict=True)
            ],
            "break_even_row_cost": self.advice.break_even,
            "notes": list(self.notes),
            "recommendation": self.recommendation,
            "recommended_scheme": self.advice.scheme,
            "recommended_mode": self.advice.mode,
        }

    def facts(self) -> str:
        """The measured numbers in one line."""
        estimated = f", a sample of {self.sample:.3g}" if self.sample < 1 else ""
        least = "at least " if self.sample < 1 else ""
        fit = f" · Zipf exponent {self.zipf.exponent:.2f} (R² {self.zipf.r_squared:.2f})" if self.zipf else ""
        hottest = f" · hottest {percent(self.p1)}" if self.tuples else ""
        return f"{self.tuples:,} rows{estimated} · {least}{self.keys:,} keys{hottest}{fit}"

    def bounds(self) -> str:
        """How many workers can be kept busy, from p1."""
        if self.most_workers_one_choice is None:
            return ""
        return (
            f"Because of the hottest key, one choice per key (hash) can balance at most "
            f"{self.most_workers_one_choice:,} workers, two choices (PKG) at most {self.most_workers_two_choices:,}; "
            f"you ask about {self.workers:,}."
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        block = "#" if options.ascii_only else "━"
        room = options.max_width - TABLE - TIME * (self.row_cost is not None)
        bar = min(LONGEST_BAR, room) if room >= SHORTEST_BAR else 0
        yield Text.assemble(("Skew of ", "bold"), (", ".join(self.columns), "bold cyan"))
        yield Text(self.facts() if not options.ascii_only else self.facts().replace("·", "|").replace("R²", "R2"))
        if self.top:
            yield Text("\nHottest keys", "bold")
            yield Padding(self._top_table(block, LONGEST_BAR), (0, 0, 0, 2))
            yield Text(f"\n{self.bounds()}")
        if self.forecasts:
            yield Text(f"\nWith {self.workers:,} workers, predicted", "bold")
            yield self._forecast_table(block, bar)
            yield Text(LEGEND, "dim")
        elif self.workers > MOST_WORKERS:
            yield Text(f"\nSchemes are not simulated with more than {MOST_WORKERS:,} workers.", "dim")
        yield Text.assemble("\n", (self.recommendation, "bold yellow" if self.advice.scheme else "bold green"), "\n")
        yield _bullets(self.notes)
        if self.code:
            yield Padding(Text(self.code, "cyan"), (1, 0, 0, 2))

    def _top_table(self, block: str, longest: int) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(max_width=48, no_wrap=True, overflow="ellipsis")
        for _ in range(2):
            table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
        for key in self.top:
            bar = block * max(1, round(longest * key.share / self.top[0].share))
            table.add_row(Text(key.key), f"{key.count:,}", percent(key.share), Text(bar, "cyan"))
        return table

    def _forecast_table(self, block: str, longest: int) -> Table:
        headers, rows = self.table()
        table = Table(*headers, *([""] if longest else []), box=None, padding=(0, 1, 0, 0))
        for column in table.columns:
            column.no_wrap = True
            column.justify = "left" if column.header in ("scheme", "verdict", "") else "right"
        worst = max(f.straggler for f in self.forecasts)
        for f, row, why in zip(self.forecasts, rows, self.reasons, strict=True):
            bar = Text(block * max(1, round(longest * f.straggler / worst)), "red" if f.straggler > ENOUGH else "green")
            table.add_row(*row, *([bar] if longest else []), style="bold" if why == "recommended" else "")
        return table

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The forecasts as headers and rows of text."""
        headers = ["scheme", "max/mean", "straggler", "replicas", "per key", "verdict"]
        rows = [
            [
                self.label(f),
                f"{f.max_over_mean:.2f}",
                f"{f.straggler:.2f}x",
                f"{f.replicas:,}",
                f"{f.replicas / max(1, self.keys):.2f}",
                why,
            ]
            for f, why in zip(self.forecasts, self.reasons, strict=True)
        ]
        if self.row_cost is not None:
            headers.insert(2, "time")
            for row, taken in zip(rows, self.seconds, strict=True):
                row.insert(2, duration(taken or 0.0))
        return headers, rows

    def label(self, forecast: Forecast) -> str:
        """The scheme, with its mode where it is there in two."""
        if forecast.mode == "spark":
            return "Spark's hash"
        twice = sum(other.scheme == forecast.scheme for other in self.forecasts) > 1
        return f"{forecast.scheme} ({forecast.mode})" if twice else forecast.scheme

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def _bullets(lines: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    for line in lines:
        table.add_row("-", Text(line), style="dim")
    return table


def report_on(
    counts: KeyCounts,
    workers: int,
    *,
    for_: str | None = None,
    columns: Sequence[str] = ("key",),
    sample: float = 1.0,
    row_cost: float | None = None,
    cores: int | None = None,
) -> Report:
    """The report on measured frequencies.

    Parameters
    ----------
    counts
        How often the keys occur.
    workers
        W, the number of workers.
    for_
        What the keys are grouped for: one of `PURPOSES`. It decides what a replica costs.
    columns
        The names of the key columns, to show.
    sample
        The share of the rows that was counted.
    row_cost, cores
        Seconds of work per row, and cores that do it: where they are known, the report says seconds too.

    Examples
    --------
    One of 101 keys has most tuples:

    >>> import numpy as np
    >>> from unskew import key_ids
    >>> from unskew.report import KeyCounts, report_on
    >>> counts = KeyCounts.of(key_ids(np.arange(101)), np.array([400] + 100 * [1]))
    >>> report = report_on(counts, workers=8, for_="python")
    >>> [round(forecast.max_over_mean, 1) for forecast in report.forecasts if forecast.scheme == "hash"][:1]
    [6.5]
    >>> report.advice.scheme is None
    False
    """
    require_workers(workers)
    work = Work(row_cost, workers if cores is None else cores)
    check_work(row_cost, cores)
    found = forecasts(counts, workers, purpose(for_).merge_cost)
    advice = advise(counts, workers, found, for_, work)
    found.sort(key=lambda f: (f.scheme, f.mode) != (advice.scheme, advice.mode))
    top = counts.top
    hottest = int(top.counts[0]) if counts.tuples else 0
    return Report(
        columns=tuple(columns),
        workers=workers,
        for_=for_,
        sample=sample,
        row_cost=row_cost,
        tuples=counts.tuples,
        keys=counts.keys,
        p1=counts.p1,
        top=tuple(
            TopKey(name, int(count), int(count) / counts.tuples)
            for name, count in zip(top.names[:SHOWN], top.counts[:SHOWN], strict=True)
        ),
        zipf=counts.zipf(),
        most_workers_one_choice=counts.tuples // hottest if hottest else None,
        most_workers_two_choices=2 * counts.tuples // hottest if hottest else None,
        forecasts=tuple(found),
        reasons=tuple(reason(f, advice, found, counts.keys, for_) for f in found),
        seconds=tuple(seconds(f, counts, workers, work) for f in found),
        advice=advice,
        notes=tuple(remarks(counts, workers, advice, found, for_, sample)),
        counts=counts,
    )
