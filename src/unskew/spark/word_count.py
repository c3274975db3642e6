"""Counting words over W workers, grouped by a scheme: what `unskew demo` runs on a local Spark.

The way to run expensive work per row or per key: the shuffle puts each row on its worker, the worker goes through its
whole partition at once (`mapInArrow`; calling Python group by group costs about a millisecond a group), and the partial
results of a key are merged in a second, small shuffle.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from unskew.spark.routing import SALT, salted


class Counted(NamedTuple):
    """The counts of all words, and what it took to get them."""

    words: dict[str, int]
    load: list[int]  # rows that each worker got
    replicas: int  # (worker, word) pairs that held a count
    seconds: float


def grouped(df: DataFrame, scheme: str, workers: int) -> DataFrame:
    """The rows of `df` on their workers: Spark's own hash or round robin, or an unskew scheme such as ``pkg``."""
    if scheme == "hash":
        return df.repartition(workers, "word")
    if scheme == "shuffle":
        return df.repartition(workers)
    return salted(df, "word", workers, scheme, mode="online").repartition(workers, "word", SALT).drop(SALT)


def count_words(df: DataFrame, scheme: str, workers: int) -> Counted:
    """Group the column ``word`` of `df` over the workers, count on each, merge. One Spark job, timed as a whole."""
    start = time.perf_counter()
    partial = grouped(df.select("word"), scheme, workers).mapInArrow(_count_partition, "word string, count bigint")
    seen = Observation()  # takes notes of the partial results while they pass
    loads = [
        F.sum(F.when(F.col("worker") == w, F.col("count")).otherwise(0)).alias(f"load_{w}") for w in range(workers)
    ]
    partial = partial.withColumn("worker", F.spark_partition_id()).observe(seen, F.count("*").alias("replicas"), *loads)
    merged = partial.groupBy("word").agg(F.sum("count").alias("count")).toArrow()
    seconds = time.perf_counter() - start
    words = dict(zip(merged["word"].to_pylist(), merged["count"].to_pylist(), strict=True))
    load = [seen.get[f"load_{worker}"] for worker in range(workers)]
    return Counted(words, load, seen.get["replicas"], seconds)


def _count_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The words of one worker's partition with their counts."""
    counts = [
        pa.table(dict(zip(["word", "count"], batch["word"].value_counts().flatten(), strict=True))) for batch in batches
    ]
    if counts:
        total = pa.concat_tables(counts).group_by("word", use_threads=False).aggregate([("count", "sum")])
        yield from total.rename_columns({"count_sum": "count"}).to_batches()
