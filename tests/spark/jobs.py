"""Whether Spark has run a job."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import SparkSession


@contextmanager
def no_job(spark: SparkSession) -> Iterator[None]:
    """An AssertionError if a job runs within it."""
    context, group = spark.sparkContext, uuid4().hex
    context.setJobGroup(group, "must not be there")  # to list all jobs of a long run takes a tenth of a second
    try:
        yield
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
    assert not context.statusTracker().getJobIdsForGroup(group)
