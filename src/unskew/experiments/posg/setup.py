"""What the experiments on POSG share: the streams of section V-A, the schemes, and means over streams."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unskew.contract import Scheme
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Settings
from unskew.schemes.full_knowledge import FullKnowledge
from unskew.schemes.posg import Posg
from unskew.schemes.shuffle import Shuffle
from unskew.simulate import Queues, Result
from unskew.streams import Costed

STREAMS, QUICK_STREAMS = 100, 8
KEYS, TUPLES = 4096, 32_768
MILLISECOND = 0.001
WORKERS = 5  # k
RR, POSG, IDLE, FULL = "round robin", "POSG", "POSG (idle)", "full knowledge"
Kinds = Mapping[str, Callable[[int], Scheme]]  # a scheme's name in the reports -> the scheme for a number of workers
BOTH: Kinds = {RR: Shuffle, POSG: Posg, IDLE: lambda workers: Posg(workers, count_idle=True)}
ALL: Kinds = {**BOTH, FULL: FullKnowledge}


class Point(NamedTuple):
    """One place on the x axis of a figure: so many streams under the same conditions."""

    x: float
    z: float = 1.0
    over: float = 100.0  # over-provisioning in percent
    values: int = 64  # w_n
    most: int = 64  # w_max, in milliseconds
    workers: int = WORKERS

    @property
    def queues(self) -> Queues:
        """Tuples come so fast that the workers can do `over` percent of the work that comes."""
        return Queues(utilisation=100.0 / self.over)

    def stream(self, seed: int, tuples: int | None = None) -> Costed:
        """One of the streams: other costs for the keys, and other tuples, for each seed."""
        tuples = TUPLES if tuples is None else tuples
        return Costed(self.z, KEYS, tuples, self.values, MILLISECOND, self.most * MILLISECOND, seed=seed)


def jobs_of(experiment: str, points: Sequence[Point], kinds: Kinds, settings: Settings) -> list[Job]:
    """One job for each point and stream."""
    streams = settings.pick(STREAMS, QUICK_STREAMS)
    return [
        Job(
            experiment,
            f"{point.x:g} #{number}",
            point.stream(1000 * settings.seed + number),
            tuple(kind(point.workers) for kind in kinds.values()),
            queues=point.queues,
        )
        for point in points
        for number in range(streams)
    ]


class Cell(NamedTuple):
    """All streams of one point, with all schemes."""

    point: Point
    of: dict[str, list[Result]]  # by scheme, in the order of the streams

    def times(self, name: str) -> list[float]:
        """The mean completion time of each stream, in milliseconds."""
        return [1000.0 * (result.latency_mean or 0.0) for result in self.of[name]]

    def time(self, name: str) -> float:
        """The mean over all streams."""
        return float(np.mean(self.times(name)))

    def speed_ups(self, name: str) -> list[float]:
        """S_L of each stream: completion time of round robin over that of this scheme."""
        return [rr / own for rr, own in zip(self.times(RR), self.times(name), strict=True)]

    def speed_up(self, name: str) -> float:
        """The mean over all streams."""
        return float(np.mean(self.speed_ups(name)))


def cells_of(outcomes: Outcomes, points: Sequence[Point], kinds: Kinds) -> list[Cell]:
    """The cells of the grid that `jobs_of` makes."""
    found = []
    for point in points:
        here = Outcomes(o for o in outcomes if o.job.data.startswith(f"{point.x:g} #"))
        of = {name: here.results(**_choice(kind(point.workers))) for name, kind in kinds.items()}
        found.append(Cell(point, of))
    return found


def _choice(scheme: Any) -> dict[str, Any]:
    names = {Shuffle: "shuffle", Posg: "posg", FullKnowledge: "full_knowledge"}
    return {"scheme": names[type(scheme)], **scheme._asdict()}


class Sweep(NamedTuple):
    """A figure that changes one condition, with the same schemes at each point."""

    experiment: str
    kinds: Kinds
    condition: str  # a field of Point
    whole: Sequence[float]  # its values in the whole grid,
    quick: Sequence[float]  # and in the quick one

    def points(self, settings: Settings) -> list[Point]:
        return [Point(**{"x": value, self.condition: value}) for value in settings.pick(self.whole, self.quick)]

    def jobs(self, settings: Settings) -> list[Job]:
        return jobs_of(self.experiment, self.points(settings), self.kinds, settings)

    def cells(self, outcomes: Outcomes, settings: Settings) -> list[Cell]:
        return cells_of(outcomes, self.points(settings), self.kinds)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Mean, lowest and highest."""
    return f"{np.mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def of_points(cells: Sequence[Cell], name: str, label: str = "{:g}") -> str:
    """The mean speed-up at each point, for a claim."""
    return ", ".join(f"{label.format(cell.point.x)}: {cell.speed_up(name):.2f}" for cell in cells)
