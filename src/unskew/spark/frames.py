"""DataFrames that users give: what they must be, the names of their columns, the settings of their session."""

import sys
import warnings
from collections.abc import Iterable
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import StructField, StructType

from unskew.errors import InputError, InputTypeError


def require_frame(df: Any) -> None:
    """InputError unless `df` is a DataFrame of Spark, classic or Connect."""
    if not isinstance(df, DataFrame):
        kind = (
            f"{type(df).__module__.split('.')[0]} {type(df).__name__}" if hasattr(df, "columns") else type(df).__name__
        )
        hint = "; make one with spark.createDataFrame" if hasattr(df, "columns") else ""
        raise InputTypeError(f"df: must be a Spark DataFrame, not {kind}{hint}")


def require_batch(df: Any) -> None:
    """InputError unless `df` is a DataFrame whose rows can be counted now."""
    require_frame(df)
    if df.isStreaming:
        raise InputError(
            "df: is a stream, whose keys cannot be counted beforehand; give plan=Adaptive(the query's "
            "checkpointLocation), or the plan of a batch"
        )


def as_compared(spark: SparkSession, names: Iterable[str]) -> list[str]:
    """The names of columns as Spark compares them: by default it ignores case."""
    cased = setting(spark, "spark.sql.caseSensitive") == "true"
    return [name if cased else name.lower() for name in names]


def count_of(df: DataFrame, name: str) -> int:
    """How many columns Spark would take for `name`."""
    return as_compared(df.sparkSession, df.columns).count(as_compared(df.sparkSession, [name])[0])


def repeated(spark: SparkSession, names: Iterable[str]) -> list[str]:
    """Those of the names that Spark would take for an earlier one."""
    names = list(names)
    compared = as_compared(spark, names)
    return [name for i, name in enumerate(names) if compared[i] in compared[:i]]


def free_name(df: DataFrame, name: str) -> str:
    """`name`, with underscores behind it where the DataFrame has such a column already."""
    while count_of(df, name):
        name += "_"
    return name


def column(name: str) -> Column:
    """The column called `name`, whatever characters are in it."""
    return F.col(f"`{name.replace('`', '``')}`")


def columns_by_position(df: DataFrame) -> list[Column]:
    """All columns, also those whose names repeat and that therefore cannot be named. For ``withColumn`` only."""
    fields = [StructField(f"c{i}", field.dataType, field.nullable) for i, field in enumerate(df.schema)]
    together = F.struct("*").cast(StructType(fields))  # a cast of structs goes by position
    return [together.getField(field.name) for field in fields]


def outside_compiled_code(value: Column) -> Column:
    """The same value, for one that differs from one micro-batch to the next, such as a time or a random number.

    Else it is part of the compiled code, and Spark compiles the whole stage anew each time. It does not compile what is
    inside ``zip_with``.
    """
    one = F.array(F.lit(0))  # anything, so that the function is called once
    return F.zip_with(one, one, lambda _left, _right: value)[0]


def context_of(spark: SparkSession) -> SparkContext | None:
    """The context of a session; None on Spark Connect, which has none."""
    try:
        return spark.sparkContext
    except Exception:  # each version of Spark Connect refuses with another error
        return None


def setting(spark: SparkSession, name: str, *default: str) -> str:
    """A setting that is true or false, in whatever case it was written; with a default if it is not one of SQL's."""
    return str(spark.conf.get(name, *default)).lower()


def warn(message: str) -> None:
    """A UserWarning at the line outside of unskew that called us."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("unskew."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
