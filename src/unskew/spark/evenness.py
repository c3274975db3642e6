"""Whether dealing by content is even: rows that are equal where they are dealt by stay together, hot key or not.

First a look at some rows of hot keys, which costs little: Spark stops reading when it has them. If two are equal
more often than balance allows, all rows are counted by the worker that they would get, by content and by position: two
native passes, without a shuffle. Data whose first rows differ while later ones are equal passes this look;
`measure_balance` shows then what came of it.
"""

from collections import Counter
from math import sqrt

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.plan import Plan
from unskew.spark.dealing import Dealing
from unskew.spark.keys import key_id, partition_of

LOOKED_AT = 20_000  # rows of hot keys: one of a thousand contents per worker comes often enough to be seen
MOST_SPREAD = 0.03  # of the workers' loads, as a share of the mean; the busiest of 64 is then about 8 % above it
MOST_EXCESS = 1.1  # times the busiest worker's load by position, which is always even


def looks_uneven(columns: list[Column], plan: Plan, dealt: Dealing) -> bool:
    """Whether equal rows seem to spread the workers' loads too far. Reads a few rows.

    Rows that are equal fall on the same place. With atoms of shares a_1, a_2, ... that fall on workers at random, the
    load of a worker has the variance (a_1^2 + a_2^2 + ...) / W. That sum is how likely two rows are of the same atom.
    """
    split = [hot for hot in plan.hot_keys if len(set(hot.salts)) > 1]
    ids = [int(np.uint64(hot.key_id).view(np.int64)) for hot in split]
    if not ids:
        return False
    rows = dealt.df.select(key_id(*columns).alias("id"), dealt.turn.alias("turn"))
    seen = rows.where(F.col("id").isin(ids)).limit(LOOKED_AT).collect()
    if len(seen) < 2:
        return False
    alike = sum(count * (count - 1) for count in Counter(map(tuple, seen)).values())  # pairs, each counted twice
    likely = alike / (len(seen) * (len(seen) - 1)) * sum(hot.share for hot in split) ** 2
    return sqrt(likely * plan.workers) > MOST_SPREAD


def measure_max_over_mean(df: DataFrame, columns: list[Column], salt: Column, workers: int) -> float:
    """Rows of the busiest worker over the mean, if rows are placed by the keys and the salt. One pass over the rows."""
    worker = partition_of(workers, *columns, salt)
    loads = [row["count"] for row in df.groupBy(worker.alias("worker")).count().collect()]
    return max(loads) * workers / sum(loads) if loads else 1.0
