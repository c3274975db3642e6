"""Online routing: a live Router in each task of the stage before the shuffle writes the salt of every row."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import IntegerType

from unskew.contract import Scheme
from unskew.hashing import salts_for
from unskew.registry import adopt, registration_of
from unskew.spark.messages import KnownSources
from unskew.spark.streaming.router_files import RouterFiles
from unskew.spark.tasks import spare_what_is_loaded, task_number


def with_online_salt(
    df: DataFrame,
    identity: Column,
    scheme: Scheme,
    salt: str,
    start: bytes | None = None,
    files: RouterFiles | None = None,
) -> DataFrame:
    """`df` with the salt that a router, one for each task, gives to each row. `identity` is the key id.

    `start` is what the routers begin with (see `Router.to_bytes`), `files` where those of a stream go on from one
    micro-batch to the next; without both, they begin empty.
    """

    registration = registration_of(scheme)  # travels with the task: a scheme of the user's own is not known there

    def route(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        spare_what_is_loaded()
        adopt(registration)
        source = task_number()
        router = (KnownSources({}, start) if files is None else files).router(scheme, source)
        for batch in batches:
            ids = batch.to_numpy().view(np.uint64)
            yield pa.array(salts_for(ids, router.route(ids), scheme.workers))
        if files is not None:
            files.keep(router, source)

    # Nondeterministic, so that the optimizer neither runs the UDF twice nor moves a filter across it.
    router_udf = arrow_udf(route, IntegerType()).asNondeterministic()
    return df.withColumn(salt, router_udf(identity))
