"""Planned routing: frequencies counted by Spark, a plan made on the driver, and how rows of a hot key are dealt.

A row's salt depends on the row alone when rows are dealt by content or by a column: a task that runs again gives every
row the same salt as before. `plan_column` makes columns of a plan.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.errors import InputError
from unskew.plan import HEAD, MOST_HOT_KEYS, Frequencies, Plan, require_sample
from unskew.scheme import check_plannable, make_plan
from unskew.spark.keys import can_be_hashed, column, key_columns, key_id

TRACKED_A_KEY = 8  # counters of the sketch for each key asked for: its error stays under a tenth of a hot key's count
MOST_NAME = 200  # characters of a key that are kept to show to people
TURNS = 2**30  # after which rows are dealt from the first place on again

CONTENT, POSITION = "content", "position"


def plan_for(
    df: DataFrame,
    keys: str | Sequence[str],
    workers: int,
    scheme: str = "fanout",
    *,
    sample: float | None = None,
    names: bool = True,
    **parameters: Any,
) -> Plan:
    """The plan of `scheme` for the keys of `df`. Runs two Spark jobs: one counts, one fetches the hot keys' names.

    `sample` counts only that share of the rows; what a plan needs to know survives sampling as long as some ten
    thousand rows a worker are left. Without `names` there is no second job, and ``plan.table()`` has key ids only.
    `parameters` are the scheme's.
    """
    check_plannable(scheme, workers, **parameters)
    require_sample(sample)
    rows = df if sample is None else df.sample(sample, seed=0)
    frequencies = _measured(rows, keys, workers)
    if names:
        frequencies = _named(rows, keys, frequencies, frequencies.hot(workers))
    return make_plan(scheme, workers, frequencies, **parameters)


def _measured(df: DataFrame, keys: str | Sequence[str], workers: int) -> Frequencies:
    """The keys that can be hot with `workers` workers, with their counts, and the number of rows."""
    identity = key_id(*key_columns(df, keys))
    top = min(2 * HEAD * workers, 2 * MOST_HOT_KEYS)
    counted = F.call_function("approx_top_k", identity, F.lit(top), F.lit(TRACKED_A_KEY * top))
    (row,) = df.agg(counted.alias("top"), F.count(F.lit(1)).alias("rows")).collect()
    found = [(item["item"], item["count"]) for item in row["top"] or []]
    ids = np.array([item for item, _ in found], np.int64).view(np.uint64)
    counts = np.array([count for _, count in found], np.int64)
    return Frequencies(ids, counts, max(row["rows"], int(counts.sum())))


def _named(df: DataFrame, keys: str | Sequence[str], frequencies: Frequencies, hot: int) -> Frequencies:
    """The same with the keys' values as text, for the `hot` first ones."""
    if not hot:
        return frequencies
    columns = key_columns(df, keys)
    wanted = [int(i) for i in frequencies.key_ids[:hot].view(np.int64)]
    shown = F.concat_ws(
        ", ", *(F.coalesce(F.substring(c.cast("string"), 1, MOST_NAME), F.lit("null")) for c in columns)
    )
    identified = df.select(key_id(*columns).alias("id"), shown.alias("key"))
    rows = identified.where(F.col("id").isin(wanted)).groupBy("id").agg(F.first("key").alias("key")).collect()
    names = {np.uint64(np.int64(row["id"])): row["key"] for row in rows}
    return Frequencies(
        frequencies.key_ids,
        frequencies.counts,
        frequencies.messages,
        [names.get(i, "") for i in frequencies.key_ids],
    )


def dealing(df: DataFrame, keys: list[str], deal: str | None) -> tuple[Column, bool]:
    """The int from 0 on by which the rows of a hot key take their places, and whether it is the row's position."""
    others = [field.name for field in df.schema if field.name not in keys and can_be_hashed(field.dataType)]
    if deal == POSITION or (deal is None and not others):
        return _turn(F.monotonically_increasing_id()), True
    if deal == CONTENT or deal is None:
        if not others:
            raise InputError("deal: there is no column but the keys to deal by; allowed is 'position'")
        return _turn(F.xxhash64(*map(column, others))), False
    if deal not in others:
        raise InputError(f"deal: must be 'content', 'position' or one of {', '.join(others) or '-'}, not {deal!r}")
    return _turn(F.xxhash64(column(deal))), False


def _turn(number: Column) -> Column:
    """The low bits of a bigint as an int, which is quicker to divide; of a position, the row's number in its task."""
    return number.bitwiseAND(F.lit(TURNS - 1)).cast("int")
