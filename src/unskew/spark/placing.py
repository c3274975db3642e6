"""Whole keys on their workers, by native columns: as a partitioning function says, or as level as they can be."""

from collections.abc import Sequence

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.errors import InputError, InputTypeError
from unskew.partitioning import PartitionFunction
from unskew.partitioning.function import PLANNER
from unskew.plan import HotKey, Plan
from unskew.ring import KEY_SALT
from unskew.spark.anchors import numbers_of
from unskew.spark.frames import free_name
from unskew.spark.keys import partition_of
from unskew.spark.lots import packed_at
from unskew.spark.plan_column import MOST_CONSTANTS, salt_of

WORKER = "__unskew_worker"
ARC_BITS = 14  # of 16,384 arcs
NOWHERE = -1  # the worker of a key without an entry, until its hash is looked at


def whole_function(plan: Plan | PartitionFunction, workers: int) -> PartitionFunction:
    """`plan` as a partitioning function for Spark. InputError where it splits a key, or is for other workers."""
    if not isinstance(plan, Plan | PartitionFunction):
        raise InputTypeError(f"plan: must be a Plan or a PartitionFunction, not {type(plan).__name__}")
    if plan.workers != workers:
        raise InputError(f"workers: must be the plan's own {plan.workers}, not {workers}")
    function = PartitionFunction.from_plan(plan) if isinstance(plan, Plan) else plan
    if function.cold == "ring":
        raise InputError("plan: the hash must be 'arcs' or 'home', which Spark has too, not 'ring'")
    if len(function.key_ids) > MOST_CONSTANTS:
        raise InputError(f"plan: must have at most {MOST_CONSTANTS:,} entries, not {len(function.key_ids):,}")
    return function


def worker_of(columns: Sequence[Column], function: PartitionFunction) -> Column:
    """The index of the worker of each row's key."""
    keys = zip(function.key_ids.tolist(), function.placed.tolist(), strict=True)
    entries = tuple(HotKey(key, 0.0, (worker,)) for key, worker in keys)
    explicit = salt_of(list(columns), F.lit(0), Plan(PLANNER, function.workers, entries, cold_salt=NOWHERE))
    cold = cold_worker(columns, function)
    if explicit is None or not entries:
        return cold
    return F.when(explicit == NOWHERE, cold).otherwise(explicit)


def cold_worker(columns: Sequence[Column], function: PartitionFunction) -> Column:
    """The index of the worker of each row's key if it had no entry."""
    if function.cold == "home":
        return partition_of(function.workers, *columns, F.lit(0))
    arc = F.shiftrightunsigned(F.hash(*columns, F.lit(KEY_SALT)), 32 - ARC_BITS)
    return packed_at(np.asarray(function.arc_workers).tolist(), arc)


def place_by(df: DataFrame, columns: Sequence[Column], function: PartitionFunction) -> DataFrame:
    """The rows on the workers of their keys: partition w has those of worker w. No column is added."""
    name = free_name(df, WORKER)
    number = packed_at(numbers_of(function.workers), worker_of(columns, function))
    return df.withColumn(name, number).repartition(function.workers, name).drop(name)
