"""Functions in Python that go through whole partitions as Arrow batches, and their schemas."""

from collections.abc import Callable, Iterator
from functools import wraps

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkTypeError, UnsupportedOperationException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from unskew.errors import InputError

Batches = Iterator[pa.RecordBatch]


def mapped(df: DataFrame, function: Callable[[Batches], Batches], schema: StructType) -> DataFrame:
    """``df.mapInArrow``, also for column names with dots and backticks, which that one does not find."""
    names = df.columns

    @wraps(function)  # its name is in the plan
    def with_names(batches: Batches) -> Batches:
        return function(batch.rename_columns(names) for batch in batches)

    return df.toDF(*(f"column_{i}" for i in range(len(names)))).mapInArrow(with_names, schema)


def parsed_schema(df: DataFrame, schema: str) -> StructType:
    try:
        return df.sparkSession.createDataFrame([], schema).schema
    except (ParseException, PySparkTypeError, AnalysisException):
        raise InputError(f"schema: must be as in 'player string, mean double', not {schema!r}") from None


def arrow_schema(schema: StructType) -> pa.Schema:
    """The same for Arrow, which is how rows come to Python."""
    try:
        return to_arrow_schema(schema, timezone="UTC")
    except (PySparkTypeError, UnsupportedOperationException):
        kinds = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
        raise InputError(
            f"df: a column has a type that Spark cannot hand to Python: {kinds}; cast or drop it"
        ) from None
