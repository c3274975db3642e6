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
from unskew.failing_rows import naming_the_row
from unskew.plan import Plan
from unskew.spark.aggregate import require_keys
from unskew.spark.feedback import Feedback
from unskew.spark.keys import key_names
from unskew.spark.mapping import Batches, arrow_schema, map_in_arrow, result_schema
from unskew.spark.phases import OURS
from unskew.spark.route import Route
from unskew.spark.streaming.adaptive import Adaptive
from unskew.spark.streaming.apply_split import apply_split_to_stream
from unskew.spark.windows import WINDOW, checked_windows

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
    plan: Plan | Adaptive | None = None,
    deal: str | None = None,
    sample: float | None = None,
    time: str | None = None,
    window: str | None = None,
    slide: str | None = None,
    watermark: str | None = None,
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
    time, window, slide, watermark
        As in `aggregate`: apply the functions to each key and window of event time. The result then has a column
        `window` before the others. A stream needs windows, since the parts of a key would pile up without end; they are
        kept in the state store until the window is over.

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
    require_keys(df, keys)
    names = key_names(keys)
    for name, function in {"partial": partial, "merge": merge}.items():
        if not callable(function):
            raise InputTypeError(f"{name}: must be a function of a table, not {type(function).__name__}")
    result = result_schema(df, schema)
    windows = checked_windows(df, result.names, time, window, slide, watermark)
    if df.isStreaming:
        if windows is None:
            raise InputError(
                "window: a stream needs it, such as window='10 minutes' and time='ts', since the parts of a key would "
                "pile up without end"
            )
        route, kind = Route(df, keys, workers, scheme, mode, plan, deal, sample), df.schema[windows.time].dataType
        span = StructField(WINDOW, StructType().add("start", kind).add("end", kind))
        result = StructType([span, *result])
        return apply_split_to_stream(route, names, _part_of(partial), _merging(merge, result), result, windows)
    if windows is not None:  # of a batch, a window is one more key
        df, names = windows.added_to(df), [WINDOW, *names]
        result = StructType([df.schema[WINDOW], *result])
    route = Route(df, names, workers, scheme, mode, plan, deal, sample)
    arrow_schema(df.schema)
    partial_schema = StructType([*(df.schema[name] for name in names), StructField(PARTIAL, BinaryType())])
    arrow_result = arrow_schema(result)
    part_of, merged_of = _part_of(partial), _merging(merge, result)

    def phase_1(batches: Batches) -> Batches:
        for rows in by_key(batches, names):
            key = normalized_keys(rows.select(names).slice(0, 1))
            rows = rows.drop_columns([WINDOW]) if windows is not None else rows
            yield from key.append_column(PARTIAL, pa.array([part_of(rows)])).combine_chunks().to_batches()

    def phase_2(batches: Batches) -> Batches:
        for rows in by_key(batches, names):
            merged = merged_of([part.as_py() for part in rows[PARTIAL]], rows.select(names).slice(0, 1))
            yield from in_batches(merged, arrow_result)

    partials = route.work(phase_1, partial_schema, by_key=True)
    regrouped = partials.repartition(workers, *route.columns).sortWithinPartitions(*route.columns)
    return map_in_arrow(regrouped, phase_2, result)


def _part_of(partial: TableFunction) -> Callable[[pa.Table], bytes]:
    """`partial`, whose result becomes bytes."""
    return lambda rows: _to_bytes(call_table("partial", partial, rows))


def _merging(merge: TableFunction, result: StructType) -> Callable[[list[bytes], pa.Table], pa.Table]:
    """`merge` of the parts of a key, whose columns are a table of one row. The columns of the result are in order."""
    schema = arrow_schema(result)

    def merged_of(parts: list[bytes], key: pa.Table) -> pa.Table:
        tables = [pa.ipc.open_stream(part).read_all() for part in parts]
        together = with_key(pa.concat_tables(tables, promote_options="default"), key)
        return matched("merge", with_key(call_table("merge", merge, together), key), schema, key.schema.names)

    return merged_of


def call_table(name: str, function: TableFunction, table: pa.Table) -> pa.Table:
    """What the function called `name` makes of the table."""
    with naming_the_row(f"{name}: {getattr(function, '__name__', 'the function')}", function, table):
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
