"""`aggregate`: mergeable aggregates of each key, so that a hot key can be on several workers.

Like `apply_split`, it shuffles twice. First the rows, to the workers that the scheme chose: a Python function goes
through each worker's whole partition and puts out one row per key. Then these few rows, by key, to be merged.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType

from unskew.aggregates import Aggregate
from unskew.contract import Scheme
from unskew.errors import InputError, InputTypeError
from unskew.plan import Plan
from unskew.spark.feedback import Feedback
from unskew.spark.frames import count_of, require_frame
from unskew.spark.keys import key_names
from unskew.spark.mapping import map_in_arrow
from unskew.spark.phases import Phases, refuse_our_names
from unskew.spark.route import Route
from unskew.spark.streaming.adaptive import Adaptive
from unskew.spark.streaming.aggregate import aggregate_stream, refuse_stream_options
from unskew.spark.windows import WINDOW, checked_windows


def aggregate(
    df: DataFrame,
    keys: str | Sequence[str],
    aggregates: Mapping[str, Aggregate],
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
    ttl: str | None = None,
    output_mode: str | None = None,
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
    time, window, slide, watermark
        Aggregate by windows of event time too: the name of a column of timestamps, and how long a window is, such as
        "10 minutes". The result then has a column `window` before the keys. A new window begins every `slide`, by
        default when the last one ends. On a stream, a window is over when rows are `watermark` later than its end, and
        rows that come after that are dropped. They are arguments, since Spark lets a stream have one watermark only.
    ttl
        On a stream without windows: forget a key that had no rows for so long, such as "1 day".
    output_mode
        On a stream whose states Python merges (see the notes): the output mode of the query. "append" puts out a window
        when it is over, "update" all that a micro-batch changed. Left out, it is "append" where there is a watermark;
        without one, "update" is the only one.

    Notes
    -----
    On a stream, a worker aggregates its rows of a micro-batch, and Spark's state store holds one state per key. Count,
    Sum, Min, Max, Mean, Variance and StdDev are merged by Spark's own streaming aggregation, in every output mode. The
    others are merged in Python by ``transformWithState``, which needs the state store of RocksDB. Spark does not notice
    there if the query has another output mode than `output_mode` says: an update would be taken for a final result.

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
    require_keys(df, keys)
    names = key_names(keys)
    used = _checked_aggregates(df, names, aggregates)
    windows = checked_windows(df, aggregates, time, window, slide, watermark)
    if df.isStreaming:
        route = Route(df, keys, workers, scheme, mode, plan, deal, sample)
        return aggregate_stream(route, names, used, aggregates, windows, ttl, output_mode)
    refuse_stream_options(ttl, output_mode)
    if windows is not None:  # of a batch, a window is one more key
        df, names = windows.added_to(df), [WINDOW, *names]
    route = Route(df, names, workers, scheme, mode, plan, deal, sample)
    needed = list(dict.fromkeys([*names, *used]))
    phases = Phases.of(df, names, needed, aggregates)
    partials = route.work(phases.add_rows(), phases.partial, needed)
    return map_in_arrow(partials.repartition(workers, *route.columns), phases.merge_and_finish(), phases.result)


def require_keys(df: DataFrame, keys: str | Sequence[str]) -> None:
    """InputError where the key columns look like ours."""
    require_frame(df)
    refuse_our_names("keys", key_names(keys))


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
