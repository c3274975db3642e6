"""Rows of different cost on Spark: `map_balanced` against what users do otherwise. The work is emulated by sleeping.

(a) The application of the POSG paper (section V-C): a stream of entities, of which a third each takes 25, 5 and 1 ms
    per row (the paper has three such classes, but does not say how many entities each has), in micro-batches, over k
    workers. Costs are learnt from 20,000 rows before, and from each micro-batch for the next. Round robin is Spark's
    own `repartition(k)`. The makespan of a micro-batch is the work of its busiest worker. Completion times: rows come
    at 95 % of the rate that k workers can do, in steps of a micro-batch, which waits for the one before; what Spark
    needs besides is left out. The paper's tuples come one by one, 500,000 of them, over which queues grow: see
    docs/papers/deployments.md, which tells why its speed-up is not to be had here.
(b) 2,000 documents whose costs span three orders of magnitude, 16 workers, costs told. The wall time is that of the
    whole job, dealing included; beside it that of the same job where every document costs a millionth: what the job
    itself takes, whatever the work is.
(c) Costs that change tenfold in mid-stream.

Verdicts, written down before the first run: (a) makespan and mean completion time shorter than by round robin for every
k from 2 to 10 (published: completion 1.37 times as fast on average, 1.16 times at k = 10); (b) the busiest worker
within 1.05 of the lower bound, and the wall time too, in the mean of the rounds; (c) within 1.10 of the lower bound
again in the second micro-batch after the change.

    python benchmarks/spark_uneven_work.py [--quick] [--exact | --only documents | --only entities]
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.table import Table

from timing import console
from unskew import key_ids
from unskew.longest_first import longest_first
from unskew.sketches.mean_costs import learn, mean_costs_of, new_mean_costs
from unskew.spark import LearnedCosts, map_balanced
from unskew.spark.local import local_spark
from unskew.spark.timed_costs import COLUMNS, ROWS
from unskew.streams import Zipf

ENTITIES, EXPONENT = 35_000, 0.9  # the hottest has 6.5 % of the rows, as the paper's
CLASSES = np.array([25.0, 5.0, 1.0])  # ms per row
AFTER = np.array([2.5, 5.0, 10.0])  # ms: one class costs a tenth, one ten times as much
W = 16
RATE = 0.95  # at which rows come, over what the workers can do
SCHEMA = "worker int, finished double, began double, cost double"
Batches = Iterator[pa.RecordBatch]
Way = Callable[[DataFrame, int], DataFrame]


def nap(batches: Batches) -> Batches:
    """Sleeps for each row as long as it costs, and tells when each was done."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    began, late = None, 0.0
    for batch in batches:
        costs, finished = batch["cost"].to_numpy(), np.empty(batch.num_rows)
        due = time.time() - late  # a nap that took too long makes the next one shorter, of the next batch too
        began = began or due
        for row, cost in enumerate(costs):
            due += cost / 1000
            time.sleep(max(0.0, due - time.time()))
            finished[row] = time.time()
        late = max(0.0, time.time() - due)
        worker = np.full(batch.num_rows, context.partitionId(), np.int32)
        first = np.full(batch.num_rows, began)
        yield pa.RecordBatch.from_arrays([pa.array(each) for each in (worker, finished, first, costs)], SCHEMA_NAMES)


SCHEMA_NAMES = [part.split()[0] for part in SCHEMA.split(", ")]


class Run(NamedTuple):
    """What one micro-batch took, in seconds."""

    mean: float  # until a row is done, from the beginning of the work on
    makespan: float  # of the work of the busiest worker
    bound: float  # below which no makespan can be
    wall: float  # of the whole job, dealing included


def run(made: Callable[[], DataFrame], workers: int) -> Run:
    started = time.perf_counter()
    done = made().toArrow()
    wall = time.perf_counter() - started
    finished, began, cost = (done[name].to_numpy() for name in ("finished", "began", "cost"))
    total = np.bincount(done["worker"].to_numpy(), cost) / 1000
    bound = max(cost.sum() / workers, cost.max()) / 1000
    return Run(float((finished - began).mean()), float(total.max()), float(bound), wall)


def entities(rows: int, seed: int) -> np.ndarray:
    return np.concatenate([chunk.keys for chunk in Zipf(EXPONENT, ENTITIES, rows, seed=seed).chunks()]).astype(np.int64)


def micro_batch(spark: SparkSession, rows: int, seed: int, classes: np.ndarray) -> DataFrame:
    """Entities, numbered so that rows differ; an entity's class is drawn once and for all."""
    of_entity = np.random.default_rng(7).integers(0, 3, ENTITIES + 1)
    keys = entities(rows, seed)
    table = pa.table({"row": np.arange(rows), "entity": keys, "cost": classes[of_entity[keys % (ENTITIES + 1)]]})
    df = spark.createDataFrame(table).repartition(2).cache()
    df.count()
    return df


def round_robin(df: DataFrame, workers: int) -> DataFrame:
    return df.repartition(workers).mapInArrow(nap, SCHEMA)


def learn_history(spark: SparkSession, rows: int, path: Path) -> None:
    """Learn from rows that came before, and save it."""
    known = LearnedCosts("entity")
    map_balanced(micro_batch(spark, rows, 1000, CLASSES), nap, SCHEMA, W, known).count()
    known.collect()
    known.save(path)


def learnt(
    spark: SparkSession, rows: int, workers: int, costs: list[np.ndarray], history: Path
) -> list[tuple[Run, Run]]:
    """Round robin and learnt costs, micro-batch by micro-batch."""
    known, found = LearnedCosts.load(history), []
    for number, classes in enumerate(costs):
        df = micro_batch(spark, rows, number, classes)
        plain = run(lambda df=df: round_robin(df, workers), workers)
        ours = run(lambda df=df: map_balanced(df, nap, SCHEMA, workers, known), workers)
        known.collect()
        found.append((plain, ours))
        df.unpersist()
    return found


def mean_completion(runs: list[Run]) -> float:
    """Of a row, from its arrival on, where micro-batches come at `RATE` and wait for each other."""
    every = np.mean([each.bound for each in runs]) / RATE
    ended, completions = 0.0, []
    for number, each in enumerate(runs, start=1):
        began = max(ended, number * every)  # its rows came since the one before, in the middle half of `every` earlier
        completions.append(began - number * every + every / 2 + each.mean)
        ended = began + each.makespan
    return float(np.mean(completions))


def entity_stream(spark: SparkSession, rows: int, batches: int, history: Path) -> None:
    title = f"(a) {batches} micro-batches of {rows:,} rows"
    heads = (
        "k",
        "completion s, round robin",
        "ours",
        "speed-up",
        "makespan s, round robin",
        "ours",
        "at best",
        "speed-up",
    )
    table = Table(*heads, title=title, title_justify="left")
    completion, makespan = [], []
    for workers in range(2, 11):
        console.print(f"  k = {workers}")
        runs = learnt(spark, rows, workers, [CLASSES] * batches, history)
        plain, ours = ([pair[way] for pair in runs] for way in (0, 1))
        waited = mean_completion(plain), mean_completion(ours)
        worked = np.mean([each.makespan for each in plain]), np.mean([each.makespan for each in ours])
        completion.append(waited[0] / waited[1])
        makespan.append(worked[0] / worked[1])
        at_best = np.mean([each.bound for each in ours])
        numbers = (*waited, completion[-1], *worked, at_best, makespan[-1])
        table.add_row(str(workers), *(f"{number:.2f}" for number in numbers))
    console.print(table)
    console.print(
        f"completion {np.mean(completion):.2f} times as fast on average (published 1.37), {completion[-1]:.2f} at "
        f"k = 10 (published 1.16), makespan {np.mean(makespan):.2f} times; shorter for every k: completion "
        f"{min(completion) > 1}, makespan {min(makespan) > 1}"
    )


def documents(spark: SparkSession, seconds: float, rounds: int) -> None:
    units = np.exp(np.random.default_rng(0).uniform(0, np.log(1000), 2000))
    cost = units * (seconds * 1000 * W / units.sum())
    df = spark.createDataFrame(pa.table({"id": np.arange(2000), "cost": cost})).repartition(4).cache()
    df.count()
    ways: dict[str, Way] = {
        f"df.repartition({W})": round_robin,
        f"df.repartition({W}, 'id')": lambda df, workers: df.repartition(workers, "id").mapInArrow(nap, SCHEMA),
        f"df.repartition({8 * W})": lambda df, workers: df.repartition(8 * workers).mapInArrow(nap, SCHEMA),
        "map_balanced, told": lambda df, workers: map_balanced(df, nap, SCHEMA, workers, "cost"),
    }
    bound = max(cost.sum() / W, cost.max()) / 1000
    heads = ("way", "busiest worker s", "over the bound", "wall s", "over the bound", "job without the work s")
    table = Table(*heads, title=f"(b) 2,000 documents, {W} workers, lower bound {bound:.2f} s", title_justify="left")
    idle = df.withColumn("cost", df.cost / 1e6).cache()
    idle.count()
    for name, way in ways.items():
        console.print(f"  {name}")
        empty = [run(lambda way=way: way(idle, W), W).wall for _ in range(rounds + 1)][1:]
        runs = [run(lambda way=way: way(df, W), W) for _ in range(rounds)]
        walls = [each.wall for each in runs]
        small = "128" in name  # its tasks are taken by whoever is free
        busiest = "-" if small else f"{runs[0].makespan:.2f}"
        over = "-" if small else f"{runs[0].makespan / bound:.3f}"
        shown = [" ".join(f"{wall:.2f}" for wall in each) for each in (walls, empty)]
        table.add_row(name, busiest, over, shown[0], f"{np.mean(walls) / bound:.3f}", shown[1])
    console.print(table)


def exact_times(rows: int = 1000, batches: int = 20, before: int = 20_000) -> None:
    """(a) without Spark, with exact times: what learning can be worth where a nap takes as long as it should."""
    of_entity = np.random.default_rng(7).integers(0, 3, ENTITIES + 1)
    sketches, history = new_mean_costs(ROWS, COLUMNS), entities(before, 1000)
    learn(sketches, key_ids(history), 1.0, CLASSES[of_entity[history]])
    table = Table(
        "k", "round robin", "learnt", "told", title=f"(a) with exact times, {rows:,} rows: over the lower bound"
    )
    for workers in range(2, 11):
        over: dict[str, list[float]] = {"round robin": [], "learnt": [], "told": []}
        for number in range(batches):
            keys = entities(rows, number)
            costs = CLASSES[of_entity[keys]]
            in_turn = np.random.default_rng(number).permutation(rows) % workers
            estimated = longest_first(mean_costs_of(sketches, key_ids(keys)), workers).workers
            known = longest_first(costs, workers).workers
            bound = max(costs.sum() / workers, costs.max())
            for name, chosen in (("round robin", in_turn), ("learnt", estimated), ("told", known)):
                over[name].append(np.bincount(chosen, costs, workers).max() / bound)
        table.add_row(str(workers), *(f"{np.mean(each):.3f}" for each in over.values()))
    console.print(table)


def change(spark: SparkSession, rows: int, history: Path) -> None:
    table = Table("micro-batch", "costs, ms", "round robin", "learnt", title="(c) busiest worker over the lower bound")
    costs = [CLASSES] * 3 + [AFTER] * 4
    for number, (plain, ours) in enumerate(learnt(spark, rows, 8, costs, history), start=1):
        shown = ", ".join(f"{each:g}" for each in costs[number - 1])
        table.add_row(str(number), shown, f"{plain.makespan / plain.bound:.3f}", f"{ours.makespan / ours.bound:.3f}")
    console.print(table)


def main(
    rows: int = 1000, batches: int = 5, seconds: float = 60.0, rounds: int = 3, before: int = 20_000, only: str = ""
) -> None:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    if not only:
        exact_times()
    settings = {"spark.master": f"local[{W}]"}  # task threads that mostly sleep
    with tempfile.TemporaryDirectory(prefix="unskew-bench-") as folder, local_spark(Path(folder), settings) as spark:
        run(lambda: round_robin(micro_batch(spark, 64, 0, CLASSES / 25), W), W)  # Python starts
        if only != "entities":
            documents(spark, seconds, rounds)
        if only == "documents":
            return
        history = Path(folder) / "costs.json"
        learn_history(spark, before, history)
        change(spark, rows, history)
        entity_stream(spark, rows, batches, history)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds")
    parser.add_argument("--exact", action="store_true", help="only the forecast with exact times, without Spark")
    parser.add_argument("--only", choices=["documents", "entities"], default="", help="(b); or (a) and (c)")
    options = parser.parse_args()
    if options.exact:
        exact_times()
        raise SystemExit
    main(*((400, 3, 20.0, 2) if options.quick else ()), only=options.only)
