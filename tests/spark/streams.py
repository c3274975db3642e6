"""Streams for tests: a folder of files that a query reads one by one, each a micro-batch."""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

PATIENCE = 60.0  # seconds


class Feed:
    """A folder into which tables are put, and the stream that reads them."""

    def __init__(self, spark: SparkSession, folder: Path, schema: str) -> None:
        folder.mkdir(exist_ok=True)
        self._spark, self._folder, self._schema, self._files = spark, folder, schema, len(list(folder.iterdir()))

    def put(self, table: pa.Table) -> None:
        path = self._folder / f"{self._files:06d}.parquet"
        pq.write_table(table, path.with_suffix(".unfinished"))
        os.utime(path.with_suffix(".unfinished"), (self._files, 1e9 + self._files))  # Spark reads the oldest first
        path.with_suffix(".unfinished").rename(path)
        self._files += 1

    def stream(self, files: int = 1) -> DataFrame:
        """So many files per micro-batch."""
        reader = self._spark.readStream.schema(self._schema).option("maxFilesPerTrigger", files)
        return reader.parquet(f"{self._folder.absolute()}/*.parquet")

    def batch(self) -> DataFrame:
        """All rows that were put, as a batch."""
        return self._spark.read.schema(self._schema).parquet(str(self._folder.absolute()))


def words(seed: int, rows: int, shift: int = 0, keys: int = 500, z: float = 1.3) -> pa.Table:
    """Rows (word, v) of a Zipf distribution; `shift` ranks the words anew. v counts from seed times rows on."""
    ranks = np.minimum(np.random.default_rng(seed).zipf(z, rows), keys)
    return pa.table({"word": [f"word-{(rank + shift) % 10_000}" for rank in ranks], "v": np.arange(rows) + seed * rows})


def start(df: DataFrame, checkpoint: Path, mode: str = "append") -> StreamingQuery:
    """A query that writes a folder per batch, beside the checkpoint; again if a batch runs again."""
    folder = f"{checkpoint}-results"

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{folder}/batch={number}")

    writer = df.writeStream.foreachBatch(write).outputMode(mode)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def results(spark: SparkSession, checkpoint: Path) -> DataFrame:
    """What all batches wrote, and the number of the batch in the last column."""
    return spark.read.parquet(f"{checkpoint}-results")


def records(checkpoint: Path) -> list[dict[str, Any]]:
    """What was recorded of each batch."""
    finished = (checkpoint / "unskew/route/batches").glob("[!.]*.json")
    return [json.loads(path.read_text()) for path in sorted(finished)]


def process(query: StreamingQuery, feed: Feed, checkpoint: Path, *tables: pa.Table) -> list[dict[str, Any]]:
    """Put the tables one by one, each after the plan that the one before led to. Returns the records of all batches."""
    for table in tables:
        before = len(records(checkpoint))
        feed.put(table)
        query.processAllAvailable()
        wait_until(lambda before=before: len(records(checkpoint)) > before)  # type: ignore[misc]
    return records(checkpoint)


def wait_until(happened: Any) -> None:
    until = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < until, f"nothing within {PATIENCE:.0f} s"
        time.sleep(0.05)
