"""`aggregate`: mergeable aggregates of each key, so that a hot key can be on several workers.

Like `apply_split`, it shuffles twice. First the rows, to the workers that the scheme chose: a Python function goes
through each worker's whole partition and puts out one row per key. Then these few rows, by key, to be merged.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from unskew.aggregates import Aggregate
from unskew.aggregates.states import States, add_all, in_batches, merge_all
from unskew.contract import Scheme
from unskew.errors import InputError, InputTypeError
from unskew.plan import Plan
from unskew.spark.feedback import Feedback
from unskew.spark.frames import count_of, require_frame
from unskew.spark.keys import key_names
from unskew.spark.mapping import Batches, arrow_schema, map_in_arrow
from unskew.spark.route import Route

OURS = "__unskew_"


def aggregate(
    df: DataFrame,
    keys: str | Sequence[str],
    aggregates: Mapping[str, Aggregate],
    workers: int,
    scheme: str | Scheme | Feedback | None = None,
    *,
    mode: str = "auto",
    plan: Plan | None = None,
    deal: str | None = None,
    sample: float | None = None,
) -> DataFrame:
    """One row per key: the key columns, and a column for each aggregate under its name. Like ``groupBy(keys).agg``.

    Worth it for functions in Python, large states and sketches. For counts, sums and the like alone, Spark's own
    ``groupBy`` is faster: it combines rows before it shuffles them, so skew does not hurt it.

    How rows are routed changes the balance, never the result. Only the keys and the columns of the aggregates are
    shuffled. A worker holds one state for each of its keys in memory. Bad input is refused before any job.

    Parameters
    ----------
    df, keys, workers, scheme, mode, plan, deal, sample
        As in `repartition`. With a `Feedback`, the time that workers take to add rows is measured.
    aggregates
        Names of new columns, and what is in them: aggregates of `unskew.aggregates`, or of your own class (see
        `unskew.aggregates.Aggregate`).

    Examples
    --------
    >>> from unskew.aggregates import Count, Max
    >>> from unskew.spark import aggregate
    >>> aggregate(df, "word", {"n": Count(), "last": Max("v")}, workers=4).sort("word").show()
    +----+---+----+
    |word|  n|last|
    +----+---+----+
    | cat|100| 999|
    | the|900| 998|
    +----+---+----+
    <BLANKLINE>
    """
    require_complete_keys(df, keys)
    names = key_names(keys)
    used = _checked_aggregates(df, names, aggregates)
    route = Route(df, keys, workers, scheme, mode, plan, deal, sample)
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

    partials = route.work(route.place(needed), phase_1, partial_schema)
    return map_in_arrow(partials.repartition(workers, *route.columns), phase_2, result_schema)


def require_complete_keys(df: DataFrame, keys: str | Sequence[str]) -> None:
    """InputError unless all rows of a key are there, and its columns do not look like ours."""
    require_frame(df)
    if df.isStreaming:
        raise InputError("df: must not be a stream, whose keys are never complete; allowed is a batch DataFrame")
    ours = [name for name in key_names(keys) if name.lower().startswith(OURS)]
    if ours:
        raise InputError(f"keys: {ours[0]!r} must be renamed: names that begin with {OURS} are for columns on the way")


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
    if column not in df.columns:
        raise InputError(f"aggregates: {name!r}: {column!r} is not a column; allowed are {', '.join(df.columns)}")
    if count_of(df, column) > 1:
        raise InputError(f"aggregates: {name!r}: {column!r} names {count_of(df, column)} columns; rename all but one")
    kind = df.schema[column].dataType
    if isinstance(kind, StringType) and kind.collation != "UTF8_BINARY":
        raise InputError(
            f"aggregates: {name!r}: {column!r} has collation {kind.collation}, which Python does not know; "
            "allowed are strings without collation"
        )
