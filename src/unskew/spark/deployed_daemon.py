"""Spark's Python daemon for `unskew reproduce deployments`: as `prepared_daemon`, with all schemes that are deployed.

A worker that it forks has their kernels; else each of a hundred would load each of them.
"""

import pandas as pd  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import unskew.spark  # noqa: F401
from unskew import Router, key_ids, make, salts_for

SCHEMES = ("hash", "shuffle", "pkg", "d_choices", "w_choices", "fish", "cg")

if __name__ == "__main__":
    ids = key_ids(["word"])
    for name in SCHEMES:
        salts_for(ids, Router(make(name, 2)).route(ids), 2)  # loads the compiled kernels
    manager()
