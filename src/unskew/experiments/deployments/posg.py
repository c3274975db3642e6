"""POSG, Fig. 12: mentions of entities are enriched, at 25, 5 or 1 ms by the entity's class, on k = 2 to 10 workers.

As in the paper: 35,000 entities, the hottest with 6.5 % of the mentions (Zipf 0.9), one source. A third of the entities
is of each class, at random; the paper does not tell. Mentions come exactly as fast as k workers can take them, the
100 % over-provisioning of section V-A. A worker serves its mentions in the order in which they came.

On Spark a source and its workers do not talk while tasks run. So the stream comes in rounds, one Spark job each. The
source routes a round mention by mention, and hears what its workers have to tell (tables and replies, by the measured
times) after the round. POSG starts as round robin; rounds go on until it knows its workers, and only what comes then is
measured, as the paper measures a stream that is 50 times as long as its beginning. Every round starts with empty
queues, for all schemes alike.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unskew import Router, key_ids
from unskew.contract import Scheme
from unskew.experiments.deployments.metrics import Floats, Ints, Measured, measured, spells
from unskew.experiments.deployments.pictures import lines
from unskew.experiments.deployments.rules import in_time, judged
from unskew.experiments.deployments.setup import (
    Cell,
    Kinds,
    cells_of,
    milliseconds,
    of_kinds,
    outcome_of,
    seed_of,
    table_of,
)
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.schemes.full_knowledge import FullKnowledge
from unskew.schemes.posg import ROUND_ROBIN, Posg
from unskew.schemes.posg_worker import Matrices
from unskew.schemes.shuffle import Shuffle
from unskew.service import Service
from unskew.streams import Zipf
from unskew.worker_half import WorkerHalf

RR, POSG, IDLE, FULL = "round robin", "POSG", "POSG (idle)", "full knowledge"
KINDS: Kinds = {RR: Shuffle, POSG: Posg, IDLE: lambda workers: Posg(workers, count_idle=True), FULL: FullKnowledge}
ENTITIES, EXPONENT = 35_000, 0.9
CLASSES = np.array([0.025, 0.005, 0.001])  # seconds
WORKERS, QUICK_WORKERS = tuple(range(2, 11)), (2, 10)  # k
LEARNING_ROWS, ROWS = 1600, 1000  # of a round, per worker
MOST_LEARNING = 6  # rounds
MEASURED, QUICK_MEASURED = 3, 2  # rounds
MEAN, AT_10 = 1.37, 0.16
CLOSE = 0.05  # of a speed-up, as on the page about the simulations
IDLE_READING = (
    "the time that a worker had nothing to do counts in its cumulated time (see fig5-peak of posg): else a worker that "
    "is behind in work gets everything until it has caught up"
)


class Enrichment(NamedTuple):
    """A job: one scheme on k workers, until it knows them, and the rounds that are measured."""

    experiment: str
    data: str
    kind: str
    scheme: Scheme
    rounds: int
    seed: int
    learning_rows: int = LEARNING_ROWS
    rows: int = ROWS
    long: bool = True  # whether it takes minutes
    samples: int = 1
    events: tuple[str, ...] = ()

    @property
    def workers(self) -> int:
        return self.scheme.workers

    @property
    def task_threads(self) -> int:
        return self.workers

    def row(self, result: Measured) -> dict[str, Any]:
        return {"experiment": self.experiment, "data": self.data, **result.to_dict()}

    def mentions(self, number: int, rows: int) -> tuple[Ints, Floats]:
        """Entities of a round and what each mention costs; the same for all schemes."""
        classes = np.random.default_rng([self.seed, 7]).integers(0, 3, ENTITIES + 1)
        stream = Zipf(EXPONENT, ENTITIES, rows * self.workers, seed=1000 * self.seed + number)
        keys = np.concatenate([chunk.keys for chunk in stream.chunks()]).astype(np.int64)
        return keys, CLASSES[classes[keys]]

    def run(self, spark: Any, folder: Path) -> list[Measured]:
        """Deploy it, here and now."""
        source = Source(self.scheme)
        number, learnt = 0, not source.learns
        while not learnt and number < MOST_LEARNING:
            learnt = not source.learns  # one more round, in which the synchronisation ends
            self._round(spark, folder, source, *self.mentions(100 + number, self.learning_rows))
            number += 1
        return [
            self._round(spark, folder, source, *self.mentions(number, self.rows), number)
            for number in range(self.rounds)
        ]

    def _round(
        self, spark: Any, folder: Path, source: "Source", keys: Ints, costs: Floats, number: int = 0
    ) -> Measured:
        service = Service(self.workers, float(self.workers / costs.mean()))
        return source.serve_round(spark, folder, service, keys, costs, self.kind, number)


class Source:
    """The source of a stream in rounds: its router, and what the worker halves make of the times that were measured."""

    def __init__(self, scheme: Scheme) -> None:
        self.router = Router(scheme)
        self.told = 0  # messages that it has heard
        self.tables: list[int] = []  # the worker of each message that brought tables
        self._half = WorkerHalf(scheme, scheme.workers) if self.router.converses else None
        self._since = np.zeros(scheme.workers)  # when each worker was done last, before the beginning of a round

    @property
    def learns(self) -> bool:
        """Whether it is still round robin, since not all workers have sent tables yet."""
        return self._half is not None and int(self.router.state.phase[0]) == ROUND_ROBIN

    def serve_round(
        self, spark: Any, folder: Path, service: Service, keys: Ints, costs: Floats, kind: str, number: int
    ) -> Measured:
        """Route the rows of a round, let Spark's workers serve them, and hear what these have to tell."""
        from unskew.spark import place_at, serve, source_rows

        times = np.arange(len(keys)) / service.rate
        chosen, tickets = self.router.send(key_ids(keys), times, costs)
        rows = source_rows(spark, keys, costs, 1, chosen)
        found = outcome_of(serve(lambda: place_at(rows, service.workers), service, folder))
        self.hear_of(keys, found.worker, found.finished, times, tickets)
        return measured(kind, service.workers, number, keys, found, service.rate, told=self.told)

    def hear_of(self, keys: Ints, worker: Ints, finished: Floats, comes: Floats, tickets: Any) -> None:
        """Take in a round: rows by key, with who did them, when they were done, and when they came."""
        seconds, waited, last = spells(worker, finished, comes, self._since)
        self._since = last - finished.max()
        if self._half is None:
            return
        order = np.argsort(finished, kind="stable")
        columns = (
            key_ids(keys)[order],
            seconds[order],
            worker[order].astype(np.int64),
            None,
            tickets[order],
            waited[order],
        )
        for message in self._half.execute(*columns):
            self.router.hear(message.worker, message.content)
            self.told += 1
            if isinstance(message.content, Matrices):
                self.tables.append(message.worker)


def point(workers: int) -> str:
    return f"k={workers}"


def jobs(settings: Settings) -> list[Enrichment]:
    rounds = settings.pick(MEASURED, QUICK_MEASURED)
    return [
        Enrichment("posg", point(workers), kind, scheme(workers), rounds, seed_of(settings, 0))
        for workers in settings.pick(WORKERS, QUICK_WORKERS)
        for kind, scheme in KINDS.items()
    ]


def speed_up(cell: Cell, kind: str) -> float:
    """The mean completion time of round robin over that of `kind`, over all rounds."""
    return float(np.mean(cell.each(RR, "latency_mean")) / np.mean(cell.each(kind, "latency_mean")))


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = list(cells_of(outcomes, KINDS).values())
    gains = {kind: {cell.data: speed_up(cell, kind) for cell in cells} for kind in (POSG, IDLE, FULL)}
    mean = {kind: float(np.mean(list(values.values()))) for kind, values in gains.items()}
    first, last = cells[0].data, cells[-1].data

    def shown(kind: str) -> str:
        return ", ".join(f"{data}: {value:.2f}" for data, value in gains[kind].items())

    def at_last(kind: str) -> bool:
        return 1 + AT_10 - CLOSE <= gains[kind][last] <= 1 / (1 - AT_10) + CLOSE

    def falls(kind: str) -> bool:
        times = [float(np.mean(cell.each(kind, "latency_mean"))) for cell in cells]
        return times == sorted(times, reverse=True)

    full = f"; full knowledge: {shown(FULL)}, mean {mean[FULL]:.2f}"
    return [
        judged(
            "posg-fig12",
            "the mean speed-up of POSG over round robin is 1.37 for k = 2 to 10",
            "1.37",
            f"{mean[POSG]:.2f}; {shown(POSG)}{full}",
            f"the mean over k within {CLOSE:g} of 1.37",
            abs(mean[POSG] - MEAN) <= CLOSE,
            "What there is to gain: full knowledge is told the cost of each mention.",
            IDLE_READING,
            f"{mean[IDLE]:.2f}; {shown(IDLE)}",
            abs(mean[IDLE] - MEAN) <= CLOSE,
        ),
        judged(
            "posg-fig12-each",
            "POSG has a lower completion time than round robin for all k but 1",
            "lower for k = 2 to 10",
            shown(POSG),
            "a speed-up above 1 for each k",
            min(gains[POSG].values()) > 1,
            "",
            IDLE_READING,
            shown(IDLE),
            min(gains[IDLE].values()) > 1,
        ),
        judged(
            "posg-fig12-10",
            "with k = 10 POSG still improves the completion time by 16 %",
            "16 %",
            f"{gains[POSG][last]:.2f} times as fast",
            f"from {1 + AT_10:.2f} (16 % more speed) to {1 / (1 - AT_10):.2f} (16 % less time), give or take {CLOSE:g}",
            at_last(POSG),
            "",
            IDLE_READING,
            f"{gains[IDLE][last]:.2f} times as fast",
            at_last(IDLE),
        ),
        judged(
            "posg-fig12-gap",
            "more workers decrease the gap between POSG and round robin",
            "the gap decreases with k",
            f"{first}: {gains[POSG][first]:.2f}, {last}: {gains[POSG][last]:.2f}",
            "a lower speed-up with most workers than with two",
            gains[POSG][last] < gains[POSG][first],
            "With full knowledge it is the other way round: k workers that share their queues wait a k-th as long.",
            IDLE_READING,
            f"{first}: {gains[IDLE][first]:.2f}, {last}: {gains[IDLE][last]:.2f}",
            gains[IDLE][last] < gains[IDLE][first],
        ),
        judged(
            "posg-fig12-falls",
            "POSG's completion time always decreases with growing k",
            "always decreases",
            "; ".join(f"{cell.data}: {of_kinds(cell, 'latency_mean', milliseconds)}" for cell in cells),
            "the mean completion time falls from each k to the next",
            falls(POSG),
            "Here the rate grows with k; the paper does not tell whether its did.",
            IDLE_READING,
            "; ".join(f"{cell.data}: {of_kinds(cell, 'latency_mean', milliseconds, (IDLE,))}" for cell in cells),
            falls(IDLE),
        ),
        judged(
            "posg-messages",
            "POSG exchanges few messages",
            "916 for 500,000 tuples, 0.18 %",
            ", ".join(f"{cell.data}: {max(cell.each(POSG, 'told')):.0f}" for cell in cells),
            "at most 1 % of the mentions that were routed, for each k",
            all(max(cell.each(POSG, "told")) <= 0.01 * _routed(cell) for cell in cells),
        ),
    ]


def _routed(cell: Cell) -> int:
    """Mentions of the rounds that were measured; there were more before."""
    return sum(result.rows for result in cell.of[POSG])


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells = cells_of(outcomes, KINDS)
    workers = [float(cell.of[RR][0].workers) for cell in cells.values()]
    panels = {"latency_mean": "mean completion time, s"}
    figure = lines(list(cells.values()), workers, "workers k", panels, list(KINDS))
    return [
        Picture("posg-fig12", figure, "Mean completion time of a mention (Fig. 12); median and range over rounds."),
        table_of(
            cells, "Mentions of 35,000 entities at 25, 5 and 1 ms, workers exactly busy; a round is a repetition."
        ),
    ]


EXPERIMENT = Experiment("posg", "POSG: Figure 12, an application", jobs, in_time(claims), parts)
