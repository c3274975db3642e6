"""Runs schemes on a stream: S sources, each with a router of its own, route to W workers.

The simulator knows no scheme by name. It feeds tuples to routers and watches where they go. Any number of schemes run
side by side on one pass over the stream, each as a `Run`. Cost: time grows with tuples x schemes, hardly with the
sources; memory with the distinct keys and the replicas (see `metrics`), the tuples that wait in queues (see `workers`),
plus the routers' states.
"""

import time as clock
from collections.abc import Callable, Sequence

import numpy as np

from unskew.checks import require_integer
from unskew.contract import Scheme, Workers
from unskew.errors import InputError
from unskew.hashing import KeyIds, candidate, key_ids
from unskew.kernels import allocating_kernel
from unskew.key_table import SMALLEST
from unskew.registry import registration_of
from unskew.simulate.estimation import parse_estimation
from unskew.simulate.events import Event, parse_event
from unskew.simulate.metrics import Keys
from unskew.simulate.queues import Queues
from unskew.simulate.result import Result
from unskew.simulate.run import Run, Setting
from unskew.states import arrays_of
from unskew.streams import Chunk, Stream

FEEDS = ("round_robin", "key")
SOURCE_SALT = 2**31 - 1  # the hash that deals keys to sources: one that no scheme uses to choose a worker
MOST_BYTES = 8 * 10**9  # that the states of all sources together take at the start
MOST_SOURCES = 1_000_000
MOST_WORKERS = 10_000_000  # each has its load in every source and in the result

Progress = Callable[[int], None]  # gets the number of tuples done since the last call


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
    queues: Queues | None = None,
    events: Sequence[Event | str] = (),
    progress: Progress | None = None,
) -> list[Result]:
    """Route `stream` with each of `schemes`, and measure.

    `feed`: tuples enter the sources in turn ("round_robin") or by hash of the source vertex, or of the key where the
    stream has none ("key"). `estimation`: "local", "global" or "probe:SECONDS". `replicas`: count keys and replicas.
    `oracle`: also run a global oracle beside each run and report how often the sources decide as it does.
    `queues`: give the workers queues and capacities, and measure latency, utilisation and makespan too; without them a
    scheme that listens hears nothing. `events`: workers that join, leave, crash, and change their capacity; each an
    `Event` or a text such as ``"t=3M add"``, ``"t=30s crash 3"`` or ``"t=6M capacity 0-4:2"``.
    """
    require_integer("sources", sources, 1, MOST_SOURCES)
    for scheme in schemes:
        require_integer("workers", scheme.workers, 1, MOST_WORKERS)
        if sources > 1 and estimation != "global":
            _check_room(scheme, sources)
    require_integer("samples", samples, 1, 1_000_000)
    if feed not in FEEDS:
        raise InputError(f"feed: must be {' or '.join(FEEDS)}, not {feed!r}")
    happenings = tuple(event if isinstance(event, Event) else parse_event(event) for event in events)
    setting = Setting(
        sources, parse_estimation(estimation), replicas, oracle, samples, queues, happenings, stream.length
    )
    runs = [Run(scheme, setting) for scheme in schemes]
    _load_kernels(schemes, queues)
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


def _check_room(scheme: Scheme, sources: int) -> None:
    """InputError where the sources' states would take more memory than may be."""
    each = sum(array.nbytes for array in arrays_of(scheme.new_state()).values())
    if sources * each > MOST_BYTES:
        name, most = registration_of(scheme).name, max(1, MOST_BYTES // each)
        raise InputError(
            f"sources: must be at most {most:,} for {name} with {scheme.workers:,} workers, which keeps {each:,} bytes "
            f"a source (at most {MOST_BYTES:,} for all of a scheme), not {sources:,}"
        )


def _load_kernels(schemes: Sequence[Scheme], queues: Queues | None) -> None:
    """Route a few tuples with a throwaway run of each scheme, so that no compilation counts as simulated time."""
    ids = np.zeros(SMALLEST // 2 + 1, np.uint64)  # the fewest that make the tables of keys and replicas grow
    at_once = None if queues is None else Queues(rate=1e15)  # over before a source can hear of it
    for scheme in schemes:
        warm_up = Run(scheme, Setting(samples=1, queues=at_once))
        warm_up.chunk(ids, np.zeros(len(ids)), None, 0, Keys().rows(ids), 1)


def frequencies(stream: Stream, progress: Progress | None = None) -> Keys:
    """One pass that counts every key: what an offline scheme needs beforehand."""
    keys = Keys()
    for chunk in stream.chunks():
        keys.rows(chunk.key_ids())
        if progress is not None:
            progress(len(chunk.times))
    return keys


@allocating_kernel
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
