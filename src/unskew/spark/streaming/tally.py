"""What workers tell of the keys of a micro-batch, where a function in Python goes through their rows anyway.

To observe each row inside Spark costs more than to route it (see docs/streaming.md). Here a row carries its key id to
its worker, whose task counts them beside its work, and tells in one row at the end how many rows it had, and which keys
most often. So nothing is a sample, but for keys that are in no worker's list.

The driver knows from it where rows would be if every key were at home: those of a worker are, but for rows of listed
keys whose home is elsewhere, since a plan moves only keys that are frequent.
"""

import base64
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import ArrayType, BinaryType, LongType, StructField, StructType

from unskew.aggregates.states import ROWS
from unskew.hashing import candidates_of
from unskew.plan import Frequencies
from unskew.spark.keys import shown_key
from unskew.spark.mapping import Batches, arrow_schema, map_in_arrow, nullable, result_schema
from unskew.spark.streaming.plan_file import version_of
from unskew.spark.streaming.seen import Seen, unsigned
from unskew.spark.telling import DONE, and_tell, with_done, without_done
from unskew.spark.worker_counts import MOST_COUNTED

TOLD = "told"
LISTED, LEAST_LISTED, MOST_LISTED = 8192, 40, 512  # keys: of all workers together, and of one at least and at most
NAMED = 100  # keys whose name is told, of all workers together; one of each at least
MOST_NAMED = 2**20  # bytes of these, of one worker
Pairs = npt.NDArray[np.int64]  # [keys, 2] key ids, and how many rows each has


def work_and_tell(
    placed: DataFrame,
    function: Callable[[Batches], Batches],
    schema: StructType | str,
    keys: Sequence[str],
    workers: int,
    metrics: str,
    code: Column,
) -> DataFrame:
    """What the function makes of the rows of each worker, without their last column, which is the key id. Observes, as
    `metrics`, what workers tell of them; `code` is that of the plan."""
    kinds = nullable(StructType([StructField(str(i), placed.schema[name].dataType) for i, name in enumerate(keys)]))
    named = StructType([StructField("id", LongType()), StructField("key", kinds)])
    tally = StructType([StructField("rows", LongType()), StructField("pairs", BinaryType())])
    told = with_done(placed, result_schema(placed, schema), tally.add("named", ArrayType(named)))
    done = map_in_arrow(placed, _tallying(function, list(keys), arrow_schema(told), workers), told)

    def with_name(one: Column) -> Column:
        return F.struct(one["id"].alias("id"), shown_key([one["key"][field] for field in kinds.names]).alias("key"))

    worker, names = F.spark_partition_id().alias("worker"), F.transform(f"{DONE}.named", with_name).alias("names")
    row = F.struct(worker, f"{DONE}.rows", f"{DONE}.pairs", code.alias("code"), names)
    told_by_worker = done.withColumn(DONE, F.when(F.col(DONE).isNotNull(), row))
    return without_done(told_by_worker.observe(metrics, F.collect_list(DONE).alias(TOLD)))


def seen_by_workers(metrics: Any, workers: int, most: int) -> Seen:
    """A micro-batch of which the workers told, and its `most` frequent keys."""
    told = {row["worker"]: row for row in metrics[TOLD] or []}  # each once, also if its task was retried
    if not told or max(told) >= workers:  # a query before this one, with more workers, may be heard of late
        return Seen(0, None)
    rows = sum(row["rows"] for row in told.values())
    pairs = {worker: _pairs_in(row["pairs"]) for worker, row in told.items()}
    ids, counts = _sums_of(np.concatenate(list(pairs.values())))
    order = np.argsort(-counts, kind="stable")[:most]
    names = {unsigned(each["id"]): str(each["key"]) for row in told.values() for each in row["names"] or []}
    version = version_of(next(iter(told.values()))["code"])
    if workers > MOST_COUNTED:
        return Seen(rows, None, version, rows, Frequencies(ids[order].view(np.uint64), counts[order], rows), names)
    load = np.zeros(workers, np.int64)
    for worker, row in told.items():
        load[worker] = row["rows"]
    found = Frequencies(ids[order].view(np.uint64), counts[order], rows, home_load=_home_load(load, pairs))
    return Seen(rows, load, version, rows, found, names)


def keys_listed(workers: int) -> int:
    """How many keys each worker tells of."""
    return max(LEAST_LISTED, min(MOST_LISTED, LISTED // workers))


class Tally:
    """Counts the rows of each key in one task, by key id."""

    def __init__(self, keys: list[str], kind: pa.StructType, workers: int) -> None:
        self._keys, self._kind, self._workers = keys, kind, workers
        self._rows = self._waiting = 0
        self._ids: list[pa.Array] = []  # of rows that are yet to be counted
        self._counts: Pairs = np.zeros((0, 2), np.int64)
        self._example: pa.RecordBatch | None = None  # where keys can be looked up

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in rows, whose last column is the key id."""
        if not batch.num_rows:
            return
        self._example = batch if self._example is None else self._example
        self._rows += batch.num_rows
        self._waiting += batch.num_rows
        self._ids.append(batch.columns[-1])
        if self._waiting >= max(ROWS, len(self._counts)):
            self._count()

    def told(self) -> pa.StructArray | None:
        """What the task tells, as an array of one; None where it had no rows."""
        if not self._rows:
            return None
        self._count()
        frequent = self._counts[np.argsort(-self._counts[:, 1], kind="stable")[: keys_listed(self._workers)]]
        columns = [pa.array([self._rows]), pa.array([frequent.astype("<i8").tobytes()]), self._named(frequent[:, 0])]
        return pa.StructArray.from_arrays(columns, fields=list(self._kind))

    def _count(self) -> None:
        if self._ids:
            new = [column.to_numpy() for column in pa.chunked_array(self._ids).value_counts().flatten()]
            self._counts = np.stack(_sums_of(np.concatenate([self._counts, np.stack(new, 1)])), 1)
            self._ids, self._waiting = [], 0

    def _named(self, ids: npt.NDArray[np.int64]) -> pa.ListArray:
        """The keys of the first of these ids that are in the example."""
        assert self._example is not None
        some = pa.array(ids[: max(1, NAMED // self._workers)])
        places = pc.drop_null(pc.index_in(some, value_set=self._example.columns[-1]))
        rows = self._example.take(places)
        while rows.num_rows and rows.nbytes > MOST_NAMED:
            rows = rows.slice(0, rows.num_rows // 2)
        kind = self._kind.field("named").type
        fields = list(kind.value_type.field("key").type)
        columns = [rows[name].cast(field.type) for name, field in zip(self._keys, fields, strict=True)]
        key = pa.StructArray.from_arrays(columns, fields=fields)
        named = pa.StructArray.from_arrays([rows.columns[-1], key], fields=list(kind.value_type))
        return pa.ListArray.from_arrays([0, len(named)], named, type=kind)


def _tallying(
    function: Callable[[Batches], Batches], keys: list[str], schema: pa.Schema, workers: int
) -> Callable[[Batches], Batches]:
    """The function, for rows that have a key id too; its task tells of them at the end."""

    def work(batches: Batches) -> Batches:
        tally = Tally(keys, schema.field(DONE).type, workers)

        def seen() -> Batches:
            for batch in batches:
                tally.add(batch)
                yield batch.select(list(range(batch.num_columns - 1)))

        yield from and_tell(function(seen()), schema, tally.told)

    return work


def _home_load(load: npt.NDArray[np.int64], pairs: dict[int, Pairs]) -> npt.NDArray[np.int64]:
    """The rows of each worker if every key were at home."""
    home_load = load.copy()
    for worker, listed in pairs.items():
        homes = candidates_of(listed[:, 0].copy().view(np.uint64), 0, len(load))
        away = homes != worker
        home_load[worker] -= listed[away, 1].sum()
        np.add.at(home_load, homes[away], listed[away, 1])
    return home_load


def _pairs_in(data: Any) -> Pairs:
    data = base64.b64decode(data) if isinstance(data, str) else bytes(data)  # as text on Connect
    return np.frombuffer(data, "<i8").astype(np.int64).reshape(-1, 2)


def _sums_of(pairs: Pairs) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Each key id once, and its rows."""
    ids, place = np.unique(pairs[:, 0], return_inverse=True)
    counts = np.zeros(len(ids), np.int64)
    np.add.at(counts, place, pairs[:, 1])
    return ids, counts
