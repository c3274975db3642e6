"""The session of a command that runs on any Spark, and what Spark raises: so that commands need not import pyspark."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from unskew.errors import InputError
from unskew.spark.background import run_watched
from unskew.spark.local import QUICK_START, local_spark, require_java

SPARK_ERRORS = (PySparkException, Py4JJavaError)  # what Spark raises in a query
MASTERS = {"local": "local[N]", "spark://": "spark://host:port", "yarn": "yarn", "k8s://": "k8s://https://host:port"}


def session_on(master: str, settings: Mapping[str, str] | None = None) -> AbstractContextManager[SparkSession]:
    """The active session, or a new one on `master` that ends with the ``with`` block. A bad master is refused now.

    `settings` are for a local Spark.
    """
    if not master.startswith(tuple(MASTERS)):  # Spark would say the same, but late and with a long trace
        raise _no_master(master)
    return _session_on(master, settings or {})


@contextmanager
def _session_on(master: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    with ExitStack() as closing:
        try:
            session = _start(master, settings, closing)
        except (PySparkException, Py4JError):
            raise _no_master(master) from None
        yield session


def _start(master: str, settings: Mapping[str, str], closing: ExitStack) -> SparkSession:
    """A session on `master`, which stops with `closing`."""
    if master.startswith("local"):
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="unskew-")))
        return closing.enter_context(local_spark(folder, {**QUICK_START, "spark.master": master, **settings}))
    require_java()
    session = run_watched(SparkSession.builder.master(master).appName("unskew reproduce").getOrCreate)
    closing.callback(session.stop)
    return session


def _no_master(master: str) -> InputError:
    return InputError(f"master: Spark does not start on {master!r}; allowed are {', '.join(MASTERS.values())}")
