"""Plans for the keys of a DataFrame: hot keys counted by Spark, the plan made on the driver."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from unskew.contract import Scheme
from unskew.errors import InputError, InputTypeError
from unskew.plan import Plan, require_sample
from unskew.planning import check_plannable, make_plan
from unskew.registry import registration_of
from unskew.spark.counting import Decay, count_keys, count_keys_with_decay, fetch_names
from unskew.spark.frames import require_batch, warn
from unskew.spark.keys import described_keys, key_columns


def plan_for(
    df: DataFrame,
    keys: str | Sequence[str],
    workers: int,
    scheme: str | Scheme = "fanout",
    *,
    sample: float | None = None,
    decay: Decay | None = None,
    names: bool = True,
) -> Plan:
    """The plan of a scheme for the keys of `df`. Runs two Spark jobs, now: one counts keys, one fetches their names.

    Parameters
    ----------
    df
        The rows to count.
    keys
        The name of the key column, or a list of names.
    workers
        How many workers the plan is for.
    scheme
        A name, or an object that brings its parameters, such as ``PartialKey(64, choices=3)``.
    sample
        Count only this share of the rows, such as 0.1. The plan is as good while some ten thousand rows per worker are
        counted.
    decay
        Count recent rows more, where popularity changes and the plan is for what comes next; see `Decay`.
    names
        Whether to fetch what ``plan.table()`` shows as keys. Without it there is no second job.

    Examples
    --------
    >>> from unskew.spark import plan_for, repartition
    >>> plan = plan_for(df, "word", workers=4)
    >>> plan.hot_keys[0].key, plan.hot_keys[0].share
    ('the', 0.9)
    >>> balanced = repartition(df, "word", workers=4, plan=plan)
    """
    require_batch(df)
    key_columns(df, keys)
    name, parameters = name_and_parameters(scheme)
    check_plannable(name, workers, **parameters)
    if not isinstance(scheme, str):
        require_same_workers("scheme", scheme.workers, workers)
    require_sample(sample)
    if decay is not None and not isinstance(decay, Decay):
        raise InputTypeError(f"decay: must be a Decay such as Decay(by='ts', epoch=3600), not {type(decay).__name__}")
    rows = df if sample is None else df.sample(sample, seed=0)
    if decay is None:
        frequencies = count_keys(rows, keys, workers)
    else:
        frequencies = count_keys_with_decay(rows, keys, workers, decay)
    plan = replace(make_plan(name, workers, frequencies, **parameters), key_columns=described_keys(df, keys))
    return fetch_names(rows, keys, plan) if names else plan


def name_and_parameters(scheme: str | Scheme) -> tuple[str, dict[str, Any]]:
    """What a plan is made of: the name of the scheme, and the parameters that an object brings."""
    if isinstance(scheme, str):
        return scheme, {}
    registration = registration_of(scheme)
    return registration.name, {name: getattr(scheme, name) for name in registration.parameters}


def require_same_workers(what: str, its: int, workers: int) -> None:
    """InputError unless a scheme or a plan is for so many workers."""
    if its != workers:
        raise InputError(f"workers: must be the {what}'s own {its}, not {workers}")


def require_plan_of(df: DataFrame, keys: str | Sequence[str], plan: Plan) -> None:
    """InputError where a plan was made for keys of another type; a warning where it was for another column."""
    if not plan.key_columns:
        return
    names, kinds = zip(*plan.key_columns, strict=True)
    our_names, our_kinds = zip(*described_keys(df, keys), strict=True)
    if kinds != our_kinds:
        raise InputError(
            f"plan: was made for keys of type {', '.join(kinds)}, not {', '.join(our_kinds)}, whose hashes are "
            "others, so that it would find none of its hot keys; cast the keys or make another plan"
        )
    if names != our_names:
        warn(
            f"plan: was made for the column {', '.join(names)} and is used for {', '.join(our_names)}; "
            "it only balances keys that are the same"
        )
