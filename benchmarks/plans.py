"""Plans of fanout: how level the load is, at how many replicas, in how many entries, and what making one costs.

A plan is made as on Spark: of the 2,000 most frequent keys, and of the load of all keys at home. A router then follows
it through the whole stream. Replicas are over the fewest of perfect balance, sum over keys of max(1, ceil(p_k W)). "Not
counted" is max/mean if only the 2,000 keys are known, and "hash" if every key is whole at home.

    python benchmarks/plans.py [--data FOLDER]

FOLDER holds the real streams: Parquet files with a column `key`.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.table import Table

from timing import console
from unskew import Frequencies, Plan, Router, follow_plan, key_ids, make, make_plan
from unskew.frequencies import MOST_HOT_KEYS
from unskew.hashing import KeyIds
from unskew.streams import File, Stream, Zipf

KEYS, TUPLES = 100_000, 5_000_000
EXPONENTS = (0.8, 1.0, 1.2, 1.4, 2.0)
WORKERS = (10, 50, 100)
REAL = ("congress_hashtags", "orm_busy", "reddit_domains", "slashdot0902_edges", "stocknet_cashtags")
GOAL, GOAL_REPLICAS = 1.01, 1.05


def streams(data: Path | None) -> Iterator[tuple[str, Stream]]:
    for z in EXPONENTS:
        yield f"Zipf {z}", Zipf(z, KEYS, TUPLES)
    for name in REAL if data else ():
        if data and (data / f"{name}.parquet").is_file():
            yield name, File(str(data / f"{name}.parquet"), key="key")


def measured(ids: KeyIds, workers: int) -> tuple[Frequencies, npt.NDArray[np.int64]]:
    """What Spark counts, and the counts of all keys."""
    keys, counts = np.unique(ids, return_counts=True)
    home_load = np.bincount(Router(make("hash", workers)).route(keys), counts, workers).astype(np.int64)
    top = np.argsort(-counts, kind="stable")[:MOST_HOT_KEYS]
    return Frequencies(keys[top], counts[top], len(ids), home_load=home_load), counts


def level_of(plan: Plan, ids: KeyIds) -> float:
    """max/mean of the load when a router follows the plan."""
    load = np.bincount(Router(follow_plan(plan)).route(ids), minlength=plan.workers)
    return float(load.max() / load.mean())


def main(data: Path | None = None) -> None:
    columns = ("max/mean", "replicas", "entries", "places", "not counted", "hash", "ms", "")
    table = Table("stream", "W", *columns, title="plans of fanout", title_justify="left")
    for name, stream in streams(data):
        ids = np.concatenate([key_ids(chunk.keys) for chunk in stream.chunks(1_000_000)])
        for workers in WORKERS:
            frequencies, counts = measured(ids, workers)
            not_counted = level_of(make_plan("fanout", workers, replace(frequencies, home_load=None)), ids)
            started = time.perf_counter()
            plan = make_plan("fanout", workers, frequencies)
            ms = 1e3 * (time.perf_counter() - started)
            level = level_of(plan, ids)
            replicas = len(counts) + sum(len(set(plan.workers_of(hot))) - 1 for hot in plan.hot_keys)
            fewest = np.maximum(1, np.ceil(counts * workers / len(ids))).sum()
            places = sum(len(hot.salts) for hot in plan.hot_keys)
            hashed = level_of(make_plan("hash", workers, frequencies), ids)
            reached = level <= GOAL and replicas <= GOAL_REPLICAS * fewest
            shown = f"{level:.4f}", f"{replicas / fewest:.4f}", f"{len(plan.hot_keys)}", f"{places:,}"
            others = f"{not_counted:.3f}", f"{hashed:.2f}", f"{ms:.1f}", "ok" if reached else "MISSED"
            table.add_row(name, str(workers), *shown, *others)
    console.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="the folder of real streams")
    main(parser.parse_args().data)
