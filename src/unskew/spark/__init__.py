"""unskew on Spark: the scheme's decisions as an ordinary salt column. The only package that imports pyspark.

from unskew.spark import salted

routed = salted(df, "word", workers=16).repartition(16, "word", "__unskew_salt")

Everything here takes and returns DataFrames or Columns, works with ``df.transform`` and with Spark Connect, and never
changes a setting of the session.
"""

from unskew.spark.keys import key_id
from unskew.spark.routing import SALT, salted

__all__ = ["SALT", "key_id", "salted"]
