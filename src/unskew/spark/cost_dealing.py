"""Rows dealt by what they cost: nearly as even as if each were placed by hand, yet by a native column.

Rows fall into lots by a hash of their content (see `lots`). Spark adds up the cost of each lot, in one pass. The driver
gives the lots to the workers, longest first. An expensive row is nearly alone in its lot, so few expensive rows are
placed one by one; of many cheap rows each worker gets some thousand lots, and with them its share of every class of
costs. The cost itself is not needed any more when rows are shuffled: a row's lot leads to its worker by a table of
constants.

Where expensive rows share a lot, or many rows are equal, the balance would be off. Such lots are split by more bits of
the content, and their costs are added up again; where that does not help, since their rows are equal, they are split by
position. Most data needs one pass, none needs more than three.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import NumericType

from unskew.checks import require_integer
from unskew.errors import InputError, InputTypeError
from unskew.longest_first import Assignment, longest_first
from unskew.spark.anchors import numbers_of
from unskew.spark.dealing import Dealing, by_columns, by_position, dealing
from unskew.spark.frames import column, count_of, free_name, require_frame, warn
from unskew.spark.lots import Lots, Split, packed_at
from unskew.spark.retries import warn_without_retry_net

BAD_VALUES = (ArithmeticException, ArrayIndexOutOfBoundsException, DateTimeException, NumberFormatException)
COST, SALT = "__unskew_cost", "__unskew_salt"
MOST_WORKERS = 10_000  # with more of them, the table of lots would be megabytes
EVEN = 1.02  # times the lower bound: good enough to split no lots
MOST_UNEVEN = 1.1  # times the lower bound: from here on we warn where the user chose how to deal
LARGE = 0.05  # of the mean load: a lot of several rows that is larger may stand in the way
ALONE = 0.9  # of a lot's cost: a row that has so much of it is as good as alone
FEWEST_PARTS, PARTS_PER_MEAN, MOST_PARTS = 64, 64, 2**15  # of a lot that is split
MOST_SPLIT = 2**17  # parts in all

Floats = npt.NDArray[np.float64]


class Measured(NamedTuple):
    """What was found in each lot."""

    rows: npt.NDArray[np.int64]
    cost: Floats  # of all its rows
    longest: Floats  # the cost of its most expensive row
    unknown: int  # rows without a cost, in all lots, which count as much as the others do on average

    @property
    def bound(self) -> "Bound":
        return Bound(float(self.cost.sum()), float(self.longest.max(initial=0.0)))


class Bound(NamedTuple):
    """Below which no assignment can get."""

    total: float
    longest: float  # the most expensive row, which one worker must do

    def of(self, workers: int) -> float:
        return max(self.total / workers, self.longest)


class Deal(NamedTuple):
    """Lots and their workers."""

    lots: Lots
    measured: Measured
    assigned: Assignment

    @property
    def over_bound(self) -> float:
        """The highest load over the lower bound: 1 is the best possible."""
        bound = self.measured.bound.of(len(self.assigned.load))
        return float(self.assigned.load.max()) / bound if bound else 1.0


class CostDealing:
    """Deals the rows of `df` over `workers` workers by `cost`. Bad input is refused now; jobs run when it is used.

    Parameters
    ----------
    df
        The rows, in a batch.
    cost
        A Column of numbers.
    workers
        W.
    deal
        What lots are made by: "content", "position" or a column, as in `repartition`; None finds out.
    keys
        Columns whose rows must stay together; lots are then made by them, whatever `deal` says.
    """

    def __init__(
        self, df: DataFrame, cost: Column, workers: int, deal: str | None = None, keys: Sequence[Column] = ()
    ) -> None:
        require_integer("workers", workers, 1, MOST_WORKERS)
        self.workers, self._deal, self._whole = workers, deal, bool(keys)
        self._dealing: Dealing = by_columns(df, keys) if keys else dealing(df, (), deal)
        self._cost = free_name(self._dealing.df, COST)
        self._costed = self._dealing.df.withColumn(self._cost, as_number(df, cost))

    @cached_property
    def dealt(self) -> Deal:
        """The lots and their workers. Runs Spark jobs."""
        found = self._assign(Lots.fresh(self.workers))
        if self._dealing.by_position or found.over_bound <= EVEN:
            return found
        large = np.flatnonzero(_is_large(found)[: found.lots.whole]).tolist()
        if not large:
            return found
        found = self._assign(_split(found, large, by_position=False))
        still = _is_large(found)
        equal = [split.lot for split in found.lots.splits if still[found.lots.parts_of(split)].any()]
        if not equal or found.over_bound <= EVEN or self._whole:
            return found
        if self._deal is None:
            return self._assign(_split(found, equal, by_position=True))
        if found.over_bound > MOST_UNEVEN:
            warn(
                f"deal: by {self._deal} the busiest worker gets {found.over_bound:.2f} times what it must: many rows "
                "are equal in what they are dealt by, and stay together; leave deal out, or name a column that "
                "differs more"
            )
        return found

    def place(self) -> DataFrame:
        """The rows on their workers: partition w has those of worker w. No column is added."""
        lots, _, assigned = self.dealt
        if lots.by_position or self._dealing.by_position:
            warn_without_retry_net(self._costed.sparkSession)
        numbers = np.array(numbers_of(self.workers))[assigned.workers].tolist()
        name = free_name(self._dealing.df, SALT)
        salted = self._dealing.df.withColumn(name, packed_at(numbers, self._lot(lots)))
        return salted.repartition(self.workers, name).drop(name, *self._dealing.added)

    def _lot(self, lots: Lots) -> Column:
        position = by_position(self._dealing.df).turn if lots.by_position else F.lit(0)
        return lots.column(self._dealing.turn, position)

    def _assign(self, lots: Lots) -> Deal:
        try:
            measured = measure(self._costed, self._cost, self._lot(lots), lots.number)
        except BAD_VALUES as error:
            if self._whole:  # then the cost is a constant
                raise
            raise InputError(f"cost: Spark cannot compute it, or the rows, in each row: {_said(error)}") from None
        assigned, free = longest_first(measured.cost, self.workers), measured.cost == 0
        assigned.workers[free] = longest_first(measured.rows[free], self.workers).workers  # evenly by their rows
        return Deal(lots, measured, assigned)


def cost_column(df: DataFrame, cost: Any) -> Column:
    """The cost as a Column: a column's name, an SQL expression, or a Column as it is."""
    require_frame(df)
    if isinstance(cost, Column):
        return cost
    if not isinstance(cost, str):
        raise InputTypeError(
            "cost: must be the name of a column, an SQL expression such as 'length(text)', a Column, or LearnedCosts, "
            f"not {type(cost).__name__}"
        )
    if count_of(df, cost) > 1:
        raise InputError(f"cost: {cost!r} names {count_of(df, cost)} columns; rename all but one")
    return column(cost) if count_of(df, cost) else F.expr(cost)


def measure(df: DataFrame, cost: str, lot: Column, lots: int) -> Measured:
    """Rows, cost and longest row of each lot. One pass over the rows. InputError where a cost cannot be one.

    Rows whose cost is null cost as much as the others do on average, and 1 where none is known, or all cost nothing.
    """
    each = df.select(lot.alias("lot"), column(cost).alias("cost"))
    wrong = (F.col("cost") < 0) | F.isnan("cost") | (F.col("cost") == F.lit(float("inf")))
    found = (
        each.groupBy("lot")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.count("cost").alias("known"),
            F.sum("cost").alias("cost"),
            F.max("cost").alias("longest"),
            F.count_if(wrong).alias("wrong"),
            F.max(F.when(wrong, F.col("cost").cast("string"))).alias("shown"),
        )
        .toArrow()
    )
    wrong_rows = sum(found["wrong"].to_pylist())
    if wrong_rows:
        shown = max(text for text in found["shown"].to_pylist() if text is not None)
        raise InputError(
            f"cost: must be a finite number from 0 on, or null where it is not known, in each row; it is not in "
            f"{wrong_rows:,} rows, such as {shown}"
        )
    rows, known, costs, longest = (np.zeros(lots) for _ in range(4))
    where = found["lot"].to_numpy()
    for array, name in ((rows, "rows"), (known, "known"), (costs, "cost"), (longest, "longest")):
        array[where] = np.nan_to_num(found[name].to_numpy().astype(float), nan=0.0, posinf=np.inf)
    with np.errstate(over="ignore"):  # the sentence below says it
        total = costs.sum()
    if not np.isfinite(total):
        raise InputError("cost: the sum of all costs must be a finite number; divide them by something")
    mean = total / known.sum() if total else 1.0
    if not total:  # all cost the same, whatever it is
        known[:] = 0
    unknown = rows - known
    longest = np.maximum(longest, np.where(unknown > 0, mean, 0.0))
    return Measured(rows.astype(np.int64), costs + unknown * mean, longest, int(unknown.sum()))


def as_number(df: DataFrame, cost: Column) -> Column:
    """The cost as a double. InputError where Spark cannot compute it, or it is no number."""
    name = free_name(df, COST)
    number = cost.cast("double")
    try:
        kind = df.withColumn(name, cost).schema[-1].dataType
        if isinstance(kind, NumericType):
            _ = df.withColumn(name, number).schema  # explode cannot be cast
    except AnalysisException as error:
        raise InputError(f"cost: Spark cannot compute it for each row: {_said(error)}") from None
    if not isinstance(kind, NumericType):
        raise InputError(f"cost: must be a number, not {kind.simpleString()}; cast it, or take its length")
    return number


def _said(error: Exception) -> str:
    """What Spark says, in one line, without the name of its class of errors."""
    return str(error).split("] ")[-1].splitlines()[0]


def _is_large(found: Deal) -> npt.NDArray[np.bool_]:
    """Which lots have several rows that stand in the way of balance."""
    _, cost, longest, _ = found.measured
    limit = max(LARGE * cost.sum() / len(found.assigned.load), 4 * cost.sum() / found.lots.whole)
    large: npt.NDArray[np.bool_] = (cost > limit) & (longest < ALONE * cost)
    return large


def _split(found: Deal, large: Sequence[int], *, by_position: bool) -> Lots:
    """The lots with these ones split; the largest, where there are too many."""
    lots, cost = found.lots, found.measured.cost
    mean = cost.sum() / len(found.assigned.load)

    def size(lot: int) -> float:
        parts = [p for split in lots.splits if split.lot == lot for p in lots.parts_of(split)]
        return float(cost[parts].sum() if parts else cost[lot])

    splits = {split.lot: split for split in lots.splits}
    room = MOST_SPLIT - sum(split.parts for split in lots.splits)
    for lot in sorted(large, key=size, reverse=True):
        wanted = 1 << int(PARTS_PER_MEAN * size(lot) / mean).bit_length() if by_position else FEWEST_PARTS
        parts = min(MOST_PARTS, max(FEWEST_PARTS, wanted))
        room -= parts - (splits[lot].parts if lot in splits else 0)
        if room < 0:
            break  # the others stay split as they are
        splits.pop(lot, None)  # those by content come first
        splits[lot] = Split(lot, parts, by_position)
    return replace(lots, splits=tuple(splits.values()))
