"""What a scheme with a worker half sends along with rows, and what its workers have to tell: the part in tasks.

A source is a task before the shuffle: its router gives each row a salt and a ticket. Its state at the end travels in
the last row of the task, up to the shuffle. A worker is a task behind it: it executes the rows, and its worker half
takes in the key, the seconds, the source and the ticket of each.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.hashing import salts_for
from unskew.registry import adopt, registration_of
from unskew.spark.mapping import Batches
from unskew.spark.messages import Halves, Sources, Start
from unskew.spark.tasks import task_number
from unskew.spark.telling import DONE, with_nulls
from unskew.spark.working import Function, Piece, Told, run_through, warn_if_late
from unskew.states import to_bytes
from unskew.worker_half import WorkerHalf

LETTER = StructType(
    [
        StructField("salt", IntegerType()),
        StructField("source", IntegerType()),
        StructField("ticket", LongType()),
        StructField("state", BinaryType()),  # of the router, in the last row of a task
    ]
)
MESSAGE = StructType(
    [
        StructField("at", DoubleType()),  # seconds that the worker had worked in this run
        StructField("source", IntegerType()),  # whom it is for; null: for all
        StructField("ticket", LongType()),
        StructField("number", DoubleType()),  # the reply
        StructField("told", BinaryType()),  # else what is told all
    ]
)
DONE_TYPE = StructType(
    [
        StructField("worker", IntegerType()),
        StructField("rows", LongType()),
        StructField("seconds", DoubleType()),
        StructField("half", BinaryType()),
        StructField("sources", IntegerType()),  # for which the half has room
        StructField("messages", ArrayType(MESSAGE)),
    ]
)
STEP = 65_536  # rows that a worker half takes in together


def letters(identity: Column, scheme: Scheme, sources: Sources) -> Column:
    """The letter of each row, by a live router in each task. `identity` is the key id."""
    registration, kind = registration_of(scheme), pa.struct([("salt", pa.int32()), ("source", pa.int32())])
    kind = pa.struct([*kind, ("ticket", pa.int64()), ("state", pa.binary())])

    def route(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        adopt(registration)
        source = task_number()
        router, before = sources.router(scheme, source), None
        for batch in batches:
            if before is not None:
                yield _letters(*before, source, None, kind)
            ids = batch.to_numpy().view(np.uint64)
            chosen, tickets = router.send(ids)
            before = salts_for(ids, chosen, scheme.workers), tickets
        if before is not None:
            yield _letters(*before, source, sources.keep(router, source), kind)

    return arrow_udf(route, LETTER).asNondeterministic()(identity)  # so that it is neither run twice nor moved


def _letters(salts: Any, tickets: Any, source: int, state: bytes | None, kind: pa.StructType) -> pa.StructArray:
    states = pa.array([*([None] * (len(salts) - 1)), state][: len(salts)], pa.binary())
    columns = pa.array(salts), pa.array(np.full(len(salts), source, np.int32)), pa.array(tickets), states
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def executing(
    function: Function, scheme: Scheme, halves: Halves, schema: pa.Schema, told_costs: bool
) -> Callable[[Batches], Batches]:
    """`function`, for rows with five more columns: worker, source, ticket, cost and key id. A column is added for what
    the worker tells, in a row at the end; one that had no rows tells only that. Without costs that are told, the rows
    of a key in a batch are timed together."""
    registration = registration_of(scheme)

    def results(pieces: Iterator[Piece], told: Told) -> Batches:
        for result in run_through(function, pieces, told):
            yield with_nulls(result, schema, schema.names[:-1]).cast(schema)

    def work(batches: Batches) -> Batches:
        adopt(registration)
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            yield from results(iter(()), lambda piece, took: None)
            yield pa.RecordBatch.from_pylist([{DONE: {"rows": 0}}], schema)
            return
        worker = first.columns[-5][0].as_py()
        notebook, waiting = Notebook(scheme, halves.start(scheme, worker)), deque[_Letter]()

        def pieces() -> Iterator[Piece]:
            for batch in chain([first], filled):
                for rows, letter in _cut(batch, told_costs):
                    waiting.append(letter)
                    yield Piece(rows)

        def told(piece: Piece | None, took: float) -> None:
            if piece is not None:
                notebook.note(waiting.popleft(), took)
            elif not told_costs:
                notebook.note_late(took)

        yield from results(pieces(), told)
        done = halves.keep(worker, {"worker": worker, **notebook.close()})
        if done is not None:
            yield pa.RecordBatch.from_pylist([{DONE: done}], schema)

    work.__name__ = getattr(function, "__name__", "function")  # is in the plan
    return work


class _Letter(NamedTuple):
    """What comes with rows that are executed together."""

    source: npt.NDArray[np.int64]
    ticket: npt.NDArray[np.int64]
    cost: npt.NDArray[np.float64] | None  # None: they are timed
    ids: npt.NDArray[np.uint64]


def _cut(batch: pa.RecordBatch, told_costs: bool) -> Iterator[tuple[pa.RecordBatch, _Letter]]:
    """The rows of a batch and their letters; those of each key by themselves where they are timed."""
    source, ticket, cost, ids = (batch.columns[i] for i in range(-4, 0))
    rows = batch.select(list(range(batch.num_columns - 5)))
    keys = ids.to_numpy().view(np.uint64)
    numbers = [column.to_numpy(zero_copy_only=False).astype(np.int64) for column in (source, ticket)]
    if told_costs:
        yield rows, _Letter(numbers[0], numbers[1], _checked(cost), keys)
        return
    order = np.argsort(keys, kind="stable")
    rows = rows.take(pa.array(order))
    starts = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0)) if len(order) else np.zeros(0, np.int64)
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True) if len(order) else ():
        mine = order[start:end]
        yield rows.slice(start, end - start), _Letter(numbers[0][mine], numbers[1][mine], None, keys[mine])


def _checked(cost: pa.Array) -> npt.NDArray[np.float64]:
    """Costs that were told; a null is the mean of the others of its batch."""
    costs = cost.to_numpy(zero_copy_only=False).astype(np.float64)
    unknown = np.asarray(cost.is_null())
    wrong = costs[~unknown & ~((costs >= 0) & (costs < np.inf))]
    if len(wrong):
        raise InputError(f"cost: must be finite numbers from 0 on, not {wrong[0]}")
    return np.where(unknown, costs[~unknown].mean() if (~unknown).any() else 0.0, costs)


class Notebook:
    """What one worker notes in a run, for its worker half."""

    def __init__(self, scheme: Scheme, start: Start) -> None:
        self._scheme, self._sources, self._idle = scheme, start.sources, start.idle
        self._half = WorkerHalf(scheme, 1, start.sources) if start.half is None else self._loaded(start.half)
        self._pages: list[tuple[_Letter, npt.NDArray[np.float64]]] = []
        self._waiting = 0  # rows noted, which the half has not taken in
        self._rows, self._seconds = 0, 0.0
        self._messages: list[dict[str, Any]] = []

    def note(self, letter: _Letter, took: float) -> None:
        """Rows were executed, in `took` seconds together."""
        rows = len(letter.ids)
        self._pages.append((letter, np.full(rows, took / rows) if letter.cost is None else letter.cost))
        self._waiting += rows
        if self._waiting >= STEP:
            self._take_in()

    def note_late(self, took: float) -> None:
        """Seconds of work after the last rows were asked for: they count for all rows of the run alike. The half learns
        of those that still wait; it has taken in the others."""
        worked = self._seconds + sum(float(each.sum()) for _, each in self._pages)
        rows = self._rows + self._waiting
        share = took / rows if rows else 0.0
        self._pages = [(letter, each + share) for letter, each in self._pages]
        self._seconds += share * self._rows
        warn_if_late(took, worked + took)

    def close(self) -> dict[str, Any]:
        """What the worker tells of the run."""
        self._take_in()
        done = {"rows": self._rows, "seconds": self._seconds, "sources": self._sources}
        return {**done, "half": self._half.to_bytes(), "messages": self._messages}

    def _loaded(self, data: bytes) -> WorkerHalf:
        return WorkerHalf.from_bytes(self._scheme, data, 1, self._sources)

    def _take_in(self) -> None:
        if not self._waiting:
            return
        source, ticket, ids = (
            np.concatenate([np.asarray(getattr(letter, name)) for letter, _ in self._pages])
            for name in ("source", "ticket", "ids")
        )
        seconds = np.concatenate([each for _, each in self._pages])
        self._pages, self._waiting = [], 0
        if source.max() >= self._sources:  # one that the driver does not know yet
            self._sources = int(source.max()) + 1
            self._half = self._loaded(self._half.to_bytes())
        waited = np.zeros(len(ids))
        waited[0], self._idle = self._idle, 0.0
        at = self._seconds + np.cumsum(seconds)
        for message in self._half.execute(ids, seconds, None, source, ticket, waited):
            row: dict[str, Any] = {"at": float(at[message.position]), "source": message.source}
            if message.source is None:
                row["told"] = to_bytes(message.content)
            else:
                row["ticket"], row["number"] = message.content
            self._messages.append(row)
        self._rows, self._seconds = self._rows + len(ids), float(at[-1])
