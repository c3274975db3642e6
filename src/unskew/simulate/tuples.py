"""Consecutive tuples of a stream on their way to the routers of their sources."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.contract import Sources, Times
from unskew.hashing import KeyIds, candidates_of
from unskew.key_columns import key_ids
from unskew.streams import Chunk

SOURCE_SALT = 2**31 - 1  # the hash that deals keys to sources: one that no scheme uses to choose a worker

Positions = slice | npt.NDArray[np.intp]


class Tuples(NamedTuple):
    """A chunk of a stream, or a part of one."""

    first: int  # number of the first tuple in the stream
    ids: KeyIds
    times: Times
    sources: Sources | None = None  # the source of each tuple; None where they enter the sources in turn
    costs: Times | None = None  # seconds of work for a worker of capacity 1; None where tuples have no costs

    def part(self, start: int, stop: int) -> "Tuples":
        """The tuples at the positions from `start` to `stop` - 1."""
        sources = None if self.sources is None else self.sources[start:stop]
        costs = None if self.costs is None else self.costs[start:stop]
        return Tuples(self.first + start, self.ids[start:stop], self.times[start:stop], sources, costs)

    def positions_by_source(self, sources: int) -> Iterator[Positions]:
        """For each of the sources 0..sources-1 the positions of its tuples."""
        if self.sources is None:
            for source in range(sources):
                yield slice((source - self.first) % sources, len(self.ids), sources)
            return
        order = np.argsort(self.sources, kind="stable")
        ends = np.searchsorted(self.sources[order], np.arange(sources), side="right")
        yield from np.split(order, ends[:-1])

    def source_of_each(self, sources: int) -> Sources:
        """The source of each tuple among 0..sources-1."""
        if self.sources is not None:
            return self.sources
        return (np.arange(self.first, self.first + len(self.ids)) % sources).astype(np.int32)


def sources_by_key(chunk: Chunk, ids: KeyIds, sources: int) -> Sources:
    """The source of each tuple by hash of what the stream says decides it, or else of its key."""
    return candidates_of(ids if chunk.source_keys is None else key_ids(chunk.source_keys), SOURCE_SALT, sources)
