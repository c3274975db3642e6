"""Spark's Python daemon with unskew imported: each worker that it forks is ready at once, instead of seconds later.

A command with many workers on few cores names it in ``spark.python.daemon.module``. Spark runs it as a program.
"""

import pandas as pd  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import unskew.spark  # noqa: F401
from unskew import PartialKey, Router, key_ids, salts_for

if __name__ == "__main__":
    ids = key_ids(["word"])
    salts_for(ids, Router(PartialKey(workers=2)).route(ids), 2)  # loads the compiled kernels
    manager()
