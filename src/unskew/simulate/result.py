"""The outcome of one simulated run."""

from dataclasses import asdict, dataclass, field
from typing import Any

from unskew.simulate.load import Sample
from unskew.simulate.messaging import Delivery
from unskew.simulate.queue_metrics import QueueSample


@dataclass(frozen=True)
class Result:
    """What `simulate` measured of one scheme on one stream.

    Names are those of the papers; "fraction" means divided by the number of tuples m.

    Where workers come and go: `imbalance`, `imbalance_fraction` and `max_over_mean` are of the workers that are there
    at the end, and count from the last time that one came or went. The average imbalance is over the whole stream, each
    I(t) in that sense. `load` is by worker name and of the whole stream. `replicas` are the distinct (worker name, key)
    pairs that ever were, those of workers that left or crashed included (so does FISH, section 6.5).

    Attributes
    ----------
    scheme, params, stream, workers, sources, feed, estimation
        What was simulated. `workers` is W at the start, `sources` is S, `feed` how tuples reach the sources.
    tuples, keys, p1
        m, the number of distinct keys K, and the share of the most frequent one; None where replicas were not counted.
    imbalance, imbalance_fraction, mean_imbalance_fraction
        I(m), I(m)/m, and the average of I(t) over all t, divided by m.
    max_over_mean
        Highest load over mean load; None where there were no tuples.
    local_max_over_mean
        The same in windows of 10 tuples per worker, on average: it shows what a whole stream evens out.
    replicas, replicas_over_kg
        (Worker, key) pairs, and how many there are per key: key grouping has one.
    replicas_lower_bound, replicas_over_lower_bound
        The fewest that allow perfect balance, and the replicas over that.
    agreement, jaccard
        The share of tuples on which the sources decide as the global oracle does, and the same as the overlap of two
        sets of (tuple, worker) decisions.
    seconds, tuples_per_second, stream_seconds
        What routing and measuring took. `stream_seconds` is for making or reading the stream and hashing its keys, once
        for all schemes.
    load, samples
        Tuples of each worker by name, and the balance at several moments.
    members, events
        The names of the workers at the end, and what took place; None without events.
    rate, capacity, queue_bound
        Of queues: tuples per second (None: the stream's own times), the capacity of each worker by name at the end, and
        the most tuples that may be at a worker. These, and all up to `queue_samples`, are None without queues.
    done, waiting, lost
        Tuples executed, at the workers when the last one had arrived (they are done later), and lost in crashes.
    longest_queue
        The most tuples that were ever at one worker, the one in work included.
    latency_mean, latency_p50, latency_p95, latency_p99, latency_max, latency_exact
        Seconds from arrival until done, and whether the percentiles are exact or off by at most 1/256 of themselves.
    utilisation, utilisation_max, utilisation_imbalance
        Of each worker by name (inf: work in no time); the highest of those that are there at the end, and that less
        their mean.
    throughput, makespan, stalled
        Tuples done per second; seconds from the first arrival until the last tuple is done; seconds that the stream
        waited for room in a queue.
    queue_samples
        The queues at several moments.
    replans, moved_keys, moved_state
        Where a table keeps keys whole: how often it was replaced while the workers stayed, how many keys changed their
        worker for whatever reason, and their state, in tuples where it is linear.
    late
        Tuples with a time before an earlier one's, where there are queues, events or probes, which follow the latest
        time seen. With a rate there are none.
    messages
        What worker halves told sources, where the scheme has them.
    work, work_max_over_mean
        Where tuples have costs: the cost of what each worker got, by name, and the highest over the mean of it.

    Examples
    --------
    >>> from unskew import make
    >>> from unskew.simulate import Result, simulate
    >>> from unskew.streams import Zipf
    >>> (result,) = simulate(Zipf(z=1.0, keys=100, tuples=1000), [make("pkg", 4)])
    >>> result.load
    [250, 251, 250, 249]
    >>> result.max_over_mean == max(result.load) / (result.tuples / result.workers)
    True
    >>> Result.from_dict(result.to_dict()) == result
    True
    """

    scheme: str
    params: dict[str, Any]
    stream: str
    workers: int
    sources: int
    feed: str
    estimation: str
    tuples: int
    keys: int | None
    p1: float | None
    imbalance: float
    imbalance_fraction: float
    mean_imbalance_fraction: float
    max_over_mean: float | None
    local_max_over_mean: float | None
    replicas: int | None
    replicas_over_kg: float | None
    replicas_lower_bound: int | None
    replicas_over_lower_bound: float | None
    agreement: float | None
    jaccard: float | None
    seconds: float
    tuples_per_second: float
    stream_seconds: float
    load: list[int] = field(repr=False)
    samples: list[Sample] = field(repr=False)
    # where there are events
    members: list[int] | None = None
    events: list[str] | None = None
    # where workers have queues; times are seconds
    rate: float | None = None
    capacity: list[float] | None = field(default=None, repr=False)
    queue_bound: int | None = None
    done: int | None = None
    waiting: int | None = None
    lost: int | None = None
    longest_queue: int | None = None
    latency_mean: float | None = None
    latency_p50: float | None = None
    latency_p95: float | None = None
    latency_p99: float | None = None
    latency_max: float | None = None
    latency_exact: bool | None = None
    utilisation: list[float] | None = field(default=None, repr=False)
    utilisation_max: float | None = None
    utilisation_imbalance: float | None = None
    throughput: float | None = None
    makespan: float | None = None
    stalled: float | None = None
    queue_samples: list[QueueSample] | None = field(default=None, repr=False)
    # where keys are kept whole by a table that is replaced now and then
    replans: int | None = None
    moved_keys: int | None = None
    moved_state: float | None = None
    # where there are queues, events or probes, which follow the latest time seen
    late: int | None = None
    # where the scheme has a worker half: what was carried between workers and sources
    messages: list[Delivery] | None = field(default=None, repr=False)
    # where tuples have costs
    work: list[float] | None = field(default=None, repr=False)
    work_max_over_mean: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; an infinite one stays so."""
        queue_samples = None if self.queue_samples is None else [sample._asdict() for sample in self.queue_samples]
        return asdict(self) | {
            "samples": [sample._asdict() for sample in self.samples],
            "queue_samples": queue_samples,
            "messages": None if self.messages is None else [message._asdict() for message in self.messages],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Result":
        """The result that `to_dict` was called on."""
        samples = [Sample(**sample) for sample in values["samples"]]
        queued = values["queue_samples"]
        queue_samples = None if queued is None else [QueueSample(**sample) for sample in queued]
        told = values["messages"]
        messages = None if told is None else [Delivery(**message) for message in told]
        return cls(**(values | {"samples": samples, "queue_samples": queue_samples, "messages": messages}))
