"""Rows to workers: `add_salt` adds the salt that makes Spark place a row as a scheme chose, `repartition` places it."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from unskew.contract import Scheme
from unskew.plan import Plan
from unskew.spark.feedback import Feedback
from unskew.spark.route import SALT, Route, require_new_column
from unskew.spark.streaming.adaptive import Adaptive


def repartition(
    df: DataFrame,
    keys: str | Sequence[str],
    workers: int,
    scheme: str | Scheme | Feedback | None = None,
    *,
    mode: str = "auto",
    plan: Plan | Adaptive | None = None,
    deal: str | None = None,
    sample: float | None = None,
) -> DataFrame:
    """`df` in `workers` balanced partitions: partition w has the rows of worker w. No column is added.

    Like ``df.repartition(workers, *keys)``, but the rows of a hot key may be in several partitions, so what is computed
    for it there has to be merged: see `aggregate` and `apply_split`. Bad input is refused before any job.

    Parameters
    ----------
    df
        The rows. A stream needs a plan, or a scheme that runs online.
    keys
        The name of the key column, or a list of names.
    workers
        How many partitions.
    scheme
        A name such as "pkg", an object such as ``PartialKey(16, choices=3)``, or a `Feedback`. "scan", "redist" and
        "readj" split no key, and place hot keys whole (see `unskew.partitioning`). Left out, it is the one of the plan,
        and "fanout" where there is no plan.
    mode
        "planned": the hot keys are counted now, in one Spark job; a plan says over which workers each is dealt; the
        salt is a native column. "online": each task before the shuffle has a live router, which starts empty, sees the
        rows of its task only, and routes them in the order in which they come. Only key ids travel to Python and only
        salts come back; executors need unskew. "auto": planned if the scheme can be, else online, as with a `Feedback`.
    plan
        A plan made before, by `plan_for` or ``Plan.load``. Then nothing is counted, and nothing runs now. For a stream
        also ``Adaptive(checkpoint)``: a plan that is made anew after each micro-batch.
    deal
        How the rows of a hot key are dealt over its workers. "content": by hash of all columns but the keys. The name
        of a column: by its hash. "position": by the number of the row in its task, which is always even; but see the
        notes. By content or by a column, rows that are equal there stay together, so that a hot key with few contents
        is not balanced. Where the keys are counted, this is noticed: you are warned, and `deal` left out means
        "position" then, as it does if there are no columns but the keys; else it means "content". Where a plan is
        given, nothing is counted and nothing noticed.
    sample
        Count only this share of the rows, such as 0.1.

    Notes
    -----
    Online and by position, rows that come in another order get other salts. If the order of the input is not fixed (it
    comes out of a shuffle, not from files), and Spark runs a map task again after some of its output was read, a row
    can arrive twice or never. Spark notices by a checksum and runs the whole stage again if
    ``spark.sql.shuffle.orderIndependentChecksum.enabled`` and ``.enableFullRetryOnMismatch`` are true, the default
    since Spark 4.2. We warn when they are not.

    Examples
    --------
    >>> from unskew.spark import repartition
    >>> balanced = repartition(df, "word", workers=4)
    >>> balanced.columns
    ['word', 'v']
    """
    return Route(df, keys, workers, scheme, mode, plan, deal, sample).place()


def add_salt(
    df: DataFrame,
    keys: str | Sequence[str],
    workers: int,
    scheme: str | Scheme | Feedback | None = None,
    *,
    mode: str = "auto",
    plan: Plan | Adaptive | None = None,
    deal: str | None = None,
    sample: float | None = None,
    salt: str = SALT,
) -> DataFrame:
    """`df` with one more int column, the salt, that makes Spark put each row on the worker that the scheme chose.

    The next shuffle must be on the keys and the salt, into `workers` partitions; partition w then is worker w. A
    ``groupBy`` on the keys and the salt lands the same way when ``spark.sql.shuffle.partitions`` is `workers`.

    Parameters
    ----------
    df, keys, workers, scheme, mode, plan, deal, sample
        As in `repartition`.
    salt
        The name of the new column.

    Examples
    --------
    >>> from unskew.spark import add_salt
    >>> add_salt(df, "word", workers=4, salt="salt").repartition(4, "word", "salt").columns
    ['word', 'v', 'salt']
    """
    require_new_column(df, salt)
    return Route(df, keys, workers, scheme, mode, plan, deal, sample).with_salt(salt)
