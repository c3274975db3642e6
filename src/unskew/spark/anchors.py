"""Partitions that come back to the executor where they were before, so that a slow executor can be learnt about.

Spark gives a task to any executor that is free, unless the task reads what is cached in one. So there is a cached table
of one row a partition, an *anchor*, and the shuffled rows are joined with it: the join runs where the anchor is. Spark
waits ``spark.locality.wait`` (3 s) for a free core there, and then moves on: with one partition a core nothing moves.
When an executor dies, its anchors are cached elsewhere by the next run.
"""

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew.errors import InputError
from unskew.hashing import NULL_KEY_ID, salts_for
from unskew.spark.keys import free_name

SLOT = "__unskew_slot"
LOCALITY = "spark.shuffle.reduceLocality.enabled"


class Anchors:
    def __init__(self, spark: SparkSession, workers: int) -> None:
        if spark.conf.get(LOCALITY, "true") != "false":
            raise InputError(
                f"anchored: Spark puts tasks where the shuffled rows are, unless it is started with {LOCALITY}=false"
            )
        self._workers = workers
        # The hash of a null key is the seed of all: a salt for it is a number that itself falls into partition w.
        self._slots = salts_for(np.full(workers, NULL_KEY_ID), np.arange(workers, dtype=np.int32), workers).tolist()
        table = spark.createDataFrame([(slot,) for slot in self._slots], f"{SLOT} int")
        self._anchors = table.repartition(workers, SLOT).cache()
        self._anchors.count()  # else Spark does not know yet how the table is partitioned, and would shuffle it again

    def shuffled(self, df: DataFrame, *by: Column | str) -> DataFrame:
        """``df.repartition(workers, *by)``, each partition where its anchor is."""
        slots = F.array(*map(F.lit, self._slots))
        worker = F.pmod(F.hash(*by), F.lit(self._workers))
        slot = free_name(df, SLOT)
        placed = df.withColumn(slot, F.get(slots, worker)).repartition(self._workers, slot)
        return placed.join(self._anchors.withColumnRenamed(SLOT, slot).hint("shuffle_hash"), slot).drop(slot)
