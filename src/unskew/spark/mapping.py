"""Functions in Python that go through whole partitions as Arrow batches, and their schemas."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkTypeError, UnsupportedOperationException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from unskew.errors import InputError, InputTypeError
from unskew.spark.frames import repeated
from unskew.spark.tasks import spare_what_is_loaded

Batches = Iterator[pa.RecordBatch]
# Takes keys, and how many rows each has. The same key may come twice only with different panes of time.
CountKeys = Callable[[pa.Table, npt.NDArray[np.int64]], None]


class CountingWork(Protocol):
    """A function of a worker's batches that groups them by key, and tells `count`, if given, how many rows each has."""

    def __call__(self, batches: Batches, count: CountKeys | None = None) -> Batches: ...


def map_in_arrow(df: DataFrame, function: Callable[[Batches], Batches], schema: StructType | str) -> DataFrame:
    """``df.mapInArrow``, also for column names that repeat or have dots and backticks, which that one does not find."""
    names = df.columns

    @wraps(function)  # its name is in the plan
    def with_names(batches: Batches) -> Batches:
        spare_what_is_loaded()
        return function(batch.rename_columns(names) for batch in batches)

    return df.toDF(*(f"column_{i}" for i in range(len(names)))).mapInArrow(with_names, schema)


def result_schema(df: DataFrame, schema: StructType | str) -> StructType:
    """The schema that a user gave for the result of a function. InputError unless its columns differ."""
    if not isinstance(schema, str | StructType):
        raise InputTypeError(f"schema: must be a StructType or a DDL string, not {type(schema).__name__}")
    if isinstance(schema, str):
        try:
            schema = df.sparkSession.createDataFrame([], schema).schema
        except (ParseException, PySparkTypeError, AnalysisException):
            raise InputError(f"schema: must be as in 'player string, mean double', not {schema!r}") from None
    if not schema.names:
        raise InputError("schema: must have at least one column, as in 'player string, mean double', not none")
    twice = repeated(df.sparkSession, schema.names)
    if twice:
        raise InputError(f"schema: must have different columns, and {twice[0]!r} is there twice")
    arrow_schema(schema, "schema")
    return schema


def nullable(kind: DataType) -> Any:
    """The type with everything inside it nullable, as it must be where a whole row may be null."""
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, nullable(field.dataType)) for field in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(nullable(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, nullable(kind.valueType))
    return kind


def arrow_schema(schema: StructType, name: str = "df") -> pa.Schema:
    """The same for Arrow, which is how rows come to Python; `name` is what an error is about."""
    try:
        return to_arrow_schema(schema, timezone="UTC")
    except (PySparkTypeError, UnsupportedOperationException):
        kinds = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
        raise InputError(
            f"{name}: a column has a type that Spark cannot hand to Python: {kinds}; cast or drop it"
        ) from None
