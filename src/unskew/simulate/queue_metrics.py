"""What is measured where workers have queues: queue length, latency, utilisation, throughput, makespan.

Latency is from a tuple's arrival in the queue until it is done. Utilisation U_w is what was asked of a worker over what
it can do (Consistent Grouping, section VI, "assigned tuples over capacity"): the seconds of work in its tuples over
the seconds that it was there, by the stream's clock; infinity where it got work in no time at all. While it is above 1
the queue grows, up to its bound where it has one, and then the stream waits, which its clock does not count. Throughput
is tuples done per second. The makespan is from the first arrival until the last tuple is done; nothing else is as
sensitive to one slow or overloaded worker.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.contract import Sources, Times, Workers
from unskew.members import Names
from unskew.simulate.latency import NOTHING, Snapshot
from unskew.simulate.lines import Letters
from unskew.simulate.queues import Capacities, Queues
from unskew.simulate.workers import QueuedWorkers


class QueueSample(NamedTuple):
    """The queues at one moment. Latencies and throughput are of the tuples done since the sample before; None where
    there are none, or no time has passed. Percentiles and extremes are off by at most 1/256 of themselves.

    ``utilisation_*`` are since each worker has been there, ``recent_*`` since the last look: the sample before, or one
    between that was dropped again, since a stream of unknown length is looked at more often than samples are kept.

    Attributes
    ----------
    tuples, time
        How many tuples have come, and the time by the stream's clock.
    waiting, done, lost
        How many of them are at the workers, executed, or lost in crashes.
    longest_queue, shortest_queue
        Tuples at one of the workers that are there, at this moment.
    longest_wait, shortest_wait
        Seconds until a tuple that comes to the slowest queue now, or to the quickest, would be done.
    stalled
        Seconds that the stream has waited for room in a queue.
    throughput
        Tuples done per second.
    latency_mean, latency_p50, latency_p95, latency_p99, latency_min, latency_max
        Seconds from arrival until done.
    utilisation_mean, utilisation_max
        Over the workers that are there.
    recent_utilisation_mean, recent_utilisation_max, recent_utilisation_min
        The same since the last look.

    Examples
    --------
    >>> from unskew import Shuffle
    >>> from unskew.simulate import Queues, simulate
    >>> from unskew.streams import Zipf
    >>> stream = Zipf(z=1.0, keys=100, tuples=1000)
    >>> result = simulate(stream, [Shuffle(workers=4)], queues=Queues(utilisation=0.5))[0]
    >>> sample = result.queue_samples[-1]
    >>> sample.done + sample.waiting
    1000
    """

    tuples: int
    time: float
    waiting: int
    longest_queue: int
    done: int
    lost: int
    stalled: float
    throughput: float | None
    latency_mean: float | None
    latency_p50: float | None
    latency_p95: float | None
    latency_p99: float | None
    latency_min: float | None
    latency_max: float | None
    utilisation_mean: float
    utilisation_max: float
    shortest_queue: int
    longest_wait: float
    shortest_wait: float
    recent_utilisation_mean: float
    recent_utilisation_max: float
    recent_utilisation_min: float


class Look(NamedTuple):
    """A sample that is yet to be compared with the one before it."""

    sample: QueueSample
    now: float  # by the workers' clock, from the first arrival on
    latencies: Snapshot

    def after(self, earlier: "Look | None") -> QueueSample:
        done, now, latencies = (0, 0.0, NOTHING) if earlier is None else (earlier.sample.done, *earlier[1:])
        seconds = self.now - now
        throughput = (self.sample.done - done) / seconds if seconds > 0 else None
        told = self.latencies.since(latencies) | self.latencies.extremes_since(latencies)
        values: dict[str, Any] = {"throughput": throughput, **told}
        return self.sample._replace(**values)


class QueueRun:
    """The queues of one run: `workers` workers at the start, `names` in all, those that join later included."""

    def __init__(
        self,
        queues: Queues,
        workers: int,
        names: int,
        listening_sources: int,
        mean_cost: float | None = None,
        lettered: bool = False,
    ) -> None:
        self._capacity = queues.capacities(names)
        self.rate = queues.rate_for(workers, self._capacity, mean_cost)
        costed = mean_cost is not None
        self.workers = QueuedWorkers(1.0 / self._capacity, queues.bound, listening_sources, costed, lettered)
        self._bound = queues.bound
        self._tuples = 0
        self._start = self._time = 0.0  # of the first and of the latest arrival
        self._joined = np.where(np.arange(names) < workers, -np.inf, np.inf)
        self._left = np.full(names, np.inf)
        self._last_look: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None = None  # work, presence

    def serve(
        self,
        names: Workers,
        times: Times,
        sources: Sources,
        costs: Times | None = None,
        letters: Letters | None = None,
    ) -> None:
        """At least one tuple arrives, at the workers called `names`; `sources` may be empty where no source listens."""
        if not self._tuples:
            self._start = float(times[0])
        self.workers.serve(names, times, sources, costs, letters)
        self._tuples += len(names)
        self._time = float(times[-1])

    def join(self, names: Names, time: float) -> None:
        self._joined[names] = time

    def leave(self, names: Sequence[int], time: float, *, crash: bool) -> None:
        self._left[list(names)] = time
        if crash:
            self.workers.crash(names, time)

    def set_capacities(self, capacities: Capacities, time: float) -> None:
        capacities.apply(self._capacity)
        self.workers.set_service(1.0 / self._capacity, time)

    def _seconds(self) -> npt.NDArray[np.float64]:
        """How long each worker has been there, by name: until the next tuple would come, at the mean pace."""
        since_first = self._time - self._start
        gap = since_first / max(1, self._tuples - 1) if self.rate is None else 1.0 / self.rate
        return self._there(since_first + gap)

    def _there(self, end: float) -> npt.NDArray[np.float64]:
        """How long each worker has been there until `end`, in seconds from the first arrival."""
        return np.maximum(0.0, np.minimum(self._left - self._start, end) - np.maximum(self._joined - self._start, 0.0))

    def _utilisation(self) -> npt.NDArray[np.float64]:
        """Of each worker by name; 0 for one that got nothing."""
        return _share(self.workers.work, self._seconds())

    def _recent_utilisation(self) -> npt.NDArray[np.float64]:
        """The same since the last call: between the last tuple of then and that of now, as many pauses as tuples."""
        work, there = self.workers.work, self._there(self._time - self._start)
        before, self._last_look = self._last_look, (work, there)
        return self._utilisation() if before is None else _share(work - before[0], there - before[1])

    @property
    def _present(self) -> npt.NDArray[np.bool_]:
        return (self._joined <= self._time) & (self._left == np.inf)

    def look(self) -> Look:
        """Take a sample: what is finished by now is accounted for first."""
        workers = self.workers
        workers.settle(self._time)
        present = self._present
        utilisation, recent = self._utilisation()[present], self._recent_utilisation()[present]
        waiting, waits = workers.waiting[present], workers.waits(self._time)[present]
        sample = QueueSample(
            tuples=self._tuples,
            time=self._time,
            waiting=int(workers.waiting.sum()),
            longest_queue=int(waiting.max()),
            done=int(workers.done.sum()),
            lost=int(workers.lost.sum()),
            stalled=workers.stalled,
            throughput=None,
            latency_mean=None,
            latency_p50=None,
            latency_p95=None,
            latency_p99=None,
            latency_min=None,
            latency_max=None,
            utilisation_mean=float(utilisation.mean()),
            utilisation_max=float(utilisation.max()),
            shortest_queue=int(waiting.min()),
            longest_wait=float(waits.max()),
            shortest_wait=float(waits.min()),
            recent_utilisation_mean=float(recent.mean()),
            recent_utilisation_max=float(recent.max()),
            recent_utilisation_min=float(recent.min()),
        )
        return Look(sample, self._time - self._start + workers.stalled, workers.latencies.snapshot())

    def finish(self, names: int, looks: Sequence[Look]) -> dict[str, Any]:
        """Let all queues run empty; returns the fields of a Result. `names` workers have been there in all."""
        samples = [look.after(looks[i - 1] if i else None) for i, look in enumerate(looks)]
        workers, utilisation, present = self.workers, self._utilisation(), self._present
        highest, mean = float(utilisation[present].max()), float(utilisation[present].mean())
        waiting = samples[-1].waiting if samples else 0
        workers.finish()
        done = int(workers.done.sum())
        makespan = workers.last_done if done else 0.0
        return {
            "rate": self.rate,
            "capacity": self._capacity[:names].tolist(),
            "queue_bound": self._bound,
            "done": done,
            "waiting": waiting,
            "lost": int(workers.lost.sum()),
            "longest_queue": int(workers.longest.max()),
            **workers.latencies.summary(),
            "latency_max": workers.latencies.highest,
            "latency_exact": workers.latencies.exact,
            "utilisation": utilisation[:names].tolist(),
            "utilisation_max": highest,
            "utilisation_imbalance": highest - mean if highest < np.inf else np.inf,
            "throughput": done / makespan if makespan > 0 else None,
            "makespan": makespan,
            "stalled": workers.stalled,
            "queue_samples": samples,
        }


def _share(work: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.divide(work, seconds, out=np.where(work > 0, np.inf, 0.0), where=seconds > 0)
