"""POSG, Fig. 11: completion times as the stream unfolds; in the middle fast workers become slow, and slow ones fast.

The setting of the paper's Fig. 10: 150,000 tuples over 4,096 keys at 1 to 64 ms, five workers that differ by a tenth in
speed, the other way round from tuple 75,000 on. In real time that is 16 minutes; here tuples take a tenth of it. The
stream comes in 50 rounds of 3,000 tuples, and the source hears what its workers have to tell after each (see `posg`).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unskew.contract import Scheme
from unskew.experiments.deployments.metrics import Measured
from unskew.experiments.deployments.posg import IDLE, IDLE_READING, KINDS, POSG, RR, Source
from unskew.experiments.deployments.rules import CLEARLY, in_time, judged
from unskew.experiments.deployments.setup import seed_of
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, not_testable
from unskew.plots import COLOURS, new_figure
from unskew.service import Service
from unskew.streams import Costed

TUPLES, CHANGE, ROUND = 150_000, 75_000, 3_000
WORKERS = 5
BEFORE = (1.05, 1.025, 1.0, 0.975, 0.95)  # what execution times of each worker are multiplied by
AFTER = (0.90, 0.95, 1.0, 1.05, 1.10)
FASTER = 10  # times
LEAVES, TOLD = 20_978, 82_311  # tuples
WITHIN = ROUND + 0.1 * LEAVES  # a round, since the source hears nothing within one, and a tenth
AROUND = 10_000  # tuples after the change, in which the tables are outdated
SCHEMES = (RR, POSG, IDLE)
TEXTS = {
    "posg-fig11-leaves": ("on the cluster POSG leaves round robin at tuple 20,978", f"{LEAVES:,}"),
    "posg-fig11-better": ("from then on its completion time is lower", "lower"),
    "posg-fig11-degrades": ("after the change of the speeds its performance degrades", "degrades"),
    "posg-fig11-told": (
        "the source gets updated tables at tuple 82,311",
        f"{TOLD:,}, which is {TOLD - CHANGE:,} later",
    ),
    "posg-fig11-recovers": ("and POSG recovers", "recovers"),
}


class Unfolding(NamedTuple):
    """A job: one scheme on the whole stream."""

    experiment: str
    data: str
    kind: str
    scheme: Scheme
    seed: int
    long: bool = True  # whether it takes minutes
    samples: int = 1
    events: tuple[str, ...] = ()

    @property
    def task_threads(self) -> int:
        return self.scheme.workers

    def row(self, result: Measured) -> dict[str, Any]:
        return {"experiment": self.experiment, "data": self.data, **result.to_dict()}

    def run(self, spark: Any, folder: Path) -> list[Measured]:
        """Deploy it, here and now. A result per round; `told` is how many workers have sent tables, since the change
        from then on."""
        stream = Costed(tuples=TUPLES, least=0.001 / FASTER, most=0.064 / FASTER, seed=self.seed)
        chunks = list(stream.chunks(size=ROUND))
        mean = float(np.mean([np.mean(np.asarray(chunk.costs)) for chunk in chunks]))
        source, found = Source(self.scheme), []
        for number, chunk in enumerate(chunks):
            if number * ROUND == CHANGE:
                source.tables.clear()
            factors = BEFORE if number * ROUND < CHANGE else AFTER
            service = Service(WORKERS, WORKERS / mean, speeds=tuple(1 / factor for factor in factors))
            keys = np.asarray(chunk.keys).astype(np.int64)
            result = source.serve_round(spark, folder, service, keys, np.asarray(chunk.costs), self.kind, number)
            found.append(Measured(**result.to_dict() | {"told": len(set(source.tables))}))
        return found


def jobs(settings: Settings) -> list[Unfolding]:
    if settings.quick:
        return []
    return [
        Unfolding("posg-change", "150,000 tuples", kind, KINDS[kind](WORKERS), seed_of(settings, 0)) for kind in SCHEMES
    ]


class Series:
    """The rounds of all schemes."""

    def __init__(self, outcomes: Outcomes) -> None:
        found: list[Any] = [outcome.result for outcome in outcomes]
        rounds: list[Measured] = sorted(found, key=lambda result: result.repetition)
        self.of = {kind: [each for each in rounds if each.kind == kind] for kind in SCHEMES}

    def all_told(self, kind: str, first: int) -> float:
        """After how many tuples all workers had sent tables, of those sent from tuple `first` on."""
        rounds = [r for r in self.of[kind] if r.repetition * ROUND >= first and r.told == WORKERS]
        return float((rounds[0].repetition + 1) * ROUND) if rounds else float("inf")

    def mean(self, kind: str, start: float, end: float) -> float:
        """Mean completion time of the rounds between two tuples."""
        chosen = [r.latency_mean for r in self.of[kind] if start <= r.repetition * ROUND < end]
        return float(np.mean(chosen or [np.nan]))

    def ratio(self, kind: str, start: float, end: float) -> float:
        """Completion time over that of round robin."""
        return self.mean(kind, start, end) / self.mean(RR, start, end)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    if not outcomes:
        why = "It takes minutes of real time and is not part of the quick grid; fig10 of posg has it simulated."
        return [not_testable(id, *text, why) for id, text in TEXTS.items()]
    series = Series(outcomes)

    def both(value: Callable[[str], float]) -> tuple[float, float]:
        return value(POSG), value(IDLE)

    def read(id: str, values: tuple[float, float], shown: str, rule: str, holds: Callable[[float], bool]) -> Finding:
        literal, idle = values
        return judged(
            id,
            *TEXTS[id],
            shown.format(literal),
            rule,
            holds(literal),
            "",
            IDLE_READING,
            shown.format(idle),
            holds(idle),
        )

    leaves = both(lambda kind: series.all_told(kind, 0))
    told = both(lambda kind: series.all_told(kind, CHANGE))
    better = both(lambda kind: series.ratio(kind, series.all_told(kind, 0), CHANGE))
    degrades = both(
        lambda kind: series.mean(kind, CHANGE, CHANGE + AROUND) / series.mean(kind, CHANGE - 2 * AROUND, CHANGE)
    )
    recovers = both(lambda kind: series.ratio(kind, series.all_told(kind, CHANGE), TUPLES))
    near = f"within {WITHIN:,.0f} tuples, a round and a tenth of the first of the two printed numbers"
    return [
        read("posg-fig11-leaves", leaves, "at tuple {:,.0f}", near, lambda value: abs(value - LEAVES) <= WITHIN),
        read(
            "posg-fig11-better",
            better,
            "{:.2f} times that of round robin, until the change",
            f"at most 1/{CLEARLY:g} of round robin's",
            lambda value: value <= 1 / CLEARLY,
        ),
        read(
            "posg-fig11-degrades",
            degrades,
            "{:.2f} times as long in the 10,000 tuples after the change as in the 20,000 before",
            f"at least {CLEARLY:g} times as long",
            lambda value: value >= CLEARLY,
        ),
        read(
            "posg-fig11-told",
            told,
            "from all workers at tuple {:,.0f}",
            near,
            lambda value: abs(value - TOLD) <= WITHIN,
        ),
        read(
            "posg-fig11-recovers",
            recovers,
            "{:.2f} times the completion time of round robin from then on",
            f"at most 1/{CLEARLY:g} of round robin's",
            lambda value: value <= 1 / CLEARLY,
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    if not outcomes:
        return ["Not part of the quick grid."]
    figure, series = new_figure(6.4, 3.8), Series(outcomes)
    axis = figure.subplots()
    for colour, kind in zip(COLOURS, SCHEMES, strict=False):
        rounds = series.of[kind]
        axis.plot(
            [(each.repetition + 1) * ROUND for each in rounds],
            [1000 * each.latency_mean for each in rounds],
            color=colour,
            label=kind,
        )
    axis.axvline(CHANGE, color="black", linewidth=0.8, linestyle=":")
    axis.set(xlabel="tuples", ylabel="mean completion time of a round, ms", ylim=(0, None))
    axis.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return [
        Picture("posg-fig11", figure, "Completion times as the stream unfolds (Fig. 11); dotted: the speeds change.")
    ]


EXPERIMENT = Experiment("posg-change", "POSG: Figure 11, a change in mid-stream", jobs, in_time(claims), parts)
