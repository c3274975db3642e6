"""Streams that are counted, not frequencies that are given: how many keys the lossy counter holds, and real streams."""

import math
from typing import Any, NamedTuple

import numpy as np

from unskew.experiments.gedik.setup import APART, HASHES, Case, Measured
from unskew.frequencies import Frequencies
from unskew.key_columns import key_ids
from unskew.partitioning import Objective, PartitionFunction, construct, imbalance, moves, relative_migration
from unskew.partitioning.controller import frequencies_of
from unskew.sketches.lossy_counting import count_keys, keys_in_memory, new_sketch
from unskew.streams import Stream
from unskew.streams.zipf import zipf_ranks

PART = 10  # the error of the counter is a tenth of delta, as the paper says
PIECE = 2**18  # tuples
LOOKS = 16  # within the last window, over which what is in memory is averaged: it falls when a window closes


class Count(NamedTuple):
    """A job of the grid: the lossy counter on a stream of |D| tuples ("a constant factor of the domain size", here 1),
    for several cases and numbers of workers."""

    experiment: str
    data: str
    domain: int  # |D|
    run_number: int
    cases: tuple[tuple[Case, int], ...]  # and the number of workers
    samples: int = 1
    events: tuple[str, ...] = ()

    @property
    def cost(self) -> float:
        return 20.0 * self.domain * len(self.cases)

    def read(self, values: dict[str, Any]) -> Measured:
        return Measured(**values)

    def row(self, result: Measured) -> dict[str, Any]:
        return {"experiment": self.experiment, "data": self.data, **result.to_dict()}

    def run(self) -> list[Measured]:
        """Count, here and now."""
        return [self._count(case, workers) for case, workers in self.cases]

    def _count(self, case: Case, workers: int) -> Measured:
        goal = Objective(case.resources, sigma=case.sigma)
        error = goal.delta(workers, self.domain) / PART
        window = math.ceil(1 / error)
        tuples = max(1, self.domain // window) * window  # whole windows
        sketch = new_sketch(error, history=tuples, counters=2)
        generator = np.random.default_rng([self.run_number, 14])
        held = []
        looks = np.rint(np.linspace(tuples - window, tuples, LOOKS + 1)).astype(np.int64)
        for part in np.diff([*range(0, tuples - window, PIECE), *looks]).tolist():
            ranks = zipf_ranks(generator, case.z, self.domain, part)
            count_keys(sketch, key_ids(ranks + self.run_number * APART))
            held.append(keys_in_memory(sketch))
        tracked = goal.tracked(frequencies_of(sketch), workers, self.domain, slack=error)
        unknown = float("nan")
        return Measured(
            *case,
            keys=self.domain,
            workers=workers,
            run=self.run_number,
            b=unknown,
            b_state=unknown,
            b_computation=unknown,
            b_communication=unknown,
            b_printed=unknown,
            m=unknown,
            entries=tracked,
            seconds=0.0,
            in_memory=int(np.mean(held[-LOOKS:])),
        )


class Real(NamedTuple):
    """A job of the grid: a real stream, its first half counted by the lossy counter, all methods from 1 to N workers.

    The functions are measured on what they were made for, the first half, and on the second half, which they have not
    seen (`b_printed` holds that imbalance here).
    """

    experiment: str
    data: str
    stream: Stream
    cases: tuple[Case, ...]
    workers: int
    samples: int = 1
    events: tuple[str, ...] = ()

    @property
    def cost(self) -> float:
        return 50.0 * (self.stream.length or 10**6)

    def read(self, values: dict[str, Any]) -> Measured:
        return Measured(**values)

    def row(self, result: Measured) -> dict[str, Any]:
        return {"experiment": self.experiment, "data": self.data, **result.to_dict()}

    def run(self) -> list[Measured]:
        """Count and construct, here and now."""
        ids = np.concatenate([chunk.key_ids() for chunk in self.stream.chunks()])
        half = len(ids) // 2
        seen, later = (_exact(part) for part in (ids[:half], ids[half:]))
        return [self._measure(case, ids[:half], seen, later) for case in self.cases]

    def _measure(self, case: Case, ids: Any, seen: Frequencies, later: Frequencies) -> Measured:
        goal = Objective(case.resources, sigma=case.sigma)
        domain, in_memory = len(seen.key_ids), 0
        if case.algorithm in HASHES:
            cold = HASHES[case.algorithm]
            before, after = (PartitionFunction(n, cold=cold) for n in (self.workers - 1, self.workers))
        else:
            error = goal.delta(self.workers, domain) / PART
            sketch = new_sketch(error, history=2 * ((len(ids) + 1) // 2), counters=2)
            count_keys(sketch, ids)
            counted, in_memory = frequencies_of(sketch), keys_in_memory(sketch)
            after = PartitionFunction(1)
            for n in range(2, self.workers + 1):
                before = after
                after = construct(before, counted, n, goal, algorithm=case.algorithm, keys=domain, slack=error)
        found = imbalance(after, seen, goal)
        moved = relative_migration(moves(before, after, seen, goal), self.workers, seen, goal)
        unseen = imbalance(after, later, goal).overall
        return Measured(
            *case, domain, self.workers, 0, found.overall, *found, unseen, moved, len(after.key_ids), 0.0, in_memory
        )


def _exact(ids: Any) -> Frequencies:
    keys, counts = np.unique(ids, return_counts=True)
    return Frequencies(keys, counts, len(ids))
