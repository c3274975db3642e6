"""What is measured of a deployment: throughput, latency and memory, from the moments at which rows were done."""

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Measured:
    """One run of one scheme. Seconds are of the clock, counted from the moment when all workers had started."""

    kind: str  # the scheme, as the paper calls it
    workers: int
    repetition: int
    rows: int
    makespan: float  # until the last row was done
    throughput: float  # rows per second until then
    latency_mean: float  # seconds from the moment a row comes until it is done
    latency_p50: float
    latency_p99: float
    busiest: float  # the highest number of rows of a worker over the mean
    replicas: int  # (worker, key) pairs
    held: float  # counters of a worker, on average over its rows
    sent: int  # counters that were sent away
    late_p99: float  # seconds by which workers woke up too late: what a busy machine adds
    starting: float  # seconds that routing, the shuffle and the start of the tasks took before
    wall: float  # seconds of the whole Spark job
    moved: float = 0.0  # state that changed its worker before the first row, over one worker's share
    keys_moved: float = 0.0  # keys that did, as a share of all
    phase: str = ""  # of a job that goes through several
    told: int = 0  # messages of workers that the scheme had heard

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Outcome(NamedTuple):
    """Where the rows of a run went, and when they were done, in the order in which they came."""

    worker: Ints
    finished: Floats
    late: Floats
    held: Ints
    sent: Ints
    starting: float
    wall: float


def moments_of_arrival(finished: Floats, rate: float = math.inf, pending: int = 0) -> Floats:
    """When each row came: at the rate, and not before all but `pending` of the rows before it were done.

    Row i may come when i - pending + 1 rows are done, whichever they are: at the moment when the last of the first so
    many was done.
    """
    rows = len(finished)
    comes = np.arange(rows) / rate
    if pending and rows > pending:
        comes[pending:] = np.maximum(comes[pending:], np.sort(finished)[: rows - pending])
    return comes


def pairs_of(worker: Ints, keys: Ints) -> int:
    """How many (worker, key) pairs there are."""
    return len(np.unique(np.stack([worker.astype(np.int64), keys]), axis=1).T)


def measured(
    kind: str,
    workers: int,
    repetition: int,
    keys: Ints,
    found: Outcome,
    rate: float = math.inf,
    pending: int = 0,
    **more: Any,
) -> Measured:
    """What is told of a run."""
    rows, makespan = len(keys), float(found.finished.max())
    latency = found.finished - moments_of_arrival(found.finished, rate, pending)
    load = np.bincount(found.worker, minlength=workers)
    of_worker = np.bincount(found.worker, found.held, workers) / np.maximum(load, 1)
    last = np.zeros(workers, np.int64)
    np.maximum.at(last, found.worker, found.sent)
    return Measured(
        kind=kind,
        workers=workers,
        repetition=repetition,
        rows=rows,
        makespan=makespan,
        throughput=rows / makespan,
        latency_mean=float(latency.mean()),
        latency_p50=float(np.quantile(latency, 0.5)),
        latency_p99=float(np.quantile(latency, 0.99)),
        busiest=float(load.max() / load.mean()),
        replicas=pairs_of(found.worker, keys),
        held=float(of_worker.mean()),
        sent=int(last.sum()),
        late_p99=float(np.quantile(found.late, 0.99)),
        starting=found.starting,
        wall=found.wall,
        **more,
    )


def spells(worker: Ints, finished: Floats, comes: Floats, since: Floats) -> tuple[Floats, Floats, Floats]:
    """How long each row took its worker, how long that one had nothing to do before, and when each worker ended.

    Rows are in the order in which they came. `since` is when each worker was done with what was before.
    """
    seconds, waited, last = np.empty(len(finished)), np.empty(len(finished)), since.copy()
    for each in range(len(since)):
        rows = np.flatnonzero(worker == each)
        if len(rows):
            before = np.concatenate(([since[each]], finished[rows[:-1]]))
            began = np.maximum(before, comes[rows])
            seconds[rows] = np.maximum(0.0, finished[rows] - began)
            waited[rows] = began - before
            last[each] = finished[rows[-1]]
    return seconds, waited, last
