"""`map_balanced` on a stream: each task deals its own rows of a micro-batch, the most expensive of a batch first.

What all rows of a micro-batch cost is not known before it runs. But each task of the stage before the shuffle knows
what it has given to each worker so far, and gives the next row to the one that has least. Each source's rows are
balanced then, to within one row, and so is the sum. Only costs, or key ids, travel to Python.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import IntegerType

from unskew.errors import InputError
from unskew.longest_first import longest_first
from unskew.sketches.mean_costs import mean_costs_of
from unskew.spark.anchors import numbers_of
from unskew.spark.frames import column, free_name
from unskew.spark.learned_costs import KEY, LearnedCosts
from unskew.spark.retries import warn_without_retry_net
from unskew.spark.streaming.cost_files import CostFiles
from unskew.spark.tasks import task_number

NUMBER = "__unskew_number"
Floats = npt.NDArray[np.float64]
Costs = Callable[[pa.Array], Floats]  # what rows cost, from a column of theirs


def place_by_told_cost(df: DataFrame, cost: Column, workers: int) -> DataFrame:
    """The rows on their workers, by a column of costs."""
    return _place(df, cost, workers, lambda source: MeanWhereUnknown())


def place_by_learned_cost(df: DataFrame, learned: LearnedCosts, workers: int, files: CostFiles | None) -> DataFrame:
    """The rows on their workers, by what is known when a micro-batch begins; without files, by what is known now."""
    start, keep, key = learned.sketches, learned.keep, free_name(df, KEY)

    def costs_for(source: int) -> Costs:
        sketches = start if files is None else files.known(source, start, keep)
        if sketches is None:
            return lambda ids: np.ones(len(ids))
        return lambda ids: mean_costs_of(sketches, ids.to_numpy().view(np.uint64))

    return _place(learned.with_key_id(df, key), column(key), workers, costs_for).drop(key)


class MeanWhereUnknown:
    """Costs as they are told; null costs what the others did on average so far, and 1 where none is known."""

    def __init__(self) -> None:
        self._total, self._known = 0.0, 0

    def __call__(self, told: pa.Array) -> Floats:
        known, values = told.is_valid().to_numpy(zero_copy_only=False), told.to_numpy(zero_copy_only=False)
        wrong = known & ~((values >= 0) & (values < np.inf))
        if wrong.any():
            raise InputError(
                "cost: must be a finite number from 0 on, or null where it is not known, in each row, not "
                f"{values[wrong][0]}"
            )
        self._total, self._known = self._total + float(values[known].sum()), self._known + int(known.sum())
        return np.where(known, values, self._total / self._known if self._total else 1.0)


def _place(df: DataFrame, by: Column, workers: int, costs_for: Callable[[int], Costs]) -> DataFrame:
    numbers, name = np.array(numbers_of(workers), np.int32), free_name(df, NUMBER)
    warn_without_retry_net(df.sparkSession)

    def deal(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
        source = task_number()
        costs_of, load = costs_for(source), np.zeros(workers)
        for values in columns:
            dealt = longest_first(costs_of(values), workers, load)
            load = dealt.load
            yield pa.array(numbers[(dealt.workers + source) % workers])  # not all begin with the same worker

    # Nondeterministic, so that the optimizer neither runs the UDF twice nor moves a filter across it.
    placed = df.withColumn(name, arrow_udf(deal, IntegerType()).asNondeterministic()(by))
    return placed.repartition(workers, name).drop(name)
