"""`apply_whole`: a function of all rows of a key, for keys that cannot be split, with the keys placed evenly."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import StructField, StructType

from unskew.aggregates.groups import normalized_keys
from unskew.aggregates.runs import by_key, gather_by_key
from unskew.aggregates.states import in_batches
from unskew.checks import require_workers
from unskew.errors import InputError, InputTypeError
from unskew.partitioning import ALGORITHMS, PartitionFunction
from unskew.partitioning.function import PLANNER
from unskew.plan import Plan
from unskew.spark.aggregate import require_keys
from unskew.spark.apply_split import TableFunction, call_table, matched, with_key
from unskew.spark.cost_dealing import CostDealing
from unskew.spark.frames import column, count_of, repeated
from unskew.spark.keys import key_columns, key_names
from unskew.spark.mapping import Batches, arrow_schema, map_in_arrow, result_schema
from unskew.spark.placing import place_by, whole_function
from unskew.spark.planning import plan_for, require_plan_of
from unskew.spark.route import Route
from unskew.spark.streaming.adaptive import Adaptive
from unskew.spark.streaming.apply_whole import completed_rows
from unskew.spark.streaming.same_states import require_same_states
from unskew.spark.windows import WINDOW, Windows, checked_windows


def apply_whole(
    df: DataFrame,
    keys: str | Sequence[str],
    function: TableFunction,
    schema: StructType | str,
    workers: int,
    scheme: str | None = None,
    *,
    plan: Plan | PartitionFunction | Adaptive | None = None,
    sort: str | Sequence[str] | None = None,
    time: str | None = None,
    window: str | None = None,
    slide: str | None = None,
    watermark: str | None = None,
) -> DataFrame:
    """``df.groupBy(keys).applyInArrow(function, schema)`` with the keys placed evenly over `workers` partitions.

    For what cannot be merged: medians, sessions, models, windows over a key. No key is split, so no worker can have
    less than the hottest key; where that is too much, see `apply_split`. Rows are counted first, in one native pass,
    which runs now; they are placed by a native column, and go to Python a partition at a time, not a key at a time.
    Rows of a key come to the function together, in one table, so they must fit into a worker's memory, as they must in
    ``applyInArrow``; other keys need not, since a partition is sorted by key inside Spark.

    Parameters
    ----------
    df
        The rows, in a batch; or a stream, with windows and a plan.
    keys
        The name of the key column, or a list of names.
    function
        Gets a table with all columns of `df` and all rows of a key, once per key, and returns a table with the columns
        of `schema`, in any order, and any number of rows. Where it leaves out the key columns, they are put back.
    schema
        Of the result: a DDL string or a StructType.
    workers
        How many partitions; partition w is worker w.
    scheme
        How keys are placed. Left out: as level as whole keys can be. "readj", "redist" or "scan": by a plan of that
        construction (see `unskew.partitioning`).
    plan
        A `Plan` of whole keys, or a `PartitionFunction`, such as `rebalance` makes. Then nothing is counted now. Of a
        stream also `Adaptive`.
    sort
        The columns by which the rows of a key are sorted; a ``-`` in front sorts downwards: ``"-time"``.
    time, window, slide, watermark
        As in `aggregate`: apply the function to each key and window of event time. The result then has a column
        `window` before the others.

    Notes
    -----
    A stream needs windows: Spark's state store collects the rows of each key and window until the window is over; then
    they are placed, whole keys by the plan of that moment, and the function gets them. On a stream, a worker holds all
    rows of the windows that end in a micro-batch in memory.

    Examples
    --------
    The median of each word, exactly:

    >>> import numpy as np, pyarrow as pa
    >>> from unskew.spark import apply_whole
    >>> def median(rows: pa.Table) -> pa.Table:
    ...     return pa.table({"median": [float(np.median(rows["v"]))]})
    >>> apply_whole(df, "word", median, "word string, median double", workers=4).sort("word").show()
    +----+------+
    |word|median|
    +----+------+
    | cat| 504.0|
    | the| 499.0|
    +----+------+
    <BLANKLINE>
    """
    require_keys(df, keys)
    require_workers(workers)
    names, columns = key_names(keys), key_columns(df, keys)
    if not callable(function):
        raise InputTypeError(f"function: must be a function of a table, not {type(function).__name__}")
    if scheme is not None and scheme not in ALGORITHMS:
        raise InputError(f"scheme: must be one of {', '.join(ALGORITHMS)}, or left out, not {scheme!r}")
    if scheme is not None and plan is not None and not isinstance(plan, Adaptive):
        raise InputError("scheme: must be left out where a plan is given")
    result, order = result_schema(df, schema), _order(df, sort)
    windows = checked_windows(df, result.names, time, window, slide, watermark)
    arrow_schema(df.schema)
    if isinstance(plan, Plan):
        require_plan_of(df, keys, plan)
    if windows is not None:
        kind = df.schema[windows.time].dataType
        result = StructType([StructField(WINDOW, StructType().add("start", kind).add("end", kind)), *result])
        names = [WINDOW, *names]
    work = _Work(function, names, windows is not None, arrow_schema(result))
    if df.isStreaming:
        return map_in_arrow(_placed_stream(df, keys, workers, scheme, plan, windows), work.unsorted(order), result)
    if isinstance(plan, Adaptive):
        raise InputError("plan: Adaptive is for streams; leave it out for a batch, whose keys are counted first")
    if windows is not None:  # of a batch, a window is one more key
        df = windows.added_to(df)
    if plan is not None:
        placed = place_by(df, columns, whole_function(plan, workers))
    elif scheme is not None:
        placed = place_by(df, columns, whole_function(plan_for(df, keys, workers, scheme, names=False), workers))
    else:
        placed = CostDealing(df, F.lit(1), workers, keys=list(map(column, names))).place()
    by = [column(name).desc() if down else column(name).asc() for name, down in order]
    return map_in_arrow(placed.sortWithinPartitions(*map(column, names), *by), work.sorted(), result)


def _placed_stream(
    df: DataFrame,
    keys: str | Sequence[str],
    workers: int,
    scheme: str | None,
    plan: Plan | PartitionFunction | Adaptive | None,
    windows: Windows | None,
) -> DataFrame:
    """The rows of windows that are over, whole keys on their workers."""
    if windows is None:
        raise InputError(
            "window: a stream needs it, such as window='10 minutes' and time='ts', since without windows the rows of a "
            "key are never complete"
        )
    if plan is None:
        raise InputError("plan: a stream needs it: Adaptive(the query's checkpoint), a Plan or a PartitionFunction")
    twice = repeated(df.sparkSession, df.columns)
    if twice:
        raise InputError(f"df: must have different columns on a stream, and {twice[0]!r} is there twice")
    rows = completed_rows(df, key_names(keys), windows)
    if isinstance(plan, Adaptive):
        require_same_states(plan, df, key_names(keys), windows, collected="rows", columns=df.columns)
        return Route(rows, keys, workers, scheme or PLANNER, "planned", plan, None, None).place()
    return place_by(rows, key_columns(rows, keys), whole_function(plan, workers))


class _Work(NamedTuple):
    """What a task does with the rows of its worker."""

    function: TableFunction
    names: list[str]  # of the keys, the window first where there are windows
    windowed: bool
    schema: pa.Schema  # of the result

    def sorted(self) -> Callable[[Batches], Batches]:
        """From rows that Spark has sorted."""

        def apply(batches: Batches) -> Batches:
            for rows in by_key(batches, self.names):
                yield from self._applied(rows)

        return apply

    def unsorted(self, order: list[tuple[str, bool]]) -> Callable[[Batches], Batches]:
        """From rows in any order, all of which are held in memory."""

        def apply(batches: Batches) -> Batches:
            for rows in gather_by_key(batches, self.names):
                yield from self._applied(sort_as_spark(rows, order))

        return apply

    def _applied(self, rows: pa.Table) -> Batches:
        key = normalized_keys(rows.select(self.names).slice(0, 1))
        rows = rows.drop_columns([WINDOW]) if self.windowed else rows
        found = with_key(call_table("function", self.function, rows), key)
        yield from in_batches(matched("function", found, self.schema, self.names), self.schema)


def sort_as_spark(rows: pa.Table, order: list[tuple[str, bool]]) -> pa.Table:
    """Sorted by columns, downwards where the second is true: as in Spark null is the least, and NaN the largest."""
    for name, down in reversed(order):
        rows = rows.take(pc.sort_indices(rows, sort_keys=[(name, "descending" if down else "ascending")]))
        values = rows[name]
        rank = np.where(values.is_null().to_numpy(), 0, 1)
        if pa.types.is_floating(values.type):
            rank += pc.fill_null(pc.is_nan(values), False).to_numpy()
        rows = rows.take(np.argsort(-rank if down else rank, kind="stable"))
    return rows


def _order(df: DataFrame, sort: str | Sequence[str] | None) -> list[tuple[str, bool]]:
    """Names of columns, and whether they go downwards."""
    names = [] if sort is None else [sort] if isinstance(sort, str) else sort
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InputTypeError(f"sort: must be the name of a column or a list of names, not {sort!r}")
    found = []
    for name in names:
        down = name.startswith("-") and not count_of(df, name)
        plain = name[1:] if down else name
        if plain not in df.columns:
            raise InputError(f"sort: {plain!r} is not a column; allowed are {', '.join(df.columns)}")
        if count_of(df, plain) > 1:
            raise InputError(f"sort: {plain!r} names {count_of(df, plain)} columns; rename all but one")
        found.append((plain, down))
    return found
