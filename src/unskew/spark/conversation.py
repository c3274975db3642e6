"""`Conversation`: a scheme whose workers learn from what they execute (`posg`) on Spark, from one run to the next."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import StructType

from unskew.contract import Scheme
from unskew.errors import InputError, InputTypeError
from unskew.registry import registration_of
from unskew.router import Router
from unskew.spark.cost_dealing import as_number, cost_column
from unskew.spark.frames import column, free_name, require_frame, warn
from unskew.spark.keys import key_columns, key_id, key_names
from unskew.spark.letters import DONE_TYPE, executing, letters
from unskew.spark.mapping import Batches, arrow_schema, map_in_arrow, result_schema
from unskew.spark.messages import Halves, KnownHalves, KnownSources, Sources, Start, content_of, in_order
from unskew.spark.retries import warn_without_retry_net
from unskew.spark.streaming.adaptive import Adaptive, record_online
from unskew.spark.streaming.half_files import HalfFiles, hear_messages
from unskew.spark.streaming.router_files import RouterFiles
from unskew.spark.streaming.told_files import ToldFiles
from unskew.spark.telling import DONE, UNHEARD, hear, observe, with_done, without_done

LETTER, COST = "__unskew_letter", "__unskew_cost"
NOT_RUN = "conversation: what map returned has not run; write or collect it first"


class Heard(NamedTuple):
    """What workers did in a run, and what they had to tell.

    Attributes
    ----------
    rows, seconds
        Of each worker: its rows, and what they took, or the cost that was told.
    replies
        How many there were to requests of sources.
    told
        The workers that told all sources something, in order.

    Examples
    --------
    >>> from unskew.spark import Heard
    >>> Heard(rows=(60, 40), seconds=(1.0, 1.1), replies=0, told=(1,)).told
    (1,)
    """

    rows: tuple[int, ...]
    seconds: tuple[float, ...]
    replies: int
    told: tuple[int, ...]


class Conversation:
    """A scheme with a worker half, and all that its sources and workers have learnt so far.

    Worker w is partition w; a source is a task of the stage before the shuffle. Each goes on where the one of its
    number ended in the run before: the sources with their routers, the workers with their worker halves. What workers
    have to tell is heard between two runs, by the time at which they had it: a run begins with all that was told in the
    runs before, and with nothing of its own. On a stream a micro-batch is a run, and all of this is kept in the query's
    checkpoint: `map` takes that, and there is nothing to collect.

    A row takes the seconds that the function took for the rows of its key in its batch, divided by their number, or the
    cost that you tell. At the end of a run a worker has nothing to do until the longest one is done: with
    ``count_idle=True``, that is counted as work. Without, `posg` lets workers catch up in the next run that had less
    to do in this one, though all begin it at the same moment: so take it.

    Parameters
    ----------
    scheme
        A scheme that has a worker half, such as ``make("posg", 16, window=256, count_idle=True)``. A worker of `posg`
        tells what it has learnt after twice as many rows as `window`, at the earliest.

    Examples
    --------
    >>> from unskew import make
    >>> from unskew.spark import Conversation
    >>> def work(batches):
    ...     for batch in batches:
    ...         yield batch.select(["v"])
    >>> talk = Conversation(make("posg", 4, window=64, tolerance=0.5, count_idle=True))
    >>> for batch in (df, df):
    ...     rows = talk.map(batch, "word", work, "v bigint", cost="length(word)").collect()
    ...     heard = talk.collect()
    >>> sum(heard.rows), heard.replies > 0
    (1000, True)
    """

    def __init__(self, scheme: Scheme) -> None:
        if isinstance(scheme, str):
            raise InputTypeError(f"scheme: must be an object such as make({scheme!r}, 16), not a name")
        router = Router(scheme)
        if not router.converses:
            raise InputError(f"scheme: {registration_of(scheme).name} has no worker half; posg has one")
        self._scheme: Any = scheme
        self._routers: dict[int, Router] = {}  # by source
        self._newcomer, self._news = router, False  # a source that was not there before; whether it has heard anything
        self._starts = {worker: Start(None, 0.0, 1) for worker in range(self._scheme.workers)}
        self._observations: tuple[Observation, Observation] | None = None

    @property
    def routers(self) -> dict[int, Router]:
        """The router of each source, by its number, as the next run starts with it."""
        return self._routers

    def map(
        self,
        df: DataFrame,
        keys: str | Sequence[str],
        function: Callable[[Batches], Batches],
        schema: StructType | str,
        cost: str | Column | None = None,
        *,
        checkpoint: str | Path | None = None,
        name: str = "conversation",
    ) -> DataFrame:
        """``df.mapInArrow(function, schema)``, with each row on the worker that the scheme chooses. Nothing runs now.

        Parameters
        ----------
        df
            The rows, in a batch or a stream.
        keys
            The columns that determine what a row costs.
        function
            As for ``mapInArrow``. It must not need the rows of a key together: they go to several workers.
        schema
            Of what it yields: a DDL string or a StructType. All columns may be null.
        cost
            What a row costs, in any unit: the name of a column, an SQL expression, or a Column. Null counts as the mean
            of the others in its batch; what is negative, infinite or NaN ends the run. Left out, the function is timed.
        checkpoint
            Of a stream: the query's ``checkpointLocation``. Sources and workers go on from what is there, after a
            restart too; with other parameters of the scheme they start anew. On Spark Connect, not into
            ``foreachBatch``, where tasks do not know their micro-batch.
        name
            Of a stream: tells apart several that one query uses.
        """
        require_frame(df)
        adaptive = _checked(df, checkpoint, name)
        if not callable(function):
            raise InputTypeError(f"function: must be a function of batches, not {type(function).__name__}")
        columns, result = key_columns(df, keys), result_schema(df, schema)
        told = with_done(df, result, DONE_TYPE)
        costs = F.lit(None).cast("double") if cost is None else as_number(df, cost_column(df, cost))
        warn_without_retry_net(df.sparkSession)
        letter, paid = free_name(df, LETTER), free_name(df, COST)
        sources, halves = self._known() if adaptive is None else self._left_in(adaptive)
        carried = letters(key_id(*columns), self._scheme, sources)
        sent = df.withColumn(paid, costs).withColumn(letter, carried)
        routed, salt = Observation(), column(letter)["salt"]
        if adaptive is None:
            state = F.when(F.col(letter).state.isNotNull(), F.struct(f"{letter}.source", f"{letter}.state"))
            sent = sent.observe(routed, F.collect_list(state).alias(DONE))
        else:
            scheme = registration_of(self._scheme).name
            sent = record_online(sent, key_names(keys), self._scheme.workers, scheme, adaptive, salt)
        opened = _opened(sent.repartition(self._scheme.workers, *columns, salt), letter, paid, key_id(*columns))
        work = executing(function, self._scheme, halves, arrow_schema(told), cost is not None)
        done = map_in_arrow(opened, work, told)
        if adaptive is not None:
            return without_done(done)
        rows, executed = observe(done)
        self._observations = routed, executed
        return rows

    def _known(self) -> tuple[Sources, Halves]:
        """What the sources and workers of a run start as, which the driver knows."""
        newcomer = self._newcomer.to_bytes() if self._news else None  # it knows what workers told all
        return KnownSources({s: r.to_bytes() for s, r in self._routers.items()}, newcomer), KnownHalves(self._starts)

    def _left_in(self, adaptive: Adaptive) -> tuple[Sources, Halves]:
        """The same for micro-batches, which leave it to the next ones in the checkpoint. What one scheme leaves is of
        no use to another: sources and workers start anew together."""
        root, place = adaptive.folder().root, f"{adaptive.name}/schemes/{_digest(self._scheme)}"
        told = ToldFiles(root, place, self._scheme.workers, hear_messages)
        return RouterFiles(root, place, told=told), HalfFiles(told)

    def collect(self) -> Heard:
        """Let sources hear what workers told in the run of what `map` returned last. Returns what that was.

        Call it after the first action on that DataFrame, such as ``collect`` or a write: only that one is heard of.
        ``show``, ``take`` and ``isEmpty`` end before all workers got to the end of their rows: as with a run that
        failed, nothing is learnt then, and a warning says so. One run at a time: not for several threads.
        """
        if self._observations is None:
            raise InputError(
                "conversation: there is no run to learn from; first call map and run what it returns; a stream learns "
                "by itself"
            )
        routed, executed = self._observations
        heard = hear(executed, NOT_RUN)
        self._observations = None
        done = {row["worker"]: row for row in heard if row["rows"]}  # each once, also if it was retried
        ended = len(done) + sum(not row["rows"] for row in heard)
        workers = range(self._scheme.workers)
        if ended < len(workers) or not done:
            warn(
                f"conversation: heard of {ended} of {len(workers)} workers, so nothing was learnt: the run was cut "
                f"short (take, show, isEmpty), or failed, or had no rows; {UNHEARD}"
            )
            return Heard((), (), 0, ())
        for row in hear(routed, NOT_RUN):
            self._routers[row["source"]] = Router.from_bytes(self._scheme, bytes(row["state"]))
        rows = [done[worker]["rows"] if worker in done else 0 for worker in workers]
        seconds = np.array([done[worker]["seconds"] if worker in done else 0.0 for worker in workers])
        for worker, idle in enumerate((seconds.max() - seconds).tolist()):
            start, row = self._starts[worker], done.get(worker)
            self._starts[worker] = (
                start._replace(idle=start.idle + idle)
                if row is None
                else Start(bytes(row["half"]), idle, row["sources"])
            )
        messages = in_order({worker: row["messages"] for worker, row in done.items()})
        for worker, message in messages:
            self._deliver(worker, message)
        replies = sum(message["told"] is None for _, message in messages)
        told = tuple(worker for worker, message in messages if message["told"] is not None)
        return Heard(tuple(rows), tuple(seconds.tolist()), replies, told)

    def _deliver(self, worker: int, message: Any) -> None:
        content = content_of(self._scheme, message)
        if message["told"] is None:
            self._routers[message["source"]].hear(worker, content)
            return
        self._news = True
        for router in (*self._routers.values(), self._newcomer):
            router.hear(worker, content)


def _digest(scheme: Any) -> str:
    return hashlib.sha256(repr(scheme).encode()).hexdigest()[:16]


def _checked(df: DataFrame, checkpoint: str | Path | None, name: str) -> Adaptive | None:
    """Where a stream keeps what is learnt; None for a batch. InputError where that is not possible."""
    if not df.isStreaming:
        if checkpoint is not None:
            raise InputError("checkpoint: is for streams; leave it out for a batch, and call collect after each run")
        return None
    if checkpoint is None:
        raise InputError("checkpoint: must be the query's checkpointLocation where df is a stream, not None")
    return Adaptive(checkpoint, name=name)


def _opened(placed: DataFrame, letter: str, paid: str, identity: Column) -> DataFrame:
    """The rows with worker, source, ticket, cost and key id as their last columns."""
    names = [free_name(placed, f"{letter}_{name}") for name in ("worker", "source", "ticket", "cost", "key")]
    values = F.spark_partition_id(), F.col(letter).source, F.col(letter).ticket, F.col(paid), identity
    return placed.withColumns(dict(zip(names, values, strict=True))).drop(letter, paid)
