"""What tasks do to the process of Python that they run in."""

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pyarrow as pa
from pyspark.sql import SparkSession

from unskew.spark.mapping import map_in_arrow


def test_the_garbage_collector_is_spared_what_was_loaded_but_not_what_a_task_makes(spark: SparkSession) -> None:
    def count_objects(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(batch.num_rows for batch in batches)
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle
        frozen, watched, found = gc.get_freeze_count(), len(gc.get_objects()), gc.collect()
        yield pa.record_batch({"rows": [rows], "frozen": [frozen], "watched": [watched], "found": [found]})

    def load_more(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        module = ModuleType("as_large_as_pandas")
        module.__dict__["held"] = [[] for _ in range(50_000)]
        sys.modules.setdefault(module.__name__, module)
        return batches

    df = spark.range(0, 40, 1, 4)
    schema = "rows bigint, frozen bigint, watched bigint, found bigint"
    map_in_arrow(df, load_more, "id bigint").collect()
    tasks = map_in_arrow(df, count_objects, schema).collect()
    assert [task["rows"] for task in tasks] == [10] * 4
    assert all(task["frozen"] > 20_000 for task in tasks)
    assert all(task["watched"] < 20_000 for task in tasks)
    assert all(task["found"] > 0 for task in tasks)
