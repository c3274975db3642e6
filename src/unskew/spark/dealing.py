"""How the rows of a hot key take turns at its places: by content, by a column, or by position.

By content or by a column, a row's salt depends on the row alone: a task that runs again gives every row the same salt
as before.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.errors import InputError
from unskew.spark.frames import column, columns_by_position, count_of, free_name, outside_compiled_code, repeated
from unskew.spark.keys import can_be_hashed

CONTENT, POSITION = "content", "position"
TURN = "__unskew_turn"
TURNS = 2**30  # after which rows are dealt from the first place on again


class Dealing(NamedTuple):
    """Turns of the rows of a DataFrame."""

    df: DataFrame
    turn: Column  # an int from 0 on: the row takes place number `turn` modulo the number of its key's places
    by_position: bool
    added: tuple[str, ...] = ()  # columns that `df` has beside those of the user


def dealing(df: DataFrame, keys: Sequence[str], deal: str | None) -> Dealing:
    """The turns of the rows of `df`, dealt as the user asked for; None takes content, or position without content."""
    others = [i for i, field in enumerate(df.schema) if field.name not in keys and can_be_hashed(field.dataType)]
    if deal == POSITION or (deal is None and not others):
        return by_position(df)
    if deal == CONTENT or deal is None:
        return _by_content(df, others)
    names = [df.columns[i] for i in others if count_of(df, df.columns[i]) == 1]
    if deal not in names:
        raise InputError(f"deal: must be 'content', 'position' or one of {', '.join(names) or '-'}, not {deal!r}")
    return by_columns(df, [column(deal)])


def by_columns(df: DataFrame, columns: Sequence[Column]) -> Dealing:
    """Turns by the hash of these columns: rows that are equal there have the same one."""
    return Dealing(df, _turn(F.xxhash64(*columns)), by_position=False)


def by_position(df: DataFrame) -> Dealing:
    """Turns by the number of a row in its task. Hashed, since keys may come in a rhythm, such as every second row.

    Spark numbers no rows of a stream. There a seeded generator draws the turns, row after row of a task. Spark gives it
    another seed in each micro-batch.
    """
    if df.isStreaming:
        return Dealing(df, (outside_compiled_code(F.rand(seed=0)) * TURNS).cast("int"), by_position=True)
    return Dealing(df, _turn(F.xxhash64(F.monotonically_increasing_id())), by_position=True)


def _by_content(df: DataFrame, others: Sequence[int]) -> Dealing:
    if not others:
        raise InputError("deal: there is no column but the keys to deal by; allowed is 'position'")
    if not repeated(df.sparkSession, df.columns):
        return by_columns(df, [column(df.columns[i]) for i in others])
    columns, name = columns_by_position(df), free_name(df, TURN)
    turns = df.withColumn(name, _turn(F.xxhash64(*(columns[i] for i in others))))
    return Dealing(turns, column(name), by_position=False, added=(name,))


def _turn(number: Column) -> Column:
    """The low bits of a bigint as an int, which is quicker to divide."""
    return number.bitwiseAND(F.lit(TURNS - 1)).cast("int")
