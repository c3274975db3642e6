"""How often keys occur: counted by Spark, in memory that does not grow with the keys where all rows count the same."""

import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import DateType, NumericType, TimestampNTZType, TimestampType

from unskew.checks import is_number
from unskew.errors import InputError
from unskew.plan import HEAD, MOST_HOT_KEYS, Frequencies
from unskew.spark.frames import column, count_of
from unskew.spark.keys import key_columns, key_id, shown_key

OLDEST = 1e6  # epochs: what is older counts for nothing anyway, and fits an integer
TRACKED_PER_KEY = 8  # counters of the sketch for each key asked for: its error stays under a tenth of a hot key's count


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
    """The keys that can be hot with `workers` workers, with their counts, and the number of rows. One Spark job."""
    identity = key_id(*key_columns(df, keys))
    top = _tracked(workers)
    sketch = F.call_function("approx_top_k", identity, F.lit(top), F.lit(TRACKED_PER_KEY * top))
    (row,) = df.agg(sketch.alias("top"), F.count(F.lit(1)).alias("rows")).collect()
    found = [(item["item"], item["count"]) for item in row["top"] or []]
    ids = np.array([item for item, _ in found], np.int64).view(np.uint64)
    counts = np.array([count for _, count in found], np.int64)
    return Frequencies(ids, counts, max(row["rows"], int(counts.sum())))


def count_keys_with_decay(df: DataFrame, keys: str | Sequence[str], workers: int, decay: Decay) -> Frequencies:
    """Like `count_keys`, with recent rows counted more; counts are in thousandths of a row. Three Spark jobs."""
    times = decay.times(df)
    ((latest, counted),) = df.agg(F.max(times), F.count(F.lit(1))).collect()
    if latest is None and counted:
        raise InputError(f"decay: {decay.by!r} has no time in any of {counted:,} rows: all are null, NaN or infinite")
    epochs = F.least((F.lit(latest) - times) / F.lit(float(decay.epoch)), F.lit(OLDEST))
    weight = F.coalesce(F.pow(F.lit(float(decay.alpha)), F.floor(epochs)), F.lit(0.0))  # 0 ** 0 is 1
    weighed = df.select(key_id(*key_columns(df, keys)).alias("id"), weight.alias("weight"))
    found = weighed.groupBy("id").agg(F.sum("weight").alias("weight"))
    rows = found.orderBy(F.desc("weight"), "id").limit(_tracked(workers)).collect()
    total = weighed.agg(F.sum("weight")).collect()[0][0] or 0.0
    ids = np.array([row["id"] for row in rows], np.int64).view(np.uint64)
    counts = np.array([round(1000 * row["weight"]) for row in rows], np.int64)
    return Frequencies(ids, counts, max(round(1000 * total), int(counts.sum())))


def fetch_names(df: DataFrame, keys: str | Sequence[str], frequencies: Frequencies, hot: int) -> Frequencies:
    """`frequencies` with the values of the first `hot` keys as text, which are looked up in `df`. One Spark job."""
    if not hot:
        return frequencies
    columns = key_columns(df, keys)
    wanted = [int(i) for i in frequencies.key_ids[:hot].view(np.int64)]
    identified = df.select(key_id(*columns).alias("id"), shown_key(columns).alias("key"))
    rows = identified.where(F.col("id").isin(wanted)).groupBy("id").agg(F.first("key").alias("key")).collect()
    names = {np.uint64(np.int64(row["id"])): row["key"] for row in rows}
    return Frequencies(
        frequencies.key_ids,
        frequencies.counts,
        frequencies.tuples,
        [names.get(i, "") for i in frequencies.key_ids],
    )


def _tracked(workers: int) -> int:
    """How many keys are looked at: more than can be hot."""
    return min(2 * HEAD * workers, 2 * MOST_HOT_KEYS)
