"""`LearnedCosts`: what rows cost by a key that determines it, timed in one run for the next."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import DoubleType

from unskew.checks import require_number
from unskew.errors import InputError, InputTypeError
from unskew.plan import KeyColumn
from unskew.sketches.mean_costs import (
    MeanCosts,
    from_plain_costs,
    learn,
    mean_costs_of,
    new_mean_costs,
    to_plain,
)
from unskew.spark.balance import Balance
from unskew.spark.frames import free_name, require_batch, require_frame, warn
from unskew.spark.keys import described_keys, key_columns, key_id, key_names
from unskew.spark.telling import UNHEARD, hear
from unskew.spark.timed_costs import COLUMNS, ROWS, add_up, learnt, time_rows
from unskew.spark.working import Function, warn_if_late
from unskew.writing import whole_file

FORMAT = 1  # of files
KEY = "__unskew_cost_key"


class LearnedCosts:
    """What a row costs, in seconds, by the columns that determine it. Give it to `map_balanced` as its cost.

    The first run knows nothing and deals rows evenly by number, unless costs that were saved are loaded. Each task
    times your function and sketches, per cost key, how many rows there were and what they took (see `unskew.sketches`).
    `collect` fetches the sketches, and the next run is dealt by them; a stream does that by itself. A key that
    was never seen costs what all rows do on average.

    A function is timed on the rows of one cost key in one batch together. What a batch costs besides its rows is part
    of that: a key with one row in a batch carries all of it, a key with a hundred rows a hundredth. So keys with few
    rows look a little more expensive than they are, by up to one batch.

    A function must be done with a batch when it asks for the next one. What it does after it has asked for all of them,
    as with ``list(batches)``, counts for all rows of its task alike, and a warning says so if that is most of the work.
    What it does one batch late, or in threads of its own while it asks, counts for the wrong keys: time it with
    `time_sample`, which hands over one row per call, or with ``on_error="collect"``, which calls it for each part.

    Parameters
    ----------
    cost_key
        The name of the column that determines what a row costs, or a list of names.
    keep
        How much of what was learnt before counts beside a new run: 0 forgets it, 1 never fades. Where it is off by more
        than half of what the run took, costs have changed, and it is forgotten whatever `keep` says. That is judged by
        at least a hundred rows, since few rows differ from each other by chance.

    Examples
    --------
    >>> from unskew.spark import LearnedCosts, map_balanced
    >>> def work(batches):
    ...     for batch in batches:
    ...         yield batch.select(["v"])
    >>> costs = LearnedCosts("word")
    >>> for batch in (df, df):
    ...     rows = map_balanced(batch, work, "v bigint", workers=4, cost=costs).collect()
    ...     run = costs.collect()
    >>> sum(run.rows), len(run.seconds)
    (1000, 4)
    """

    def __init__(self, cost_key: str | Sequence[str], *, keep: float = 0.2) -> None:
        names = key_names(cost_key, "cost_key")
        if not names:
            raise InputError("cost_key: must name at least one column, not none")
        require_number("keep", keep, "a number from 0 to 1", 0.0, 1.0)
        self.cost_key, self.keep = tuple(names), float(keep)
        self._sketches: MeanCosts | None = None  # None: nothing is known yet
        self._columns: tuple[KeyColumn, ...] = ()  # of the rows that it was learnt from
        self._observation: Observation | None = None
        self._workers = 0

    @property
    def known(self) -> bool:
        """Whether anything was learnt yet."""
        return self._sketches is not None

    def estimate(self, df: DataFrame) -> Column:
        """Seconds that each row of `df` takes, as a Column; without anything learnt, 1.

        Computed by a Python function of the key ids: use it where rows are measured, not where many are routed.
        """
        ids, sketches = self._key_id(df), self._sketches
        if sketches is None:
            return F.lit(1.0)

        def estimated(ids: pa.Array) -> pa.Array:
            return pa.array(mean_costs_of(sketches, ids.to_numpy().view(np.uint64)))

        return arrow_udf(estimated, DoubleType())(ids)

    def time_sample(self, df: DataFrame, function: Function, *, seconds: float = 5.0) -> int:
        """Learn from up to a thousand rows of `df`, timed on the driver one by one, so that already the first run is
        dealt by cost. Returns how many rows were timed. Runs two Spark jobs.

        Parameters
        ----------
        df
            The rows, in a batch.
        function
            As for `map_balanced`.
        seconds
            When to stop, after at least one row.
        """
        require_batch(df)
        if not callable(function):
            raise InputTypeError(f"function: must be a function of batches, not {type(function).__name__}")
        require_number("seconds", seconds, "a number from 0 on", 0.0, math.inf)
        key = free_name(df, KEY)
        timed = time_rows(self.with_key_id(df, key), function, seconds)
        new = new_mean_costs(ROWS, COLUMNS)
        ids = np.array([piece.key for piece, _ in timed], np.int64).view(np.uint64)
        learn(new, ids, 1.0, np.array([took for _, took in timed]))
        if timed:
            self._columns = described_keys(df, list(self.cost_key))
            self._learn(new)
        return len(timed)

    def collect(self) -> Balance:
        """Learn from the run of what `map_balanced` returned last. Returns the rows and seconds of each worker.

        Call it after the first action on that DataFrame, such as ``collect`` or a write: only that one is measured.
        ``show``, ``take`` and ``isEmpty`` end before all workers got to the end of their rows: as with a run that
        failed, nothing is learnt then, and a warning says so. One run at a time: not for several threads.
        """
        if self._observation is None:
            raise InputError("costs: there is no run to learn from; first call map_balanced and run what it returns")
        told = hear(self._observation, "costs: what map_balanced returned has not run; write or collect it first")
        self._observation = None
        done = {row["worker"]: row for row in told}  # each once, also if it was retried
        rows = [done[worker]["rows"] if worker in done else 0 for worker in range(self._workers)]
        seconds = [done[worker]["seconds"] if worker in done else 0.0 for worker in range(self._workers)]
        if len(done) < self._workers:
            warn(
                f"costs: heard of {len(done)} of {self._workers} workers, so nothing was learnt: the run was cut short "
                f"(take, show, isEmpty), or failed, or had no rows; {UNHEARD}"
            )
            return Balance(tuple(rows), (), tuple(seconds))
        warn_if_late(sum(row["late"] for row in done.values()), sum(seconds))
        if any(rows):
            self._learn(add_up(row["sketches"] for row in done.values()))
        return Balance(tuple(rows), (), tuple(seconds))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write what was learnt as JSON; an existing file is kept unless `force`."""
        if not isinstance(path, str | Path):
            raise InputTypeError(f"path: must be the name of a file to write, not {path!r}")
        if self._sketches is None:
            raise InputError("costs: nothing was learnt yet that could be saved; run and collect first")
        if Path(path).exists() and not force:
            raise InputError(f"path: {str(path)!r} exists and was kept; use force=True to replace it")
        content = {
            "unskew_costs": FORMAT,
            "keep": self.keep,
            "cost_key": [column._asdict() for column in self._columns],
            "sketches": to_plain(self._sketches),
        }
        try:
            with whole_file(Path(path)) as unfinished:
                unfinished.write_text(json.dumps(content), encoding="utf-8")
        except OSError as error:
            raise InputError(f"path: {str(path)!r} cannot be written: {error.strerror}") from None

    @classmethod
    def load(cls, path: str | Path) -> "LearnedCosts":
        """What `save` wrote."""
        if not isinstance(path, str | Path):
            raise InputTypeError(f"path: must be the name of a file that LearnedCosts.save wrote, not {path!r}")
        try:
            found: Any = json.loads(Path(path).read_text(encoding="utf-8"))
            if found["unskew_costs"] != FORMAT:
                raise InputError(f"costs: must be of format {FORMAT}, not {found['unskew_costs']!r}; learn them anew")
            columns = tuple(KeyColumn(str(column["name"]), str(column["type"])) for column in found["cost_key"])
            costs = cls([column.name for column in columns], keep=found["keep"])
            sketches = from_plain_costs("costs", found["sketches"])
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"path: {str(path)!r} cannot be read: {error}") from None
        except (KeyError, TypeError, ValueError, RecursionError):
            raise InputError(f"path: {str(path)!r} is not what LearnedCosts.save wrote") from None
        if sketches.counts.cells.shape != (ROWS, COLUMNS):
            raise InputError(f"costs: sketches must have {ROWS} rows of {COLUMNS} cells; the file was edited")
        costs._sketches, costs._columns = sketches, columns
        return costs

    def with_key_id(self, df: DataFrame, name: str) -> DataFrame:
        """`df` with the id of the cost key as its last column."""
        return df.withColumn(name, self._key_id(df))

    def expect(self, df: DataFrame, observation: Observation, workers: int) -> None:
        """A run begins, whose tasks tell `observation` what `sketching` told them."""
        self._columns = described_keys(df, list(self.cost_key))
        self._observation, self._workers = observation, workers

    def _learn(self, new: MeanCosts) -> None:
        self._sketches = learnt(self._sketches, new, self.keep)

    @property
    def sketches(self) -> MeanCosts | None:
        """What was learnt, None if nothing yet."""
        return self._sketches

    def _key_id(self, df: DataFrame) -> Column:
        require_frame(df)
        columns = key_columns(df, list(self.cost_key), "cost_key")
        kinds, ours = ([c.type for c in each] for each in (self._columns, described_keys(df, list(self.cost_key))))
        if self.known and kinds != ours:
            raise InputError(
                f"cost_key: costs were learnt for the types {', '.join(kinds)}, not {', '.join(ours)}, whose hashes "
                "are others; cast the columns, or learn anew"
            )
        return key_id(*columns)
