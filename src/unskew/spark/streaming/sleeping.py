"""The queries of `unskew demo --stream`: workers that sleep for each row."""

import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from unskew.spark.mapping import Batches
from unskew.spark.routing import repartition
from unskew.spark.streaming.adaptive import Adaptive

SCHEMA = "word string, row bigint"
SCHEMES = {"hash": "hash"}  # by label; others take the default


def sleeping_queries(
    spark: SparkSession, folders: dict[str, Path], workers: int, row_cost: float
) -> dict[str, StreamingQuery]:
    """A query per label, which reads the files in ``rows`` of its folder; "hash" never splits a key."""

    def sleep(batches: Batches) -> Batches:
        for batch in batches:
            time.sleep(batch.num_rows * row_cost)
            yield batch.slice(0, 0)

    queries = {}
    for label, folder in folders.items():
        (folder / "rows").mkdir(parents=True)
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
        placed = repartition(rows, "word", workers, SCHEMES.get(label), plan=Adaptive(folder / "checkpoint"))
        writer = placed.mapInArrow(sleep, SCHEMA).writeStream.format("noop")
        queries[label] = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    return queries
