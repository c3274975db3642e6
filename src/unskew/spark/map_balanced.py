"""`map_balanced`: an expensive function of each row, with the work dealt evenly, not the rows."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from unskew.checks import require_integer
from unskew.errors import InputError, InputTypeError
from unskew.spark.cost_dealing import MOST_WORKERS, CostDealing, as_number, cost_column
from unskew.spark.frames import as_compared, free_name, repeated, require_frame
from unskew.spark.keys import described_keys
from unskew.spark.learned_costs import KEY, LearnedCosts
from unskew.spark.mapping import Batches, arrow_schema, map_in_arrow, nullable, result_schema
from unskew.spark.streaming.cost_files import NAME as COSTS
from unskew.spark.streaming.cost_files import CostFiles
from unskew.spark.streaming.map_balanced import place_by_learned_cost, place_by_told_cost
from unskew.spark.streaming.side_folder import SideFolder
from unskew.spark.telling import DONE, observe, with_done, with_nulls
from unskew.spark.timed_costs import DONE_TYPE, sketching
from unskew.spark.working import (
    Failed,
    Function,
    Piece,
    Told,
    by_batch,
    by_cost_key,
    run_by_batch,
    run_collecting,
    run_through,
    warn_if_late,
)

RAISE, COLLECT = ON_ERROR = ("raise", "collect")
ERROR = "error"  # the column of rows that failed


def map_balanced(
    df: DataFrame,
    function: Callable[[Batches], Batches],
    schema: StructType | str,
    workers: int,
    cost: str | Column | LearnedCosts,
    *,
    deal: str | None = None,
    on_error: str = "raise",
    checkpoint: str | Path | None = None,
) -> DataFrame:
    """``df.repartition(workers).mapInArrow(function, schema)``, where each worker gets as much work as the others.

    For stateless functions whose time depends on the row: documents of different length, images, requests. Costs are
    added up first, in one native pass over the rows (three at most), which runs now. Then rows are placed by a native
    column: the expensive ones one by one, each on the worker that has least so far, the others so that every worker
    gets its share. The busiest worker has little more than the mean, or than the most expensive row, whichever is more.
    What a function has to do for all rows of a key at once is for `apply_split`.

    Parameters
    ----------
    df
        The rows. Those of a batch are read twice: cache what is expensive to make, and what is not the same when it is
        made again. Those of a stream are read once, see the notes.
    function
        As for ``mapInArrow``: gets an iterator of record batches and yields others. Where it fails, the error names it
        and shows the row; to find that row, rows of the last batch may be done again. One that hangs, hangs the task,
        as everywhere in Spark: give it a time limit of its own, such as the timeout of a request.
    schema
        Of what it yields, whose columns may come in any order: a DDL string or a StructType.
    workers
        How many partitions, up to 10,000; partition w is worker w.
    cost
        What a row costs, in any unit: the name of a column, an SQL expression such as ``"length(text)"``, a Column; or
        `LearnedCosts`, which are timed. If every row costs something besides, add it. Null is a cost that is not known,
        and taken as the mean of the others. Negative, infinite and NaN costs are refused, before the function runs.
    deal
        As in `repartition`: rows that are equal in content, or in the column that you name, are dealt together. Left
        out, rows that are equal and too many for that are dealt by position.
    on_error
        "raise", or "collect": a row that makes the function fail does not end the job. The result then has one more
        column, ``error``, null in all other rows: a struct of the type of the error, its message, and the row. All
        other columns are null in such a row. The function is called anew for about every second of work, so load what
        it needs once per process (``functools.cache``); and rows next to one that fails may be done twice.
    checkpoint
        Of a stream with `LearnedCosts`: the query's ``checkpointLocation``. What rows took is left there, and each
        micro-batch is dealt by what the ones before it took. Left out, costs stay as they were learnt or loaded. On
        Spark Connect, not into ``foreachBatch``, where tasks do not know their micro-batch.

    Notes
    -----
    On a stream, each task before the shuffle deals its own rows as they come, each to the worker that it has given
    least so far; so costs are balanced to within one row per such task. Only costs travel to Python for that, or key
    ids. As with ``deal="position"`` in `repartition`, the input must come in a fixed order, as it does from files and
    Kafka. Costs that are refused end the query.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from unskew.spark import map_balanced
    >>> def shout(batches):
    ...     for batch in batches:
    ...         words = [word.upper() for word in batch["word"].to_pylist()]
    ...         yield pa.RecordBatch.from_pydict({"word": words})
    >>> done = map_balanced(df, shout, "word string", workers=4, cost="length(word)")
    >>> done.groupBy("word").count().sort("word").show()
    +----+-----+
    |word|count|
    +----+-----+
    | CAT|  100|
    | THE|  900|
    +----+-----+
    <BLANKLINE>
    """
    require_frame(df)
    if not callable(function):
        raise InputTypeError(f"function: must be a function of batches, not {type(function).__name__}")
    if on_error not in ON_ERROR:
        raise InputError(f"on_error: must be one of {', '.join(ON_ERROR)}, not {on_error!r}")
    result = result_schema(df, schema)
    arrow_schema(df.schema)
    learned = cost if isinstance(cost, LearnedCosts) else None
    column = cost.estimate(df) if isinstance(cost, LearnedCosts) else cost_column(df, cost)
    if on_error == COLLECT:
        result = _with_error(df, result)
    if df.isStreaming:
        work = _Work(function, df.columns, _plain_names(df), on_error)
        return _on_stream(df, work, result, workers, column if learned is None else learned, deal, checkpoint)
    if checkpoint is not None:
        raise InputError("checkpoint: is for streams; leave it out for a batch, and call collect after each run")
    if learned is not None:
        with_done(df, result, DONE_TYPE)  # InputError before any job
    placed = CostDealing(df, column, workers, deal).place()
    if learned is None and on_error == RAISE:
        return map_in_arrow(placed, _telling_the_row(function, arrow_schema(result)), result)
    work = _Work(function, df.columns, _plain_names(df), on_error)
    if learned is None:
        return map_in_arrow(placed, work.collecting(arrow_schema(result)), result)
    told = with_done(df, result, DONE_TYPE)
    keyed = learned.with_key_id(placed, free_name(placed, KEY))
    rows, observation = observe(map_in_arrow(keyed, work.timed(arrow_schema(told)), told))
    learned.expect(df, observation, workers)
    return rows


def _on_stream(
    df: DataFrame,
    work: "_Work",
    result: StructType,
    workers: int,
    cost: Column | LearnedCosts,
    deal: str | None,
    checkpoint: str | Path | None,
) -> DataFrame:
    require_integer("workers", workers, 1, MOST_WORKERS)
    if deal is not None:
        raise InputError("deal: must be left out on a stream, whose tasks deal their rows as they come")
    if isinstance(cost, LearnedCosts) and checkpoint is not None:
        key = described_keys(df, list(cost.cost_key))
        folder = SideFolder(checkpoint, COSTS)
        folder.create()
        files = CostFiles(folder.root, key, workers)
        files.warn_of_other_keys()
        placed = place_by_learned_cost(df, cost, workers, files)
        keyed = cost.with_key_id(placed, free_name(placed, KEY))
        return map_in_arrow(keyed, work.timed_to(files, arrow_schema(result)), result)
    if isinstance(cost, LearnedCosts):
        placed = place_by_learned_cost(df, cost, workers, None)
    elif checkpoint is None:
        placed = place_by_told_cost(df, as_number(df, cost), workers)
    else:
        raise InputError("checkpoint: is for LearnedCosts; leave it out where costs are told")
    if work.on_error == RAISE:
        return map_in_arrow(placed, _telling_the_row(work.function, arrow_schema(result)), result)
    return map_in_arrow(placed, work.collecting(arrow_schema(result)), result)


class _Work:
    """What a task does with the rows of its worker."""

    def __init__(self, function: Function, columns: Sequence[str], plain: Sequence[str], on_error: str) -> None:
        self.function, self.columns, self.plain, self.on_error = function, columns, plain, on_error

    def collecting(self, schema: pa.Schema) -> Function:
        """Without anything to tell."""

        def collecting(batches: Batches) -> Batches:
            yield from self._results(by_batch(batches), lambda piece, seconds: None, schema)

        return collecting

    def timed(self, schema: pa.Schema) -> Function:
        """Timed by cost key, whose id is in the last column; a row at the end tells of it."""

        def timed(batches: Batches) -> Batches:
            told, done = sketching()
            yield from self._results(by_cost_key(batches), told, schema)
            yield pa.RecordBatch.from_pylist([{DONE: row} for row in done()], schema)

        return timed

    def timed_to(self, files: CostFiles, schema: pa.Schema) -> Function:
        """Timed by cost key; what was found is left in files."""

        def timed(batches: Batches) -> Batches:
            told, done = sketching()
            yield from self._results(by_cost_key(batches), told, schema)
            for row in done():
                warn_if_late(row["late"], row["seconds"])
                files.tell(row["worker"], row["sketches"])

        return timed

    def _results(self, pieces: Iterator[Piece], told: Told, schema: pa.Schema) -> Batches:
        names = [name for name in schema.names if name not in (DONE, *([ERROR] if self.on_error == COLLECT else []))]
        run = run_collecting if self.on_error == COLLECT else run_through
        for found in run(self.function, pieces, told):
            if isinstance(found, Failed):
                yield self._failed(found, schema)
            else:
                yield _cast(with_nulls(found, schema, names), schema)

    def _failed(self, failed: Failed, schema: pa.Schema) -> pa.RecordBatch:
        kind = schema.field(ERROR).type
        row = pa.StructArray.from_arrays(failed.row.columns, self.plain).cast(kind.field("row").type)
        message = str(failed.error).encode(errors="replace").decode()  # of a file's name it may have half characters
        texts = ([type(failed.error).__name__], [message])
        error = pa.StructArray.from_arrays([*(pa.array(text) for text in texts), row], fields=list(kind))
        others = {field.name: pa.nulls(1, field.type) for field in schema}
        return pa.RecordBatch.from_pydict(others | {ERROR: error}, schema)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return batch.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        types = ", ".join(f"{field.name} {field.type}" for field in schema if field.name not in (DONE, ERROR))
        raise InputError(f"function: must yield the types of the schema, {types}: {error}") from None


def _telling_the_row(function: Function, schema: pa.Schema) -> Function:
    """The function, whose errors tell the row. Spark takes columns by position, so they are put in order by name."""
    names = schema.names

    def telling(batches: Batches) -> Batches:
        for found in run_by_batch(function, batches):
            known = isinstance(found, pa.RecordBatch) and sorted(found.schema.names) == sorted(names)
            yield _cast(found.select(names), schema) if known else found

    telling.__name__ = getattr(function, "__name__", "function")  # is in the plan
    return telling


def _with_error(df: DataFrame, result: StructType) -> StructType:
    """The schema with everything nullable, and a column for the rows that failed."""
    if ERROR in as_compared(df.sparkSession, result.names):
        raise InputError(f"schema: must have no column called {ERROR} with on_error='collect', which adds it")
    plain = [StructField(name, field.dataType) for name, field in zip(_plain_names(df), df.schema, strict=True)]
    error = StructType([StructField("type", StringType()), StructField("message", StringType())])
    error.add("row", nullable(StructType(plain)))
    return StructType([*nullable(result), StructField(ERROR, error)])


def _plain_names(df: DataFrame) -> list[str]:
    """The names of the columns, those that repeat with a number behind them."""
    names: list[str] = []
    for name in df.columns:
        new, number = name, 2
        while repeated(df.sparkSession, [*names, new]):
            new, number = f"{name}_{number}", number + 1
        names.append(new)
    return names
