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
    workers: int  # W, at the start
    sources: int  # S
    feed: str  # how tuples reach the sources
    estimation: str
    tuples: int  # m
    keys: int | None  # distinct keys, K; None where replicas were not counted
    p1: float | None  # share of the most frequent key
    imbalance: float  # I(m)
    imbalance_fraction: float  # I(m)/m
    mean_imbalance_fraction: float  # average over t of I(t), divided by m
    max_over_mean: float | None  # highest load over mean load; None where there were no tuples
    # highest over mean load in windows of 10 tuples per worker, on average: what a whole stream evens out, these show
    local_max_over_mean: float | None
    replicas: int | None
    replicas_over_kg: float | None  # key grouping has one replica per key
    replicas_lower_bound: int | None  # for perfect balance
    replicas_over_lower_bound: float | None
    agreement: float | None  # share of tuples on which the sources decide as the global oracle does
    jaccard: float | None  # the same as the overlap of two sets of (tuple, worker) decisions
    seconds: float  # spent on routing and metrics
    tuples_per_second: float
    stream_seconds: float  # spent on making or reading the stream and hashing its keys, shared by the runs on it
    load: list[int] = field(repr=False)
    samples: list[Sample] = field(repr=False)
    # where there are events
    members: list[int] | None = None  # names of the workers that are there at the end
    events: list[str] | None = None  # those that took place
    # where workers have queues; times are seconds
    rate: float | None = None  # tuples per second; None for the stream's own times
    capacity: list[float] | None = field(default=None, repr=False)  # of each worker by name, at the end
    queue_bound: int | None = None
    done: int | None = None  # tuples executed: all but those lost
    waiting: int | None = None  # tuples at the workers when the last one had arrived; they are done later
    lost: int | None = None  # by crashes
    longest_queue: int | None = None  # the most tuples that were ever at one worker, the one in work included
    latency_mean: float | None = None
    latency_p50: float | None = None
    latency_p95: float | None = None
    latency_p99: float | None = None
    latency_max: float | None = None
    latency_exact: bool | None = None  # whether percentiles are exact, else off by at most 1/256 of themselves
    utilisation: list[float] | None = field(default=None, repr=False)  # of each worker by name; inf: work in no time
    utilisation_max: float | None = None  # of the workers that are there at the end
    utilisation_imbalance: float | None = None  # highest less mean, of these
    throughput: float | None = None  # tuples done per second, until the last is done
    makespan: float | None = None  # from the first arrival until the last tuple is done
    stalled: float | None = None  # seconds that the stream waited for room in a queue
    queue_samples: list[QueueSample] | None = field(default=None, repr=False)
    # where keys are kept whole by a table that is replaced now and then
    replans: int | None = None  # times that it was replaced while the workers stayed
    moved_keys: int | None = None  # that changed their worker, by a new table or because workers came or went
    moved_state: float | None = None  # their state, in tuples where it is linear
    # where there are queues, events or probes, which follow the latest time seen
    late: int | None = None  # tuples with a time before an earlier one's; with a rate there are none
    # where the scheme has a worker half: what was carried between workers and sources
    messages: list[Delivery] | None = field(default=None, repr=False)
    # where tuples have costs
    work: list[float] | None = field(default=None, repr=False)  # cost of what each worker got, by name
    work_max_over_mean: float | None = None  # highest over mean of it, in the sense of `max_over_mean`

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
