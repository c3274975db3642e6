"""What workers tell of their keys in an accumulator of PySpark: the quickest way, where there are accumulators.

An observed metric (`observed_tally`) works everywhere, but costs each task several milliseconds: one more column in its
output, and expressions that travel to it and back. An accumulator costs less, since Spark fetches accumulators from
every task of Python anyway. Spark Connect has none. And a task knows key ids only of those types that `unskew.key_ids`
takes: other keys have to be hashed by Spark.

A task tells for its query, micro-batch and stage, also if it had no rows. It may run again, in this stage or in
another, as after an error; the last time counts. Tasks do not know their query and micro-batch where a thread of the
user's own starts an action in ``foreachBatch``. What they tell is counted for the batch that the driver hears of next,
of whatever query of the same name, unless the thread was started by pyspark's ``inheritable_thread_target``.
"""

from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from unskew.key_columns import can_be_key, key_ids
from unskew.spark.frames import context_of
from unskew.spark.keys import MOST_NAME
from unskew.spark.mapping import Batches, CountingWork, arrow_schema, map_in_arrow
from unskew.spark.streaming.tally import Tally, Told
from unskew.spark.tasks import BATCH_ID, QUERY_ID, task_number

UNKNOWN = -1  # the number of a micro-batch whose tasks do not know it
MOST_STAGES = 16  # whose tellings are held, in case that nobody takes them


class WorkersStage(NamedTuple):
    """A stage of a micro-batch, whose tasks are the workers."""

    query: str | None
    batch: int
    stage: int
    workers: int


ToldByStage = dict[WorkersStage, dict[int, Told]]  # and by worker


class ToldParam(AccumulatorParam[ToldByStage]):  # type: ignore[misc]
    """How what tasks tell is put together."""

    def zero(self, value: ToldByStage) -> ToldByStage:
        return {}

    def addInPlace(self, value1: ToldByStage, value2: ToldByStage) -> ToldByStage:  # noqa: N802  (Spark's name)
        for stage, told in value2.items():
            value1.setdefault(stage, {}).update(told)
        # From a copy: another thread takes stages out, and an error here would end all accumulators of the session.
        for stage in list(value1)[:-MOST_STAGES]:
            value1.pop(stage, None)
        return value1


_accumulators: "WeakKeyDictionary[SparkContext, dict[str, Accumulator[ToldByStage]]]" = WeakKeyDictionary()


def accumulator_for(df: DataFrame, keys: Sequence[str], name: str) -> "Accumulator[ToldByStage] | None":
    """Where tasks can tell of these keys; None where they cannot. It is the same for the same name: a stream that is
    built again hears the query that runs already."""
    kinds = arrow_schema(StructType([df.schema[key] for key in keys])).types
    context = context_of(df.sparkSession)
    if context is None or not all(map(can_be_key, kinds)):
        return None
    known = _accumulators.setdefault(context, {})
    return known.get(name) or known.setdefault(name, context.accumulator({}, ToldParam()))


def work_and_accumulate(
    df: DataFrame,
    function: CountingWork,
    schema: StructType | str,
    keys: Sequence[str],
    workers: int,
    accumulator: "Accumulator[ToldByStage]",
) -> DataFrame:
    """What the function makes of the rows of each worker, whose tasks tell of their keys at the end."""
    columns = list(keys)

    def work(batches: Batches) -> Batches:
        tally = Tally(columns, workers)
        yield from function(batches, tally.add)
        accumulator.add({_this_stage(workers): {task_number(): told_of(tally)}})

    return map_in_arrow(df, work, schema)


def told_of(tally: Tally) -> Told:
    """What a task tells."""
    listed = tally.listed()
    if listed is None:
        return Told(0, [], [], {})
    rows, keys, counts = listed
    ids = key_ids(*keys.columns)
    named = zip(ids[: tally.most_named].tolist(), _shown(keys.slice(0, tally.most_named)), strict=True)
    names = dict(reversed([*named]))  # the most frequent of an id wins
    return Told(rows, ids.view(np.int64).tolist(), counts.tolist(), names)


def take_told(told: ToldByStage, query: str, batch: int, workers: int) -> dict[int, Told] | None:
    """What each worker of a query told last of a micro-batch; None if nobody told anything. What a query with another
    number of workers told is left out. Removes all that was told of this micro-batch and of earlier ones."""
    last: dict[int, Told] = {}
    heard = False
    ours = [stage for stage in list(told) if stage.query in (query, None) and stage.batch <= batch]
    for stage in sorted(ours, key=lambda each: each.stage):
        by_worker = told.pop(stage, {})
        if stage.batch in (batch, UNKNOWN):
            heard = True
            if stage.workers == workers:
                last |= by_worker
    return last if heard else None


def _this_stage(workers: int) -> WorkersStage:
    task = TaskContext.get()
    assert task is not None
    batch = int(task.getLocalProperty(BATCH_ID) or UNKNOWN)
    return WorkersStage(task.getLocalProperty(QUERY_ID), batch, task.stageId(), workers)


def _shown(keys: pa.Table) -> list[str]:
    """Keys as text, as `unskew.spark.keys.shown_key` has them; only days after the year 9999 are written otherwise."""
    return [", ".join(texts) for texts in zip(*map(_texts, keys.columns), strict=True)]


def _texts(column: pa.ChunkedArray) -> list[str]:
    binary = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    texts = (column if binary else column.cast(pa.large_string())).cast(pa.large_binary())  # may be no UTF-8
    return ["null" if text is None else text.decode(errors="replace")[:MOST_NAME] for text in texts.to_pylist()]
