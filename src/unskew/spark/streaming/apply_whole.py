"""`apply_whole` on a stream: Spark's state store collects the rows of each key and window, and gives them back whole.

State cannot move from one state partition to another while a query runs. So the state has nothing to do with where the
function runs: it is Spark's own, by key and window, and only holds rows. When a window is over, its rows leave the
state, and are placed by the plan that is there then, whole keys on the workers that it says. So a new plan counts for
all windows that end after it, also for those that had begun before.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.spark.frames import column
from unskew.spark.phases import OURS
from unskew.spark.windows import WINDOW, Windows

ROWS = f"{OURS}rows"


def completed_rows(df: DataFrame, names: Sequence[str], windows: Windows) -> DataFrame:
    """The rows of `df` and their windows, when these are over; those of a key and window come in the same batch."""
    marked = df if windows.watermark is None else df.withWatermark(windows.time, windows.watermark)
    rows = F.collect_list(F.struct(*map(column, df.columns))).alias(ROWS)
    collected = marked.groupBy(windows.of(column(windows.time)), *map(column, names)).agg(rows)
    return collected.select(column(WINDOW), F.inline(column(ROWS)))
