"""Runs schemes on a stream: S sources, each with a router of its own, route to W workers.

The simulator knows no scheme by name. It feeds tuples to routers and watches where they go. Any number of schemes run
side by side on one pass over the stream. Cost: time grows with messages x schemes, hardly with the sources; memory
with the distinct keys and the replicas (see `metrics`), plus the routers' states.

Queues, capacities and feedback belong between routing and metrics, in `_Run._step`: it sees every tuple of a segment
with its time, source and worker, and everything before it has been accounted for.
"""

import time as clock
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.hashing import KeyIds, candidate, key_ids
from unskew.kernels import kernel
from unskew.key_table import SMALLEST
from unskew.scheme import Router, Scheme, Times, Workers, registration_of, require_integer
from unskew.simulate.estimation import Estimation, parse_estimation
from unskew.simulate.metrics import Keys, Load, Replicas, replicas_lower_bound
from unskew.simulate.result import Result
from unskew.streams import Chunk, Stream

FEEDS = ("round_robin", "key")
SOURCE_SALT = 2**31 - 1  # the hash that deals keys to sources: one that no scheme uses to choose a worker
MOST_ESTIMATES = 10**9  # loads that all sources together keep
MOST_SOURCES = 1_000_000
MOST_WORKERS = 10_000_000  # each has its load in every source and in the result

Progress = Callable[[int], None]  # gets the number of tuples done since the last call
Positions = slice | npt.NDArray[np.intp]  # which tuples of a segment enter at one source


def simulate(
    stream: Stream,
    schemes: Sequence[Scheme],
    *,
    sources: int = 1,
    feed: str = "round_robin",
    estimation: str = "local",
    replicas: bool = True,
    oracle: bool = False,
    samples: int = 200,
    progress: Progress | None = None,
) -> list[Result]:
    """Route `stream` with each of `schemes`, and measure.

    `feed`: tuples enter the sources in turn ("round_robin") or by hash of the source vertex, or of the key where the
    stream has none ("key"). `estimation`: "local", "global" or "probe:SECONDS". `replicas`: count keys and replicas.
    `oracle`: also run a global oracle beside each run and report how often the sources decide as it does.
    """
    require_integer("sources", sources, 1, MOST_SOURCES)
    for scheme in schemes:
        require_integer("workers", scheme.workers, 1, MOST_WORKERS)
        if sources * scheme.workers > MOST_ESTIMATES and estimation != "global":
            asked = f"{sources:,} x {scheme.workers:,}"
            raise InputError(f"sources: sources x workers must be at most {MOST_ESTIMATES:,}, not {asked}")
    require_integer("samples", samples, 1, 1_000_000)
    if feed not in FEEDS:
        raise InputError(f"feed: must be {' or '.join(FEEDS)}, not {feed!r}")
    how = parse_estimation(estimation)
    runs = [_Run(scheme, sources, how, replicas, oracle, samples) for scheme in schemes]
    _load_kernels(schemes)
    keys = Keys() if replicas else None
    stream_seconds, key_seconds, position = 0.0, 0.0, 0
    started = clock.perf_counter()
    for chunk in stream.chunks():
        ids = chunk.key_ids()
        entry = _entry_points(chunk, ids, feed, sources)
        stream_seconds += clock.perf_counter() - started

        started = clock.perf_counter()
        rows = None if keys is None else keys.rows(ids)
        key_seconds += clock.perf_counter() - started
        for run in runs:
            run.chunk(ids, chunk.times, entry, position, rows, 0 if keys is None else len(keys))
        position += len(ids)
        if progress is not None:
            progress(len(ids))
        started = clock.perf_counter()
    return [run.result(str(stream), feed, keys, key_seconds, stream_seconds) for run in runs]


def _load_kernels(schemes: Sequence[Scheme]) -> None:
    """Route a few tuples with a throwaway run of each scheme, so that no compilation counts as simulated time."""
    ids = np.zeros(SMALLEST // 2 + 1, np.uint64)  # the fewest that make the tables of keys and replicas grow
    times, local = np.zeros(len(ids)), Estimation("local")
    for scheme in schemes:
        _Run(scheme, 1, local, True, False, 1).chunk(ids, times, None, 0, Keys().rows(ids), 1)


def frequencies(stream: Stream, progress: Progress | None = None) -> Keys:
    """One pass that counts every key: what an offline scheme needs beforehand."""
    keys = Keys()
    for chunk in stream.chunks():
        keys.rows(chunk.key_ids())
        if progress is not None:
            progress(len(chunk.times))
    return keys


@kernel
def _candidates(ids, j, workers):
    chosen = np.empty(len(ids), np.int32)
    for i in range(len(ids)):
        chosen[i] = candidate(ids[i], j, workers)
    return chosen


def _entry_points(chunk: Chunk, ids: KeyIds, feed: str, sources: int) -> Workers | None:
    """The source of each tuple; None for in turn."""
    if feed == "round_robin":
        return None
    return _candidates(ids if chunk.source_keys is None else key_ids(chunk.source_keys), SOURCE_SALT, sources)


class _Run:
    """One scheme on its way through the stream."""

    def __init__(
        self, scheme: Scheme, sources: int, estimation: Estimation, replicas: bool, oracle: bool, samples: int
    ) -> None:
        self._scheme, self._sources, self._estimation = scheme, sources, estimation
        shared = estimation.kind == "global"
        self._routers = [Router(scheme) for _ in range(1 if shared else sources)]
        self._probing = estimation.kind == "probe" and hasattr(self._routers[0].state, "load")
        self._oracle = Router(scheme) if oracle else None
        self._load = Load(scheme.workers, samples)
        self._replicas = Replicas(scheme.workers) if replicas else None
        self._agreed = 0
        self._probes = -np.inf  # the last one, as its number of periods since time 0
        self._seconds = 0.0

    def chunk(
        self,
        ids: KeyIds,
        times: Times,
        entry: Workers | None,
        position: int,
        rows: npt.NDArray[np.int32] | None,
        keys: int,
    ) -> None:
        """Take in the tuples `ids`, of which the first is number `position` of the stream."""
        started = clock.perf_counter()
        chosen = np.empty(len(ids), np.int32)
        for part in self._between_probes(times):
            first = position + part.start
            chosen[part] = self._step(ids[part], times[part], None if entry is None else entry[part], first)
        if self._oracle is not None:
            self._agreed += int((chosen == self._oracle.route(ids, times)).sum())
        if self._replicas is not None and rows is not None:
            self._replicas.add(rows, chosen, keys)
        self._seconds += clock.perf_counter() - started

    def _step(self, ids: KeyIds, times: Times, entry: Workers | None, first: int) -> Workers:
        """Route a segment in which no source learns anything from outside, and account for it."""
        if len(self._routers) == 1:
            chosen = self._routers[0].route(ids, times)
        else:
            chosen = np.empty(len(ids), np.int32)
            for router, mine in zip(self._routers, self._deal(entry, first, len(ids)), strict=True):
                chosen[mine] = router.route(ids[mine], times[mine])
        self._load.add(chosen, times)
        return chosen

    def _deal(self, entry: Workers | None, first: int, count: int) -> Iterator[Positions]:
        """For each source the positions of its tuples among `count`, of which the first is number `first`."""
        if entry is None:
            for source in range(self._sources):
                yield slice((source - first) % self._sources, count, self._sources)
            return
        order = np.argsort(entry, kind="stable")
        ends = np.searchsorted(entry[order], np.arange(self._sources), side="right")
        yield from np.split(order, ends[:-1])

    def _between_probes(self, times: Times) -> Iterator[slice]:
        """The chunk in segments; the estimates are overwritten before each but the first of the stream."""
        if not self._probing or not len(times):
            yield slice(0, len(times))
            return
        due = np.maximum.accumulate(np.floor(times / self._estimation.period))  # probes so far, by the clock
        cuts = np.flatnonzero(due[1:] > due[:-1]) + 1
        starts = [0, *cuts.tolist()]
        for start, stop in zip(starts, [*starts[1:], len(times)], strict=True):
            if due[start] > self._probes and self._load.messages:
                for router in self._routers:
                    router.state.load[:] = self._load.vector
            self._probes = max(self._probes, float(due[start]))
            yield slice(start, stop)

    def result(self, stream: str, feed: str, keys: Keys | None, key_seconds: float, stream_seconds: float) -> Result:
        load, messages = self._load, self._load.messages
        seconds = self._seconds + key_seconds
        replicas = None if self._replicas is None else len(self._replicas)
        bound = None if keys is None else replicas_lower_bound(keys.counts, self._scheme.workers)
        return Result(
            scheme=registration_of(self._scheme).name,
            params=_parameters(self._scheme),
            stream=stream,
            workers=self._scheme.workers,
            sources=self._sources,
            feed=feed,
            estimation=str(self._estimation),
            messages=messages,
            keys=None if keys is None else len(keys),
            p1=None if keys is None else keys.p1,
            imbalance=load.imbalance,
            imbalance_fraction=load.imbalance / max(1, messages),
            mean_imbalance_fraction=load.mean_imbalance / max(1, messages),
            max_over_mean=float(load.vector.max()) * self._scheme.workers / messages if messages else 1.0,
            replicas=replicas,
            replicas_over_kg=None if replicas is None or keys is None else replicas / max(1, len(keys)),
            replicas_lower_bound=bound,
            replicas_over_lower_bound=None if replicas is None or bound is None else replicas / max(1, bound),
            agreement=None if self._oracle is None else self._agreed / max(1, messages),
            jaccard=None if self._oracle is None else self._agreed / max(1, 2 * messages - self._agreed),
            seconds=seconds,
            messages_per_second=messages / seconds if seconds else 0.0,
            stream_seconds=stream_seconds,
            load=load.vector.tolist(),
            samples=load.samples,
        )


def _parameters(scheme: Any) -> dict[str, Any]:
    if hasattr(scheme, "describe"):
        described: dict[str, Any] = scheme.describe()
        return described
    return {name: value for name, value in scheme._asdict().items() if name != "workers"}
