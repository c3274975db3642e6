"""What the deployments share: a run of one scheme on Spark, medians over repetitions, and how they are told.

Sources are tasks that make rows and route them, each with a router of its own (`unskew.spark.repartition`, online).
After the shuffle each worker is a task that serves its rows in the order in which they came, in real time, by sleeping.
Every repetition has other keys, which is another set of hash functions, and another stream; all schemes of a repetition
get the same one.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unskew.contract import Scheme
from unskew.experiments.deployments.metrics import Ints, Measured, Outcome, measured
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Part, Settings, Table
from unskew.experiments.words import median
from unskew.service import Service
from unskew.streams import Stream

APART = 1 << 40  # between the keys of two repetitions: none is the same
SOURCES = 8
Kinds = Mapping[str, Callable[[int], Scheme]]  # a scheme's name in the paper -> the scheme for a number of workers


class Deployment(NamedTuple):
    """A job: one repetition of one scheme at one point of a figure."""

    experiment: str
    data: str  # the point
    kind: str
    scheme: Scheme
    stream: Stream
    row_cost: float  # seconds
    service: Service
    repetition: int
    sources: int = SOURCES
    rounds: int = 0  # in which a scheme that listens learns from its workers before
    round_rows: int = 0  # of each of them
    long: bool = False  # whether it takes minutes
    samples: int = 1
    events: tuple[str, ...] = ()

    @property
    def task_threads(self) -> int:
        """Task threads that it needs at the same time: sources are done before workers start."""
        return self.service.workers

    def row(self, result: Measured) -> dict[str, Any]:
        return {"experiment": self.experiment, "data": self.data, **result.to_dict()}

    def run(self, spark: Any, folder: Path) -> list[Measured]:
        """Deploy it, here and now."""
        from unskew.spark import Feedback, repartition, serve, serve_timed, source_rows

        workers, told = self.service.workers, 0
        keys = keys_of(self.stream, self.repetition)
        scheme: Any = self.scheme
        if self.rounds:
            scheme = Feedback(self.scheme)
            for number in range(self.rounds):
                some = np.roll(keys, -number * self.round_rows)[: self.round_rows]
                rows = source_rows(spark, some, np.full(len(some), self.row_cost), self.sources)
                serve_timed(partial(repartition, rows, "key", workers, scheme), self.service, scheme)
                told += 1
        rows = source_rows(spark, keys, np.full(len(keys), self.row_cost), self.sources)
        place = partial(repartition, rows, "key", workers, scheme, mode="online")
        found = outcome_of(serve(place, self.service, folder))
        rate, pending = self.service.rate, self.service.pending
        return [measured(self.kind, workers, self.repetition, keys, found, rate, pending, told=told)]


def outcome_of(served: Any) -> Outcome:
    return Outcome(*(getattr(served, name) for name in Outcome._fields))


def keys_of(stream: Stream, repetition: int) -> Ints:
    """The keys of a stream, other ones in each repetition."""
    keys = np.concatenate([np.asarray(chunk.key_ids()).view(np.int64) for chunk in stream.chunks()])
    return keys ^ np.int64(repetition * APART + repetition)


def repetitions(settings: Settings, whole: int, quick: int) -> range:
    return range(int(settings.pick(whole, quick)))


def seed_of(settings: Settings, repetition: int) -> int:
    return 1000 * settings.seed + repetition


class Cell(NamedTuple):
    """All repetitions of all schemes at one point; numbers are medians over the repetitions."""

    data: str
    of: dict[str, list[Measured]]

    def each(self, kind: str, name: str) -> list[float]:
        return [float(getattr(result, name)) for result in self.of[kind]]

    def get(self, kind: str, name: str) -> float:
        return median(self.each(kind, name))

    def ratios(self, above: str, below: str, name: str) -> list[float]:
        """Of two schemes, in each repetition: they had the same rows."""
        return [a / b for a, b in zip(self.each(above, name), self.each(below, name), strict=True)]

    def ratio(self, above: str, below: str, name: str) -> float:
        return median(self.ratios(above, below, name))


def cells_of(outcomes: Outcomes, kinds: Iterable[str]) -> dict[str, Cell]:
    """The cells of a grid by point, in the order of the grid."""
    found: dict[str, Cell] = {}
    for outcome in outcomes:
        result: Any = outcome.result
        found.setdefault(outcome.job.data, Cell(outcome.job.data, {})).of.setdefault(result.kind, []).append(result)
    return {data: Cell(data, {kind: of[kind] for kind in kinds if kind in of}) for data, of in found.values()}


def spread(values: list[float], shown: Callable[[float], str] = "{:.2f}".format) -> str:
    """The median, and the range where there are several."""
    if len(values) == 1:
        return shown(values[0])
    return f"{shown(median(values))} ({shown(min(values))} to {shown(max(values))})"


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"


def per_second(rate: float) -> str:
    return f"{rate:,.0f}"


def of_kinds(cell: Cell, name: str, shown: Callable[[float], str], kinds: Iterable[str] = ()) -> str:
    """A number of each scheme, or of those named: ``KG 561, PKG 801``."""
    return ", ".join(f"{kind} {shown(cell.get(kind, name))}" for kind in kinds or cell.of)


def table_of(cells: Mapping[str, Cell], caption: str) -> Part:
    """What was measured, and what it cost to measure it."""
    heads = [
        "point",
        "scheme",
        "workers",
        "rows per second",
        "mean latency",
        "99th percentile",
        "busiest worker over mean",
        "replicas",
        "woke up late, 99th percentile",
        "until all tasks had started",
        "whole job",
    ]
    rows = [
        [
            cell.data,
            kind,
            cell.of[kind][0].workers,
            spread(cell.each(kind, "throughput"), per_second),
            milliseconds(cell.get(kind, "latency_mean")),
            milliseconds(cell.get(kind, "latency_p99")),
            f"{cell.get(kind, 'busiest'):.2f}",
            f"{cell.get(kind, 'replicas'):,.0f}",
            milliseconds(cell.get(kind, "late_p99")),
            f"{cell.get(kind, 'starting'):.1f} s",
            f"{cell.get(kind, 'wall'):.1f} s",
        ]
        for cell in cells.values()
        for kind in cell.of
    ]
    return Table(f"{caption} Medians; rows per second with the range over repetitions.", heads, rows)


def capacity_rate(workers: int, row_cost: float, utilisation: float) -> float:
    """Rows per second at which all workers together are so busy."""
    return utilisation * workers / row_cost
