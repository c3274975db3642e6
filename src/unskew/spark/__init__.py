"""unskew on Spark: the scheme's decisions as an ordinary salt column. The only package that imports pyspark.

    from unskew.spark import repartition

    balanced = repartition(df, "word", workers=64)

Everything here takes and returns DataFrames or Columns, works with ``df.transform`` and with Spark Connect, and never
changes a setting of the session.
"""

from unskew.spark.aggregate import aggregate, apply_split
from unskew.spark.counting import Decay
from unskew.spark.feedback import Feedback
from unskew.spark.keys import key_id
from unskew.spark.planning import plan_for
from unskew.spark.routing import SALT, repartition, salted
from unskew.spark.skew import skew_report

__all__ = [
    "SALT",
    "Decay",
    "Feedback",
    "aggregate",
    "apply_split",
    "key_id",
    "plan_for",
    "repartition",
    "salted",
    "skew_report",
]
