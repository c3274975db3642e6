"""Aggregation in two phases, so that a hot key can be on several workers: each computes a part, then they are merged.

Both functions shuffle twice. First the rows, to the workers that the scheme chose: a Python function goes through each
worker's whole partition and puts out one row a key. Then these few rows, by key, to be merged.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from unskew.aggregates import Aggregate
from unskew.aggregates.groups import normalized_keys
from unskew.aggregates.runs import by_key
from unskew.aggregates.states import States, add_all, in_batches, merge_all
from unskew.checks import require_workers
from unskew.contract import Scheme
from unskew.errors import InputError, InputTypeError
from unskew.spark.feedback import Feedback
from unskew.spark.keys import key_columns, key_names
from unskew.spark.mapping import Batches, arrow_schema, mapped, parsed_schema
from unskew.spark.routing import SALT, salted, shuffled

OURS = "__unskew_"
PARTIAL = f"{OURS}partial"
TableFunction = Callable[[pa.Table], pa.Table]
Mapped = Callable[[Batches], Batches]


def aggregate(
    df: DataFrame,
    keys: str | Sequence[str],
    aggregates: Mapping[str, Aggregate],
    workers: int,
    scheme: str | Scheme | Feedback = "fanout",
    **routing: Any,
) -> DataFrame:
    """One row a key: the key columns, and a column for each aggregate under its name. Like ``groupBy(keys).agg(...)``.

        aggregate(df, "word", {"n": Count(), "total": Sum("v")}, workers=64)

    gives the columns word, n and total. The aggregates are those of `unskew.aggregates`, or classes of your own: see
    `unskew.aggregates.Aggregate`. The balance depends on `scheme` and `routing`, the result does not: mode, plan, deal
    and sample of `salted`, which see for what runs now, and for what is at risk when a task is retried. Only the keys
    and the aggregates' columns are shuffled.

    Worth it for functions in Python, large states and sketches. For counts, sums and the like alone, Spark's own
    ``groupBy`` is faster: it combines rows before it shuffles them, so skew does not hurt it.

    A worker holds one state for each of its keys in memory. All bad input is refused here, before any job.
    """
    columns = _checked(df, keys, workers)
    names = key_names(keys)
    used = _checked_aggregates(df, names, aggregates)
    needed = list(dict.fromkeys([*names, *used]))
    results = [*aggregates.values()]
    key_fields = [df.schema[name] for name in names]
    rows = arrow_schema(StructType([df.schema[name] for name in needed]))
    kinds = [each.result_type(*(rows.field(name).type for name in each.columns)) for each in results]
    result_fields = [StructField(name, from_arrow_type(kind)) for name, kind in zip(aggregates, kinds, strict=True)]

    trial = States(names, results)  # without rows, on the driver: tells the types of the states
    trial.add(rows.empty_table())
    states = [field for field in trial.partials().schema if field.name not in names]
    state_fields = [StructField(field.name, from_arrow_type(field.type)) for field in states]
    partial_schema, result_schema = StructType(key_fields + state_fields), StructType(key_fields + result_fields)
    arrow_partial, arrow_result = arrow_schema(partial_schema), arrow_schema(result_schema)

    def phase_1(batches: Batches) -> Batches:
        states = States(names, results)
        add_all(states, batches)
        if len(states):
            yield from in_batches(states.partials(), arrow_partial)

    def phase_2(batches: Batches) -> Batches:
        states = States(names, results)
        merge_all(states, batches)
        if len(states):
            yield from in_batches(states.results(list(aggregates), kinds), arrow_result)

    routed = salted(df, keys, workers, scheme, salt=SALT, **routing).select(*map(_quoted, needed), SALT)
    placed = shuffled(routed, workers, scheme, *columns, SALT).drop(SALT)
    partials = _first_phase(scheme)(placed, phase_1, partial_schema)
    return mapped(partials.repartition(workers, *columns), phase_2, result_schema)


def apply_split(
    df: DataFrame,
    keys: str | Sequence[str],
    partial: TableFunction,
    merge: TableFunction,
    schema: StructType | str,
    workers: int,
    scheme: str | Scheme | Feedback = "fanout",
    **routing: Any,
) -> DataFrame:
    """A pair of functions over Arrow tables, instead of one for ``groupBy(keys).applyInArrow``.

    `partial` gets a table with rows of one key, all columns of `df`: those rows that landed on one worker. It runs once
    a key and worker. `merge` gets a table with all that `partial` returned for a key, and returns the result, whose
    columns are those of `schema` (a DDL string or a StructType), in any order. The mean of the three best scores:

        def best(scores: pa.Table) -> pa.Table:  # of this worker
            return scores.select(["score"]).sort_by([("score", "descending")]).slice(0, 3)

        def mean(parts: pa.Table) -> pa.Table:  # best of the best
            return pa.table({"mean": [pc.mean(best(parts)["score"])]})

        apply_split(df, "player", best, mean, "player string, mean double", workers=64)

    Keys need no care: where your functions leave out the key columns, they are put back. What `partial` returns may
    have any columns, of any Arrow types, the same on all workers: it travels as bytes, so its schema need not be told.

    `scheme` and `routing` are as in `aggregate`. Partitions are sorted by key inside Spark: in Python, a worker holds
    the rows of one key at a time. All bad input is refused here, before any job.
    """
    columns = _checked(df, keys, workers)
    names = key_names(keys)
    for name, function in {"partial": partial, "merge": merge}.items():
        if not callable(function):
            raise InputTypeError(f"{name}: must be a function of a table, not {type(function).__name__}")
    if not isinstance(schema, str | StructType):
        raise InputTypeError(f"schema: must be a StructType or a DDL string, not {type(schema).__name__}")
    result_schema = parsed_schema(df, schema) if isinstance(schema, str) else schema
    arrow_schema(df.schema)
    partial_schema = StructType([*(df.schema[name] for name in names), StructField(PARTIAL, BinaryType())])
    arrow_result = arrow_schema(result_schema)

    def phase_1(batches: Batches) -> Batches:
        for rows in by_key(batches, names):
            key = normalized_keys(rows.select(names).slice(0, 1))
            part = _called("partial", partial, rows)
            yield from key.append_column(PARTIAL, pa.array([_to_bytes(part)])).combine_chunks().to_batches()

    def phase_2(batches: Batches) -> Batches:
        for rows in by_key(batches, names):
            key = rows.select(names).slice(0, 1)
            parts = [pa.ipc.open_stream(part.as_buffer()).read_all() for part in rows[PARTIAL]]
            together = _with_key(pa.concat_tables(parts, promote_options="default"), key)
            result = _with_key(_called("merge", merge, together), key)
            yield from in_batches(_matched(result, arrow_result, names), arrow_result)

    routed = salted(df, keys, workers, scheme, salt=SALT, **routing)
    placed = shuffled(routed, workers, scheme, *columns, SALT).drop(SALT)
    partials = _first_phase(scheme)(placed.sortWithinPartitions(*columns), phase_1, partial_schema)
    return mapped(partials.repartition(workers, *columns).sortWithinPartitions(*columns), phase_2, result_schema)


def _first_phase(scheme: str | Scheme | Feedback) -> Callable[[DataFrame, Mapped, StructType], DataFrame]:
    return scheme.timed if isinstance(scheme, Feedback) else mapped


def _checked(df: DataFrame, keys: str | Sequence[str], workers: int) -> list[Column]:
    """The key columns, after what both functions ask for."""
    require_workers(workers)
    if df.isStreaming:
        raise InputError("df: must not be a stream, whose keys are never complete; allowed is a batch DataFrame")
    ours = [name for name in key_names(keys) if str(name).lower().startswith(OURS)]
    if ours:
        raise InputError(f"keys: {ours[0]!r} must be renamed: names that begin with {OURS} are for columns on the way")
    return key_columns(df, keys)


def _checked_aggregates(df: DataFrame, keys: Sequence[str], aggregates: Mapping[str, Aggregate]) -> list[str]:
    """The columns that the aggregates use."""
    if not isinstance(aggregates, Mapping) or not aggregates:
        raise InputError(f'aggregates: must be a mapping such as {{"n": Count()}}, not {aggregates!r}')
    taken = [key.lower() for key in keys]  # Spark ignores case by default
    used: list[str] = []
    for name, each in aggregates.items():
        if not isinstance(name, str) or not name or name.lower() in taken:
            raise InputError(f"aggregates: {name!r} must be a new name for a column; taken are {', '.join(taken)}")
        if not isinstance(each, Aggregate):
            raise InputTypeError(f"aggregates: {name!r} must be an Aggregate such as Count(), not {each!r}")
        if isinstance(each.columns, str):
            raise InputTypeError(f"aggregates: {name!r}: columns must be a list of names, not {each.columns!r}")
        taken.append(name.lower())
        for column in each.columns:
            _require_column(df, name, column)
            used.append(column)
    return used


def _require_column(df: DataFrame, name: str, column: str) -> None:
    if df.columns.count(column) != 1:
        found = "names several columns" if column in df.columns else "is not a column"
        raise InputError(f"aggregates: {name!r}: {column!r} {found}; allowed are {', '.join(df.columns)}")
    kind = df.schema[column].dataType
    if isinstance(kind, StringType) and kind.collation != "UTF8_BINARY":
        raise InputError(
            f"aggregates: {name!r}: {column!r} has collation {kind.collation}, which Python does not know; "
            "allowed are strings without collation"
        )


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _called(name: str, function: TableFunction, table: pa.Table) -> pa.Table:
    result = function(table)
    if not isinstance(result, pa.Table):
        raise InputTypeError(f"{name}: must return a pyarrow.Table, not {type(result).__name__}")
    return result


def _with_key(table: pa.Table, key: pa.Table) -> pa.Table:
    """The table with those key columns that it lacks, the same in all rows."""
    first = np.zeros(len(table), np.int64)
    for name in key.schema.names:
        if name not in table.schema.names:
            table = table.append_column(name, key[name].take(first))
    return table


def _matched(result: pa.Table, schema: pa.Schema, keys: Sequence[str]) -> pa.Table:
    """The columns of the schema, in its order."""
    missing = sorted(set(schema.names) - set(result.schema.names))
    unknown = sorted(set(result.schema.names) - set(schema.names) - set(keys))
    if missing or unknown:
        raise InputError(f"merge: must return the columns {schema.names}, not {result.schema.names}")
    return result.select(schema.names)


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
