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
from unskew.contract import Scheme, Times
from unskew.errors import InputError
from unskew.frequencies import Frequencies
from unskew.hashing import frozen
from unskew.key_table import SMALLEST
from unskew.registry import registration_of
from unskew.simulate.estimation import parse_estimation
from unskew.simulate.events import Event, parse_event
from unskew.simulate.metrics import KeyCounter
from unskew.simulate.queues import Queues
from unskew.simulate.result import Result
from unskew.simulate.run import Run, Setting
from unskew.simulate.tuples import Tuples, sources_by_key
from unskew.states import arrays_of
from unskew.streams import Chunk, Stream

FEEDS = ("round_robin", "key")
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
    """Route `stream` with each of `schemes`, and measure: one `Result` per scheme.

    Parameters
    ----------
    stream
        Such as ``Zipf(1.0, 10_000, 1_000_000)``, ``File("events.parquet", key="user")``, or what `streams.parse` reads.
    schemes
        Such as ``[make("hash", 10), make("pkg", 10)]``. They may differ in workers. An offline scheme is fitted to the
        stream beforehand; see `count_keys`.
    sources
        How many sources route, each with a router of its own.
    feed
        How tuples enter the sources: in turn ("round_robin"), or by hash ("key") of the source vertex, or of the key
        where the stream has no vertices.
    estimation
        What sources know of the load: "local" (what they sent themselves), "global" (an oracle), "probe:SECONDS"
        or "probe_whole:SECONDS", see `Estimation`.
    replicas
        Whether to count keys and replicas, which takes memory for every key.
    oracle
        Whether to run a global oracle beside each scheme and report how often the sources decide as it does.
    samples
        How many samples through time to keep: so many to twice as many, where there are tuples enough.
    queues
        Gives the workers queues and capacities, so that latency, utilisation and makespan are measured too. Without
        them a scheme that listens to workers hears nothing. Where the stream has costs, a tuple takes its cost over the
        capacity of its worker.
    events
        Workers that join, leave, crash, or change their capacity: each an `Event` or a text such as ``"t=3M add"``,
        ``"t=30s crash 3"`` or ``"t=6M capacity 0-4:2"``.
    progress
        Called now and then with the number of tuples done since its last call.

    Examples
    --------
    >>> from unskew import make
    >>> from unskew.simulate import simulate
    >>> from unskew.streams import Zipf
    >>> stream = Zipf(z=1.2, keys=1000, tuples=100_000)
    >>> for result in simulate(stream, [make("hash", 10), make("pkg", 10), make("d_choices", 10)]):
    ...     print(f"{result.scheme}: max/mean {result.max_over_mean:.2f}, {result.replicas:,} replicas")
    hash: max/mean 3.26, 1,000 replicas
    pkg: max/mean 1.44, 1,179 replicas
    d_choices: max/mean 1.00, 1,795 replicas
    """
    require_integer("sources", sources, 1, MOST_SOURCES)
    for scheme in schemes:
        require_integer("workers", scheme.workers, 1, MOST_WORKERS)
        if sources > 1 and estimation != "global":
            _check_room(scheme, sources)
    require_integer("samples", samples, 1, 1_000_000)
    if feed not in FEEDS:
        raise InputError(f"feed: must be {' or '.join(FEEDS)}, not {feed!r}")
    parsed = tuple(event if isinstance(event, Event) else parse_event(event) for event in events)
    mean_cost = mean_cost_of(stream, queues)
    setting = Setting(
        sources, parse_estimation(estimation), replicas, oracle, samples, queues, parsed, stream.length, mean_cost
    )
    runs = [Run(scheme, setting) for scheme in schemes]
    _load_kernels(schemes, setting)
    counter = KeyCounter() if replicas else None
    stream_seconds, key_seconds, first = 0.0, 0.0, 0
    started = clock.perf_counter()
    for chunk in stream.chunks():
        ids = chunk.key_ids()
        in_turn = feed == "round_robin"
        from_sources = None if in_turn else sources_by_key(chunk, ids, sources)
        tuples = Tuples(first, ids, chunk.times, from_sources, costs_of(chunk, stream))
        stream_seconds += clock.perf_counter() - started

        started = clock.perf_counter()
        rows = None if counter is None else counter.count(ids)
        key_seconds += clock.perf_counter() - started
        for run in runs:
            run.take(tuples, rows, 0 if counter is None else len(counter))
        first += len(ids)
        if progress is not None:
            progress(len(ids))
        started = clock.perf_counter()
    return [run.result(str(stream), feed, counter, key_seconds, stream_seconds) for run in runs]


def count_keys(stream: Stream, progress: Progress | None = None) -> Frequencies:
    """Count every key of `stream` in one pass: what an offline scheme must know beforehand.

    Parameters
    ----------
    stream
        Read once, from its beginning to its end.
    progress
        Called now and then with the number of tuples done since its last call.

    Examples
    --------
    >>> from unskew import OffGreedy
    >>> from unskew.simulate import count_keys, simulate
    >>> from unskew.streams import Zipf
    >>> stream = Zipf(z=0.8, keys=1000, tuples=100_000)
    >>> counted = count_keys(stream)
    >>> len(counted.key_ids), counted.tuples
    (1000, 100000)
    >>> scheme = OffGreedy.fit(10, counted.key_ids, counted.counts)
    >>> print(f"max/mean {simulate(stream, [scheme])[0].max_over_mean:.3f}")
    max/mean 1.000
    """
    counter, tuples = KeyCounter(), 0
    for chunk in stream.chunks():
        counter.count(chunk.key_ids())
        tuples += len(chunk.times)
        if progress is not None:
            progress(len(chunk.times))
    return Frequencies(counter.ids, counter.counts, tuples)


def _check_room(scheme: Scheme, sources: int) -> None:
    """InputError where the sources' states would take more memory than may be."""
    each = sum(array.nbytes for array in arrays_of(scheme.new_state()).values())
    if sources * each > MOST_BYTES:
        name, most = registration_of(scheme).name, max(1, MOST_BYTES // each)
        raise InputError(
            f"sources: must be at most {most:,} for {name} with {scheme.workers:,} workers, which keeps {each:,} bytes "
            f"per source (at most {MOST_BYTES:,} for all of a scheme), not {sources:,}"
        )


def mean_cost_of(stream: Stream, queues: Queues | None) -> float | None:
    """The mean cost of a stream that has costs, as far as anything depends on it; None where it has none."""
    if not stream.has_costs:
        return None
    return stream.mean_cost() if queues is not None and queues.utilisation is not None else 1.0


def costs_of(chunk: Chunk, stream: Stream) -> Times | None:
    """The costs of the chunk, checked."""
    if chunk.costs is None and not stream.has_costs:
        return None
    costs = np.asarray(chunk.costs if stream.has_costs else None, np.float64)
    if costs.shape != chunk.times.shape or not ((costs >= 0) & (costs < np.inf)).all():
        rule = "one finite number from 0 on per tuple where has_costs is True, and none where it is False"
        raise InputError(f"costs: the chunks of {stream} must have {rule}")
    return frozen(costs)


def _load_kernels(schemes: Sequence[Scheme], setting: Setting) -> None:
    """Route a few tuples with a throwaway run of each scheme, so that no compilation counts as simulated time."""
    ids = np.zeros(SMALLEST // 2 + 1, np.uint64)  # the fewest that make the tables of keys and replicas grow
    at_once = None
    if setting.queues is not None:  # over before a source can hear of it, by the kernels that the run itself takes
        changes = setting.queues.bound is not None or setting.sources > 1 or setting.events
        at_once = Queues(rate=1e15, bound=len(ids) if changes else None)
    costs = None if setting.mean_cost is None else frozen(np.ones(len(ids)))
    for scheme in schemes:
        warm_up = Run(scheme, Setting(samples=1, queues=at_once, mean_cost=None if costs is None else 1.0))
        warm_up.take(Tuples(0, ids, np.zeros(len(ids)), costs=costs), KeyCounter().count(ids), 1)
