"""`skew_report`: how skewed a DataFrame is, and what to do about it."""

from collections.abc import Sequence

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.checks import require_workers
from unskew.plan import Frequencies, require_sample
from unskew.report import KeyCounts, Report, report_on
from unskew.report.advice import purpose
from unskew.report.counts import TOP
from unskew.spark.keys import key_columns, key_id, key_names, shown_key

BITS = 8  # of a count that the histogram tells apart: counts in a bucket differ by less than 1 %
SHIFT = f"greatest(length(bin(tuples)) - {BITS}, 0)"
BUCKET = f"shiftleft(shiftright(tuples, {SHIFT}), {SHIFT}) AS bucket"  # the count with its other bits cleared


def skew_report(
    df: DataFrame, keys: str | Sequence[str], workers: int, *, for_: str | None = None, sample: float | None = None
) -> Report:
    """Count the keys of `df` and report: how skewed they are, what each scheme would do with `workers` workers, advice.

        print(skew_report(df, "word", workers=64))

    Runs one Spark query, now, that reads the data once: a native ``groupBy(keys).count()``, from which Spark sends only
    the most frequent keys and a histogram of the other counts to the driver. `sample=0.1` counts a tenth of the rows;
    the report then says what is an estimate. Then the schemes are simulated on the driver, in a second or two.

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
    counts = _key_counts(_counted(df, keys, sample))
    return report_on(counts, workers, for_=for_, columns=names, sample=sample or 1.0)


def _counted(df: DataFrame, keys: str | Sequence[str], sample: float | None) -> DataFrame:
    """A few thousand rows: the hottest keys (id, key, tuples), and a histogram of all counts (keys, tuples).

    Both are made from the same counts, whose shuffle Spark does once and uses twice.
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
    return top.union(histogram.select("bucket", *empty, "keys", "tuples"))


def _key_counts(counted: DataFrame) -> KeyCounts:
    """Run the query, and take the hottest keys out of the histogram of all keys."""
    rows = counted.collect()
    top = [row for row in rows if row["id"] is not None]
    tail = {row["bucket"]: [row["keys"], row["tuples"]] for row in rows if row["id"] is None}
    tuples = sum(each for _, each in tail.values())
    for row in top:
        tail[row["bucket"]][0] -= 1
        tail[row["bucket"]][1] -= row["tuples"]
    rest = np.array([bucket for bucket in tail.values() if bucket[0]], np.int64).reshape(-1, 2)
    ids = np.array([row["id"] for row in top], np.int64).view(np.uint64)
    each = np.array([row["tuples"] for row in top], np.int64)
    return KeyCounts(Frequencies(ids, each, tuples, [row["key"] for row in top]), rest[:, 0], rest[:, 1])
