"""Spark's Python daemon with unskew imported: each worker that it forks is ready at once, instead of seconds later.

A command with many workers on few cores names it in ``spark.python.daemon.module``. Spark runs it as a program.
"""

import pandas as pd  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import unskew.spark  # noqa: F401
from unskew import Router, key_ids, make, salts_for


def run_prepared(*schemes: str) -> None:
    """Fork Spark's workers, which then have the compiled kernels of these schemes."""
    ids = key_ids(["word"])
    for name in schemes:
        salts_for(ids, Router(make(name, 2)).route(ids), 2)
    manager()


if __name__ == "__main__":
    run_prepared("pkg")
