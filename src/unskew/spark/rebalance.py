"""`rebalance`: the next placement of whole keys, and what has to be moved for it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.checks import require_integer
from unskew.errors import InputError, InputTypeError
from unskew.frequencies import Frequencies
from unskew.partitioning import (
    ALGORITHMS,
    Moves,
    Objective,
    PartitionFunction,
    construct,
    move_whole,
    moves,
    place_whole,
)
from unskew.partitioning.construction import DEFAULT
from unskew.partitioning.function import NO_KEYS, NO_WORKERS, PLANNER
from unskew.plan import HotKey, Plan
from unskew.spark.balance import Balance
from unskew.spark.cost_dealing import MOST_WORKERS
from unskew.spark.counting import count_keys, fetch_names
from unskew.spark.frames import require_batch
from unskew.spark.keys import described_keys, key_columns
from unskew.spark.placing import cold_worker, whole_function, worker_of
from unskew.spark.planning import require_plan_of


@dataclass(frozen=True)
class Rebalanced:
    """What `rebalance` found. Give `plan` to `apply_whole`, and keep it as the next `previous`.

    Attributes
    ----------
    plan
        The new placement, of the same kind as the one before.
    moves
        Of the keys that were counted: key, from, to and state.
    before, after
        Rows per worker by the placement before and by the new one; None where they are not known.
    rows_moved
        Rows of all keys that change their worker, counted or not; None where it is not known.

    Examples
    --------
    >>> from unskew import Frequencies, key_ids
    >>> from unskew.spark import rebalance
    >>> frequencies = Frequencies(key_ids(["the", "of", "and"]), [60, 30, 20], tuples=110)
    >>> found = rebalance(frequencies, "word", 2)
    >>> found.plan.workers, len(found.moves)
    (2, 0)
    """

    plan: Plan | PartitionFunction
    moves: Moves
    before: Balance | None = field(default=None)
    after: Balance | None = field(default=None)
    rows_moved: int | None = None

    @property
    def cost(self) -> float:
        """The state that is moved, in rows, of the keys that were counted."""
        return self.moves.cost

    def to_df(self, spark: SparkSession) -> DataFrame:
        """The moves as a DataFrame: key, key_id, from, to, state."""
        table = self.moves.table()
        ids = pa.array(table["key_id"].to_numpy().astype(np.uint64).view(np.int64))
        columns = {name: table[name] for name in table.schema.names} | {"key_id": ids}
        kinds = "key string, key_id bigint, from bigint, to bigint, state double"
        return spark.createDataFrame(pa.table(columns), kinds) if len(self.moves) else spark.createDataFrame([], kinds)

    @property
    def verdict(self) -> str:
        """What was achieved, in one or two sentences."""
        said = f"{len(self.moves):,} of the keys that were counted move"
        if self.after is None or self.before is None:
            return f"{said}."
        all_rows = sum(self.after.rows)
        share = (self.rows_moved or 0) / max(1, all_rows)
        return (
            f"{said}; {self.rows_moved:,} of {all_rows:,} rows ({share:.1%}) change their worker. The busiest worker "
            f"has {self.after.max_over_mean:.2f} times the mean, before {self.before.max_over_mean:.2f}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "plan": self.plan.to_json(),
            "moves": self.moves.table().to_pylist(),
            "cost": self.cost,
            "rows_moved": self.rows_moved,
            "before": None if self.before is None else self.before.to_dict(),
            "after": None if self.after is None else self.after.to_dict(),
            "verdict": self.verdict,
        }

    def __str__(self) -> str:
        return self.verdict


def rebalance(
    source: DataFrame | Frequencies,
    keys: str | Sequence[str],
    workers: int,
    previous: Plan | PartitionFunction | None = None,
    *,
    algorithm: str | None = None,
    objective: Objective | None = None,
) -> Rebalanced:
    """The next placement of whole keys: as even as they can be, with few keys moved; and the list of moves.

    While the workers stay, the placement before is kept if it is within a twentieth of the best possible, or if none is
    found that is more even by so much. Where their number changes, a `PartitionFunction` with ``cold="arcs"`` moves
    little: keys without an entry are placed by consistent hashing, and go to a worker that joins only. Spark's own
    hash, which places them by a `Plan`, moves nearly all of them. Without `previous`, one with ``cold="arcs"`` is
    made to begin with.

    Parameters
    ----------
    source
        The rows of now, counted in a few native passes; or `Frequencies` that were measured elsewhere.
    keys
        The name of the key column, or a list of names.
    workers
        How many workers there are now.
    previous
        The placement before. None: a new one is made, as level as whole keys can be.
    algorithm
        "readj", "redist" or "scan": see `unskew.partitioning`. Left out, the better of "scan" and "readj".
    objective
        Which loads count, which keys get an entry, and what balance is worth against moving: an
        `unskew.partitioning.Objective`, by which one construction then makes the placement. Left out, state and work
        are in proportion to rows, and as many keys get an entry as are needed, up to 2,000.

    Examples
    --------
    >>> from unskew.spark import apply_whole, rebalance
    >>> first = rebalance(df, "word", 3)
    >>> more = rebalance(df, "word", 4, previous=first.plan)
    >>> more.plan.workers, more.rows_moved <= 900
    (4, True)
    """
    require_integer("workers", workers, 1, MOST_WORKERS)
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise InputError(f"algorithm: must be one of {', '.join(ALGORITHMS)}, not {algorithm!r}")
    if objective is not None and not isinstance(objective, Objective):
        raise InputTypeError(f"objective: must be an Objective, not {type(objective).__name__}")
    if not isinstance(previous, Plan | PartitionFunction | None):
        raise InputTypeError(f"previous: must be a Plan or a PartitionFunction, not {type(previous).__name__}")
    if not isinstance(source, Frequencies):
        require_batch(source)
        key_columns(source, keys)
    if isinstance(previous, Plan) and not isinstance(source, Frequencies):
        require_plan_of(source, keys, previous)
    old = None if previous is None else whole_function(previous, previous.workers)
    counted = source if isinstance(source, Frequencies) else count_keys(source, keys, workers)
    like = PartitionFunction(1, cold="arcs") if old is None else old
    hashed = replace(like, members=workers, key_ids=NO_KEYS, placed=NO_WORKERS)
    load = None if isinstance(source, Frequencies) else _count_rows(source, keys, hashed)
    if old is None:
        new = place_whole(workers, counted, cold="arcs", cold_load=load)
    elif objective is None:
        new = move_whole(old, workers, counted, algorithm=algorithm, cold_load=load)
    else:
        known = True if load is None else np.array(load, float)
        new = construct(old, counted.merged(), workers, objective, algorithm=algorithm or DEFAULT, cold_load=known)
    found = moves(new if old is None else old, new, counted.merged(), objective)
    before = after = moved = None
    if not isinstance(source, Frequencies):
        found = _fetch_key_names(source, keys, found, workers)
        before, after, moved = _compare(source, keys, new if old is None else old, new)
    plan: Plan | PartitionFunction = new
    if isinstance(previous, Plan):
        plan = new.to_plan(counted.merged())
        if not isinstance(source, Frequencies):
            plan = fetch_names(source, keys, _of_columns(plan, source, keys))
    return Rebalanced(plan, found, before, after, moved)


def _of_columns(plan: Plan, df: DataFrame, keys: str | Sequence[str]) -> Plan:
    return Plan(plan.scheme, plan.workers, plan.hot_keys, plan.cold_salt, plan.predicted_load, described_keys(df, keys))


def _count_rows(df: DataFrame, keys: str | Sequence[str], function: PartitionFunction) -> list[int]:
    """Rows of each worker by the hash of a function alone. One native pass."""
    worker = cold_worker(key_columns(df, keys), function).alias("worker")
    rows = {row["worker"]: row["count"] for row in df.groupBy(worker).count().collect()}
    return [rows.get(worker, 0) for worker in range(function.workers)]


def _compare(
    df: DataFrame, keys: str | Sequence[str], old: PartitionFunction, new: PartitionFunction
) -> tuple[Balance, Balance, int]:
    """Rows of each worker by two functions, and how many rows change their worker. One native pass."""
    columns = key_columns(df, keys)
    both = [worker_of(columns, function).alias(name) for name, function in (("old", old), ("new", new))]
    rows = df.groupBy(*both).agg(F.count(F.lit(1)).alias("rows")).collect()
    loads, moved = [[0] * function.workers for function in (old, new)], 0
    for row in rows:
        loads[0][row["old"]] += row["rows"]
        loads[1][row["new"]] += row["rows"]
        moved += row["rows"] * int(old.members[row["old"]] != new.members[row["new"]])
    return Balance(tuple(loads[0])), Balance(tuple(loads[1])), moved


def _fetch_key_names(df: DataFrame, keys: str | Sequence[str], found: Moves, workers: int) -> Moves:
    """The moves with the values of their keys as text. One native pass, where anything moves."""
    if not len(found):
        return found
    hot = tuple(HotKey(key, 0.0, (0,)) for key in found.key_ids.tolist())
    names = tuple(each.key for each in fetch_names(df, keys, Plan(PLANNER, workers, hot)).hot_keys)
    return Moves(found.key_ids, found.from_, found.to, found.state, names)
