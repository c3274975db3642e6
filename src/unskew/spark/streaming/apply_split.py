"""`apply_split` on a stream: parts of each key and window, kept by Spark's state store until the window is over."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import BinaryType, StructField, StructType

from unskew.aggregates.groups import normalized_keys
from unskew.aggregates.runs import gather_by_key
from unskew.aggregates.states import in_batches
from unskew.spark.frames import column, free_name
from unskew.spark.mapping import Batches, CountKeys, arrow_schema, map_in_arrow, nullable
from unskew.spark.phases import OURS
from unskew.spark.route import Route
from unskew.spark.streaming.adaptive import Adaptive
from unskew.spark.streaming.same_states import require_same_states
from unskew.spark.windows import PANE, TIME, Windows

PART = f"{OURS}partial"
Partial = Callable[[pa.Table], bytes]
Merge = Callable[[list[bytes], pa.Table], pa.Table]


def apply_split_to_stream(
    route: Route, names: Sequence[str], partial: Partial, merge: Merge, result: StructType, windows: Windows
) -> DataFrame:
    """What `merge` makes of all that `partial` returned for the rows of a key and window.

    `partial` runs once per key, worker, micro-batch and pane of time. Each part travels as bytes; Spark's own streaming
    aggregation collects those of a window.
    """
    names = list(names)
    if isinstance(route.plan, Adaptive):
        require_same_states(route.plan, route.df, names, windows, collected="parts")
    pane = free_name(route.df, PANE)
    df = route.df.withColumn(pane, F.window(column(windows.time), windows.pane).start)
    fields = [*(df.schema[name] for name in names), StructField(TIME, df.schema[windows.time].dataType)]
    part = nullable(StructType([*fields, StructField(PART, BinaryType())]))  # so states are the same with any plan
    arrow_part, arrow_result = arrow_schema(part), arrow_schema(result)
    keys, time = [*names, pane], windows.time

    def phase_1(batches: Batches, count: CountKeys | None = None) -> Batches:
        for rows in gather_by_key(batches, keys):
            key = normalized_keys(rows.select(names).slice(0, 1))
            if count is not None:
                count(key, np.array([len(rows)]))
            latest = pa.array([pc.max(rows[time]).as_py()], rows[time].type)
            found = key.append_column(TIME, latest).append_column(PART, pa.array([partial(rows.drop_columns([pane]))]))
            yield from found.cast(arrow_part).combine_chunks().to_batches()

    def phase_2(batches: Batches) -> Batches:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for i in range(len(table)):
                row = table.slice(i, 1)
                merged = merge(row[PART][0].as_py(), row.drop_columns([PART]))
                yield from in_batches(merged.select(arrow_result.names), arrow_result)

    parts = route.on(df).work_on_stream(phase_1, part)
    marked = parts if windows.watermark is None else parts.withWatermark(TIME, windows.watermark)
    groups = windows.of(column(TIME)), *map(column, names)
    collected = marked.groupBy(*groups).agg(F.collect_list(PART).alias(PART))
    return map_in_arrow(collected, phase_2, result)
