"""`apply_split`: a function of all rows of a key, written as two, so that a hot key can be on several workers."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from unskew.aggregates.groups import normalized_keys
from unskew.aggregates.runs import by_key
from unskew.aggregates.states import in_batches
from unskew.contract import Scheme
from unskew.errors import InputError, InputTypeError
from unskew.plan import Plan
from unskew.spark.aggregate import OURS, require_complete_keys
from unskew.spark.feedback import Feedback
from unskew.spark.keys import key_names
from unskew.spark.mapping import Batches, arrow_schema, map_in_arrow, result_schema
from unskew.spark.route import Route

PARTIAL = f"{OURS}partial"
TableFunction = Callable[[pa.Table], pa.Table]


def apply_split(
    df: DataFrame,
    keys: str | Sequence[str],
    partial: TableFunction,
    merge: TableFunction,
    schema: StructType | str,
    workers: int,
    scheme: str | Scheme | Feedback | None = None,
    *,
    mode: str = "auto",
    plan: Plan | None = None,
    deal: str | None = None,
    sample: float | None = None,
) -> DataFrame:
    """A pair of functions over Arrow tables, instead of one for ``groupBy(keys).applyInArrow``.

    Where your functions leave out the key columns, they are put back. Partitions are sorted by key inside Spark: in
    Python, a worker holds the rows of one key at a time. Bad input is refused before any job.

    Parameters
    ----------
    df, keys, workers, scheme, mode, plan, deal, sample
        As in `repartition`. With a `Feedback`, the time that `partial` takes is measured.
    partial
        Gets a table with all columns of `df` and those rows of a key that landed on one worker. Runs once per key and
        worker. What it returns may have any columns, the same on all workers: it travels as bytes.
    merge
        Gets a table with all that `partial` returned for a key, and returns the result: the columns of `schema`, in any
        order, and any number of rows.
    schema
        Of the result: a DDL string or a StructType.

    Examples
    --------
    The mean of the three largest values of each word:

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> from unskew.spark import apply_split
    >>> def best(rows: pa.Table) -> pa.Table:  # of this worker
    ...     return rows.select(["v"]).sort_by([("v", "descending")]).slice(0, 3)
    >>> def mean(parts: pa.Table) -> pa.Table:  # of the best of the best
    ...     return pa.table({"mean": [pc.mean(best(parts)["v"])]})
    >>> apply_split(df, "word", best, mean, "word string, mean double", workers=4).sort("word").show()
    +----+-----+
    |word| mean|
    +----+-----+
    | cat|989.0|
    | the|997.0|
    +----+-----+
    <BLANKLINE>
    """
    require_complete_keys(df, keys)
    names = key_names(keys)
    for name, function in {"partial": partial, "merge": merge}.items():
        if not callable(function):
            raise InputTypeError(f"{name}: must be a function of a table, not {type(function).__name__}")
    result = result_schema(df, schema)
    route = Route(df, keys, workers, scheme, mode, plan, deal, sample)
    arrow_schema(df.schema)
    partial_schema = StructType([*(df.schema[name] for name in names), StructField(PARTIAL, BinaryType())])
    arrow_result = arrow_schema(result)

    def phase_1(batches: Batches) -> Batches:
        for rows in by_key(batches, names):
            key = normalized_keys(rows.select(names).slice(0, 1))
            part = call_table("partial", partial, rows)
            yield from key.append_column(PARTIAL, pa.array([_to_bytes(part)])).combine_chunks().to_batches()

    def phase_2(batches: Batches) -> Batches:
        for rows in by_key(batches, names):
            key = rows.select(names).slice(0, 1)
            parts = [pa.ipc.open_stream(part.as_buffer()).read_all() for part in rows[PARTIAL]]
            together = with_key(pa.concat_tables(parts, promote_options="default"), key)
            merged = with_key(call_table("merge", merge, together), key)
            yield from in_batches(matched("merge", merged, arrow_result, names), arrow_result)

    partials = route.work(route.place().sortWithinPartitions(*route.columns), phase_1, partial_schema)
    regrouped = partials.repartition(workers, *route.columns).sortWithinPartitions(*route.columns)
    return map_in_arrow(regrouped, phase_2, result)


def call_table(name: str, function: TableFunction, table: pa.Table) -> pa.Table:
    """What the function called `name` makes of the table."""
    result = function(table)
    if not isinstance(result, pa.Table):
        raise InputTypeError(f"{name}: must return a pyarrow.Table, not {type(result).__name__}")
    return result


def with_key(table: pa.Table, key: pa.Table) -> pa.Table:
    """The table with those key columns that it lacks, the same in all rows."""
    first = np.zeros(len(table), np.int64)
    for name in key.schema.names:
        if name not in table.schema.names:
            table = table.append_column(name, key[name].take(first))
    return table


def matched(name: str, result: pa.Table, schema: pa.Schema, keys: Sequence[str]) -> pa.Table:
    """The columns of the schema, in its order; `name` is what returned them."""
    missing = sorted(set(schema.names) - set(result.schema.names))
    unknown = sorted(set(result.schema.names) - set(schema.names) - set(keys))
    if missing or unknown:
        raise InputError(f"{name}: must return the columns {schema.names}, not {result.schema.names}")
    return result.select(schema.names)


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
