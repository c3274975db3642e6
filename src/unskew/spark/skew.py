"""`skew_report`: how skewed a DataFrame is, and what to do about it."""

import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.checks import require_workers
from unskew.frequencies import Frequencies
from unskew.plan import require_sample
from unskew.report import KeyCounts, Report, report_on
from unskew.report.advice import purpose
from unskew.report.counts import TOP
from unskew.report.forecast import MOST_WORKERS as MOST_SIMULATED
from unskew.spark.frames import require_batch
from unskew.spark.keys import key_columns, key_id, key_names, partition_of, shown_key

RowFunction = Callable[[pa.Table], object]
MOST_TIMED_ROWS, TIMED_AT_ONCE, ENOUGH_SECONDS = 1000, 50, 1.0
OF_PARTITION = "partition"  # marks a row of a partition, whose number is in the place of the bucket
BITS = 8  # of a count that the histogram tells apart: counts in a bucket differ by less than 1 %
SHIFT = f"greatest(length(bin(tuples)) - {BITS}, 0)"
BUCKET = f"shiftleft(shiftright(tuples, {SHIFT}), {SHIFT}) AS bucket"  # the count with its other bits cleared


def skew_report(
    df: DataFrame,
    keys: str | Sequence[str],
    workers: int,
    *,
    for_: str | None = None,
    sample: float | None = None,
    row_cost: float | RowFunction | None = None,
    cores: int | None = None,
) -> Report:
    """How skewed the keys of `df` are, what each scheme would do with `workers` workers, and what to do about it.

    Runs one Spark query, now, that reads the data once: a native ``groupBy(keys).count()``, from which Spark sends only
    the most frequent keys, a histogram of the other counts, and the rows of each partition of ``df.repartition(workers,
    keys)`` to the driver. Then the schemes are simulated on the driver, which takes a second or two.

    Parameters
    ----------
    df
        The rows, in a batch.
    keys
        The name of the key column, or a list of names.
    workers
        How many workers the rows are for.
    for_
        What the rows are grouped for, which changes the advice and what merging partial results is taken to cost. None:
        not said. "aggregate": built-in aggregates such as count and sum; the advice is to do nothing. "whole": what
        must see all rows of a key, such as a median: keys are placed, never split. "merge": what can be merged.
        "python": expensive Python for each row or key; merging a partial result costs a tenth of a row. "stateful": a
        stateful stream, where each replica is a state to be kept. "join": a join, which unskew does not offer yet; the
        advice is about Spark's own skew join. Where nothing else is said, merging a partial result costs as much as
        processing a row.
    sample
        Count only this share of the rows, such as 0.1. The report then says what is an estimate.
    row_cost
        What the work on a row takes, in seconds, or the function itself, as for `apply_split`: it is then timed here on
        up to a thousand rows of `df` (some at a time, for about a second). Then whole stages are compared
        in seconds; without it, the report says from which cost of a row on splitting pays.
    cores
        How many workers work at the same time; all by default.

    Examples
    --------
    >>> from unskew.spark import skew_report
    >>> report = skew_report(df, "word", workers=4)
    >>> report.tuples, report.keys, report.p1
    (1000, 2, 0.9)

    ``print(report)`` shows it all.
    """
    require_batch(df)
    require_workers(workers)
    purpose(for_)
    require_sample(sample)
    names = key_names(keys)
    counts = _count_keys(df, keys, workers, sample)
    cost = _time_rows(df, row_cost) if callable(row_cost) else row_cost
    return report_on(counts, workers, for_=for_, columns=names, sample=sample or 1.0, row_cost=cost, cores=cores)


def _time_rows(df: DataFrame, function: RowFunction) -> float:
    """Seconds per row that `function` takes, on the first rows of `df`. Runs a Spark job."""
    rows = df.limit(MOST_TIMED_ROWS).toArrow()
    if not rows.num_rows:
        return 0.0
    function(rows.slice(0, 1))  # imports and caches
    done, started = 0, time.perf_counter()
    while done < rows.num_rows and time.perf_counter() - started < ENOUGH_SECONDS:
        part = rows.slice(done, TIMED_AT_ONCE)
        function(part)
        done += part.num_rows
    return (time.perf_counter() - started) / done


def _counting_query(df: DataFrame, keys: str | Sequence[str], workers: int, sample: float | None) -> DataFrame:
    """A few thousand rows: the hottest keys (id, key, tuples), a histogram of all counts (keys, tuples), and the rows
    of each partition by Spark's own hash.

    All are made from the same counts, whose shuffle Spark does once and uses three times.
    """
    columns = key_columns(df, keys)
    rows = df if sample is None else df.sample(sample, seed=0)
    found = rows.groupBy(*(c.alias(f"__unskew_key_{i}") for i, c in enumerate(columns))).agg(
        F.count(F.lit(1)).alias("tuples")
    )
    grouped = [F.col(f"__unskew_key_{i}") for i in range(len(columns))]
    top = (
        found.select(key_id(*grouped).alias("id"), shown_key(grouped).alias("key"), F.lit(1).alias("keys"), "tuples")
        .orderBy(F.desc("tuples"), "id")
        .limit(TOP)
        .select(F.expr(BUCKET), "id", "key", "keys", "tuples")
    )
    histogram = found.groupBy(F.expr(BUCKET)).agg(F.count(F.lit(1)).alias("keys"), F.sum("tuples").alias("tuples"))
    empty = (F.lit(None).cast("bigint").alias("id"), F.lit(None).cast("string").alias("key"))
    counted = top.union(histogram.select("bucket", *empty, "keys", "tuples"))
    if workers > MOST_SIMULATED:
        return counted
    partition = partition_of(workers, *grouped).cast("bigint").alias("bucket")
    # The keys are counted too, else Spark would make one aggregate of the two, and read the data again for it.
    placed = found.groupBy(partition).agg(F.count(F.lit(1)).alias("keys"), F.sum("tuples").alias("tuples"))
    return counted.union(placed.select("bucket", empty[0], F.lit(OF_PARTITION), "keys", "tuples"))


def _count_keys(df: DataFrame, keys: str | Sequence[str], workers: int, sample: float | None) -> KeyCounts:
    """Run the query, and take the hottest keys out of the histogram of all keys."""
    rows = _counting_query(df, keys, workers, sample).collect()
    top = [row for row in rows if row["id"] is not None]
    others = [row for row in rows if row["id"] is None]
    placed = {row["bucket"]: row["tuples"] for row in others if row["key"] == OF_PARTITION}
    tail = {row["bucket"]: [row["keys"], row["tuples"]] for row in others if row["key"] is None}
    tuples = sum(each for _, each in tail.values())
    for row in top:
        tail[row["bucket"]][0] -= 1
        tail[row["bucket"]][1] -= row["tuples"]
    in_partitions = None
    if workers <= MOST_SIMULATED:
        in_partitions = np.array([placed.get(partition, 0) for partition in range(workers)], np.int64)
    rest = np.array([bucket for bucket in tail.values() if bucket[0]], np.int64).reshape(-1, 2)
    ids = np.array([row["id"] for row in top], np.int64).view(np.uint64)
    each = np.array([row["tuples"] for row in top], np.int64)
    return KeyCounts(Frequencies(ids, each, tuples, [row["key"] for row in top]), rest[:, 0], rest[:, 1], in_partitions)
