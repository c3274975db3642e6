"""Exact when an executor dies: run on a real cluster of two executors, one of which is killed in mid-shuffle.

The job routes 200,000 rows to eight workers. When five of these are done, the sixth kills its executor, which takes map
output along: map tasks run again, and the workers that are left read what they write this time. If a row then has
another salt than before, it arrives twice or never. Each case leaves marks in a folder of its own: one file per run of
a map task, one for the kill; without both, a case would prove nothing.

Run as a script, this file is the driver of that cluster: it runs a group of cases and writes a JSON of the outcomes.
"""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew.spark import SALT, add_salt, map_balanced, plan_for
from unskew.spark.retries import RETRY_NET
from unskew.streams import Zipf

pytestmark = pytest.mark.timeout(1800)  # of a group, all cases run before the first test

ROWS, MAPS, W, KILLER = 200_000, 8, 8, 5
SCHEMA = "key bigint, id bigint"
TRIES = 3  # of the salts that are known to fail: they need not do so each time

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Case:
    salts: str  # a key of `routings`
    source: str  # "file": rows have an order; "shuffle": they come as they are fetched
    net: bool  # whether Spark's checksum settings are on, as they are by default

    def __str__(self) -> str:
        return f"{self.salts} from a {self.source}, net {'on' if self.net else 'off'}"


@dataclass
class Outcome:
    rows: int
    distinct: int
    total: int
    map_runs: int
    killed: bool
    warned: list[str] = field(default_factory=list)

    @property
    def exact(self) -> bool:
        return (self.rows, self.distinct, self.total) == (ROWS, ROWS, ROWS * (ROWS - 1) // 2)


ALWAYS_EXACT = [Case("content", "file", False)]
ALWAYS_EXACT += [Case(salts, "shuffle", False) for salts in ("content", "column", "cost")]
EXACT_BY_ORDER = [Case(salts, "file", False) for salts in ("position", "online", "cost by position")]
EXACT_BY_NET = [Case(salts, "shuffle", True) for salts in ("position", "online", "cost by position", "rand")]
WRONG = Case("rand", "shuffle", False)
CASES = [*ALWAYS_EXACT, *EXACT_BY_ORDER, *EXACT_BY_NET, WRONG]
GROUPS = {  # each is run by a cluster of its own; a case takes ten seconds, so that most are left to `make soak`
    "often": [ALWAYS_EXACT[1]],
    "seldom": [ALWAYS_EXACT[0], *ALWAYS_EXACT[2:], *EXACT_BY_ORDER, *EXACT_BY_NET, WRONG],
}


def each_of(cases: list[Case]) -> pytest.MarkDecorator:
    marked = [pytest.param(case, marks=pytest.mark.slow if case in GROUPS["seldom"] else ()) for case in cases]
    return pytest.mark.parametrize("case", marked, ids=str)


@pytest.fixture(scope="module")
def outcome_of_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], Outcome]:
    @cache
    def outcomes(group: str) -> dict[str, Outcome]:
        folder = tmp_path_factory.mktemp("cluster")
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, __file__, str(folder), group]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr[-5000:]
        return {name: Outcome(**found) for name, found in json.loads((folder / "outcomes.json").read_text()).items()}

    def outcome(case: Case) -> Outcome:
        (group,) = [name for name, cases in GROUPS.items() if case in cases]
        return outcomes(group)[str(case)]

    return outcome


@each_of(CASES)
def test_map_tasks_ran_again_because_their_executor_was_killed(
    case: Case, outcome_of_case: Callable[[Case], Outcome]
) -> None:
    assert outcome_of_case(case).killed
    assert outcome_of_case(case).map_runs > MAPS


@each_of(ALWAYS_EXACT)
def test_dealt_by_content_or_by_a_column_it_is_exact_without_any_net(
    case: Case, outcome_of_case: Callable[[Case], Outcome]
) -> None:
    assert outcome_of_case(case).exact, outcome_of_case(case)
    assert outcome_of_case(case).warned == []


@each_of(EXACT_BY_ORDER)
def test_by_position_and_online_it_warns_without_the_net_and_is_exact_if_rows_have_an_order(
    case: Case, outcome_of_case: Callable[[Case], Outcome]
) -> None:
    assert outcome_of_case(case).exact, outcome_of_case(case)
    (warning,) = outcome_of_case(case).warned
    assert "rows can be lost or doubled when Spark retries a task" in warning
    assert all(name in warning for name in RETRY_NET)


@each_of(EXACT_BY_NET)
def test_with_the_net_it_is_exact_also_if_rows_come_in_any_order(
    case: Case, outcome_of_case: Callable[[Case], Outcome]
) -> None:
    assert outcome_of_case(case).exact, outcome_of_case(case)
    assert outcome_of_case(case).warned == []


@pytest.mark.slow
def test_random_salts_lose_and_double_rows_without_the_net(outcome_of_case: Callable[[Case], Outcome]) -> None:
    outcome = outcome_of_case(WRONG)
    if outcome.exact:
        pytest.skip(f"rows came in the same order again in {TRIES} tries, so that no salt changed")
    assert outcome.distinct < ROWS


# ---------------------------------------------------------------- on the cluster


def routings(df: DataFrame) -> dict[str, Callable[[DataFrame], DataFrame]]:
    """Ways to salt, or to place at once. `df` is what plans are made from: the rows of all cases are the same."""
    plan = plan_for(df, "key", W)
    assert plan.hot_keys
    return {
        "content": lambda rows: add_salt(rows, "key", W, plan=plan),
        "column": lambda rows: add_salt(rows, "key", W, plan=plan, deal="id"),
        "position": lambda rows: add_salt(rows, "key", W, plan=plan, deal="position"),
        "online": lambda rows: add_salt(rows, "key", W, "pkg", mode="online"),
        "cost": lambda rows: map_balanced(rows, same, SCHEMA, W, "1 + key % 7"),
        "cost by position": lambda rows: map_balanced(rows, same, SCHEMA, W, "1 + key % 7", deal="position"),
        "rand": lambda rows: rows.withColumn(SALT, (F.rand(seed=1) * W).cast("int")),
    }


def same(batches: Batches) -> Batches:
    yield from batches


def outcome_of(case: Case, salt: Callable[[DataFrame], DataFrame], source: DataFrame, marks: Path) -> Outcome:
    """Run the job of one case, with its kill."""

    def marked(batches: Batches) -> Batches:
        (marks / f"map-{uuid4()}").touch()
        yield from batches

    def killing(batches: Batches) -> Batches:
        killed = marks / "killed"
        if task_number() == KILLER and not killed.exists():
            killed.touch()
            os.kill(parent_of(os.getppid()), signal.SIGKILL)  # of this process: the daemon of Python, then the executor
        yield from batches

    def task_number() -> int:
        context = TaskContext.get()
        assert context is not None
        return context.partitionId()

    def parent_of(process: int) -> int:
        return int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(process)]))

    spark = source.sparkSession
    wait_for_both_executors(spark)
    marks.mkdir()
    for name in RETRY_NET:
        spark.conf.set(name, str(case.net).lower())
    rows = source if case.source == "file" else source.repartition(MAPS, "id")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        routed = salt(rows.mapInArrow(marked, SCHEMA))
    for mark in marks.glob("map-*"):  # of a job that added up costs
        mark.unlink()
    placed = routed.repartition(W, "key", SALT).select("key", "id") if SALT in routed.columns else routed
    reduced = placed.mapInArrow(killing, SCHEMA)
    (row,) = reduced.agg(F.count("id"), F.count_distinct("id"), F.sum("id")).collect()
    texts = [str(warning.message) for warning in warned if "unskew" in str(warning.message)]
    return Outcome(*row, len(list(marks.glob("map-*"))), (marks / "killed").exists(), texts)


def wait_for_both_executors(spark: SparkSession) -> None:
    """The cluster starts another executor for each that died."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    until = time.monotonic() + 60
    while len(tracker.getExecutorInfos()) < 3:  # the driver counts as one
        assert time.monotonic() < until, "no second executor within a minute"
        time.sleep(0.1)


def main(folder: Path, cases: list[Case]) -> None:
    (keys,) = (chunk.keys for chunk in Zipf(1.2, 1_000, ROWS).chunks(ROWS))
    (folder / "rows").mkdir()
    for part, ids in enumerate(np.array_split(np.arange(ROWS), MAPS)):
        pq.write_table(pa.table({"key": keys[ids], "id": ids}), folder / "rows" / f"{part}.parquet")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": folder / "spark",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.sql.files.minPartitionNum": MAPS,
        "spark.sql.shuffle.partitions": 2,
        "spark.locality.wait": "0s",  # so that both executors get tasks of each stage
        "spark.shuffle.io.maxRetries": 1,  # a dead executor does not answer: no need to ask for 15 s
        "spark.shuffle.io.retryWait": "100ms",
        "spark.executor.memory": "1g",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # they do not live long
        "spark.driver.memory": "1g",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config(
        map={k: str(v) for k, v in settings.items()}
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    source = spark.read.parquet(str(folder / "rows"))
    assert source.rdd.getNumPartitions() == MAPS
    salts = routings(source)
    outcomes = {}
    for number, case in enumerate(cases):
        for attempt in range(TRIES if case == WRONG else 1):
            started = time.perf_counter()
            outcome = outcome_of(case, salts[case.salts], source, folder / f"case-{number}-{attempt}")
            print(f"{time.perf_counter() - started:4.1f} s  {case}: {outcome}", flush=True)
            if not outcome.exact:
                break
        outcomes[str(case)] = asdict(outcome)
    spark.stop()
    (folder / "outcomes.json").write_text(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), GROUPS[sys.argv[2]])
