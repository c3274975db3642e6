"""Workloads: chunks of keys with their times, seeded and in constant memory."""

from unskew.streams.costed import Costed
from unskew.streams.drift import Drift
from unskew.streams.evolving import Evolving
from unskew.streams.expression import STREAMS, parse
from unskew.streams.files import File, Graph
from unskew.streams.lognormal import Lognormal
from unskew.streams.matched import PUBLISHED, Matched, StandIn
from unskew.streams.stream import CHUNK, Chunk, Stream
from unskew.streams.zipf import Zipf

__all__ = [
    "CHUNK",
    "PUBLISHED",
    "STREAMS",
    "Chunk",
    "Costed",
    "Drift",
    "Evolving",
    "File",
    "Graph",
    "Lognormal",
    "Matched",
    "StandIn",
    "Stream",
    "Zipf",
    "parse",
]
