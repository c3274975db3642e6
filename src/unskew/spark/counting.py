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
from unskew.spark.keys import column, key_columns, key_id, shown_key

OLDEST = 1e6  # epochs: what is older counts for nothing anyway, and fits an integer
TRACKED_A_KEY = 8  # counters of the sketch for each key asked for: its error stays under a tenth of a hot key's count


class Decay(NamedTuple):
    """Recent rows count more: those of the latest epoch fully, those of the one before `alpha` times, and so on.

    Epochs are those of FISH (Algorithm 1), measured in time: `by` names a column of timestamps, dates or numbers, and
    `epoch` is a length in seconds, or in the unit of the numbers. Rows without a time do not count.

        plan_for(df, "hashtag", 64, "fish", decay=Decay(by="ts", epoch=3600))
    """

    by: str
    epoch: float
    alpha: float = 0.2

    def times(self, df: DataFrame) -> Column:
        """The column `by` as a number, after every reason to refuse the fields."""
        fields = {field.name: field.dataType for field in df.schema}
        if self.by not in fields:
            raise InputError(f"decay: {self.by!r} is not a column; allowed are {', '.join(df.columns)}")
        kind = fields[self.by]
        if not isinstance(kind, NumericType | DateType | TimestampType | TimestampNTZType):
            raise InputError(f"decay: {self.by!r} must hold timestamps, dates or numbers, not {kind.simpleString()}")
        if not is_number(self.epoch, 0.0, sys.float_info.max) or self.epoch == 0:
            raise InputError(f"decay: epoch must be a number above 0, not {self.epoch!r}")
        if not is_number(self.alpha, 0.0, 1.0):
            raise InputError(f"decay: alpha must be a number from 0 to 1, not {self.alpha!r}")
        moment = column(self.by)
        number = (moment if isinstance(kind, NumericType) else moment.cast("timestamp")).cast("double")
        return F.when(F.abs(number) < F.lit(np.inf), number)  # NaN is no time either


def counted(df: DataFrame, keys: str | Sequence[str], workers: int) -> Frequencies:
    """The keys that can be hot with `workers` workers, with their counts, and the number of rows. One Spark job."""
    identity = key_id(*key_columns(df, keys))
    top = _tracked(workers)
    sketch = F.call_function("approx_top_k", identity, F.lit(top), F.lit(TRACKED_A_KEY * top))
    (row,) = df.agg(sketch.alias("top"), F.count(F.lit(1)).alias("rows")).collect()
    found = [(item["item"], item["count"]) for item in row["top"] or []]
    ids = np.array([item for item, _ in found], np.int64).view(np.uint64)
    counts = np.array([count for _, count in found], np.int64)
    return Frequencies(ids, counts, max(row["rows"], int(counts.sum())))


def counted_with_decay(df: DataFrame, keys: str | Sequence[str], workers: int, decay: Decay) -> Frequencies:
    """The same with recent rows counted more; counts are in thousandths of a row. Three Spark jobs."""
    times = decay.times(df)
    (latest,) = df.agg(F.max(times)).first() or (None,)
    epochs = F.least((F.lit(latest) - times) / F.lit(float(decay.epoch)), F.lit(OLDEST))
    weight = F.coalesce(F.pow(F.lit(float(decay.alpha)), F.floor(epochs)), F.lit(0.0))  # 0 ** 0 is 1
    weighed = df.select(key_id(*key_columns(df, keys)).alias("id"), weight.alias("weight"))
    found = weighed.groupBy("id").agg(F.sum("weight").alias("weight"))
    rows = found.orderBy(F.desc("weight"), "id").limit(_tracked(workers)).collect()
    total = weighed.agg(F.sum("weight")).collect()[0][0] or 0.0
    ids = np.array([row["id"] for row in rows], np.int64).view(np.uint64)
    counts = np.array([round(1000 * row["weight"]) for row in rows], np.int64)
    return Frequencies(ids, counts, max(round(1000 * total), int(counts.sum())))


def named(df: DataFrame, keys: str | Sequence[str], frequencies: Frequencies, hot: int) -> Frequencies:
    """The same with the keys' values as text, for the `hot` first ones. One Spark job."""
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
