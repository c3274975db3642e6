"""The plan of a running query: one line in a file that every micro-batch reads anew, inside Spark.

A streaming query's expressions are fixed when it starts. But Spark opens a text file that a scalar subquery reads
anew in each micro-batch, and hands its one value to all tasks of that batch, retries included. So the line holds the
perfect hash table of `plan_column`, and the salt is the same expression as for a plan that does not change.

The line is a CRC-32, a space, the number of cells, a space, and whole numbers between commas: the version, then the
three parts of the table, one after the other. In Spark they are one array: if they were fields of a struct, Spark would
take each array out of it again for every row. What does not fit its CRC or has another number of cells, and a file that
is missing, is taken for an empty plan: rows are balanced less, and no result is wrong, since any salt is right.
"""

import zlib
from dataclasses import replace
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.errors import InputError
from unskew.plan import Plan
from unskew.spark.frames import column, free_name
from unskew.spark.plan_column import CELLS_PER_GROUP, Part, TableParts, entry_of, is_hot, salt_at, table_of
from unskew.spark.streaming.side_folder import SideFolder

NAME = "plan.txt"
NUMBERS, HASHED, ENTRY, HOT = [f"__unskew_{each}" for each in ("numbers", "hash", "entry", "hot")]
VERSION_METRIC = "plan_version"  # the version of the plan, as it is observed
NO_PLAN = -1  # the version that is told by a batch that could not read its plan
READING = {"ignoreMissingFiles": "true", "ignoreCorruptFiles": "true"}


def cells_for(most: int) -> int:
    """How many cells a table needs for at most so many hot keys. It is fixed while a query runs."""
    return CELLS_PER_GROUP << (most - 1).bit_length()


def line_of(plan: Plan, version: int, cells: int) -> str:
    """The line of a plan that fits so many cells; see `cut_to_fit`."""
    table = table_of(plan, cells)
    assert table is not None
    body = ",".join(map(str, [version, *table.displacements, *table.entries, *table.places]))
    return f"{zlib.crc32(body.encode())} {cells} {body}"


def version_in(line: str | None) -> int | None:
    """The version of a line; None where it is damaged or missing."""
    head, _, body = (line or "").rpartition(" ")
    check, _, _ = head.partition(" ")
    if check != str(zlib.crc32(body.encode())):
        return None
    try:
        return int(body.split(",")[0])
    except ValueError:
        return None


def cut_to_fit(plan: Plan, cells: int) -> Plan:
    """The plan, without the coldest of its hot keys where it is too large for a table."""
    while table_of(plan, cells) is None:
        plan = replace(plan, hot_keys=plan.hot_keys[: len(plan.hot_keys) // 2])
    return plan


class Planned(NamedTuple):
    """Rows with their salts, and what is known of the plan."""

    df: DataFrame
    hot: str  # the name of a column of `df`: whether the plan knows the key; null without a plan
    version: Column  # of the plan that the micro-batch used, or `NO_PLAN`


def with_planned_salt(
    df: DataFrame,
    columns: list[Column],
    turn: Column,
    folder: SideFolder,
    cells: int,
    salt: str,
    metrics: str | None = None,
) -> Planned:
    """`df` with the salt by the plan that its micro-batch finds in the folder. If `metrics` is given, it is the name by
    which the version is observed where the plan is read; null where there is no file.

    Spark plans each use of the subquery anew in each batch, which takes some 5 ms. So the plan is a column of its own,
    used several times, which is no row's data: it stays a constant in the compiled code. (Spark does not compile rows
    of more than 100 columns as a whole. There it is copied per row.) One more use is where rows tell the version.
    Reading happens once: Spark sees that they are the same. Without a plan every look-up gives null, and the salt is 0.
    """
    try:
        texts = df.sparkSession.read.options(**READING).text(folder.address_of(NAME), wholetext=True)
        _ = texts.schema  # Connect looks for the file only now
    except AnalysisException:
        raise InputError(
            f"checkpoint: Spark does not find {folder.address_of(NAME)}, which unskew has just written: give the "
            "address in full, such as hdfs://host/folder, of a file system that Spark and this process both see"
        ) from None
    body = F.substring_index("value", " ", -1)
    head = F.concat_ws(" ", F.crc32(body.cast("binary")).cast("string"), F.lit(str(cells)))
    whole = head == F.substring_index("value", " ", 2)
    found = texts.select(F.when(whole, F.split(body, ",").try_cast("array<bigint>")).alias("numbers"))
    if metrics is not None:
        found = found.observe(metrics, F.max(_version_of(F.col("numbers"))).alias(VERSION_METRIC))
    plan = found.scalar()
    numbers, hashed, entry, hot = (free_name(df, name) for name in (NUMBERS, HASHED, ENTRY, HOT))
    with_plan = df.withColumns({numbers: plan, hashed: F.hash(*columns)})  # a hash of its own: Spark computes it once
    table = _parts_of(column(numbers), cells)
    looked_up = with_plan.withColumn(entry, entry_of(column(hashed), table))
    found_salt = F.coalesce(salt_at(column(hashed), column(entry), turn, table), F.lit(0))
    salted = looked_up.withColumns({salt: found_salt, hot: is_hot(column(hashed), column(entry))})
    salted = salted.drop(numbers, hashed, entry)
    return Planned(salted, hot, _version_of(plan))


def _version_of(numbers: Column) -> Column:
    return F.coalesce(F.get(numbers, F.lit(0)), F.lit(NO_PLAN))


def _parts_of(numbers: Column, cells: int) -> TableParts:
    """The table in the numbers of a line, behind the version."""
    groups = cells // CELLS_PER_GROUP
    return TableParts(Part(numbers, 1), Part(numbers, 1 + groups), Part(numbers, 1 + groups + cells), cells)
