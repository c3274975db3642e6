"""One local Spark for all tests of this folder, which are all marked `spark`."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from unskew.spark import QUICK_START

# Of every Spark that a test starts, also in a process of its own. The tables of tests, which are local ones, are not
# computed by Spark's optimiser, uncompiled, but by tasks, as users' data is.
JAVA_OPTIONS = [
    QUICK_START["spark.driver.extraJavaOptions"],
    f"-Dspark.python.daemon.module={QUICK_START['spark.python.daemon.module']}",
    "-Dspark.sql.optimizer.excludedRules=org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
]
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(JAVA_OPTIONS))

# Begun first, so that two processes which share the files end at about the same time.
LONGEST = [
    "test_retry",
    "test_stream_aggregate",
    "test_aggregate",
    "test_map_balanced",
    "test_docs",
    "test_apps_on_spark",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(ranks)))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    checkout = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("spark"))  # where Spark writes what has no folder in its name
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .config("spark.connect.grpc.binding.port", str(free_port()))  # of the Connect server, if a test starts it
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    os.chdir(checkout)
    yield session
    session.stop()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
