"""The deployments: what is measured of a run, the grid, and that every rule finds its numbers. Without Spark."""

import math
from pathlib import Path

import numpy as np
import pytest

from unskew import key_ids
from unskew.experiments.claims import DIFFERS, MARKS, NOT_TESTABLE, REPRODUCED
from unskew.experiments.deployments import PAPER, cg, gedik, metrics, pkg, posg, posg_change
from unskew.experiments.deployments.metrics import Measured, measured, moments_of_arrival, pairs_of, spells
from unskew.experiments.deployments.rules import TOO_LATE
from unskew.experiments.deployments.running import TASK_THREADS
from unskew.experiments.deployments.setup import keys_of
from unskew.experiments.evaluation import evaluate
from unskew.experiments.grid import Outcome, Outcomes
from unskew.experiments.paper import Picture, Settings
from unskew.experiments.report import write_report, write_results
from unskew.partitioning import PartitionFunction, moves
from unskew.schemes.posg import Posg
from unskew.streams import Zipf

NOWHERE = Path("no such folder")
QUICK, WHOLE = (Settings("deployments", NOWHERE, quick) for quick in (True, False))


def a_run(worker, finished, held=None, sent=None):
    rows = len(worker)
    zeros = np.zeros(rows, np.int64)
    return metrics.Outcome(
        np.array(worker),
        np.array(finished, float),
        np.zeros(rows),
        zeros if held is None else np.array(held),
        zeros if sent is None else np.array(sent),
        starting=1.5,
        wall=9.0,
    )


def test_rows_come_at_a_rate():
    assert moments_of_arrival(np.array([5.0, 6.0, 7.0]), rate=2.0).tolist() == [0.0, 0.5, 1.0]
    assert moments_of_arrival(np.array([5.0, 6.0, 7.0])).tolist() == [0.0, 0.0, 0.0]


def test_rows_come_when_enough_of_those_before_are_done():
    """With two on their way, row 2 comes when one is done, which is row 1 at 3; row 3 when two are, row 0 at 4."""
    assert moments_of_arrival(np.array([4.0, 3.0, 5.0, 6.0]), pending=2).tolist() == [0.0, 0.0, 3.0, 4.0]
    assert moments_of_arrival(np.array([4.0, 3.0]), pending=2).tolist() == [0.0, 0.0]


def test_a_run_is_told_by_throughput_latency_and_memory():
    keys = np.array([1, 1, 2, 1])
    found = measured("KG", 3, 0, keys, a_run([0, 0, 1, 1], [1.0, 2.0, 1.5, 4.0]), rate=1.0)
    assert (found.rows, found.makespan, found.throughput) == (4, 4.0, 1.0)
    assert found.latency_mean == pytest.approx(np.mean([1.0, 1.0, -0.5, 1.0]))
    assert found.busiest == pytest.approx(2 / (4 / 3))
    assert found.replicas == 3
    assert (found.starting, found.wall) == (1.5, 9.0)


def test_counters_are_averaged_over_workers_and_counted_once_per_worker():
    run = a_run([0, 0, 1], [1.0, 2.0, 1.0], held=[1, 3, 4], sent=[0, 5, 2])
    found = measured("PKG", 2, 0, np.array([1, 2, 3]), run)
    assert found.held == pytest.approx((2 + 4) / 2)
    assert found.sent == 5 + 2


def test_pairs_of_worker_and_key():
    assert pairs_of(np.array([0, 0, 1, 1], np.int32), np.array([5, 5, 5, 6])) == 3


def test_spells_of_work_and_of_idleness():
    """Worker 0: done with everything before at -1; its row came at 0 and ended at 2, its next at 1 and ended at 3;
    nothing to do until 5. Worker 1 had no row."""
    seconds, waited, last = spells(
        np.array([0, 0, 0]), np.array([2.0, 3.0, 6.0]), np.array([0.0, 1.0, 5.0]), np.array([-1.0, -0.5])
    )
    assert seconds.tolist() == [2.0, 1.0, 1.0]
    assert waited.tolist() == [1.0, 0.0, 2.0]
    assert last.tolist() == [6.0, -0.5]


def test_other_repetitions_have_other_keys_with_the_same_frequencies():
    stream = Zipf(1.0, 100, 1000)
    one, other = keys_of(stream, 0), keys_of(stream, 1)
    assert not set(one.tolist()) & set(other.tolist())
    assert sorted(np.unique(one, return_counts=True)[1]) == sorted(np.unique(other, return_counts=True)[1])


def test_state_that_moves_keeps_both_ends_busy():
    ids = key_ids(["a", "b"])
    counted = gedik.Frequencies(ids, [30, 10], 40)
    before = PartitionFunction(2, ids, [0, 1])
    found = moves(before, before.with_entries(ids, [1, 1]), counted, gedik.GOAL)
    share = 30 / (40 / 2)  # of one worker's part of the state
    assert gedik.moving_seconds(found, 2, 40.0) == pytest.approx((share * gedik.MOVING, share * gedik.MOVING))


def test_posg_learns_from_measured_rounds_and_then_knows_its_workers():
    """Rounds in which every row takes what it costs, without Spark."""
    source, generator = posg.Source(Posg(2, window=64)), np.random.default_rng(0)
    assert source.learns
    for _ in range(20):
        keys = generator.integers(0, 5, 400)
        ids = key_ids(keys)
        chosen, tickets = source.router.send(ids)
        finished = np.empty(len(keys))
        for worker in (0, 1):
            mine = chosen == worker
            finished[mine] = np.cumsum(0.001 * (1 + keys[mine]))
        source.hear_of(keys, chosen, finished, np.zeros(len(keys)), tickets)
        if not source.learns:
            break
    assert not source.learns
    assert source.told > 0


def made_up(job, seed):
    """What a run might have found, for rules that have to find their numbers."""
    generator = np.random.default_rng(seed)
    some = {name: float(generator.uniform(1, 2)) for name in ("throughput", "latency_mean", "latency_p50")}
    found = [("", getattr(job, "repetition", 0))]
    if isinstance(job, gedik.Adding):
        found = [(phase, job.repetition) for phase in gedik.PHASES]
    if isinstance(job, posg_change.Unfolding):
        found = [("", number) for number in range(posg_change.TUPLES // posg_change.ROUND)]
    return [
        Measured(
            kind=job.kind,
            phase=phase,
            workers=job.task_threads,
            repetition=repetition,
            rows=1000,
            makespan=1.0,
            latency_p99=3.0,
            busiest=1.2,
            replicas=100,
            held=10.0,
            sent=5,
            late_p99=0.001,
            starting=1.0,
            wall=3.0,
            moved=1.0,
            keys_moved=0.1,
            told=5,
            **some,
        )
        for phase, repetition in found
    ]


def outcomes_of(experiment, settings):
    jobs = experiment.jobs(settings)
    return Outcomes(Outcome(job, result) for number, job in enumerate(jobs) for result in made_up(job, number))


@pytest.mark.parametrize("settings", [QUICK, WHOLE], ids=["quick", "whole"])
@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda e: e.name)
def test_every_rule_finds_its_numbers(experiment, settings):
    outcomes = outcomes_of(experiment, settings)
    found = experiment.judged(outcomes, settings)
    assert len({claim.id for claim in found}) == len(found) > 0
    assert all(claim.id.startswith(experiment.name.partition("-")[0]) for claim in found)
    assert {claim.verdict for claim in found} <= set(MARKS)
    assert all(claim.why.startswith("Rule: ") for claim in found if claim.verdict != NOT_TESTABLE)
    assert all(
        isinstance(part.figure.axes, list) for part in experiment.parts(outcomes, settings) if isinstance(part, Picture)
    )
    assert all(outcome.flat()["experiment"] == experiment.name for outcome in outcomes)


@pytest.mark.parametrize(("kg", "pkg_rate", "verdict"), [(40.0, 63.0, REPRODUCED), (40.0, 40.0, DIFFERS)])
def test_a_loss_of_throughput_is_judged_by_its_median(kg, pkg_rate, verdict):
    """From 100 to 40 is the printed loss of 60 %, from 100 to 63 that of 37 %."""
    after = {pkg.KG: kg, pkg.PKG: pkg_rate, pkg.SG: pkg_rate}
    outcomes = Outcomes()
    for job in pkg.jobs(QUICK):
        slow = job.data == pkg.delay_point(pkg.MOST)
        (result,) = made_up(job, 0)
        values = result.to_dict() | {"throughput": after[job.kind] if slow else 100.0}
        outcomes.append(Outcome(job, Measured(**values)))
    found = {finding.id: finding for finding in pkg.claims(outcomes, QUICK)}
    assert found["pkg-fig10a"].verdict == verdict


def test_nothing_is_judged_where_workers_woke_up_too_late():
    (experiment,) = PAPER.chosen(["cg"])
    busy = Outcomes(
        Outcome(outcome.job, Measured(**outcome.result.to_dict() | {"late_p99": TOO_LATE + 0.001}))
        for outcome in outcomes_of(experiment, QUICK)
    )
    found = experiment.judged(busy, QUICK)
    assert {claim.verdict for claim in found} == {NOT_TESTABLE}
    assert all("too busy: workers woke up to 21 ms late" in claim.why for claim in found)


def test_everything_is_written(tmp_path):
    outcomes = Outcomes(o for experiment in PAPER.experiments for o in outcomes_of(experiment, WHOLE))
    write_results(tmp_path, outcomes)
    found = evaluate(PAPER, WHOLE, PAPER.experiments, outcomes)
    page = write_report(tmp_path, PAPER, WHOLE, PAPER.experiments, outcomes, found)
    assert page.read_text(encoding="utf-8").count("<svg") == 8
    assert (tmp_path / "results.md").read_text(encoding="utf-8") == found.markdown()
    assert (tmp_path / "posg-fig11.svg").exists()


def test_schemes_of_a_repetition_get_the_same_stream_and_take_turns():
    for experiment in (pkg, cg):
        jobs = experiment.jobs(WHOLE)
        kinds = len(experiment.KINDS)
        first = jobs[:kinds]
        assert [job.kind for job in first] == list(experiment.KINDS)
        assert len({(job.stream, job.repetition) for job in first}) == 1
        assert jobs[0].stream != next(job for job in jobs if job.repetition == 1).stream


def test_a_quick_grid_is_a_smaller_grid():
    for experiment in PAPER.experiments:
        assert len(experiment.jobs(QUICK)) < len(experiment.jobs(WHOLE)), experiment.name


def test_every_job_fits_into_the_task_threads():
    assert all(job.task_threads <= TASK_THREADS for experiment in PAPER.experiments for job in experiment.jobs(WHOLE))


def test_rates_are_those_that_the_papers_imply():
    """KG saturates at 0.4 ms on 10 workers of which the busiest has 17.8 % of the words; ten times as slow here."""
    assert round(pkg.RATE, 1) == 1404.5
    assert math.isclose(pkg.PENDING, (11.01e-3 * 8000 + 19.35e-3 * 5618) / 2, rel_tol=0.02)
    assert len(cg.SPEEDS[cg.LIMITED]) == cg.WORKERS
