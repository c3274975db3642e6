"""`Variance` and `StdDev` of a stream, merged by Spark's own streaming aggregation (see `aggregates.exact_moments`)."""

import math

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from unskew.aggregates import StdDev, Variance
from unskew.aggregates.exact_moments import FIELDS, PLAIN, exact_states, variances
from unskew.aggregates.states import STATE
from unskew.spark.mapping import Batches, CountingWork, CountKeys, arrow_schema
from unskew.spark.phases import Phases

EXACT = StructType([StructField(str(i), DoubleType() if i in (1, 2) else LongType()) for i in range(FIELDS)])


def with_exact_moments(phases: Phases) -> tuple[CountingWork, StructType]:
    """Phase 1, and the schema of what it puts out, with the states of variances as columns that can be summed."""
    phase_1 = phases.add_rows()
    exact = [STATE.format(i) for i, each in enumerate(phases.results.values()) if isinstance(each, Variance)]
    if not exact:
        return phase_1, phases.partial
    fields = [StructField(field.name, EXACT) if field.name in exact else field for field in phases.partial]
    schema = arrow_schema(StructType(fields))

    def with_exact(batches: Batches, count: CountKeys | None = None) -> Batches:
        for batch in phase_1(batches, count):
            columns = [
                exact_states(values) if name in exact else values
                for name, values in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, batch.schema.names).cast(schema)

    return with_exact, StructType(fields)


def merged_moments(state: Column) -> Column:
    """The sums of all states: a struct of the plain ones and an array of limbs."""
    sums = [F.sum(state[str(i)]) for i in range(FIELDS)]
    plain = [each.alias(str(i)) for i, each in enumerate(sums[:PLAIN])]
    return F.struct(*plain, F.array(*sums[PLAIN:]).alias("limbs"))


def finished_moments(aggregate: Variance, merged: Column) -> Column:
    """The result of what `merged_moments` found."""
    sample, root = aggregate.sample, isinstance(aggregate, StdDev)

    def finish(sums: pa.Array) -> pa.Array:
        count, totals, squares, limbs = sums.flatten()
        rows = limbs.flatten().to_numpy().reshape(-1, FIELDS - PLAIN)
        found = variances(count.to_numpy(), totals.to_numpy(), squares.to_numpy(), rows, sample=sample)
        return pa.array([math.sqrt(each) if root and each is not None else each for each in found], pa.float64())

    return arrow_udf(finish, DoubleType())(merged)
