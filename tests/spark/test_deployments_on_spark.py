"""Deployments in small: workers that sleep, on the two task threads of the tests."""

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from unskew import InputError, PartialKey, Shuffle
from unskew.experiments.deployments import gedik, posg
from unskew.experiments.deployments.running import run_deployed
from unskew.experiments.deployments.setup import Deployment
from unskew.experiments.kept_passes import KeptPasses
from unskew.schemes.cg import ConsistentGrouping
from unskew.service import Service
from unskew.spark import place_at, serve, source_rows
from unskew.streams import Zipf

STREAM = Zipf(1.0, 50, 200)


def test_rows_are_done_in_order_by_the_workers_that_they_name(spark: SparkSession, tmp_path: Path) -> None:
    keys, chosen = np.arange(60), np.arange(60, dtype=np.int32) % 2
    rows = source_rows(spark, keys, np.full(60, 0.002), 2, chosen)
    found = serve(lambda: place_at(rows, 2), Service(2, rate=1000.0), tmp_path)
    assert found.worker.tolist() == chosen.tolist()
    assert (found.finished >= 0.001 * np.arange(60) + 0.002 - 1e-6).all()  # not before they come, and not for nothing
    for worker in (0, 1):
        assert (np.diff(found.finished[chosen == worker]) > 0).all()
    assert 0 < found.starting < found.wall
    assert not list(tmp_path.iterdir())


def test_a_worker_without_rows_does_not_hold_up_the_others(spark: SparkSession, tmp_path: Path) -> None:
    rows = source_rows(spark, np.arange(10), np.full(10, 0.001), 1, np.zeros(10, np.int32))
    assert set(serve(lambda: place_at(rows, 2), Service(2), tmp_path).worker.tolist()) == {0}


def test_all_kinds_of_jobs_run(spark: SparkSession, tmp_path: Path) -> None:
    """A scheme that does not listen, one that does, mentions with a source that hears, and a job that gets a worker."""
    jobs = [
        Deployment("x", "p", "PKG", PartialKey(2), STREAM, 0.001, Service(2, rate=500.0, pending=20), 0, sources=2),
        Deployment("x", "p", "CG", ConsistentGrouping(2), STREAM, 0.001, Service(2, speeds=(0.3, 1.0)), 0, 2, 1, 100),
        posg.Enrichment("x", "k=2", "RR", Shuffle(2), rounds=1, seed=0, rows=20),
    ]
    done: list[int] = []
    outcomes = run_deployed(spark, jobs, done.append, KeptPasses(tmp_path, [], tmp_path))
    assert sum(done) == len(jobs)
    assert [outcome.result.rows for outcome in outcomes] == [200, 200, 40]
    assert [outcome.result.told for outcome in outcomes] == [0, 1, 0]
    assert all(outcome.result.makespan > 0 and outcome.result.latency_mean > 0 for outcome in outcomes)


@pytest.mark.slow
def test_a_worker_is_added_while_the_job_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gedik, "WORKERS", 1)
    for kind in (gedik.UNIFORM, gedik.READJ):
        job = gedik.Adding("x", "vwap", kind, 0, 0, rows=50, rounds=1, history=500)
        before, during, after = job.run(spark, tmp_path)
        assert [each.workers for each in (before, during, after)] == [1, 2, 2]
        assert 0 < before.moved < 2


def test_too_few_task_threads_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    job = Deployment("x", "p", "SG", Shuffle(3), STREAM, 0.001, Service(3), 0)
    with pytest.raises(InputError, match=r"^master: must be local\[3\] or more, a task thread per worker, not local"):
        run_deployed(spark, [job], lambda done: None, KeptPasses(tmp_path, [], tmp_path))
