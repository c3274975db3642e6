"""The rerun of the POSG paper: its grid, its measures, and a small run of everything."""

import math

import numpy as np
import pytest

from committed import committed, ids
from unskew.cli.reproduce import PAPERS
from unskew.experiments.claims import DIFFERS, READING, REPRODUCED
from unskew.experiments.grid import Outcome, Outcomes
from unskew.experiments.paper import Picture, Settings
from unskew.experiments.posg import PAPER, fig5, fig9, fig10, setup
from unskew.experiments.posg.rules import printed_mean
from unskew.experiments.posg.setup import ALL, BOTH, IDLE, POSG, RR, Point, cells_of, jobs_of
from unskew.simulate import Delivery, simulate

PRINTED = {  # the numbers of the paper's text
    "fig4-mild": "1.06",
    "fig4-zipf1": "1.25",
    "fig5-peak": "1.26 at 102 %",
    "fig5-115": "1.07",
    "fig6-mean": "1.19",
    "fig7-mean": "1.19",
    "fig8-one": "1",
    "fig9-tenfold": "1.30 times",
    "fig10-leaves": "at tuple 10,690",
    "fig10-told": "after 9,912 tuples",
}


def settings(tmp_path, quick=True):
    return Settings("posg", tmp_path, quick)


def test_the_paper_is_known_to_the_command():
    assert PAPERS["posg"] is PAPER
    assert [experiment.name for experiment in PAPER.experiments] == [f"fig{number}" for number in range(4, 11)]


def test_the_whole_grid_has_100_streams_at_each_point(tmp_path):
    for experiment in PAPER.experiments:
        jobs = experiment.jobs(settings(tmp_path, quick=False))
        names = [job.data.partition(" #")[0] for job in jobs]
        assert {names.count(name) for name in names} == {100}
        assert len({(job.data, job.stream.seed) for job in jobs}) == len(jobs)
        assert all(job.stream.tuples == (150_000 if experiment.name == "fig10" else 32_768) for job in jobs)
        assert len(experiment.jobs(settings(tmp_path))) < len(jobs) / 10


def test_streams_are_those_of_section_v():
    point = Point(0.0)
    stream = point.stream(7)
    assert (stream.keys, stream.tuples, stream.values, stream.least, stream.most) == (4096, 32_768, 64, 0.001, 0.064)
    assert Point(0.0, over=102).queues.utilisation == pytest.approx(1 / 1.02)


@pytest.mark.parametrize(("epsilon", "columns"), [(0.05, 54), (1.0, 1), (0.001, 2718), (0.7, 4)])
def test_columns_are_those_that_the_paper_prints(epsilon, columns):
    """54 at 0.05 and one at 1 (section V); 4 at 0.70 (Fig. 1); 2718 is printed as 2781."""
    assert fig9.columns(epsilon) == columns


def small_outcomes(experiment, tmp_path):
    jobs = experiment.jobs(settings(tmp_path))
    return Outcomes(Outcome(job, result) for job in jobs for result in job.run())


@pytest.fixture
def one_stream(monkeypatch):
    monkeypatch.setattr(setup, "QUICK_STREAMS", 1)
    monkeypatch.setattr(fig10, "QUICK_STREAMS", 1)
    monkeypatch.setattr(setup, "TUPLES", 8192)


@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda experiment: experiment.name)
def test_every_claim_is_judged_and_every_picture_drawn(experiment, tmp_path, one_stream):
    outcomes = small_outcomes(experiment, tmp_path)
    found = experiment.judged(outcomes, settings(tmp_path))
    assert all(claim.verdict in (REPRODUCED, READING, DIFFERS) for claim in found)
    assert all(claim.why.startswith("Rule: ") for claim in found)
    for claim in found:
        assert claim.published == PRINTED.get(claim.id, claim.published)
    assert {claim.id for claim in found} >= {name for name in PRINTED if name.startswith(f"{experiment.name}-")}
    pictures = [part for part in experiment.parts(outcomes, settings(tmp_path)) if isinstance(part, Picture)]
    assert [picture.name for picture in pictures] == [experiment.name]


def test_the_committed_results_have_all_experiments_and_printed_numbers():
    found = committed("posg")
    assert list(found.experiments) == [experiment.name for experiment in PAPER.experiments]
    assert set(PRINTED) <= set(ids(found))


# ---------------------------------------------------------------- measures and rules


def cells_at(speed_ups, tmp_path, monkeypatch):
    """Cells at 100 % to 115 % whose mean completion times give these speed-ups: of POSG, and with idle time."""
    monkeypatch.setattr(setup, "QUICK_STREAMS", 2)
    points = [Point(x, over=x) for x in speed_ups]
    outcomes = Outcomes()
    for job in jobs_of("fig5", points, BOTH, settings(tmp_path)):
        of = dict(zip(BOTH, (1.0, *speed_ups[float(job.data.partition(" ")[0])]), strict=True))
        results = simulate(Point(0.0).stream(0, 10), job.schemes, queues=job.queues, samples=1)
        for name, result in zip(BOTH, results, strict=True):
            object.__setattr__(result, "latency_mean", 0.1 / of[name])
            outcomes.append(Outcome(job, result))
    return cells_of(outcomes, points, BOTH)


def test_a_speed_up_is_the_time_of_round_robin_over_that_of_the_scheme(tmp_path, monkeypatch):
    (cell,) = cells_at({100.0: (1.25, 2.0)}, tmp_path, monkeypatch)
    assert cell.time(RR) == pytest.approx(100.0)  # milliseconds
    assert cell.speed_up(POSG) == pytest.approx(1.25)
    assert cell.speed_ups(IDLE) == pytest.approx([2.0, 2.0])


@pytest.mark.parametrize(
    ("posg", "idle", "verdict"),
    [
        (1.21, 1.0, REPRODUCED),
        (1.29, 1.0, REPRODUCED),
        (1.19, 1.26, READING),
        (1.31, 1.31, DIFFERS),
        (1.0, 1.0, DIFFERS),
    ],
)
def test_a_printed_speed_up_is_met_within_a_twentieth_either_way(posg, idle, verdict, tmp_path, monkeypatch):
    cells = cells_at({100.0: (posg, idle)}, tmp_path, monkeypatch)
    found = printed_mean("id", "claim", 1.25, cells, "where")
    assert found.verdict == verdict
    assert found.reading


def test_the_peak_counts_only_at_its_place(tmp_path, monkeypatch):
    for place, verdict in ((102.0, REPRODUCED), (109.0, DIFFERS)):
        speed_ups = {x: (1.26 if x == place else 1.1, 1.0) for x in (95.0, 100.0, 102.0, 109.0, 115.0)}
        assert fig5._peak(cells_at(speed_ups, tmp_path, monkeypatch)).verdict == verdict


def test_tables_are_there_when_the_last_worker_has_sent_its_own():
    result = simulate(Point(0.0).stream(0, 10), [ALL[RR](5)], samples=1)[0]
    messages = [Delivery(100 * n, 0.0, n % 5, 0, "Matrices") for n in range(1, 12)]
    object.__setattr__(result, "messages", [*messages[:2], Delivery(250, 0.0, 4, 0, "Reply"), *messages[2:]])
    assert fig10.tables_from_all(result) == 500
    assert fig10.tables_from_all(result, after=600) == 1100
    assert fig10.tables_from_all(result, after=700) == math.inf
    assert np.isnan(fig10.mean_between(result, 0, 10))
