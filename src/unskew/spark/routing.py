"""Online routing: a live Router in each task of the stage before the shuffle writes the salt of every row."""

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import IntegerType

from unskew.errors import InputError
from unskew.hashing import salts_for
from unskew.scheme import Router, Scheme, make, registration_of, require_workers
from unskew.spark.keys import key_columns, key_id

SALT = "__unskew_salt"
CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum"
RETRY_NET = (f"{CHECKSUM}.enabled", f"{CHECKSUM}.enableFullRetryOnMismatch")


def salted(
    df: DataFrame, keys: str | Sequence[str], workers: int, scheme: str | Scheme = "pkg", salt: str = SALT
) -> DataFrame:
    """`df` with one more int column, the salt, that makes Spark put each row on the worker that the scheme chose.

    The next shuffle must be on the keys and the salt, into `workers` partitions; partition w then is worker w:

        salted(df, "word", 16).repartition(16, "word", "__unskew_salt")

    A ``groupBy`` on the keys and the salt lands the same way when ``spark.sql.shuffle.partitions`` is `workers`. A key
    may now be on several workers, so what they compute for it has to be merged afterwards.

    `keys` are names of columns, `scheme` the name of an online scheme with its default parameters, or a scheme object
    such as ``PartialKey(16, choices=3)``. Each task of the stage is one source: it starts with an empty router, sees
    its own rows only, and routes them in the order in which they come. Only the key id travels to Python and only the
    salt comes back; all other columns stay in the JVM. Executors need unskew installed.

    **At risk when a task is retried.** An online scheme decides by what came before, so rows that come in another order
    get other salts. When the order of the input is not fixed (it comes from a shuffle, not from files), and Spark runs
    a map task again after some of its output was read, a row can arrive twice or never. Spark notices by a checksum and
    runs the whole stage again if ``spark.sql.shuffle.orderIndependentChecksum.enabled`` and
    ``.enableFullRetryOnMismatch`` are true, as they are by default since Spark 4.2. We warn when they are not.
    """
    chosen = _checked(scheme, workers)
    columns = key_columns(df, keys)
    taken = [name for name in df.columns if name.lower() == str(salt).lower()]  # Spark ignores case by default
    if not isinstance(salt, str) or not salt or taken:
        raise InputError(f"salt: must be the name of a new column, not {salt!r}; taken are {', '.join(df.columns)}")
    _warn_without_retry_net(df)

    def route(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        router = Router(chosen)
        for batch in batches:
            ids = batch.to_numpy().view(np.uint64)
            yield pa.array(salts_for(ids, router.route(ids), workers))

    # Nondeterministic, so that the optimizer neither runs the UDF twice nor moves a filter across it.
    router_udf = arrow_udf(route, IntegerType()).asNondeterministic()
    return df.withColumn(salt, router_udf(key_id(*columns)))


def _checked(scheme: str | Scheme, workers: int) -> Scheme:
    """The scheme object, with every reason to refuse it found here and not in a task."""
    require_workers(workers)
    if isinstance(scheme, str):
        return make(scheme, int(workers))
    registration_of(scheme)
    scheme.check()
    if scheme.workers != workers:
        raise InputError(f"workers: must be the scheme's own {scheme.workers}, not {workers}")
    return scheme


def _warn_without_retry_net(df: DataFrame) -> None:
    off = [name for name in RETRY_NET if df.sparkSession.conf.get(name) != "true"]
    if off:
        warnings.warn(
            f"{' and '.join(off)}: not true. If the order of the input is not fixed, rows can be lost or doubled "
            "when Spark retries a task; see unskew.spark.salted",
            stacklevel=3,
        )
