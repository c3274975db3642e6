"""Mentions in tweets, enriched from a database that takes 25, 5 or 1 ms, by the kind of the entity (POSG, section V-C).

Rows need no key here: any worker can do any of them. But equal numbers of rows are not equal work, and who deals the
rows does not know what one costs. It learns that, by entity, from what the workers measured; see `LearnedCosts`.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.apps.found import Found, bars, lines, max_over_mean
from unskew.apps.job import Job
from unskew.apps.samples import MENTIONS
from unskew.errors import InputError
from unskew.key_columns import key_ids
from unskew.spark import LearnedCosts, map_balanced

COSTS = {"media": 0.025, "politician": 0.005, "other": 0.001}  # seconds, as in the paper; others are all the rest
COST = "CASE kind " + " ".join(f"WHEN '{kind}' THEN {cost}" for kind, cost in COSTS.items()) + " ELSE 0.001 END"
SCHEMA = "tweet bigint, entity string, kind string, followers bigint, worker int"
LEARNED, TOLD, ROUND_ROBIN = SCHEMES = ("learned", "told", "shuffle")
FIRST_LOOK = 2.0  # seconds for timing a few rows of a batch beforehand; a stream learns from batch to batch
CODE = """costs = LearnedCosts("entity")
for batch in micro_batches:  # in foreachBatch
    map_balanced(batch, look_up, SCHEMA, workers, cost=costs).write.parquet(...)
    costs.collect()  # what this batch took, for the next"""


def look_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What the database knows of each mentioned entity. As for ``mapInArrow``; here the database is a nap.

    >>> row = pa.record_batch({"tweet": [1], "entity": ["@other-7"], "kind": ["other"]})
    >>> next(look_up(iter([row])))["followers"].to_pylist()
    [236897]
    """
    task = TaskContext.get()
    for batch in batches:
        time.sleep(sum(COSTS.get(kind, COSTS["other"]) for kind in batch["kind"].to_pylist()))
        followers = key_ids(batch["entity"]) % np.uint64(1_000_000)
        found = {"followers": pa.array(followers, pa.int64())}
        found["worker"] = pa.array([task.partitionId() if task else 0] * batch.num_rows, pa.int32())
        rows = {name: batch[name] for name in ("tweet", "entity", "kind")}
        yield pa.RecordBatch.from_pydict(rows | found)


class Enriching:
    """What was learnt and measured, from one micro-batch to the next."""

    def __init__(self, job: Job, scheme: str) -> None:
        self.job, self.scheme, self.costs = job, scheme, LearnedCosts("entity")
        self.steps: list[dict[str, Any]] = []

    def step(self, mentions: DataFrame, number: int) -> None:
        """Enrich the mentions of a micro-batch and write them."""
        workers = self.job.workers
        if self.scheme == LEARNED and not self.job.source.is_stream:
            self.costs.time_sample(mentions, look_up, seconds=FIRST_LOOK)
        began = time.perf_counter()
        path = self.job.write(self._enriched(mentions, workers), batch=number)
        seconds = time.perf_counter() - began
        if self.scheme == LEARNED:
            self.costs.collect()
        done, in_turn = self.job.spark.read.parquet(str(path)), mentions.repartition(workers)
        work, robin = _work(done, "worker", workers), _work(in_turn, "spark_partition_id()", workers)
        step = {"batch": number + 1, "mentions": done.count(), "seconds": seconds, "work": work, "work_in_turn": robin}
        self.steps.append(step | {"max_over_mean": max_over_mean(work), "in_turn_max_over_mean": max_over_mean(robin)})

    def _enriched(self, mentions: DataFrame, workers: int) -> DataFrame:
        if self.scheme == ROUND_ROBIN:
            return mentions.repartition(workers).mapInArrow(look_up, SCHEMA)
        return map_balanced(mentions, look_up, SCHEMA, workers, self.costs if self.scheme == LEARNED else COST)


def _work(rows: DataFrame, worker: str, workers: int) -> list[float]:
    """Seconds of work that each worker got. `worker` is an expression."""
    placed = rows.select(F.expr(worker).alias("worker"), F.expr(COST).alias("cost")).groupBy("worker")
    found = {row["worker"]: float(row["work"]) for row in placed.agg(F.sum("cost").alias("work")).collect()}
    return [found.get(each, 0.0) for each in range(workers)]


def run(job: Job) -> Found:
    """Enrich the mentions: dealt by costs that are learnt ("learned"), known ("told"), or not at all ("shuffle")."""
    scheme = job.scheme or LEARNED
    if scheme not in SCHEMES:
        raise InputError(
            f"scheme: must be one of {', '.join(SCHEMES)}, since rows have no key here, not {job.scheme!r}"
        )
    enriching = Enriching(job, str(scheme))
    job.each_batch(job.read(MENTIONS), enriching.step)
    return _found(enriching)


def _found(enriching: Enriching) -> Found:
    steps, last = enriching.steps, enriching.steps[-1]
    said = [
        f"{sum(step['mentions'] for step in steps):,} mentions. In the last batch the busiest of {len(last['work'])} "
        f"workers had {last['max_over_mean']:.2f} times the mean of the work; in turn it is "
        f"{last['in_turn_max_over_mean']:.2f}."
    ]
    ours = {LEARNED: "dealt by learnt costs", TOLD: "dealt by known costs", ROUND_ROBIN: "in turn, as run"}[
        enriching.scheme
    ]
    pictures = [(bars({ours: last["work"], "in turn": last["work_in_turn"]}, "seconds of work"), "The last batch.")]
    if len(steps) > 1:
        names = {ours: "max_over_mean", "in turn": "in_turn_max_over_mean"}
        series = {label: [step[name] for step in steps] for label, name in names.items()}
        pictures.append(
            (lines(series, "busiest worker / mean", least=1.0), "1 is perfect. Costs are learnt on the way.")
        )
    columns = {"batch": "{batch}", "mentions": "{mentions:,}", "seconds": "{seconds:.1f}"}
    columns |= {"busiest / mean": "{max_over_mean:.3f}", "in turn": "{in_turn_max_over_mean:.3f}"}
    notes = ["Work is 25, 5 and 1 ms per mention, which the worker spends asleep. Seconds include dealing and writing."]
    facts = {"scheme": enriching.scheme, "batches": steps}
    return Found("Mentions, enriched", said, columns, steps, facts, pictures, CODE, notes)
