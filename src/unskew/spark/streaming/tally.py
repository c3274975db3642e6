"""What workers tell of the keys of a micro-batch, where a function in Python goes through their rows anyway.

To observe each row inside Spark costs more than to route it (see docs/streaming.md). But an aggregate groups its rows
by key, and so knows how many rows each key has. At its end, a worker's task tells how many rows it had, and those keys
that are a noticeable part of them. So loads are exact, and a count lacks only rows on workers where the key is rare.

From this the driver computes where rows would be if every key were at home. A plan moves frequent keys only, and these
are listed. So all rows of a worker are at home, except those of listed keys whose home is elsewhere.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from unskew.aggregates.groups import first_rows, key_codes
from unskew.frequencies import Frequencies
from unskew.hashing import candidates_of
from unskew.plan import Plan
from unskew.spark.counting import are_known
from unskew.spark.keys import key_id, shown_key
from unskew.spark.mapping import Batches, CountingWork, arrow_schema, map_in_arrow, nullable, result_schema
from unskew.spark.streaming.plan_file import NO_PLAN
from unskew.spark.streaming.seen import Seen, names_in
from unskew.spark.telling import DONE, and_tell, with_done, without_done
from unskew.spark.worker_counts import MOST_COUNTERS

TOLD = "told"  # the metric: what each worker told
# A worker's rows are thought of as so many equal parts: 10 per worker of the query, and at least 160. A key that has
# more than one part is listed: less cannot be hot, however many workers it is dealt over.
PARTS_PER_WORKER, LEAST_PARTS = 10, 160
MOST_LISTED, FEWEST_LISTED = 2**13, 8  # keys of all workers together, but so many per worker at least
NAMES = 100  # keys whose name is told: of all workers together, but one per worker at least
MOST_HELD = 1000  # tables of keys that are held before they are summed up
Counts = npt.NDArray[np.int64]
Counted = tuple[pa.Table, Counts]  # keys, and how many rows each has


class Tallied(NamedTuple):
    """Rows whose workers are to tell of them."""

    df: DataFrame
    metrics: str  # by what name it is to be observed
    version: Column  # of the plan


def work_and_tell(
    placed: Tallied, function: CountingWork, schema: StructType | str, keys: Sequence[str], workers: int
) -> DataFrame:
    """What the function makes of the rows of each worker. What workers tell is observed: a row for each listed key, and
    one for all keys together."""
    df, metrics, version = placed
    key_type = nullable(StructType([StructField(str(i), df.schema[name].dataType) for i, name in enumerate(keys)]))
    fields = {"rows": LongType(), "key": key_type, "named": BooleanType()}
    told_type = StructType([StructField(name, kind) for name, kind in fields.items()])
    with_told = with_done(df, result_schema(df, schema), told_type)
    done = map_in_arrow(df, _tallying(function, list(keys), arrow_schema(with_told), workers), with_told)
    told, key = F.col(DONE), [F.col(DONE)["key"][name] for name in key_type.names]
    of_all = told["key"].isNull()
    row = F.struct(
        F.spark_partition_id().alias("worker"),
        F.when(of_all, F.lit(workers)).alias("workers"),
        F.when(of_all, version).alias("version"),
        told["rows"].alias("rows"),
        F.when(~of_all, key_id(*key)).alias("id"),
        F.when(told["named"], shown_key(key)).alias("key"),
    )
    observed = done.withColumn(DONE, F.when(told.isNotNull(), row)).observe(metrics, F.collect_list(DONE).alias(TOLD))
    return without_done(observed)


def seen_by_workers(metrics: Any, workers: int, most: int, plans: Mapping[int, Plan]) -> Seen:
    """A micro-batch of which the workers told, and its `most` frequent keys; `plans` are known by their version."""
    if TOLD not in metrics:  # a query before this one may be heard of late
        return Seen(0, None)
    told = metrics[TOLD] or []
    totals: dict[int, Any] = {}
    listed: dict[int, Counter[int]] = {}
    for row in told:
        if row["id"] is None:  # comes first; once more if the task was retried, and then the last time counts
            totals[row["worker"]], listed[row["worker"]] = row, Counter()
        else:
            listed[row["worker"]][row["id"]] += row["rows"]  # keys with nulls may share an id
    first = next(iter(totals.values()), None)
    if first is None or first["workers"] != workers:
        return Seen(0, None)
    rows, version = sum(row["rows"] for row in totals.values()), int(first["version"])
    found = [(worker, *pair) for worker, pairs in listed.items() for pair in pairs.items()]
    on, ids, counts = np.array(found, np.int64).reshape(-1, 3).T
    frequent, counted = _sums_of(ids, counts)
    order = np.argsort(-counted, kind="stable")[:most]
    order = order[are_known(counted[order], rows, most)]
    load = home_load = None
    if workers <= MOST_COUNTERS:
        load = np.zeros(workers, np.int64)
        for worker, row in totals.items():
            load[worker] = row["rows"]
        if version == NO_PLAN or (version in plans and plans[version].cold_salt == 0):
            home_load = _home_load(load, on, ids, counts)
    frequencies = Frequencies(frequent[order].view(np.uint64), counted[order], rows, home_load=home_load)
    names = names_in([row for row in reversed(told) if row["key"] is not None])  # the most frequent of each task wins
    return Seen(rows, load, version, frequencies, names)


class Tally:
    """The rows of each key in one task."""

    def __init__(self, keys: list[str], kind: pa.StructType, workers: int) -> None:
        self._keys, self._kind, self._workers = keys, kind, workers
        self._sums: list[Counted] = []
        self._new: list[Counted] = []

    def add(self, keys: pa.Table, counts: Counts) -> None:
        """Take in keys, each with its number of rows. A key may come several times, with other panes of time."""
        self._new.append((keys.select(self._keys), counts))
        if len(self._new) >= MOST_HELD:
            self._sums.append(_summed(self._new))
            self._new = []

    def told(self) -> pa.StructArray | None:
        """What the task tells: all of its rows, then those of each listed key, the most frequent first. None where it
        had no rows."""
        if not self._sums and not self._new:
            return None
        keys, counts = _summed([*self._sums, *self._new])
        rows = counts.sum()
        order = np.argsort(-counts, kind="stable")[: max(FEWEST_LISTED, MOST_LISTED // self._workers)]
        order = order[counts[order] * max(LEAST_PARTS, PARTS_PER_WORKER * self._workers) > rows]
        kind = self._kind.field("key").type
        listed = keys.take(order)
        values = [listed[i].combine_chunks().cast(field.type) for i, field in enumerate(kind)]
        key = pa.concat_arrays([pa.nulls(1, kind), pa.StructArray.from_arrays(values, fields=list(kind))])
        named = np.arange(len(key)) - 1 < max(1, NAMES // self._workers)
        told = [pa.array([rows, *counts[order]], pa.int64()), key, pa.array(named & key.is_valid().to_numpy(False))]
        return pa.StructArray.from_arrays(told, fields=list(self._kind))


def _tallying(function: CountingWork, keys: list[str], schema: pa.Schema, workers: int) -> Callable[[Batches], Batches]:
    """The function, whose task tells of its keys at the end."""

    def work(batches: Batches) -> Batches:
        tally = Tally(keys, schema.field(DONE).type, workers)
        yield from and_tell(function(batches, tally.add), schema, tally.told)

    return work


def _summed(found: Sequence[Counted]) -> Counted:
    """Each key once."""
    keys = pa.concat_tables([keys for keys, _ in found])
    codes = key_codes(keys)
    counts = np.bincount(codes, np.concatenate([counts for _, counts in found])).astype(np.int64)
    return keys.take(first_rows(codes)), counts


def _home_load(load: Counts, on: Counts, ids: Counts, counts: Counts) -> Counts:
    """The rows of each worker if every key were at home; so many rows of these keys are on these workers."""
    home_load, homes = load.copy(), candidates_of(ids.copy().view(np.uint64), 0, len(load))
    np.subtract.at(home_load, on, counts)
    np.add.at(home_load, homes, counts)
    return home_load


def _sums_of(ids: Counts, counts: Counts) -> tuple[Counts, Counts]:
    """Each key id once, and its rows."""
    each, place = np.unique(ids, return_inverse=True)
    sums = np.zeros(len(each), np.int64)
    np.add.at(sums, place, counts)
    return each, sums
