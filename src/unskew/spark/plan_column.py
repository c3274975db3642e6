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

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.plan import HotKey, Plan
from unskew.spark.frames import free_name
from unskew.spark.keys import key_id

COUNT_BITS = 15  # of an int, for the number of a key's places; the others say where they begin
MOST_CONSTANTS = 20_000  # places of a plan that become constants; from about 100,000 on a join is faster


def salt_of(columns: list[Column], turn: Column, plan: Plan) -> Column | None:
    """The salt that `plan` gives to a row with the key `columns`; None where the plan is too large for constants.

    `turn` is the number by which the rows of a hot key take their places, an int from 0 on.
    """
    if not plan.hot_keys:
        return F.lit(plan.cold_salt)
    if sum(len(hot.salts) for hot in plan.hot_keys) > MOST_CONSTANTS:
        return None
    by_hash = {_hash_of(hot): hot.salts for hot in reversed(plan.hot_keys)}  # of two with one hash the hotter
    displacements, cells = perfect_cells(by_hash)
    if len(cells) > MOST_CONSTANTS:  # hashes that are hard to tell apart
        return None
    nowhere = next(iter(by_hash))  # is in a cell of its own, so in an empty one it is never found
    ranges, places = [1] * len(cells), [plan.cold_salt]  # an empty cell has one place, the first
    for cell_number, found in enumerate(cells):
        if found is not None:
            ranges[cell_number] = len(places) << COUNT_BITS | len(by_hash[found])
            places += by_hash[found]
    hashed = F.hash(*columns)
    displacement = _at(displacements, hashed.bitwiseAND(F.lit(len(displacements) - 1)))
    cell = F.shiftright(hashed, 16).bitwiseXOR(displacement).bitwiseAND(F.lit(len(cells) - 1))
    range_ = _at(ranges, cell)
    place = F.shiftright(range_, COUNT_BITS) + turn % range_.bitwiseAND(F.lit((1 << COUNT_BITS) - 1))
    is_hot = _at([nowhere if found is None else found for found in cells], cell) == hashed
    return F.when(is_hot, _at(places, place)).otherwise(F.lit(plan.cold_salt))


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

    Those that share a displacement are placed together, the most crowded first, by the first displacement that leads
    all of them to empty cells. Where there is none, the table is doubled; one as large as all hashes has room for sure.
    """
    hashes = list(hashes)
    size = 4
    while size < 2 * len(hashes):
        size *= 2
    while True:
        displacements: list[int] = [0] * (size // 4)
        cells: list[int | None] = [None] * size
        groups: dict[int, list[int]] = {}
        for each in hashes:
            groups.setdefault(each % len(displacements), []).append(each)
        for group, members in sorted(groups.items(), key=lambda entry: -len(entry[1])):
            for displacement in range(size):
                wanted = [((each >> 16) ^ displacement) % size for each in members]
                if len(set(wanted)) == len(wanted) and all(cells[cell] is None for cell in wanted):
                    break
            else:
                break
            displacements[group] = displacement
            for cell, each in zip(wanted, members, strict=True):
                cells[cell] = each
        else:
            return displacements, cells
        size *= 2


def _hash_of(hot: HotKey) -> int:
    """Spark's ``hash`` of the key: the high half of the key id."""
    return int(np.uint32(hot.key_id >> 32).view(np.int32))


def _at(values: list[int], index: Column) -> Column:
    """``values[index]`` of an array that Spark folds into a constant; handing it over as one text is quick."""
    return F.get(F.split(F.lit(",".join(map(str, values))), ",").cast("array<int>"), index)
