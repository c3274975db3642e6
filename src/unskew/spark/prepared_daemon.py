"""Spark's Python daemon with unskew imported: each worker that it forks is ready at once, instead of a second later.

A command with many workers on few cores names it in ``spark.python.daemon.module``. Spark runs it as a program.
"""

import pandas as pd  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import unskew.spark  # noqa: F401

if __name__ == "__main__":
    manager()
