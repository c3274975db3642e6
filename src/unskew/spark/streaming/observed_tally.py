"""What workers tell of their keys as an observed metric: for Spark Connect, and for keys of every type.

A task tells in rows at its end, which are observed and taken out again. They hold keys, and Spark hashes these few.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from unskew.spark.keys import key_id, shown_key
from unskew.spark.mapping import Batches, CountingWork, arrow_schema, map_in_arrow, nullable, result_schema
from unskew.spark.streaming.seen import names_in
from unskew.spark.streaming.tally import Tally, Told
from unskew.spark.telling import DONE, and_tell, with_done, without_done

TOLD = "told"  # the metric: what each worker told


def work_and_observe(
    df: DataFrame,
    function: CountingWork,
    schema: StructType | str,
    keys: Sequence[str],
    workers: int,
    metrics: str,
    version: Column,
) -> DataFrame:
    """What the function makes of the rows of each worker. What workers tell is observed by the name `metrics`: a row
    for each listed key, and one for all keys together, which has the version of the plan."""
    key_type = nullable(StructType([StructField(str(i), df.schema[name].dataType) for i, name in enumerate(keys)]))
    fields = {"rows": LongType(), "key": key_type, "named": BooleanType()}
    told_type = StructType([StructField(name, kind) for name, kind in fields.items()])
    with_told = with_done(df, result_schema(df, schema), told_type)
    done = map_in_arrow(df, _telling(function, list(keys), arrow_schema(with_told), workers), with_told)
    told, key = F.col(DONE), [F.col(DONE)["key"][name] for name in key_type.names]
    of_all = told["key"].isNull()
    row = F.struct(
        F.spark_partition_id().alias("worker"),
        F.when(of_all, F.lit(workers)).alias("workers"),
        F.when(of_all, version).alias("version"),
        told["rows"].alias("rows"),
        F.when(~of_all, key_id(*key)).alias("id"),
        F.when(told["named"], shown_key(key)).alias("key"),
    )
    observed = done.withColumn(DONE, F.when(told.isNotNull(), row)).observe(metrics, F.collect_list(DONE).alias(TOLD))
    return without_done(observed)


def told_in(metrics: Any, workers: int) -> tuple[dict[int, Told], int]:
    """What each worker told, and the version of the plan. Nothing if it is of a query before this one, heard late."""
    found: dict[int, list[Any]] = {}
    told = (metrics[TOLD] or []) if TOLD in metrics else []
    for row in told:
        if row["id"] is None:  # comes first; once more if the task was retried, and then the last time counts
            found[row["worker"]] = []
        found[row["worker"]].append(row)
    first = next(iter(found.values()), None)
    if first is None or first[0]["workers"] != workers:
        return {}, 0
    return {worker: _told(*rows) for worker, rows in found.items()}, int(first[0]["version"])


def told_rows(tally: Tally, kind: pa.StructType) -> pa.StructArray | None:
    """What a task tells, as rows: all of its rows, then those of each listed key. None where it had no rows."""
    listed = tally.listed()
    if listed is None:
        return None
    rows, keys, counts = listed
    key_kind = kind.field("key").type
    values = [keys[i].combine_chunks().cast(field.type) for i, field in enumerate(key_kind)]
    key = pa.concat_arrays([pa.nulls(1, key_kind), pa.StructArray.from_arrays(values, fields=list(key_kind))])
    named = (np.arange(len(key)) - 1 < tally.most_named) & key.is_valid().to_numpy(False)
    told = [pa.array([rows, *counts], pa.int64()), key, pa.array(named)]
    return pa.StructArray.from_arrays(told, fields=list(kind))


def _telling(function: CountingWork, keys: list[str], schema: pa.Schema, workers: int) -> Callable[[Batches], Batches]:
    """The function, whose task tells of its keys at the end."""

    def work(batches: Batches) -> Batches:
        tally = Tally(keys, workers)
        kind = schema.field(DONE).type
        yield from and_tell(function(batches, tally.add), schema, lambda: told_rows(tally, kind))

    return work


def _told(of_all: Any, *listed: Any) -> Told:
    ids, counts = ([row[name] for row in listed] for name in ("id", "rows"))
    names = names_in([row for row in reversed(listed) if row["key"] is not None])  # the most frequent of an id wins
    return Told(of_all["rows"], ids, counts, names)
