"""Where the rows of an application come from: a file, a folder as a stream, Spark's rate source, or a sample."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unskew.apps.samples import Sample
from unskew.checks import require, require_integer, require_number
from unskew.errors import InputError
from unskew.file_formats import format_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = 4  # of a sample that is a batch
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Source:
    """Rows, as a batch or as a stream. Bad values are refused here, before Spark is started.

    Parameters
    ----------
    path
        A file, which is a batch, or a folder, which is a stream with a micro-batch per file. None: rows are made.
    file_format
        parquet, csv, json, orc or text; by default by the name.
    rows, seed
        Of the sample, where there is no path.
    batches
        The sample is a stream of so many micro-batches.
    rate, seconds
        The sample comes from Spark's rate source, so many rows per second, for so many seconds.
    """

    path: str | None = None
    file_format: str = ""
    rows: int = 100_000
    seed: int = 0
    batches: int | None = None
    rate: int | None = None
    seconds: float = 20.0

    def __post_init__(self) -> None:
        ways = [name for name in ("path", "batches", "rate") if getattr(self, name) is not None]
        if len(ways) > 1:
            raise InputError(f"{ways[1]}: rows come from one place, and {ways[0]} is given; leave one of them out")
        require_integer("rows", self.rows, 1, 1_000_000_000)
        require_integer("seed", self.seed, 0)
        require_number("seconds", self.seconds, "a number from 1 to 86400", 1.0, 86_400.0)
        if self.batches is not None:
            require_integer("batches", self.batches, 1, 10_000)
            require("rows", self.rows, f"at least one per batch, {self.batches}", self.rows >= self.batches)
        if self.rate is not None:
            require_integer("rate", self.rate, 1, 100_000_000)
        if self.path is not None:
            format_of(self.path, self.file_format)
        elif self.file_format:
            raise InputError(f"format: {self.file_format!r} is of a file, and no path is given")

    @property
    def is_stream(self) -> bool:
        return self.rate is not None or self.batches is not None or (self.path is not None and Path(self.path).is_dir())

    def read(
        self,
        spark: "SparkSession",
        sample: Sample,
        scratch: Path,
        first: int = 0,
        infer: bool = False,
        as_batch: bool = False,
    ) -> "DataFrame":
        """The rows, with the columns of `sample` and all others that a file has. A sample begins with row `first`.

        Other columns of a CSV are texts, unless Spark is to `infer` their types. A folder is a stream, but not with
        `as_batch`.
        """
        if self.rate is not None:
            numbers = spark.readStream.format("rate").option("rowsPerSecond", self.rate).load().select("value")
            return numbers.mapInArrow(_making(sample, self.seed), sample.schema)
        if self.path is None:
            scratch.mkdir(parents=True, exist_ok=True)
            parts = np.array_split(np.arange(first, first + self.rows), self.batches or FILES)
            for i, numbers_of in enumerate(parts):
                file = scratch / f"{i:06d}.parquet"
                pq.write_table(sample.rows(numbers_of, self.seed), file)
                os.utime(file, (i, 1e9 + i))  # a stream reads the oldest first
        path = self.path or str(scratch)
        path = path if "://" in path else str(Path(path).absolute())  # Spark may have another working directory
        kind = format_of(path, self.file_format)
        options = {"header": "true", "inferSchema": str(infer).lower()} if kind == "csv" else {}
        df = spark.read.format(kind).options(**options).load(path)
        if self.is_stream and not as_batch:
            reader = spark.readStream.schema(df.schema).option("maxFilesPerTrigger", 1)
            df = reader.format(kind).options(**options).load(path)
        return self._with_types(df.withColumnRenamed("value", "text") if kind == "text" else df, sample)

    def _with_types(self, df: "DataFrame", sample: Sample) -> "DataFrame":
        """The columns as the sample has them. InputError where one is missing."""
        missing = [name for name in sample.columns if name not in df.columns]
        if missing:
            has, needs = ", ".join(df.columns) or "none", ", ".join(sample.columns)
            raise InputError(f"path: {self.path!r} has no column {missing[0]!r}; needed are {needs}; it has {has}")
        casts = {name: f"CAST(`{name}` AS {kind}) AS `{name}`" for name, kind in sample.columns.items()}
        return df.selectExpr(*(casts.get(name, f"`{name}`") for name in df.columns))


def _making(sample: Sample, seed: int) -> Callable[[Batches], Batches]:
    def make(batches: Batches) -> Batches:
        for batch in batches:
            yield from sample.rows(batch["value"].to_numpy(), seed).combine_chunks().to_batches()

    return make
