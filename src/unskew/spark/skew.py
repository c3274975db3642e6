"""`skew_report`: how skewed a DataFrame is, and what to do about it."""

import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.checks import require_workers
from unskew.plan import Frequencies, require_sample
from unskew.report import KeyCounts, Report, report_on
from unskew.report.advice import purpose
from unskew.report.counts import TOP
from unskew.report.forecast import MOST_WORKERS as MOST_SIMULATED
from unskew.spark.keys import key_columns, key_id, key_names, shown_key

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
    """Count the keys of `df` and report: how skewed they are, what each scheme would do with `workers` workers, advice.

        print(skew_report(df, "word", workers=64))

    Runs one Spark query, now, that reads the data once: a native ``groupBy(keys).count()``, from which Spark sends only
    the most frequent keys, a histogram of the other counts, and the rows of each partition of ``df.repartition(workers,
    keys)`` to the driver. `sample=0.1` counts a tenth of the rows; the report then says what is an estimate. Then the
    schemes are simulated on the driver, in a second or two.

    Balance is worth something only if the rows are worth something. `row_cost` says what the work on a row takes, in
    seconds; or give the function itself, as for `apply_split`, and it is timed here on up to a thousand rows of `df`
    (a table of them at a time, for about a second). Then whole stages are compared in seconds; else the report says
    from which cost of a row on splitting pays. `cores` is how many workers work at the same time, all by default.

    `for_` says what the rows are grouped for, and changes the advice and what merging partial results is taken to cost:

    - None: not said. Merging a partial result costs as much as processing a row.
    - "aggregate": built-in aggregates such as count and sum. The advice is to do nothing, whatever the skew.
    - "python": expensive Python for each row or key. Merging a partial result costs a tenth of a row.
    - "stateful": a stateful stream, where each replica is a state to be kept. Merging costs as much as a row.
    - "join": a join. Not offered by unskew yet; the advice is about Spark's own skew join.
    """
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
    partition = F.pmod(F.hash(*grouped), F.lit(workers)).cast("bigint").alias("bucket")
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
