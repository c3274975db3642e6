"""A plan as native Spark columns: the salt of each row without any Python in the data path.

Small plans, which most are, become one expression over constant arrays: a perfect hash table. Spark's own ``hash`` of
the key has 32 bits; its low ones pick a displacement, which leads its high ones to the only cell where the key can be
("hash and displace", Pagh 1999). Two look-ups for a cold key, four for a hot one, however many hot keys there are: a
broadcast join costs more than twice as much, and a map literal, which Spark searches one by one, more than ten times as
much with 500 hot keys (``benchmarks/spark_batch.py``). Constants travel with every task, so plans with very many places
are joined after all.

Keys are told apart by these 32 bits: that a cold key shares them with a hot one happens to one of 2^32 / H keys, where
H is the number of hot keys. It is then split like the hot key, which costs a few replicas.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.plan import HotKey, Plan
from unskew.spark.frames import free_name
from unskew.spark.keys import LOW_HALF, key_id

COUNT_BITS = 15  # of an int, for the number of a key's places; the others say where they begin
CELLS_PER_GROUP = 4  # cells per displacement
MOST_CONSTANTS = 20_000  # places of a plan that become constants; from about 100,000 on a join is faster


class PlanTable(NamedTuple):
    """The perfect hash table of a plan."""

    displacements: list[int]
    entries: list[int]  # of each cell: the hash of its key in the high half, its range of places in the low half
    places: list[int]  # salts; the first is that of every cold key


class Part(NamedTuple):
    """Some consecutive numbers of an array."""

    array: Column
    first: int = 0

    def at(self, position: Column) -> Column:
        """The number at a position of this part, the first being 0; null past the end of the array."""
        return F.get(self.array, position + F.lit(self.first) if self.first else position)


class TableParts(NamedTuple):
    """A plan's table in Spark: what `entry_of` and `salt_at` look up."""

    displacements: Part
    entries: Part
    places: Part
    cells: int


BIGINT = "bigint"
EMPTY = 1  # what an empty cell holds: one place, the first


def table_of(plan: Plan, cells: int | None = None) -> PlanTable | None:
    """The table of a plan, with so many cells, or as many as it takes; None where it would be too large."""
    if sum(len(hot.salts) for hot in plan.hot_keys) > MOST_CONSTANTS:
        return None
    by_hash = {_hash_of(hot): hot.salts for hot in reversed(plan.hot_keys)}  # of two with one hash the hotter
    found = perfect_cells(by_hash) if cells is None else _fill_cells(list(by_hash), cells)
    if found is None or len(found[1]) > MOST_CONSTANTS:  # hashes that are hard to tell apart
        return None
    entries, places = [EMPTY] * len(found[1]), [plan.cold_salt]
    for cell, hashed in enumerate(found[1]):
        if hashed is not None:
            entries[cell] = hashed << 32 | len(places) << COUNT_BITS | len(by_hash[hashed])
            places += by_hash[hashed]
    return PlanTable(found[0], entries, places)


def salt_of(columns: list[Column], turn: Column, plan: Plan) -> Column | None:
    """The salt that `plan` gives to a row with the key `columns`; None where the plan is too large for constants.

    `turn` is the number by which the rows of a hot key take their places, an int from 0 on.
    """
    if not plan.hot_keys:
        return F.lit(plan.cold_salt)
    table = table_of(plan)
    if table is None:
        return None
    entries = Part(_constant(table.entries, BIGINT))
    parts = TableParts(Part(_constant(table.displacements)), entries, Part(_constant(table.places)), len(table.entries))
    hashed = F.hash(*columns)
    return salt_at(hashed, entry_of(hashed, parts), turn, parts)


def entry_of(hashed: Column, table: TableParts) -> Column:
    """The entry of the only cell where a key with this hash can be, a bigint."""
    displacement = table.displacements.at(hashed.bitwiseAND(F.lit(table.cells // CELLS_PER_GROUP - 1)))
    cell = F.shiftright(hashed, 16).bitwiseXOR(displacement.try_cast("int")).bitwiseAND(F.lit(table.cells - 1))
    return table.entries.at(cell)


def salt_at(hashed: Column, entry: Column, turn: Column, table: TableParts) -> Column:
    """The salt of a row whose key has this hash and belongs to a cell with this entry."""
    range_ = entry.bitwiseAND(F.lit(LOW_HALF)).cast("int")
    place = F.shiftright(range_, COUNT_BITS) + turn % range_.bitwiseAND(F.lit((1 << COUNT_BITS) - 1))
    return table.places.at(F.when(is_hot(hashed, entry), place).otherwise(F.lit(0))).try_cast("int")


def is_hot(hashed: Column, entry: Column) -> Column:
    """Whether the entry of its cell is that of the key with this hash."""
    return F.shiftright(entry, 32) == hashed


def with_joined_salt(df: DataFrame, columns: list[Column], turn: Column, plan: Plan, salt: str) -> DataFrame:
    """`df` with the salt that `plan` gives to each row, by a broadcast join with its hot keys."""
    key, places = (free_name(df, f"__unskew_{part}") for part in ("key", "places"))
    rows = [(int(np.uint64(hot.key_id).view(np.int64)), list(hot.salts)) for hot in plan.hot_keys]
    table = df.sparkSession.createDataFrame(rows, f"{key} bigint, {places} array<int>")
    joined = df.join(F.broadcast(table), key_id(*columns) == F.col(key), "left")
    place = F.get(F.col(places), turn % F.size(places))
    return joined.withColumn(salt, F.coalesce(place, F.lit(plan.cold_salt))).drop(key, places)


def perfect_cells(hashes: Iterable[int]) -> tuple[list[int], list[int | None]]:
    """Displacements D and cells S, both powers of two, with S[((h >> 16) ^ D[h % len(D)]) % len(S)] = h for each hash.

    Where they do not fit, the table is doubled; one as large as all hashes has room for sure.
    """
    hashes = list(hashes)
    size = CELLS_PER_GROUP
    while size < 2 * len(hashes):
        size *= 2
    while (found := _fill_cells(hashes, size)) is None:
        size *= 2
    return found


def _fill_cells(hashes: list[int], size: int) -> tuple[list[int], list[int | None]] | None:
    """The same with `size` cells, or None. Those that share a displacement are placed together, the most crowded first,
    by the first displacement that leads all of them to empty cells."""
    displacements: list[int] = [0] * (size // CELLS_PER_GROUP)
    cells: list[int | None] = [None] * size
    groups: dict[int, list[int]] = {}
    for each in hashes:
        groups.setdefault(each % len(displacements), []).append(each)
    for group, members in sorted(groups.items(), key=lambda group: -len(group[1])):
        for displacement in range(size):
            wanted = [((each >> 16) ^ displacement) % size for each in members]
            if len(set(wanted)) == len(wanted) and all(cells[cell] is None for cell in wanted):
                break
        else:
            return None
        displacements[group] = displacement
        for cell, each in zip(wanted, members, strict=True):
            cells[cell] = each
    return displacements, cells


def _hash_of(hot: HotKey) -> int:
    """Spark's ``hash`` of the key: the high half of the key id."""
    return int(np.uint32(hot.key_id >> 32).view(np.int32))


def _constant(values: list[int], kind: str = "int") -> Column:
    """An array that Spark folds into a constant; handing it over as one text is quick."""
    return F.split(F.lit(",".join(map(str, values))), ",").cast(f"array<{kind}>")
