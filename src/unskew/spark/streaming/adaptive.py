"""`Adaptive`: the plan of a stream, made anew after each micro-batch from the keys that were in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import StructType

from unskew.checks import require_integer, require_number
from unskew.contract import Scheme
from unskew.errors import InputTypeError
from unskew.frequencies import MOST_HOT_KEYS
from unskew.plan import Plan
from unskew.spark.counting import count_most_frequent
from unskew.spark.frames import column, free_name, warn
from unskew.spark.keys import described_keys, key_columns, key_id, partition_of, shown_key
from unskew.spark.mapping import CountingWork
from unskew.spark.planning import name_and_parameters
from unskew.spark.streaming.accumulated_tally import accumulator_for, take_told, work_and_accumulate
from unskew.spark.streaming.loop import Loop, listen
from unskew.spark.streaming.observed_tally import told_in, work_and_observe
from unskew.spark.streaming.plan_file import NO_PLAN, VERSION_METRIC, Planned, cells_for, with_planned_salt
from unskew.spark.streaming.recording import OnlineRecords, Recording
from unskew.spark.streaming.seen import Seen, count_cold_and_hot, counted_number, seen_in_rows
from unskew.spark.streaming.side_folder import SideFolder
from unskew.spark.streaming.tally import seen_by_workers
from unskew.spark.worker_counts import count_workers

METRICS = "unskew "  # before the address of the side folder: the name of what is observed
VERSION, ID, NUMBER, NAME = OBSERVED = [f"__unskew_{each}" for each in ("version", "id", "number", "name")]
NAMED = 64  # one of so many rows of a hot key tells what it is called
KEYS_PER_WORKER = 20  # that are counted: twice as many as can be hot


@dataclass(frozen=True)
class Adaptive:
    """A plan for a stream that is made anew after each micro-batch, of what was seen of late.

    The keys of a micro-batch are counted on the way: by the workers, where they run a function in Python anyway, else
    inside Spark. The driver makes the next plan and writes it to a file; the next micro-batch reads it, once for all
    its tasks. The first one has no plan, and places rows by hash. A plan that comes late is used one batch later. A
    query that is started again goes on with the last plan.

    Schemes that run online have live routers instead, which go on from one micro-batch to the next. On Spark Connect,
    that is not possible into ``foreachBatch``, where tasks do not know their micro-batch.

    Parameters
    ----------
    checkpoint
        The query's ``checkpointLocation``. Files of ours are in the folder ``unskew`` there: the plan, the counts, and
        a JSON line per batch that tells which plan it used and how many rows each worker got.
    alpha
        How much of its weight a row keeps from one batch to the next: 0 forgets, 1 never does.
    name
        Tells apart several that one query uses, such as one for each of two keys.
    keep
        The number of batches whose records are kept.

    Examples
    --------
    >>> import tempfile
    >>> from unskew.spark import Adaptive, repartition
    >>> events = spark.readStream.format("rate").load().selectExpr("value % 7 AS word", "value")
    >>> checkpoint = tempfile.mkdtemp()
    >>> balanced = repartition(events, "word", workers=4, plan=Adaptive(checkpoint))
    >>> balanced.isStreaming
    True

    The query is then started with ``.option("checkpointLocation", checkpoint)``.
    """

    checkpoint: str | Path
    alpha: float = 0.2
    name: str = "route"
    keep: int = 100

    def __post_init__(self) -> None:
        require_number("alpha", self.alpha, "a number from 0 to 1", 0.0, 1.0)
        require_integer("keep", self.keep, 1, 1_000_000)
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise InputTypeError(f"name: must be letters, digits and underscores, no digit first, not {self.name!r}")
        self.folder()

    def folder(self) -> SideFolder:
        """Where the files of this one are."""
        return SideFolder(self.checkpoint, self.name)


class AdaptiveRoute(NamedTuple):
    """A route whose plan is made anew after each micro-batch."""

    keys: Sequence[str]
    workers: int
    scheme: str | Scheme
    turn: Column
    salt: str  # the name of the column to add

    @property
    def most(self) -> int:
        """How many keys are counted."""
        return min(MOST_HOT_KEYS, max(KEYS_PER_WORKER * self.workers, 100))


class Tallied(NamedTuple):
    """Rows with their salts, whose workers are to tell of them."""

    df: DataFrame
    work: Callable[[DataFrame, CountingWork, StructType | str], DataFrame]  # on the placed rows; its tasks tell


def with_adaptive_salt(df: DataFrame, route: AdaptiveRoute, adaptive: Adaptive) -> DataFrame:
    """`df` with the salt of each row by the plan of its micro-batch. Starts to listen to queries of its session."""

    def read(progress: Any, metrics: Any, plans: Mapping[int, Plan]) -> Seen:
        return seen_in_rows(metrics, route.workers, route.most, plans)

    planned, metrics = _planned(df, route, adaptive, read)
    return _observe(planned, metrics, route)


def with_salt_to_tell(df: DataFrame, route: AdaptiveRoute, adaptive: Adaptive) -> Tallied:
    """The same for rows that workers will tell of: in an accumulator where they can, else as an observed metric."""
    accumulator = accumulator_for(df, route.keys, adaptive.folder().address)

    def read_observed(progress: Any, metrics: Any, plans: Mapping[int, Plan]) -> Seen:
        told, version = told_in(metrics, route.workers)
        return seen_by_workers(told, version, route.workers, route.most, plans)

    if accumulator is None:
        planned, metrics = _planned(df, route, adaptive, read_observed)
        observe = partial(work_and_observe, metrics=metrics, version=planned.version)
        return Tallied(planned.df.drop(planned.hot), partial(observe, keys=route.keys, workers=route.workers))
    accumulated = accumulator.value  # the same object for ever: what tasks tell is put into it

    def read_accumulated(progress: Any, metrics: Any, plans: Mapping[int, Plan]) -> Seen:
        if VERSION_METRIC not in metrics:  # a query before this one may be heard of late
            return Seen(0, None)
        told = take_told(accumulated, str(progress.id), int(progress.batchId), route.workers)
        if told is None and progress.numInputRows:
            warn(
                "plan: nothing was heard from the workers of a micro-batch, so the plan stays as it was. That happens "
                "when batches end faster than the driver hears of them. If it goes on, an accumulator of this session "
                "may have failed: see the log of the driver, and start Spark anew"
            )
        version = NO_PLAN if metrics[VERSION_METRIC] is None else int(metrics[VERSION_METRIC])
        return seen_by_workers(told or {}, version, route.workers, route.most, plans)

    planned, _ = _planned(df, route, adaptive, read_accumulated, observe_version=True)
    work = partial(work_and_accumulate, keys=route.keys, workers=route.workers, accumulator=accumulator)
    return Tallied(planned.df.drop(planned.hot), work)


def _planned(
    df: DataFrame,
    route: AdaptiveRoute,
    adaptive: Adaptive,
    read: Callable[[Any, Any, dict[int, Plan]], Seen],
    *,
    observe_version: bool = False,
) -> tuple[Planned, str]:
    """The rows with their salts, and by what name the driver hears of them; `read` tells how to read it. If asked to
    `observe_version`, that is the only metric of this name."""
    folder = adaptive.folder()
    name, parameters = name_and_parameters(route.scheme)
    types = [column.type for column in described_keys(df, list(route.keys))]
    loop = Loop(
        folder,
        name,
        parameters,
        route.workers,
        types,
        read,
        alpha=float(adaptive.alpha),
        most=route.most,
        keep=adaptive.keep,
    )  # writes the file that the stream reads
    columns, metrics = key_columns(df, list(route.keys)), f"{METRICS}{folder.address}"
    observed = metrics if observe_version else None
    planned = with_planned_salt(df, columns, route.turn, folder, cells_for(route.most), route.salt, observed)
    listen(df.sparkSession, metrics, loop)
    return planned, metrics


def _observe(planned: Planned, metrics: str, route: AdaptiveRoute) -> DataFrame:
    """The rows, with their keys and workers counted on the way.

    Spark updates observed aggregates row by row, mostly in code that it does not compile. So there are few of them, and
    their inputs are columns that the compiled stage computes first. No sample is taken: Spark gives ``rand`` another
    seed in each micro-batch and compiles the stage anew for it, which costs more than counting all rows.
    """
    df, workers = planned.df, route.workers
    columns = key_columns(df, list(route.keys))
    version, identity, number, name = (free_name(df, each) for each in OBSERVED)
    worker, hot = partition_of(workers, *columns, column(route.salt)), column(planned.hot)
    named = F.struct(key_id(*columns).alias("id"), shown_key(columns).alias("key"))
    observed = df.withColumns(
        {
            version: planned.version,
            identity: key_id(*columns),
            number: counted_number(worker, hot, workers),
            name: F.when(hot & (route.turn % NAMED == 0), named),
        }
    ).observe(
        metrics,
        F.count(F.lit(1)).alias("rows"),
        F.max(column(version)).alias("version"),
        count_most_frequent(column(identity), route.most).alias("top"),
        count_cold_and_hot(column(number), workers).alias("counters"),
        F.collect_set(column(name)).alias("names"),
    )
    return observed.drop(planned.hot, version, identity, number, name)


def record_online(
    df: DataFrame, keys: Sequence[str], workers: int, scheme: str, adaptive: Adaptive, salt: Column
) -> DataFrame:
    """`df`, whose rows live routers gave a salt, with the load of the workers recorded after each micro-batch."""
    folder = adaptive.folder()
    folder.create()
    metrics = f"{METRICS}{folder.address}"
    listen(df.sparkSession, metrics, OnlineRecords(Recording(folder, scheme, workers, adaptive.keep)))
    worker = partition_of(workers, *key_columns(df, list(keys)), salt)
    return df.observe(metrics, count_workers(worker, workers).alias("load"), F.count(F.lit(1)).alias("rows"))
