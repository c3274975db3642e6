"""What tasks tell the driver: rows at their end, in a column of their own, which is observed and taken out again.

Accumulators do not exist on Spark Connect; an Observation works on both.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import StructField, StructType

from unskew.aggregates.states import in_batches
from unskew.errors import InputError, InputTypeError
from unskew.spark.frames import as_compared
from unskew.spark.mapping import Batches, nullable

DONE = "__unskew_done"  # what a task did, in rows at its end, which are taken out again
PATIENCE = 60.0  # seconds: Spark tells of a run shortly after its end
UNHEARD = "rdd, foreach, foreachPartition and toLocalIterator are not heard of"


def with_done(df: DataFrame, result: StructType, done: StructType) -> StructType:
    """The schema `result` with everything nullable, and one more column for what tasks tell."""
    if DONE in as_compared(df.sparkSession, result.names):
        raise InputError(f"schema: must have no column called {DONE}, which is ours")
    return StructType([*nullable(result), StructField(DONE, done)])


def observe(done: DataFrame) -> tuple[DataFrame, Observation]:
    """The rows without what tasks tell, and where that is to be heard when they have run."""
    observation = Observation()
    return without_done(done.observe(observation, F.collect_list(DONE).alias(DONE))), observation


def without_done(observed: DataFrame) -> DataFrame:
    """The rows without what tasks tell."""
    return observed.where(F.col(DONE).isNull()).drop(DONE)


def hear(observation: Observation, not_run: str) -> list[Any]:
    """What the tasks told. Spark waits for a run without end, so this gives up some time after it should be over."""
    outcome: dict[str, Any] = {}

    def wait() -> None:
        try:
            outcome["rows"] = observation.get.get(DONE, [])
        except Exception as error:
            outcome["error"] = error

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        raise InputError(f"{not_run}; {UNHEARD}")
    if "AssertionError" in str(outcome.get("error")):  # of a stage that Spark left out, since it would get no rows
        return []
    if "error" in outcome:
        raise outcome["error"]
    rows: list[Any] = outcome["rows"]
    return rows


def and_tell(results: Iterable[Any], schema: pa.Schema, told: Callable[[], pa.StructArray | None]) -> Batches:
    """The batches that a function yields, with nulls in the last column of the schema; then rows of what its task
    tells, if anything."""
    types = schema
    for result in results:
        batch = with_nulls(result, schema, schema.names[:-1])
        types = batch.schema  # Spark takes others than it declares, such as large_string, but the same in all
        yield batch
    last = told()
    if last is not None:
        others = [pa.nulls(len(last), field.type) for field in list(types)[:-1]]
        yield from in_batches(pa.table([*others, last], types.names), types)


def with_nulls(batch: Any, schema: pa.Schema, names: Sequence[str]) -> pa.RecordBatch:
    """A batch that a user's function yielded with the columns `names`, and nulls in the others of the schema."""
    if not isinstance(batch, pa.RecordBatch):
        raise InputTypeError(f"function: must yield a pyarrow.RecordBatch, not {type(batch).__name__}")
    if sorted(batch.schema.names) != sorted(names):
        raise InputError(f"function: must yield the columns {list(names)}, not {batch.schema.names}")
    others = [pa.nulls(batch.num_rows, field.type) for field in schema if field.name not in names]
    ours = [field.name for field in schema if field.name not in names]
    return pa.RecordBatch.from_arrays([*(batch[name] for name in names), *others], [*names, *ours])
