"""What workers tell of their keys in an accumulator of PySpark: the quickest way, where there are accumulators.

An observed metric (`observed_tally`) works everywhere, but costs each task several milliseconds: one more column in its
output, and expressions that travel to it and back. An accumulator costs next to nothing, since every function in Python
has a way for them already. Spark Connect has none. And a task knows key ids only of those types that `unskew.key_ids`
takes: other keys have to be hashed by Spark.

A task tells for its micro-batch and stage. A batch that runs again, or twice in a ``foreachBatch``, has another stage,
and the last one counts. In a stage, the last attempt of each task counts.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from unskew.key_columns import can_be_key, key_ids
from unskew.spark.frames import context_of
from unskew.spark.keys import MOST_NAME
from unskew.spark.mapping import Batches, CountingWork, arrow_schema, map_in_arrow
from unskew.spark.streaming.tally import Tally, Told
from unskew.spark.tasks import BATCH_ID, task_number

Run = tuple[int, int]  # batch, stage
Heard = dict[Run, dict[int, Told]]  # by worker
UNKNOWN = -1  # the number of a micro-batch whose tasks do not know it


class Together(AccumulatorParam[Heard]):  # type: ignore[misc]
    """All that tasks told."""

    def zero(self, value: Heard) -> Heard:
        return {}

    def addInPlace(self, value1: Heard, value2: Heard) -> Heard:  # noqa: N802  (Spark's name)
        for run, told in value2.items():
            value1.setdefault(run, {}).update(told)
        return value1


def accumulator_for(df: DataFrame, keys: Sequence[str]) -> "Accumulator[Heard] | None":
    """Where tasks can tell of these keys; None where they cannot."""
    kinds = arrow_schema(StructType([df.schema[name] for name in keys])).types
    if not all(map(can_be_key, kinds)):
        return None
    context = context_of(df.sparkSession)
    return None if context is None else context.accumulator({}, Together())


def work_and_accumulate(
    df: DataFrame,
    function: CountingWork,
    schema: StructType | str,
    keys: Sequence[str],
    workers: int,
    accumulator: "Accumulator[Heard]",
) -> DataFrame:
    """What the function makes of the rows of each worker, whose tasks tell of their keys at the end."""
    names = list(keys)

    def work(batches: Batches) -> Batches:
        tally = Tally(names, workers)
        yield from function(batches, tally.add)
        told = told_of(tally)
        if told is not None:
            accumulator.add({_this_run(): {task_number(): told}})

    return map_in_arrow(df, work, schema)


def told_of(tally: Tally) -> Told | None:
    """What a task tells; None where it had no rows."""
    listed = tally.listed()
    if listed is None:
        return None
    rows, keys, counts = listed
    ids = key_ids(*keys.columns)
    named = zip(ids[: tally.names].tolist(), _shown(keys.slice(0, tally.names)), strict=True)
    return Told(rows, ids.view(np.int64), counts, dict(reversed([*named])))  # the most frequent of an id wins


def take_told(heard: Heard, batch: int) -> dict[int, Told]:
    """What each worker told of a micro-batch. That, and what was told before it, is taken out."""
    last: dict[int, Told] = {}
    for run in sorted(run for run in list(heard) if run[0] <= batch):
        told = heard.pop(run)
        if run[0] in (batch, UNKNOWN):
            last = told
    return last


def _this_run() -> Run:
    task = TaskContext.get()
    assert task is not None
    return int(task.getLocalProperty(BATCH_ID) or UNKNOWN), task.stageId()


def _shown(keys: pa.Table) -> list[str]:
    """Keys as text, as `unskew.spark.keys.shown_key` has them."""
    return [", ".join(texts) for texts in zip(*map(_texts, keys.columns), strict=True)]


def _texts(column: pa.ChunkedArray) -> list[str]:
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        texts = [None if value is None else value.decode(errors="replace") for value in column.to_pylist()]
    else:
        texts = column.cast(pa.large_string()).to_pylist()
    return ["null" if text is None else text[:MOST_NAME] for text in texts]
