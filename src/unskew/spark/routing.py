"""Rows to workers: `salted` adds the salt that makes Spark place a row as a scheme chose, `repartition` places it."""

import warnings
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame

from unskew.checks import require_workers
from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.plan import Plan
from unskew.registry import lookup, make, registration_of
from unskew.spark.anchors import anchored
from unskew.spark.feedback import Feedback
from unskew.spark.keys import as_compared, column, key_columns, key_id, key_names, setting
from unskew.spark.online import with_online_salt
from unskew.spark.plan_column import salt_of, with_joined_salt
from unskew.spark.planning import dealing, plan_for

SALT = "__unskew_salt"
MODES = ("auto", "planned", "online")
CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum"
RETRY_NET = (f"{CHECKSUM}.enabled", f"{CHECKSUM}.enableFullRetryOnMismatch")


def salted(
    df: DataFrame,
    keys: str | Sequence[str],
    workers: int,
    scheme: str | Scheme | Feedback = "fanout",
    *,
    mode: str = "auto",
    plan: Plan | None = None,
    deal: str | None = None,
    sample: float | None = None,
    salt: str = SALT,
) -> DataFrame:
    """`df` with one more int column, the salt, that makes Spark put each row on the worker that the scheme chose.

    The next shuffle must be on the keys and the salt, into `workers` partitions; partition w then is worker w:

        salted(df, "word", 16).repartition(16, "word", "__unskew_salt")

    A ``groupBy`` on the keys and the salt lands the same way when ``spark.sql.shuffle.partitions`` is `workers`. A key
    may now be on several workers, so what they compute for it has to be merged afterwards.

    `keys` are names of columns, `scheme` the name of a scheme with its default parameters, a scheme object such as
    ``PartialKey(16, choices=3)``, or a `Feedback`. There are two ways to the salt; `mode` "auto" takes the first that
    the scheme has, and online with a `Feedback`.

    **planned**: the hot keys are counted (one Spark job, now; `sample` counts a share of the rows only), a plan says
    which workers each is split over, and the salt is a native column. Give a `plan` and nothing runs before you ask for
    the result. The rows of a hot key are dealt over its workers by `deal`:

    - ``"content"``, the default where there are other columns than the keys: by hash of these. A row's salt depends on
      the row alone, so a retried task writes what it wrote before. Rows that are equal in all columns stay together: if
      most rows of a hot key are, it is not balanced; then name a column that differs, or deal by position.
    - a column's name: by hash of that column, safe in the same way.
    - ``"position"``, the default where there are only keys: in turn. Always even; see the risk below.

    **online**: each task of the stage is one source with a live router: it starts empty, sees its own rows only, and
    routes them in the order in which they come. Only the key id travels to Python and only the salt comes back; all
    other columns stay in the JVM. Executors need unskew installed.

    **At risk when a task is retried**, online and by position: rows that come in another order get other salts. When
    the order of the input is not fixed (it comes from a shuffle, not from files), and Spark runs a map task again after
    some of its output was read, a row can arrive twice or never. Spark notices by a checksum and runs the whole stage
    again if ``spark.sql.shuffle.orderIndependentChecksum.enabled`` and ``.enableFullRetryOnMismatch`` are true, as they
    are by default since Spark 4.2. We warn when they are not.
    """
    _check_salt(df, salt)
    routed, value = _routed(df, keys, workers, scheme, salt, mode, plan, deal, sample)
    return routed if salt in routed.columns else routed.withColumn(salt, value)


def repartition(
    df: DataFrame,
    keys: str | Sequence[str],
    workers: int,
    scheme: str | Scheme | Feedback = "fanout",
    *,
    mode: str = "auto",
    plan: Plan | None = None,
    deal: str | None = None,
    sample: float | None = None,
) -> DataFrame:
    """`df` in `workers` balanced partitions: partition w has the rows of worker w, and no column is added.

    Rows of a hot key may be in several partitions. See `salted` for `mode`, `plan`, `deal` and `sample`, for what runs
    now, and for what is at risk when a task is retried.
    """
    _check_salt(df, SALT)
    routed, value = _routed(df, keys, workers, scheme, SALT, mode, plan, deal, sample)
    return shuffled(routed, workers, scheme, *key_columns(df, keys), value).drop(SALT)


def shuffled(df: DataFrame, workers: int, scheme: str | Scheme | Feedback, *by: Column | str) -> DataFrame:
    """``df.repartition(workers, *by)``, with partitions where they were in the last run if a `Feedback` asks for it."""
    comes_back = isinstance(scheme, Feedback) and scheme.anchored
    return anchored(df, workers, *by) if comes_back else df.repartition(workers, *by)


def _routed(
    df: DataFrame,
    keys: str | Sequence[str],
    workers: int,
    scheme: str | Scheme | Feedback,
    salt: str,
    mode: str,
    plan: Plan | None,
    deal: str | None,
    sample: float | None,
) -> tuple[DataFrame, Column]:
    """A DataFrame, and the salt of its rows: an expression, or a column called `salt` that was added to `df`."""
    require_workers(workers)
    columns = key_columns(df, keys)
    scheme, mode, start = _told(scheme, mode, plan)
    if _mode(scheme, mode, plan) == "online":
        if deal is not None or sample is not None:
            raise InputError("deal: deal and sample are for mode 'planned', and this is mode 'online'")
        live = make(scheme, workers) if isinstance(scheme, str) else scheme
        _check_workers("scheme", live.workers, workers)
        live.check()
        _warn_without_retry_net(df)
        return with_online_salt(df, key_id(*columns), live, salt, start), column(salt)
    turn, by_position = dealing(df, key_names(keys), deal)
    if plan is None:
        name, parameters = _name_and_parameters(scheme, workers)
        plan = plan_for(df, keys, workers, name, sample=sample, names=False, **parameters)
    _check_workers("plan", plan.workers, workers)
    if plan.hot_keys and by_position:
        _warn_without_retry_net(df)
    value = salt_of(columns, turn, plan)
    if value is None:
        return with_joined_salt(df, columns, turn, plan, salt), column(salt)
    return df, value


def _told(scheme: str | Scheme | Feedback, mode: str, plan: Plan | None) -> tuple[str | Scheme, str, bytes | None]:
    """The scheme, the mode and what routers start with, where the scheme may be one to which workers have told."""
    if not isinstance(scheme, Feedback):
        return scheme, mode, None
    if mode not in ("auto", "online") or plan is not None:
        raise InputError("mode: what workers tell is for live routers, so it must be 'online', without a plan")
    return scheme.router.scheme, "online", scheme.router.to_bytes()


def _mode(scheme: str | Scheme, mode: str, plan: Plan | None) -> str:
    """ "planned" or "online", after every reason to refuse the combination."""
    if mode not in MODES:
        raise InputError(f"mode: must be one of {', '.join(MODES)}, not {mode!r}")
    if plan is not None:
        if mode == "online":
            raise InputError("mode: a plan is given, so it must be 'auto' or 'planned', not 'online'")
        return "planned"
    entry = lookup(scheme) if isinstance(scheme, str) else registration_of(scheme)
    fitted = entry.offline and not isinstance(scheme, str)  # has its table already, and can only look it up
    able = ("online",) if fitted else entry.modes
    if not able:
        make(entry.name, 1)  # says that an offline scheme must be made with fit
    if mode != "auto" and mode not in able:
        raise InputError(f"mode: {entry.name} can be {' or '.join(able)}, not {mode!r}")
    return able[0] if mode == "auto" else mode


def _name_and_parameters(scheme: str | Scheme, workers: int) -> tuple[str, dict[str, Any]]:
    if isinstance(scheme, str):
        return scheme, {}
    _check_workers("scheme", scheme.workers, workers)
    entry = registration_of(scheme)
    return entry.name, {name: getattr(scheme, name) for name in entry.parameters}


def _check_workers(what: str, its: int, workers: int) -> None:
    if its != workers:
        raise InputError(f"workers: must be the {what}'s own {its}, not {workers}")


def _check_salt(df: DataFrame, salt: str) -> None:
    taken, (new,) = as_compared(df.sparkSession, df.columns), as_compared(df.sparkSession, [str(salt)])
    if not isinstance(salt, str) or not salt or new in taken:
        raise InputError(f"salt: must be the name of a new column, not {salt!r}; taken are {', '.join(df.columns)}")


def _warn_without_retry_net(df: DataFrame) -> None:
    off = [name for name in RETRY_NET if setting(df.sparkSession, name) != "true"]
    if off:
        warnings.warn(
            f"{' and '.join(off)}: not true. If the order of the input is not fixed, rows can be lost or doubled "
            "when Spark retries a task; see unskew.spark.salted",
            stacklevel=4,
        )
