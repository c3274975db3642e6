"""Partitions that come back to the executor where they were before, so that a slow executor can be learnt about.

Spark gives a task to any executor that is free, unless the task reads what is cached in one. So there is a cached table
with one row per partition, its *anchor*, and the shuffled rows are joined with it: the join runs where the anchor is.
Spark waits ``spark.locality.wait`` (3 s) for a free core there, then takes another one: with a core per partition no
partition moves.

The table depends on the number of workers alone. Spark recognises it by its plan: each use describes it again and finds
it in the cache, whoever put it there. When it has been dropped from the cache, or an executor has died, partitions get
new places.
"""

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew.errors import InputError
from unskew.hashing import NULL_KEY_ID, salts_for
from unskew.spark.frames import free_name, setting
from unskew.spark.keys import partition_of

ANCHOR = "__unskew_anchor"
LOCALITY = "spark.shuffle.reduceLocality.enabled"


def repartition_at_anchors(df: DataFrame, workers: int, *by: Column | str) -> DataFrame:
    """``df.repartition(workers, *by)``, each partition where its anchor is. Runs a small job if there is none yet."""
    spark, anchor = df.sparkSession, free_name(df, ANCHOR)
    if setting(spark, LOCALITY, "true") != "false":
        raise InputError(
            f"anchored: Spark puts tasks where the shuffled rows are, unless it is started with {LOCALITY}=false"
        )
    # Should the table not be in the cache when this runs, the join would have two plain shuffles below it, and Spark
    # would choose another number of partitions for both. The condition, which always holds, keeps one from being plain.
    anchors = _cache_anchors(spark, workers).withColumnRenamed(ANCHOR, anchor).where(F.spark_partition_id() >= 0)
    worker = partition_of(workers, *by)
    placed = df.withColumn(anchor, _anchor_of(worker, workers)).repartition(workers, anchor)
    return placed.hint("shuffle_hash").join(anchors.hint("shuffle_hash"), anchor).drop(anchor)


def _anchor_of(worker: Column, workers: int) -> Column:
    """A number that falls into partition `worker` by its own hash."""
    return F.get(F.array(*map(F.lit, numbers_of(workers))), worker)


def numbers_of(workers: int) -> list[int]:
    """For each worker a number that falls into its partition by its own hash: ``repartition(workers, number)``."""
    # The hash of a null key is the seed of all hashes, so the salts of a null key are such numbers.
    numbers: list[int] = salts_for(np.full(workers, NULL_KEY_ID), np.arange(workers, dtype=np.int32), workers).tolist()
    return numbers


def _cache_anchors(spark: SparkSession, workers: int) -> DataFrame:
    """The table of anchors, which is in the cache afterwards."""
    number = spark.range(0, workers, 1, 1).select(F.col("id").cast("int").alias("number"))
    table = number.select(_anchor_of(F.col("number"), workers).alias(ANCHOR)).repartition(workers, ANCHOR)
    if not table.storageLevel.useMemory:
        table.cache().count()  # in full, since Spark does not know how a table is partitioned until it has been made
    return table
