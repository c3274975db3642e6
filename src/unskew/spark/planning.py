"""Planned routing: a plan made on the driver, and how rows of a hot key are dealt.

A row's salt depends on the row alone when rows are dealt by content or by a column: a task that runs again gives every
row the same salt as before. `plan_column` makes columns of a plan.
"""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.errors import InputError, InputTypeError
from unskew.plan import Plan, require_sample
from unskew.planning import check_plannable, make_plan
from unskew.spark.counting import Decay, counted, counted_with_decay, named
from unskew.spark.keys import can_be_hashed, column

TURNS = 2**30  # after which rows are dealt from the first place on again

CONTENT, POSITION = "content", "position"


def plan_for(
    df: DataFrame,
    keys: str | Sequence[str],
    workers: int,
    scheme: str = "fanout",
    *,
    sample: float | None = None,
    decay: Decay | None = None,
    names: bool = True,
    **parameters: Any,
) -> Plan:
    """The plan of `scheme` for the keys of `df`. Runs two Spark jobs: one counts, one fetches the hot keys' names.

    `sample` counts only that share of the rows; what a plan needs to know survives sampling as long as some ten
    thousand rows a worker are left. `decay` counts recent rows more, where popularity changes and the plan is for what
    comes next: see `Decay`. Without `names` there is no second job, and ``plan.table()`` has key ids only. `parameters`
    are the scheme's.
    """
    check_plannable(scheme, workers, **parameters)
    require_sample(sample)
    if decay is not None and not isinstance(decay, Decay):
        raise InputTypeError(f"decay: must be a Decay such as Decay(by='ts', epoch=3600), not {type(decay).__name__}")
    rows = df if sample is None else df.sample(sample, seed=0)
    frequencies = counted(rows, keys, workers) if decay is None else counted_with_decay(rows, keys, workers, decay)
    if names:
        frequencies = named(rows, keys, frequencies, frequencies.hot(workers))
    return make_plan(scheme, workers, frequencies, **parameters)


def dealing(df: DataFrame, keys: list[str], deal: str | None) -> tuple[Column, bool]:
    """The int from 0 on by which the rows of a hot key take their places, and whether it is the row's position."""
    others = [field.name for field in df.schema if field.name not in keys and can_be_hashed(field.dataType)]
    if deal == POSITION or (deal is None and not others):
        return _turn(F.monotonically_increasing_id()), True
    if deal == CONTENT or deal is None:
        if not others:
            raise InputError("deal: there is no column but the keys to deal by; allowed is 'position'")
        return _turn(F.xxhash64(*map(column, others))), False
    if deal not in others:
        raise InputError(f"deal: must be 'content', 'position' or one of {', '.join(others) or '-'}, not {deal!r}")
    return _turn(F.xxhash64(column(deal))), False


def _turn(number: Column) -> Column:
    """The low bits of a bigint as an int, which is quicker to divide; of a position, the row's number in its task."""
    return number.bitwiseAND(F.lit(TURNS - 1)).cast("int")
