"""The outcome of one simulated run."""

from dataclasses import asdict, dataclass, field
from typing import Any

from unskew.simulate.metrics import Sample


@dataclass(frozen=True)
class Result:
    """One scheme on one stream. Names as in the papers; "fraction" means divided by the number of messages m."""

    scheme: str
    params: dict[str, Any]
    stream: str
    workers: int  # W
    sources: int  # S
    feed: str  # how tuples reach the sources
    estimation: str
    messages: int  # m
    keys: int | None  # distinct keys, K; None where replicas were not counted
    p1: float | None  # share of the most frequent key
    imbalance: float  # I(m)
    imbalance_fraction: float  # I(m)/m
    mean_imbalance_fraction: float  # average over t of I(t), divided by m
    max_over_mean: float  # highest load over mean load
    replicas: int | None
    replicas_over_kg: float | None  # key grouping has one replica a key
    replicas_lower_bound: int | None  # for perfect balance
    replicas_over_lower_bound: float | None
    agreement: float | None  # share of tuples on which the sources decide as the global oracle does
    jaccard: float | None  # the same as the overlap of two sets of (tuple, worker) decisions
    seconds: float  # spent on routing and metrics
    messages_per_second: float
    stream_seconds: float  # spent on making or reading the stream and hashing its keys, shared by the runs on it
    load: list[int] = field(repr=False)
    samples: list[Sample] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self) | {"samples": [sample._asdict() for sample in self.samples]}
