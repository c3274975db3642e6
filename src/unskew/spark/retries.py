"""Spark's net for salts that change when a task runs again: two settings, on by default since Spark 4.2."""

from pyspark.sql import SparkSession

from unskew.spark.frames import setting, warn

CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum"
RETRY_NET = (f"{CHECKSUM}.enabled", f"{CHECKSUM}.enableFullRetryOnMismatch")


def warn_without_retry_net(spark: SparkSession) -> None:
    """A warning, where rows are dealt by position or online and the net is off."""
    off = [name for name in RETRY_NET if setting(spark, name) != "true"]
    if off:
        warn(
            f"{' and '.join(off)}: not true. If the order of the input is not fixed, rows can be lost or doubled "
            "when Spark retries a task; see unskew.spark.repartition"
        )
