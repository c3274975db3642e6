"""Partitioning functions: what it costs to make the next one, by workers and by tracked keys, and to look a key up.

As in Gedik's paper: Zipf frequencies of a million keys, z = 1, one worker is added to N - 1. Times are the shortest of
three, on one core; the ring of the new function is included. The paper's C++ took under 0.05 s with 10 workers and
sigma 0.1, and at sigma 0.008 about 10 s (readj) and 0.5 s (redist).

    python benchmarks/partitioning.py
"""

import time
from collections.abc import Callable

import numpy as np
from rich.table import Table

from timing import console
from unskew import Frequencies, key_ids
from unskew.partitioning import ALGORITHMS, Objective, PartitionFunction, construct
from unskew.ring import forget_rings

KEYS, TUPLES = 1_000_000, 10**12
HOTTEST = 20_000  # keys that are counted: more than any setting tracks
CASES = [(10, sigma) for sigma in (1.0, 0.1, 0.02, 0.008)] + [(n, 0.1) for n in (20, 50, 100)]
LOOKED_UP = 1_000_000


def shortest(act: Callable[[], object], times: int = 3) -> float:
    """Seconds."""
    taken = []
    for _ in range(times):
        forget_rings()
        started = time.perf_counter()
        act()
        taken.append(time.perf_counter() - started)
    return min(taken)


def main() -> None:
    ranks = np.arange(1, KEYS + 1)
    shares = 1 / ranks / (1 / ranks).sum()
    ids = key_ids(ranks)
    counts = np.rint(shares[:HOTTEST] * TUPLES).astype(np.int64)
    frequencies = Frequencies(ids[:HOTTEST], counts, TUPLES)
    table = Table("N", "sigma", "tracked", *ALGORITHMS, "ring alone", title="constructions, ms", title_justify="left")
    for workers, sigma in CASES:
        goal = Objective("LCL", sigma=sigma)
        row = []
        for algorithm in ALGORITHMS:
            before = construct(PartitionFunction(1), frequencies, workers - 1, goal, algorithm=algorithm)

            def build(before=before, workers=workers, goal=goal, algorithm=algorithm):
                return construct(before, frequencies, workers, goal, algorithm=algorithm).ring

            row.append(f"{1e3 * shortest(build):.1f}")
        ring = shortest(lambda workers=workers: PartitionFunction(workers).ring)  # type: ignore[misc]
        tracked = goal.tracked(frequencies, workers)
        table.add_row(str(workers), f"{sigma:g}", str(tracked), *row, f"{1e3 * ring:.1f}")
    console.print(table)
    function = construct(PartitionFunction(9), frequencies, 10)
    for cold in ("ring", "arcs", "home"):
        other = PartitionFunction(10, function.key_ids, function.placed, cold=cold)
        other.look_up(ids[:10])
        nanoseconds = 1e9 * shortest(lambda other=other: other.look_up(ids[:LOOKED_UP])) / LOOKED_UP  # type: ignore[misc]
        console.print(f"look-up, cold keys by {cold}: {nanoseconds:.0f} ns")


if __name__ == "__main__":
    main()
