"""What workers tell of the keys of a micro-batch, where a function in Python goes through their rows anyway.

To observe each row inside Spark costs more than to route it (see docs/streaming.md). But an aggregate groups its rows
by key, and so knows how many rows each key has. At its end, a worker's task tells how many rows it had, and those keys
that are a noticeable part of them. So loads are exact, and a count lacks only rows on workers where the key is rare.

From this the driver computes where rows would be if every key were at home. A plan moves frequent keys only, and these
are listed. So all rows of a worker are at home, except those of listed keys whose home is elsewhere.

`accumulated_tally` and `observed_tally` are two ways from the tasks to the driver.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.aggregates.groups import first_rows, key_codes
from unskew.frequencies import Frequencies
from unskew.hashing import candidates_of
from unskew.plan import Plan
from unskew.spark.counting import are_known
from unskew.spark.streaming.plan_file import NO_PLAN
from unskew.spark.streaming.seen import Seen
from unskew.spark.worker_counts import MOST_COUNTERS

# A worker's rows are thought of as so many equal parts: 10 per worker of the query, and at least 160. A key that has
# more than one part is listed: less cannot be hot, however many workers it is dealt over.
PARTS_PER_WORKER, LEAST_PARTS = 10, 160
MOST_LISTED, FEWEST_LISTED = 2**13, 8  # keys of all workers together, but so many per worker at least
NAMES = 100  # keys whose name is told: of all workers together, but one per worker at least
MOST_HELD = 1000  # tables of keys that are held before they are summed up
Counts = npt.NDArray[np.int64]
Counted = tuple[pa.Table, Counts]  # keys, and how many rows each has


class Told(NamedTuple):
    """What one worker told."""

    rows: int
    ids: list[int]  # key ids of the listed keys, the most frequent first, signed; keys with nulls may share an id
    counts: list[int]  # the rows of each
    names: dict[int, str]  # what some of them are called, by key id, unsigned


def seen_by_workers(told: Mapping[int, Told], version: int, workers: int, most: int, plans: Mapping[int, Plan]) -> Seen:
    """A micro-batch of which the workers told, by their indices, and its `most` frequent keys. It used the plan of this
    version; `plans` are known by theirs."""
    rows = sum(each.rows for each in told.values())
    if not rows:
        return Seen(0, None)
    on = np.repeat(np.array([*told], np.int64), [len(each.ids) for each in told.values()])
    ids = np.array([key for each in told.values() for key in each.ids], np.int64)
    counts = np.array([count for each in told.values() for count in each.counts], np.int64)
    frequent, counted = _sums_of(ids, counts)
    order = np.argsort(-counted, kind="stable")[:most]
    order = order[are_known(counted[order], rows, most)]
    load = home_load = None
    if workers <= MOST_COUNTERS:
        load = np.zeros(workers, np.int64)
        for worker, each in told.items():
            load[worker] = each.rows
        if version == NO_PLAN or (version in plans and plans[version].cold_salt == 0):
            home_load = _home_load(load, on, ids, counts)
    frequencies = Frequencies(frequent[order].view(np.uint64), counted[order], rows, home_load=home_load)
    names = {key: name for each in told.values() for key, name in each.names.items()}
    return Seen(rows, load, version, frequencies, names)


class Tally:
    """The rows of each key in one task of a query with so many workers."""

    def __init__(self, keys: list[str], workers: int) -> None:
        self._keys, self._workers = keys, workers
        self._sums: list[Counted] = []
        self._new: list[Counted] = []

    @property
    def most_named(self) -> int:
        """How many keys are told by name."""
        return max(1, NAMES // self._workers)

    def add(self, keys: pa.Table, counts: Counts) -> None:
        """Take in keys, all different, each with its number of rows. Where the table has more columns than the key,
        such as panes of time, rows may differ in these only."""
        found = keys.select(self._keys), counts
        self._new.append(found if keys.num_columns == len(self._keys) else _each_once(*found))
        if len(self._new) >= MOST_HELD:
            self._sums.append(_summed(self._new))
            self._new = []

    def listed(self) -> tuple[int, pa.Table, Counts] | None:
        """The rows of the task, the keys that are to be listed, the most frequent first, and the rows of each. None
        where it had no rows."""
        if not self._sums and not self._new:
            return None
        keys, counts = _summed([*self._sums, *self._new])
        rows = int(counts.sum())
        frequent = np.flatnonzero(counts * max(LEAST_PARTS, PARTS_PER_WORKER * self._workers) > rows)
        most = max(FEWEST_LISTED, MOST_LISTED // self._workers)
        order = frequent[np.argsort(-counts[frequent], kind="stable")][:most]
        return rows, keys.take(order).combine_chunks(), counts[order]


def _summed(found: Sequence[Counted]) -> Counted:
    """What several tables have, each key once."""
    if len(found) == 1:
        return found[0]
    return _each_once(pa.concat_tables([keys for keys, _ in found]), np.concatenate([counts for _, counts in found]))


def _each_once(keys: pa.Table, counts: Counts) -> Counted:
    codes = key_codes(keys)
    return keys.take(first_rows(codes)), np.bincount(codes, counts).astype(np.int64)


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
