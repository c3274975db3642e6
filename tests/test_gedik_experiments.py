"""Gedik's evaluation rerun: what is measured, what the grid is, and that every rule finds its numbers."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from unskew import Frequencies, InputError
from unskew.cli.reproduce import PAPERS
from unskew.experiments.claims import MARKS, NOT_TESTABLE
from unskew.experiments.gedik import PAPER, fig3, real
from unskew.experiments.gedik.counting import Count, Real
from unskew.experiments.gedik.setup import METHODS, OURS, Build, Case, counts_at, hot_keys, ids_at
from unskew.experiments.grid import Outcome, Outcomes
from unskew.experiments.paper import Picture, Settings
from unskew.partitioning import Objective, PartitionFunction, construct, imbalance, moves, relative_migration

NOWHERE = Path("no such folder")
QUICK, WHOLE = (Settings("gedik", NOWHERE, quick) for quick in (True, False))
FEW = 100  # keys


def outcomes_of(jobs):
    return Outcomes(Outcome(job, job.read(result.to_dict())) for job in jobs for result in job.run())


@pytest.mark.parametrize("resources", ["LCL", "LLL", "LQL"])
def test_what_is_measured_is_what_the_definitions_say(resources):
    """Entries on top of hashes that are measured once, against loads and moves of all keys."""
    keys, goal = 3000, Objective(resources)
    ranks = np.arange(1, keys + 1)
    everything = Frequencies(ids_at(ranks, 1), counts_at(ranks, 0.9, keys).astype(np.int64), 2 * 10**12)
    cases = tuple(Case(method, resources, z=0.9) for method in METHODS)
    found = {(each.algorithm, each.workers): each for each in Build("x", "x", keys, 1, cases, (4, 5)).run()}
    counted = hot_keys(keys, 1, 0.9, goal.delta(5, keys))
    for method in METHODS:
        function = PartitionFunction(1, cold="home" if method == "uniform" else "ring")
        for workers in range(2, 6):
            before = function
            if method in OURS:
                function = construct(before, counted, workers, goal, algorithm=method, keys=keys)
            else:
                function = PartitionFunction(workers, cold=function.cold)
            if workers >= 4:
                measured, moved = found[method, workers], moves(before, function, everything, goal)
                assert measured.b == pytest.approx(imbalance(function, everything, goal).overall)
                assert measured.m == pytest.approx(relative_migration(moved, workers, everything, goal))
                assert measured.entries == len(function.key_ids)


def test_each_run_has_other_keys():
    assert not set(ids_at(np.arange(1, 1000), 0).tolist()) & set(ids_at(np.arange(1, 1000), 1).tolist())


def test_the_lossy_counter_holds_all_that_the_explicit_map_needs():
    (measured,) = Count("x", "x", 20_000, 0, ((Case("redist"), 10),)).run()
    shares = counts_at(np.arange(1, 20_001), 1.0, 20_000) / 10**12
    delta = Objective().delta(10, 20_000)
    assert (shares > 1.5 * delta).sum() <= measured.entries <= (shares > 0.5 * delta).sum()
    assert measured.entries < measured.in_memory < 20_000


@pytest.mark.parametrize("experiment", [e for e in PAPER.experiments if e.name != "real"], ids=lambda e: e.name)
def test_every_rule_finds_its_numbers(experiment):
    jobs, seen = [], set()
    for job in experiment.jobs(QUICK):
        if (job.domain, job.cases) not in seen:  # one run is enough
            seen.add((job.domain, job.cases))
            jobs.append(job)
    small = outcomes_of(job._replace(domain=FEW) for job in jobs)
    renamed = Outcomes()  # as if the small domain were the one that the grid names
    for outcome, job in zip(small, (j for j in jobs for _ in range(len(small) // len(jobs))), strict=False):
        renamed.append(Outcome(outcome.job, outcome.result) if experiment.name != "fig8" else _with_keys(outcome, job))
    found = experiment.judged(renamed, QUICK)
    assert len({claim.id for claim in found}) == len(found) > 0
    assert {claim.verdict for claim in found} <= set(MARKS) - {NOT_TESTABLE}
    assert all(claim.why.startswith("Rule: ") for claim in found)
    for part in experiment.parts(renamed, QUICK):
        assert not isinstance(part, Picture) or part.figure.axes
    assert all(outcome.flat()["experiment"] == experiment.name for outcome in renamed)


def _with_keys(outcome, job):
    return Outcome(outcome.job, outcome.job.read(outcome.result.to_dict() | {"keys": job.domain}))


def test_a_real_stream_is_counted_in_its_first_half(tmp_path):
    keys = np.random.default_rng(0).zipf(1.5, 20_000) % 1000
    name = real.STREAMS[0]
    pa.parquet.write_table(pa.table({"ts": np.arange(20_000.0), "key": keys}), tmp_path / f"{name}.parquet")
    settings = Settings("gedik", tmp_path, True)
    (job,) = real.jobs(settings)
    assert isinstance(job, Real)
    found = real.EXPERIMENT.judged(outcomes_of([job]), settings)
    assert [claim.verdict == NOT_TESTABLE for claim in found] == [False, True, True, True, True]
    assert real.parts(outcomes_of([job]), settings)


def test_without_real_streams_their_claims_are_not_testable():
    assert real.jobs(QUICK) == []
    assert {claim.verdict for claim in real.EXPERIMENT.judged(Outcomes(), QUICK)} == {NOT_TESTABLE}


def test_a_quick_grid_is_a_smaller_grid_and_has_several_hash_functions():
    for experiment in PAPER.experiments:
        quick, full = (sum(job.cost for job in experiment.jobs(settings)) for settings in (QUICK, WHOLE))
        assert quick <= full, experiment.name
    assert len(fig3.jobs(QUICK)) == 3
    assert len(fig3.jobs(WHOLE)) == 5


def test_no_case_of_the_grid_is_measured_twice():
    for experiment in PAPER.experiments:
        for job in experiment.jobs(WHOLE):
            assert len(set(job.cases)) == len(job.cases), experiment.name


def test_the_paper_is_known_to_the_command():
    assert PAPERS["gedik"] is PAPER
    with pytest.raises(InputError, match=r"only: 'fig2' is not part of gedik; allowed are fig3, .*times, real"):
        PAPER.chosen(["fig2"])
