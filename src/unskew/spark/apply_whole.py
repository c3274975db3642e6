"""`apply_whole`: a function of all rows of a key, for keys that cannot be split, with the keys placed evenly."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import StructType

from unskew.aggregates.groups import normalized_keys
from unskew.aggregates.runs import by_key
from unskew.aggregates.states import in_batches
from unskew.checks import require_workers
from unskew.errors import InputError, InputTypeError
from unskew.partitioning import ALGORITHMS, PartitionFunction
from unskew.plan import Plan
from unskew.spark.aggregate import require_complete_keys
from unskew.spark.apply_split import TableFunction, call_table, matched, with_key
from unskew.spark.cost_dealing import CostDealing
from unskew.spark.frames import column, count_of
from unskew.spark.keys import key_columns, key_names
from unskew.spark.mapping import Batches, arrow_schema, map_in_arrow, result_schema
from unskew.spark.placing import place_by, whole_function
from unskew.spark.planning import plan_for, require_plan_of


def apply_whole(
    df: DataFrame,
    keys: str | Sequence[str],
    function: TableFunction,
    schema: StructType | str,
    workers: int,
    scheme: str | None = None,
    *,
    plan: Plan | PartitionFunction | None = None,
    sort: str | Sequence[str] | None = None,
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
        The rows, in a batch.
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
        A `Plan` of whole keys, or a `PartitionFunction`, such as `rebalance` makes. Then nothing is counted now.
    sort
        The columns by which the rows of a key are sorted, inside Spark; a ``-`` in front sorts downwards: ``"-time"``.

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
    require_complete_keys(df, keys)
    require_workers(workers)
    names, columns = key_names(keys), key_columns(df, keys)
    if not callable(function):
        raise InputTypeError(f"function: must be a function of a table, not {type(function).__name__}")
    if scheme is not None and scheme not in ALGORITHMS:
        raise InputError(f"scheme: must be one of {', '.join(ALGORITHMS)}, or left out, not {scheme!r}")
    if scheme is not None and plan is not None:
        raise InputError("scheme: must be left out where a plan is given")
    result, order = result_schema(df, schema), _order(df, sort)
    arrow_schema(df.schema)
    arrow_result = arrow_schema(result)
    if isinstance(plan, Plan):
        require_plan_of(df, keys, plan)
    if plan is not None:
        placed = place_by(df, columns, whole_function(plan, workers))
    elif scheme is not None:
        placed = place_by(df, columns, whole_function(plan_for(df, keys, workers, scheme, names=False), workers))
    else:
        placed = CostDealing(df, F.lit(1), workers, keys=columns).place()

    def apply(batches: Batches) -> Batches:
        for rows in by_key(batches, names):
            key = normalized_keys(rows.select(names).slice(0, 1))
            found = with_key(call_table("function", function, rows), key)
            yield from in_batches(matched("function", found, arrow_result, names), arrow_result)

    return map_in_arrow(placed.sortWithinPartitions(*columns, *order), apply, result)


def _order(df: DataFrame, sort: str | Sequence[str] | None) -> list[Column]:
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
        found.append(column(plain).desc() if down else column(plain).asc())
    return found
