"""What workers tell of the keys of a micro-batch, where a function in Python goes through their rows anyway.

To observe each row inside Spark costs more than to route it (see docs/streaming.md). Here a worker's task gets the key
id of each row. It counts ids beside its work, and tells in one row at the end how many rows it had, and which keys are
a noticeable part of them. So loads are exact, and a count lacks only rows on workers where the key is rare.

From this the driver computes where rows would be if every key were at home. A plan moves frequent keys only, and these
are listed. So all rows of a worker are at home, except those of listed keys whose home is elsewhere.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import ArrayType, BinaryType, LongType, StructField, StructType

from unskew.aggregates.states import ROWS
from unskew.frequencies import Frequencies
from unskew.hashing import candidates_of
from unskew.plan import Plan
from unskew.spark.counting import are_known
from unskew.spark.frames import free_name
from unskew.spark.keys import key_columns, key_id, shown_key
from unskew.spark.mapping import Batches, arrow_schema, map_in_arrow, nullable, result_schema
from unskew.spark.streaming.plan_file import NO_PLAN
from unskew.spark.streaming.seen import Seen, names_in
from unskew.spark.telling import DONE, and_tell, with_done, without_done
from unskew.spark.worker_counts import MOST_COUNTERS, as_bytes

ID = "__unskew_id"
TOLD = "told"  # the metric: what each worker told
# A worker's rows are thought of as so many equal parts: 10 per worker of the query, and at least 160. A key that has
# more than one part is listed: less cannot be hot, however many workers it is dealt over.
PARTS_PER_WORKER, LEAST_PARTS = 10, 160
MOST_LISTED, FEWEST_LISTED = 2**15, 8  # keys of all workers together, but so many per worker at least
NAMES = 100  # keys whose name is told: of all workers together, but one per worker at least
MOST_NAME_BYTES = 2**16  # of a key whose name is told
Pairs = npt.NDArray[np.int64]  # [keys, 2] key ids, and how many rows each has


class Tallied(NamedTuple):
    """Rows whose workers are to tell of them."""

    df: DataFrame
    metrics: str  # by what name it is to be observed
    version: Column  # of the plan


def work_and_tell(
    placed: Tallied,
    function: Callable[[Batches], Batches],
    schema: StructType | str,
    keys: Sequence[str],
    workers: int,
) -> DataFrame:
    """What the function makes of the rows of each worker, without their key ids. What workers tell is observed."""
    df, metrics, version = placed
    df = df.withColumn(free_name(df, ID), key_id(*key_columns(df, keys)))  # behind the shuffle, which need not carry it
    key_type = nullable(StructType([StructField(str(i), df.schema[name].dataType) for i, name in enumerate(keys)]))
    named_type = StructType([StructField("id", LongType()), StructField("key", key_type)])
    fields = {"rows": LongType(), "pairs": BinaryType(), "named": ArrayType(named_type)}
    told_type = StructType([StructField(name, kind) for name, kind in fields.items()])
    with_told = with_done(df, result_schema(df, schema), told_type)
    done = map_in_arrow(df, _tallying(function, list(keys), arrow_schema(with_told), workers), with_told)

    def with_name(one: Column) -> Column:
        return F.struct(one["id"].alias("id"), shown_key([one["key"][field] for field in key_type.names]).alias("key"))

    row = F.struct(
        F.spark_partition_id().alias("worker"),
        F.lit(workers).alias("workers"),
        f"{DONE}.rows",
        f"{DONE}.pairs",
        version.alias("version"),
        F.transform(f"{DONE}.named", with_name).alias("names"),
    )
    told = done.withColumn(DONE, F.when(F.col(DONE).isNotNull(), row))
    return without_done(told.observe(metrics, F.collect_list(DONE).alias(TOLD)))


def seen_by_workers(metrics: Any, workers: int, most: int, plans: Mapping[int, Plan]) -> Seen:
    """A micro-batch of which the workers told, and its `most` frequent keys; `plans` are known by their version."""
    if TOLD not in metrics:  # a query before this one may be heard of late
        return Seen(0, None)
    told = {row["worker"]: row for row in metrics[TOLD] or []}  # each once, also if its task was retried
    first = next(iter(told.values()), None)
    if first is None or first["workers"] != workers:
        return Seen(0, None)
    rows, version = sum(row["rows"] for row in told.values()), int(first["version"])
    pairs = {worker: _pairs_in(row["pairs"]) for worker, row in told.items()}
    ids, counts = _sums_of(np.concatenate(list(pairs.values())))
    order = np.argsort(-counts, kind="stable")[:most]
    order = order[are_known(counts[order], rows, most)]
    load = home_load = None
    if workers <= MOST_COUNTERS:
        load = np.zeros(workers, np.int64)
        for worker, row in told.items():
            load[worker] = row["rows"]
        if version == NO_PLAN or (version in plans and plans[version].cold_salt == 0):
            home_load = _home_load(load, pairs)
    frequencies = Frequencies(ids[order].view(np.uint64), counts[order], rows, home_load=home_load)
    names = names_in([each for row in told.values() for each in row["names"] or []])
    return Seen(rows, load, version, frequencies, names)


class Tally:
    """Counts the rows of each key in one task, by key id."""

    def __init__(self, keys: list[str], kind: pa.StructType, workers: int) -> None:
        self._keys, self._kind, self._workers = keys, kind, workers
        self._rows = self._waiting = 0
        self._ids: list[Pairs] = []  # of rows that are yet to be counted
        self._counts: Pairs = np.zeros((0, 2), np.int64)
        self._named: pa.ListArray | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in rows, whose last column is the key id. Nothing of the batch itself is kept: it may be large."""
        if not batch.num_rows:
            return
        self._named = self._names_in(batch) if self._named is None else self._named
        self._rows += batch.num_rows
        self._waiting += batch.num_rows
        self._ids.append(batch.columns[-1].to_numpy().copy())
        if self._waiting >= max(ROWS, len(self._counts)):  # so that the cost stays linear
            self._count()

    def told(self) -> pa.StructArray | None:
        """What the task tells, as an array of one; None where it had no rows."""
        if not self._rows:
            return None
        self._count()
        listed = self._counts[self._counts[:, 1] * max(LEAST_PARTS, PARTS_PER_WORKER * self._workers) > self._rows]
        listed = _most_frequent(listed, max(FEWEST_LISTED, MOST_LISTED // self._workers))
        columns = [pa.array([self._rows]), pa.array([listed.astype("<i8").tobytes()]), self._named]
        return pa.StructArray.from_arrays(columns, fields=list(self._kind))

    def _count(self) -> None:
        if self._ids:
            new = _value_counts(np.concatenate(self._ids))
            self._counts = np.stack(_sums_of(np.concatenate([self._counts, new])), 1)
            self._ids, self._waiting = [], 0

    def _names_in(self, batch: pa.RecordBatch) -> pa.ListArray:
        """The most frequent keys of the batch and their ids, without those that are very long."""
        ids = batch.columns[-1]
        frequent = _most_frequent(_value_counts(ids.to_numpy()), max(1, NAMES // self._workers))[:, 0]
        columns = pa.record_batch([*(batch[name] for name in self._keys), ids], [*map(str, range(len(self._keys) + 1))])
        rows = columns.take(pc.index_in(pa.array(frequent), value_set=ids))
        rows = rows.filter(pa.array([rows.slice(i, 1).nbytes <= MOST_NAME_BYTES for i in range(rows.num_rows)]))
        kind = self._kind.field("named").type
        fields = list(kind.value_type.field("key").type)
        values = [column.cast(field.type) for column, field in zip(rows.columns[:-1], fields, strict=True)]
        key = pa.StructArray.from_arrays(values, fields=fields)
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
    return np.frombuffer(as_bytes(data), "<i8").astype(np.int64).reshape(-1, 2)


def _value_counts(ids: Pairs) -> Pairs:
    return np.stack([column.to_numpy() for column in pa.array(ids).value_counts().flatten()], 1)


def _most_frequent(pairs: Pairs, most: int) -> Pairs:
    return pairs[np.argsort(-pairs[:, 1], kind="stable")[:most]]


def _sums_of(pairs: Pairs) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Each key id once, and its rows."""
    ids, place = np.unique(pairs[:, 0], return_inverse=True)
    counts = np.zeros(len(ids), np.int64)
    np.add.at(counts, place, pairs[:, 1])
    return ids, counts
