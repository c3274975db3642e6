"""A local Spark for our own commands: Java checked first, silent on the terminal, nothing left behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from unskew.errors import InputError
from unskew.spark.background import run_watched

LEAST_JAVA = 17
# For a Spark of a minute, or with work for Python only: halves what Java costs on two cores. Compiled so lightly, Java
# would make do with 48 MB of code, which is full after some minutes: from then on it compiles the same things again.
QUICK_START = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
    "spark.python.daemon.module": "unskew.spark.prepared_daemon",
}
GRACE = 10.0  # seconds in which Spark's process has to end by itself
INSTALL_JAVA = (
    "type: sudo apt-get install -y openjdk-17-jre-headless (Debian, Ubuntu; or openjdk-21-jre-headless) or "
    'brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)" (macOS)'
)


@contextmanager
def local_spark(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A Spark of this process on all cores, which is gone at the end. Its files and its log are in `folder`.

    Only for commands that own their process: a session of the user's is never touched by anything else in unskew.
    """
    require_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable  # it must have unskew
    os.environ.pop("SPARK_HOME", None)  # our pyspark brings its own Spark
    conf = SparkConf().setAll(
        [
            ("spark.master", "local[*]"),
            ("spark.app.name", "unskew"),
            ("spark.driver.host", "127.0.0.1"),
            ("spark.driver.bindAddress", "127.0.0.1"),
            ("spark.local.dir", str(folder)),
            ("spark.sql.warehouse.dir", str(folder / "warehouse")),
            ("spark.ui.enabled", "false"),
            ("spark.ui.showConsoleProgress", "false"),
            *(settings or {}).items(),
        ]
    )
    gateway = None
    try:
        with _interrupts_later():
            gateway = _launch(conf, folder / "spark.log")
        context = run_watched(lambda: SparkContext(conf=conf, gateway=gateway))
        context._accumulatorServer.handle_error = _say_nothing
        session = SparkSession(context)
        try:
            yield session
        except Exception:
            session.stop()
            raise
        else:
            session.stop()
    finally:  # after Ctrl-C too: then nothing more is said to Spark, which may wait for the rest of a sentence
        if gateway is not None:
            _end(gateway)


def _launch(conf: SparkConf, log: Path) -> Any:
    with log.open("wb") as file:  # Spark's process keeps it as its standard error
        try:
            return launch_gateway(conf, popen_kwargs={"stderr": file})
        except PySparkRuntimeError:
            last = (log.read_text(errors="replace").strip().splitlines() or ["it says nothing"])[-1]
            raise InputError(f"spark: a local Spark does not start: {last}") from None


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C within it counts at its end: a process that has been started must be known, or it cannot be ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _say_nothing(request: Any, address: Any) -> None:
    """The server that collects accumulators prints a traceback where Spark's process ends before it."""


def _end(gateway: Any) -> None:
    """End the process of Spark, which cleans up and ends by itself when its standard input does."""
    process = gateway.proc
    # else py4j may ask a dead Java to free an object, and print an error
    gateway._gateway_client.is_connected = False
    process.stdin.close()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None  # else the next SparkContext of this process would talk to it


def require_java() -> None:
    """InputError, with the line to type, unless a Java that can run Spark is there."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or shutil.which(java) is None:
        where = f"in JAVA_HOME ({home})" if home else "on this machine"
        raise InputError(f"java: Spark needs Java {LEAST_JAVA} or newer, and there is none {where}; {INSTALL_JAVA}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version and int(version[1]) < LEAST_JAVA:
        raise InputError(f"java: Spark needs Java {LEAST_JAVA} or newer, not {version[1]} ({java}); {INSTALL_JAVA}")
