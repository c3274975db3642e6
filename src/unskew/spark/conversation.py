"""`Conversation`: a scheme whose workers learn from what they execute (`posg`) on Spark, from one run to the next."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import StructType

from unskew.contract import Reply, Scheme
from unskew.errors import InputError, InputTypeError
from unskew.registry import registration_of
from unskew.router import Router
from unskew.spark.cost_dealing import as_number, cost_column
from unskew.spark.frames import free_name, require_frame, warn
from unskew.spark.keys import key_columns, key_id
from unskew.spark.letters import DONE_TYPE, Sources, Start, executing, letters
from unskew.spark.mapping import Batches, arrow_schema, map_in_arrow, result_schema
from unskew.spark.retries import warn_without_retry_net
from unskew.spark.telling import DONE, UNHEARD, hear, observe, with_done
from unskew.states import read_arrays

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
    runs before, and with nothing of its own. Within ``foreachBatch`` a micro-batch is a run.

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
    ) -> DataFrame:
        """``df.mapInArrow(function, schema)``, with each row on the worker that the scheme chooses. Nothing runs now.

        Parameters
        ----------
        df
            The rows, in a batch.
        keys
            The columns that determine what a row costs.
        function
            As for ``mapInArrow``. It must not need the rows of a key together: they go to several workers.
        schema
            Of what it yields: a DDL string or a StructType. All columns may be null.
        cost
            What a row costs, in any unit: the name of a column, an SQL expression, or a Column. Null counts as the mean
            of the others in its batch; what is negative, infinite or NaN ends the run. Left out, the function is timed.
        """
        require_frame(df)
        if df.isStreaming:
            raise InputError("df: is a stream; call map in foreachBatch, where each micro-batch is a run")
        if not callable(function):
            raise InputTypeError(f"function: must be a function of batches, not {type(function).__name__}")
        columns, result = key_columns(df, keys), result_schema(df, schema)
        told = with_done(df, result, DONE_TYPE)
        costs = F.lit(None).cast("double") if cost is None else as_number(df, cost_column(df, cost))
        warn_without_retry_net(df.sparkSession)
        letter, paid = free_name(df, LETTER), free_name(df, COST)
        sources = Sources({s: r.to_bytes() for s, r in self._routers.items()}, self._newcomer_state())
        carried = letters(key_id(*columns), self._scheme, sources)
        sent = df.withColumn(paid, costs).withColumn(letter, carried)
        routed = Observation()
        state = F.when(F.col(letter).state.isNotNull(), F.struct(f"{letter}.source", f"{letter}.state"))
        placed = sent.observe(routed, F.collect_list(state).alias(DONE)).repartition(
            self._scheme.workers, *columns, F.col(letter).salt
        )
        opened = _opened(placed, letter, paid, key_id(*columns))
        work = executing(function, self._scheme, self._starts, arrow_schema(told), cost is not None)
        rows, executed = observe(map_in_arrow(opened, work, told))
        self._observations = routed, executed
        return rows

    def collect(self) -> Heard:
        """Let sources hear what workers told in the run of what `map` returned last. Returns what that was.

        Call it after the first action on that DataFrame, such as ``collect`` or a write: only that one is heard of.
        ``show``, ``take`` and ``isEmpty`` end before all workers got to the end of their rows: as with a run that
        failed, nothing is learnt then, and a warning says so. One run at a time: not for several threads.
        """
        if self._observations is None:
            raise InputError("conversation: there is no run to learn from; first call map and run what it returns")
        routed, executed = self._observations
        done = {row["worker"]: row for row in hear(executed, NOT_RUN)}  # each once, also if it was retried
        self._observations = None
        workers = range(self._scheme.workers)
        if len(done) < len(workers):
            warn(
                f"conversation: heard of {len(done)} of {len(workers)} workers, so nothing was learnt: the run was cut "
                f"short (take, show, isEmpty), or failed, or had no rows; {UNHEARD}"
            )
            return Heard((), (), 0, ())
        for row in hear(routed, NOT_RUN):
            self._routers[row["source"]] = Router.from_bytes(self._scheme, bytes(row["state"]))
        seconds = np.array([done[worker]["seconds"] for worker in workers])
        for worker in workers:
            idle = float(seconds.max() - seconds[worker]) + (0.0 if done[worker]["rows"] else self._starts[worker].idle)
            self._starts[worker] = Start(bytes(done[worker]["half"]), idle, max([0, *self._routers]) + 1)
        messages = [(message["at"], worker, message) for worker in workers for message in done[worker]["messages"]]
        messages.sort(key=lambda each: each[:2])
        for _, worker, message in messages:
            self._deliver(worker, message)
        replies = sum(message["told"] is None for *_, message in messages)
        told = tuple(worker for _, worker, message in messages if message["told"] is not None)
        return Heard(tuple(done[worker]["rows"] for worker in workers), tuple(seconds.tolist()), replies, told)

    def _deliver(self, worker: int, message: Any) -> None:
        if message["told"] is None:
            self._routers[message["source"]].hear(worker, Reply(message["ticket"], message["number"]))
            return
        kind: Any = registration_of(self._scheme).message
        self._news = True
        content = kind(**read_arrays(bytes(message["told"]), "a worker"))
        for router in (*self._routers.values(), self._newcomer):
            router.hear(worker, content)

    def _newcomer_state(self) -> bytes | None:
        """What a source starts as that was not there before: it knows what workers told all."""
        return self._newcomer.to_bytes() if self._news else None


def _opened(placed: DataFrame, letter: str, paid: str, identity: Column) -> DataFrame:
    """The rows with source, ticket, cost and key id as their last columns."""
    names = [free_name(placed, f"{letter}_{name}") for name in ("source", "ticket", "cost", "key")]
    values = F.col(letter).source, F.col(letter).ticket, F.col(paid), identity
    return placed.withColumns(dict(zip(names, values, strict=True))).drop(letter, paid)
