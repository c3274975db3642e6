"""`make bench`: all benchmarks, one after the other. The last takes some minutes."""

import os
from pathlib import Path

import cold_start
import heads
import kernels
import partitioning
import plans
import simulator
import spark_batch
import spark_costs
import spark_feedback
import spark_sockets
import spark_stream
import spark_stream_changes
import spark_uneven_work
import spark_whole_keys
import twitter

if __name__ == "__main__":
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # Python workers import functions of these files
    for benchmark in (
        kernels,
        heads,
        simulator,
        plans,
        partitioning,
        cold_start,
        spark_batch,
        spark_costs,
        spark_feedback,
        spark_sockets,
        spark_uneven_work,
        spark_whole_keys,
        spark_stream,
        spark_stream_changes,
        twitter,
    ):
        benchmark.main()
