"""Heavy hitters: the most frequent keys of a stream, from a SpaceSaving summary per worker (PKG, section 4.2).

A worker counts in bounded memory; a count may be too high by what other keys left in its counter (see `SpaceSaving`).
The count of a key is the sum over the summaries that may have it, and so is its error: one term by hash, two under PKG,
and W if rows go in turn, since then any worker may have seen the key. PKG has few terms and balanced workers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from unskew.aggregates import TopK
from unskew.aggregates.top_k import Counters
from unskew.apps.dealing import mode_of, name_of
from unskew.apps.found import Found, bars, max_over_mean, ranking
from unskew.apps.job import Job
from unskew.apps.samples import MENTIONS, Sample
from unskew.checks import require, require_integer
from unskew.contract import Scheme
from unskew.hashing import candidates_of
from unskew.key_columns import key_ids
from unskew.registry import make
from unskew.sketches.space_saving import count_keys, new_sketch
from unskew.spark import repartition

COMPARED = ("hash", "pkg", "shuffle")
CODE = """summaries = repartition(rows, "key", workers, "pkg").mapInArrow(summarise, "worker int, summary binary")
count = sum(summary.count.get(key, summary.missed) for summary in those_of_its_two_workers)"""


@dataclass(frozen=True)
class Hitter:
    """A key's true count is at most `count` and at least count - error; the error has so many `terms`."""

    key: str
    count: int
    error: int
    terms: int


def summarise(batches: Iterator[pa.Array], counters: int) -> Counters:
    """The summary of a worker that sees these keys, one after the other.

    >>> summarise(iter([pa.array(["a", "b", "a", "c"])]), counters=2)
    Counters(count={'a': 2, 'c': 2}, error={'a': 0, 'c': 1}, missed=2)
    """
    sketch = new_sketch(counters)
    names: dict[int, str] = {}  # of the keys that have a counter
    for keys in batches:
        ids = key_ids(keys)
        count_keys(sketch, ids)
        counted = sketch.counted[: sketch.table.used[0]]
        here, first = np.unique(ids, return_index=True)
        held = np.isin(here, counted)
        names |= dict(zip(here[held].tolist(), keys.take(pa.array(first[held])).to_pylist(), strict=True))
        names = {key: names[key] for key in counted.tolist()}  # those that lost their counter are forgotten
    full = len(names) == counters
    count = {name: int(sketch.counts[i]) for i, name in enumerate(names.values())}
    error = {name: int(sketch.errors[i]) for i, name in enumerate(names.values())}
    return Counters(count, error, min(count.values()) if full else 0)


def summaries_of(
    rows: DataFrame, key: str, workers: int, scheme: str | Scheme, counters: int
) -> list[tuple[Counters, int]]:
    """The summary of each worker, and its rows."""
    sketch = TopK(key, k=1, counters=counters)  # its states are such summaries

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, summary = TaskContext.get(), summarise((batch.column(0) for batch in batches), counters)
        assert task is not None, "only within a task"
        line = {"worker": task.partitionId(), "seen": sum(summary.count.values()), "summary": sketch.to_bytes(summary)}
        yield pa.RecordBatch.from_pylist([line])

    placed = repartition(rows.select(key), key, workers, scheme, mode=mode_of(scheme))
    found = placed.mapInArrow(work, "worker bigint, seen bigint, summary binary").collect()
    return [(sketch.from_bytes(row["summary"]), row["seen"]) for row in sorted(found, key=lambda row: row["worker"])]


def workers_of(keys: Sequence[str], scheme: str | Scheme, workers: int) -> list[list[int]]:
    """The workers that may have seen each key: its candidates under hash and PKG, all of them under other schemes."""
    name = name_of(scheme)
    if name not in ("hash", "pkg") or not keys:
        return [list(range(workers))] * len(keys)
    live: Any = make(scheme, workers) if isinstance(scheme, str) else scheme
    choices = live.choices if name == "pkg" else 1
    first, ids = live.seed * choices, key_ids(pa.array(keys, pa.string()))
    candidates = np.stack([candidates_of(ids, j, workers) for j in range(first, first + choices)], axis=1)
    return [sorted(set(each)) for each in candidates.tolist()]


def merge(summaries: Sequence[Any], scheme: str | Scheme) -> list[Hitter]:
    """All keys that a summary has a counter for, the most frequent first."""
    keys = sorted({key for summary in summaries for key in summary.count})
    found = []
    for key, holders in zip(keys, workers_of(keys, scheme, len(summaries)), strict=True):
        held = [summaries[worker] for worker in holders]
        count = sum(summary.count.get(key, summary.missed) for summary in held)
        error = sum(summary.error.get(key, summary.missed) for summary in held)
        found.append(Hitter(key, count, error, len(held)))
    return sorted(found, key=lambda each: (-each.count, each.key))


def run(job: Job, key: str = "entity", top: int = 20, counters: int = 200) -> Found:
    """Find the `top` keys with `counters` counters per worker; a batch is summarised by hash and in turn as well."""
    require("key", key, "a name of letters, digits and underscores", key.isidentifier())
    require_integer("top", top, 1, 10_000)
    require_integer("counters", counters, 1, 10_000_000)
    scheme = job.scheme or "pkg"
    sample = Sample(
        f"{key} string", lambda numbers, seed: MENTIONS.only("entity").rows(numbers, seed).rename_columns([key])
    )
    rows = job.read(sample).select(key).dropna()
    sketch = TopK(key, k=1, counters=counters)
    compared = {name_of(each): each for each in (*([] if rows.isStreaming else COMPARED), scheme)}
    states: dict[str, list[Any]] = {name: [sketch.zero()] * job.workers for name in compared}
    loads = {name: [0] * job.workers for name in compared}

    def take(batch: DataFrame, number: int) -> None:
        for name, each in compared.items():
            job.say(f"summarising by {name}" + (f", micro-batch {number + 1}" if rows.isStreaming else ""))
            for worker, (summary, seen) in enumerate(summaries_of(batch, key, job.workers, each, counters)):
                states[name][worker] = sketch.merge(states[name][worker], summary)
                loads[name][worker] += seen

    job.each_batch(rows, take)
    hitters = {name: merge(states[name], each) for name, each in compared.items()}
    shown = hitters[name_of(scheme)][:top]
    job.write(pa.Table.from_pylist([asdict(each) for each in shown]))
    lines = [
        {
            "scheme": name,
            "max_over_mean": max_over_mean(loads[name]),
            "terms": max((each.terms for each in hitters[name][:top]), default=0),
            "error": float(np.mean([each.error for each in hitters[name][:top]])) if hitters[name] else 0.0,
        }
        for name in compared
    ]
    total = sum(loads[name_of(scheme)])
    said = [
        f"{total:,} rows, {job.workers} workers with {counters} counters each. The counts of the {len(shown)} most "
        f"frequent keys are too high by at most {max((each.error for each in shown), default=0):,}."
    ]
    columns = {"scheme": "{scheme}", "busiest / mean": "{max_over_mean:.2f}", "error terms": "{terms}"}
    columns["mean bound on the error, rows"] = "{error:,.1f}"
    pictures = [
        (ranking([each.key for each in shown], [each.count for each in shown], "rows"), "The most frequent keys."),
        (bars(loads, "rows"), "Rows of each worker, and their mean."),
    ]
    facts = {"rows": total, "counters": counters, "schemes": lines, "top": [asdict(each) for each in shown]}
    return Found("Heavy hitters", said, columns, lines, facts, pictures, CODE)
