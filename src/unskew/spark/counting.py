"""How often keys occur: counted by Spark, in memory that does not grow with the keys where all rows count the same."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import DateType, NumericType, TimestampNTZType, TimestampType

from unskew.checks import is_number
from unskew.errors import InputError
from unskew.frequencies import MOST_HOT_KEYS, Frequencies
from unskew.plan import Plan
from unskew.spark.frames import column, count_of
from unskew.spark.keys import key_columns, key_id, partition_of, shown_key
from unskew.spark.worker_counts import MOST_COUNTERS, count_workers, load_in

OLDEST = 1e6  # epochs: what is older counts for nothing anyway, and fits an integer
COUNTERS_PER_KEY = 16  # of the sketch: for 2,000 keys its error stays under a hundredth of the mean of 200 workers


class Decay(NamedTuple):
    """Recent rows count more: those of the latest epoch fully, those of the one before `alpha` times, and so on.

    Epochs are those of FISH (Algorithm 1), measured in time. Rows without a time (null, NaN, infinity) do not count;
    where no row has one, there is nothing to plan for and `plan_for` refuses the column.

    Parameters
    ----------
    by
        The name of a column of timestamps, dates or numbers.
    epoch
        The length of an epoch in seconds, or in the unit of the numbers.
    alpha
        How much of its weight a row keeps from one epoch to the next: 0 forgets, 1 never does.

    Examples
    --------
    >>> from unskew.spark import Decay, plan_for
    >>> plan = plan_for(df, "word", 4, "fish", decay=Decay(by="v", epoch=100))
    """

    by: str
    epoch: float
    alpha: float = 0.2

    def times(self, df: DataFrame) -> Column:
        """The column `by` as a number, null where it is no time. InputError where a field is not allowed."""
        fields = {field.name: field.dataType for field in df.schema}
        if not isinstance(self.by, str) or self.by not in fields:
            raise InputError(f"decay: {self.by!r} is not a column; allowed are {', '.join(df.columns)}")
        if count_of(df, self.by) > 1:
            raise InputError(f"decay: {self.by!r} names {count_of(df, self.by)} columns; rename all but one")
        kind = fields[self.by]
        if not isinstance(kind, NumericType | DateType | TimestampType | TimestampNTZType):
            raise InputError(f"decay: {self.by!r} must hold timestamps, dates or numbers, not {kind.simpleString()}")
        if not is_number(self.epoch, 0.0, sys.float_info.max) or self.epoch == 0:
            raise InputError(f"decay: epoch must be a number above 0, not {self.epoch!r}")
        if not is_number(self.alpha, 0.0, 1.0):
            raise InputError(f"decay: alpha must be a number from 0 to 1, not {self.alpha!r}")
        moment = column(self.by)
        number = (moment if isinstance(kind, NumericType) else moment.cast("timestamp")).cast("double")
        return F.when(F.abs(number) < F.lit(np.inf), number)  # NaN is not below it either


def count_keys(df: DataFrame, keys: str | Sequence[str], workers: int) -> Frequencies:
    """The most frequent keys with their counts, the number of rows, and the rows of each worker if every key were whole
    on its candidate 0. One Spark job."""
    (row,) = df.agg(*counting(key_columns(df, keys), workers, MOST_HOT_KEYS)).collect()
    return frequencies_in(row, workers, MOST_HOT_KEYS)


def counting(columns: list[Column], workers: int, most: int) -> list[Column]:
    """What Spark aggregates to find the `most` frequent keys; `frequencies_in` reads the row that comes out."""
    home = count_workers(partition_of(workers, *columns, F.lit(0)), workers).alias("home")
    return [count_most_frequent(key_id(*columns), most).alias("top"), home, F.count(F.lit(1)).alias("rows")]


def count_most_frequent(identity: Column, most: int) -> Column:
    """An aggregate that counts the `most` frequent key ids; `frequencies_of` reads what comes out."""
    return F.call_function("approx_top_k", identity, F.lit(most), F.lit(most * COUNTERS_PER_KEY))


def frequencies_in(row: Any, workers: int, most: int) -> Frequencies:
    """What the aggregates of `counting` found."""
    return replace(frequencies_of(row["top"], row["rows"], most), home_load=load_in(row["home"], workers))


def frequencies_of(top: Any, rows: int, most: int) -> Frequencies:
    """What `count_most_frequent` found in so many rows."""
    found = [(each["item"], each["count"]) for each in top or []]
    ids, counts = np.array(found, np.int64).reshape(-1, 2).T
    known = are_known(counts, rows, most)
    ids, counts = ids[known].view(np.uint64), counts[known]
    return Frequencies(ids, counts, max(rows, int(counts.sum())))


def are_known(counts: npt.NDArray[np.int64], rows: int, most: int) -> npt.NDArray[np.bool_]:
    """Which counts of `most` keys say anything: they are above the error of the sketch, and more than chance."""
    return counts > 2 * rows / (most * COUNTERS_PER_KEY)


def _load_of(found: Iterable[tuple[int, int]], workers: int) -> npt.NDArray[np.int64] | None:
    """The load of each worker from pairs of worker and count."""
    if workers > MOST_COUNTERS:
        return None
    load = np.zeros(workers, np.int64)
    for worker, count in found:
        load[worker] = count
    return load


def count_keys_with_decay(df: DataFrame, keys: str | Sequence[str], workers: int, decay: Decay) -> Frequencies:
    """Like `count_keys`, with recent rows counted more; counts are in thousandths of a row. Three Spark jobs."""
    times = decay.times(df)
    ((latest, counted),) = df.agg(F.max(times), F.count(F.lit(1))).collect()
    if latest is None and counted:
        raise InputError(f"decay: {decay.by!r} has no time in any of {counted:,} rows: all are null, NaN or infinite")
    epochs = F.least((F.lit(latest) - times) / F.lit(float(decay.epoch)), F.lit(OLDEST))
    weight = F.coalesce(F.pow(F.lit(float(decay.alpha)), F.floor(epochs)), F.lit(0.0))  # 0 ** 0 is 1
    columns = key_columns(df, keys)
    home = partition_of(workers, *columns, F.lit(0)) if workers <= MOST_COUNTERS else F.lit(0)
    weighed = df.select(key_id(*columns).alias("id"), home.alias("home"), weight.alias("weight"))
    found = weighed.groupBy("id").agg(F.sum("weight").alias("weight"))
    rows = found.orderBy(F.desc("weight"), "id").limit(MOST_HOT_KEYS).collect()
    homes = weighed.groupBy("home").agg(F.sum("weight").alias("weight")).collect()
    at_home = [(row["home"], round(1000 * row["weight"])) for row in homes]
    ids = np.array([row["id"] for row in rows], np.int64).view(np.uint64)
    counts = np.array([round(1000 * row["weight"]) for row in rows], np.int64)
    tuples = max(sum(count for _, count in at_home), int(counts.sum()))
    return Frequencies(ids, counts, tuples, home_load=_load_of(at_home, workers))


def fetch_names(df: DataFrame, keys: str | Sequence[str], plan: Plan) -> Plan:
    """`plan` with the values of its keys as text, which are looked up in `df`. One Spark job."""
    if not plan.hot_keys:
        return plan
    columns = key_columns(df, keys)
    wanted = np.array([hot.key_id for hot in plan.hot_keys], np.uint64).view(np.int64).tolist()
    identified = df.select(key_id(*columns).alias("id"), shown_key(columns).alias("key"))
    rows = identified.where(F.col("id").isin(wanted)).groupBy("id").agg(F.first("key").alias("key")).collect()
    names = {row["id"]: row["key"] for row in rows}
    hot_keys = [hot._replace(key=names.get(id_, "")) for hot, id_ in zip(plan.hot_keys, wanted, strict=True)]
    return replace(plan, hot_keys=tuple(hot_keys))
