"""The rerun of the CG paper: its grid, its rules in made-up worlds, a tiny run of everything, and PoRC's bound."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from committed import committed, ids
from unskew import Hash, InputError, PartialKey, Router, Scheme, Shuffle
from unskew.cli.reproduce import PAPERS
from unskew.experiments.cg import PAPER, cluster, fig4, fig10, fig11, readings, real, section6, setup, storm
from unskew.experiments.cg.cluster import RATE, Machines, Window, drained, grows, settled
from unskew.experiments.claims import DIFFERS, NOT_TESTABLE, READING, REPRODUCED
from unskew.experiments.grid import Job, Outcome, Outcomes
from unskew.experiments.paper import Experiment, Picture, Settings
from unskew.registry import registration_of
from unskew.schemes.bounded import BoundedLoads
from unskew.schemes.cg import ConsistentGrouping
from unskew.schemes.porc import RandomChoices
from unskew.simulate import Queues, QueueSample, Result, Sample, simulate
from unskew.streams import Zipf
from unskew.streams.stream import Generated

NEVER = {"fig10-spike", "fig15-latency"}  # claims that no simulation can judge
COUNTED = {"section6-bins", "section6-everywhere", "aggregation"}  # not from a grid: made-up worlds do not reach them
SHORT = 2_000  # tuples
NOWHERE = Path("no-such-folder")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Short files in the place of the real streams."""
    keys = pa.array([f"key {n % 7}" if n % 3 else "hot" for n in range(SHORT)])
    for name in real.STREAMS:
        pq.write_table(pa.table({"key": keys, "ts": pa.array(range(SHORT), pa.int64())}), tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything on the first tuples only."""
    monkeypatch.setattr(setup, "QUICK_WP", SHORT)
    monkeypatch.setattr(setup, "QUICK_DAY", SHORT)
    monkeypatch.setattr(fig4, "QUICK_TUPLES", SHORT)
    monkeypatch.setattr(fig11, "QUICK_TUPLES", SHORT)
    monkeypatch.setattr(real, "LONG_ENOUGH", SHORT)
    monkeypatch.setattr(storm, "QUICK_TUPLES", SHORT)
    monkeypatch.setattr(section6, "TUPLES", SHORT)
    monkeypatch.setattr(section6, "QUICK_AGGREGATED", SHORT)


def settings(data: Path, quick: bool = True) -> Settings:
    return Settings("cg", data, quick)


# ---------------------------------------------------------------- the grid


def grid(name: str, quick: bool) -> list[Job]:
    return PAPER.chosen([name])[0].jobs(settings(NOWHERE, quick))


@pytest.mark.parametrize("quick", [True, False])
def test_the_grid_has_all_that_the_paper_varies(quick: bool) -> None:
    skews = fig4.QUICK_SKEWS if quick else fig4.SKEWS
    cells = {
        (fig4.skew(setup.Cell(job.data, 0, {})), scheme.workers)
        for job in grid("fig4", quick)
        for scheme in job.schemes
    }
    assert cells == {(z, n) for z in skews for n in (10, 100, 1000)}
    assert all(len(job.schemes) == len(setup.KINDS) for job in grid("fig4", quick) + grid("fig7", quick))
    assert {scheme.workers for job in grid("fig7", quick) for scheme in job.schemes} == {50, 100, 500, 1000}
    assert {scheme.workers for job in grid("fig8", quick) for scheme in job.schemes} == {5, 10, 50, 100}
    assert {(job.schemes[0].workers, job.sources) for job in grid("fig11", quick)} == {
        (w, s) for w in (5, 10, 50, 100) for s in (1, 10, 50, 100)
    }
    assert {scheme.virtual for job in grid("fig12", quick) for scheme in job.schemes} == {
        *(5, 10, 20, 50, 100, 1000),
    }
    for name in ("fig10", "fig12", "fig13"):
        assert {job.stream.length for job in grid(name, quick)} == {22_000_000 // (4 if quick else 1)}
    changes = {int(event.split()[0].removeprefix("t=")) for job in grid("fig13", quick) for event in job.events}
    assert changes == {tuples // (4 if quick else 1) for tuples in (6_000_000, 12_000_000)}
    strong = {Machines(y, z) for y in (1, 3, 5, 7, 9) for z in (2.0, 5.0, 10.0)}
    assert quick or set(fig10.MACHINES) == strong
    assert cluster.UNEQUAL in fig10.QUICK_MACHINES


def test_no_run_of_the_grid_is_made_twice(data: Path) -> None:
    for experiment in PAPER.experiments:
        jobs = experiment.jobs(settings(data, quick=False))
        outcomes = [
            (job.data, registration_of(s).name, s, job.sources, job.queues, job.events)
            for job in jobs
            for s in job.schemes
        ]
        assert len(set(outcomes)) == len(outcomes), experiment.name


def test_a_quick_grid_is_a_smaller_grid(data: Path) -> None:
    for experiment in PAPER.experiments:
        quick, full = (experiment.jobs(settings(data, kind)) for kind in (True, False))
        assert sum(job.cost for job in quick) <= sum(job.cost for job in full), experiment.name


def test_the_paper_is_known_to_the_command() -> None:
    assert PAPERS["cg"] is PAPER
    with pytest.raises(
        InputError, match=r"only: 'fig5' is not part of cg; allowed are fig4, section6, .*fig13, storm, real"
    ):
        PAPER.chosen(["fig5"])


def test_without_real_streams_their_claims_are_not_testable() -> None:
    chosen = settings(NOWHERE)
    assert real.jobs(chosen) == []
    found = real.EXPERIMENT.judged(Outcomes(), chosen)
    assert {claim.verdict for claim in found} == {NOT_TESTABLE}
    assert all("absent" in claim.why for claim in found)
    assert "No real stream" in str(real.parts(Outcomes(), chosen)[0])


def test_the_total_capacity_is_the_same_whoever_is_strong() -> None:
    for machines in (*fig10.MACHINES, cluster.ALL_ALIKE):
        capacity = Queues(capacity=machines.capacity(10)).capacities(10)
        assert capacity.sum() == pytest.approx(RATE / 0.8)
        assert capacity.max() == pytest.approx(machines.times * capacity.min())
        assert (capacity > capacity.min() * 1.01).sum() == machines.strong


@pytest.mark.parametrize(("swing", "most", "fewest"), [(0.2, (5, 6), (17, 18)), (-0.2, (17, 18), (5, 6))])
def test_a_daily_cycle_has_as_many_tuples_as_the_day_had(swing: float, most: Any, fewest: Any) -> None:
    day = readings.Daily(Zipf(0, 10, 8_640, rate=0.1), swing, seconds=86_400)
    times = np.concatenate([chunk.times for chunk in day.chunks()])
    assert (np.diff(times) > 0).all()
    assert times[0] == 0
    assert times[-1] == pytest.approx(86_400, rel=1e-3)
    hourly = np.histogram(times, bins=24, range=(0, 86_400))[0]
    assert hourly.argmax() in most
    assert hourly.argmin() in fewest
    assert hourly.max() == pytest.approx(1.2 * 360, rel=0.02)
    assert hourly.min() == pytest.approx(0.8 * 360, rel=0.02)


def test_each_reading_is_judged_beside_the_paper_as_printed() -> None:
    runs = {readings.PRINTED: 3, readings.EXECUTED: 1, readings.NIGHT: 5}
    found = readings.judged(runs, lambda number: number > 4, str)
    assert found["verdict"] == READING
    assert found["measured_so"] == "executed, rule does not hold: 1; quiet hours first, rule holds: 5"
    assert found["reading"].startswith("(executed) utilisation is what was executed")
    assert readings.judged(runs, lambda number: number > 2, str)["verdict"] == REPRODUCED
    assert readings.judged(runs, lambda number: number > 9, str)["verdict"] == DIFFERS


# ---------------------------------------------------------------- when it settled


def window(hour: int, imbalance: float = 0.0, queue: int = 0) -> Window:
    return Window(3600.0 * hour, 3600.0 * (hour + 1), queue, float(queue), 2 * imbalance, imbalance)


def test_settled_is_from_when_on_it_stays_near_zero() -> None:
    day = [window(hour, 0.5 if hour in (0, 1, 5) else 0.05) for hour in range(12)]
    assert settled(day, 0, 5 * 3600) == 2 * 3600
    assert settled(day, 0, 12 * 3600) == 6 * 3600
    assert settled(day, 0, 6 * 3600) is None
    assert settled(day, 3 * 3600, 5 * 3600) == 0
    queued = [window(hour, queue=1000 if hour < 3 else 10) for hour in range(12)]
    assert drained(queued, 0, 12 * 3600) == 3 * 3600


def test_growing_is_from_third_to_third() -> None:
    assert grows([window(hour, queue=hour) for hour in range(12)], lambda w: w.queue)
    assert not grows([window(hour, queue=min(hour, 6)) for hour in range(12)], lambda w: w.queue)


# ---------------------------------------------------------------- the rules, in made-up worlds


class Fate(NamedTuple):
    """What becomes of a scheme in a made-up world."""

    over: float = 0.0  # normalised imbalance, also of utilisation
    memory: float = 1.0
    backlog: int = 0  # tuples in the queue at the end, from the start in proportion
    calm_after: float = 1.0  # share of a phase after which the utilisation is balanced
    latency: float = 1.0
    speed: float = 1.0  # throughput, as a share of what all workers together can do


World = Callable[[Job, Any], Fate]


def as_published(job: Job, scheme: Any) -> Fate:
    """A world in which every statement of the paper holds."""
    n = scheme.workers
    hot = float(job.data[2:]) if job.data.startswith("z=") else 1.0
    if job.experiment == "storm" and not isinstance(scheme, ConsistentGrouping):
        fates = {Hash: (1.0, 1 / 3.44), PartialKey: (1.2, 1.0), Shuffle: (2.0, 1.0)}
        memory, speed = fates[type(scheme)]
        return Fate(memory=memory, speed=speed)
    if isinstance(scheme, Hash):
        return Fate(hot * n, 1.0, 1_000_000)
    if isinstance(scheme, PartialKey):
        balanced = job.queues is not None and n <= 10
        return Fate(0.0 if balanced else hot * n / 3, 1.05)
    if isinstance(scheme, RandomChoices):
        return Fate(scheme.epsilon, 1.1)
    if isinstance(scheme, BoundedLoads):
        return Fate(scheme.epsilon, 1.3)
    if isinstance(scheme, ConsistentGrouping):
        return grouped(scheme)
    unequal = job.queues is not None and job.queues.capacity != cluster.ALL_ALIKE.capacity(n)
    return Fate(0.5 if unequal else 0.0, 4.0, 500_000 if unequal else 0)  # SG and PoTC


def grouped(scheme: ConsistentGrouping) -> Fate:
    if scheme.ring:
        return Fate(scheme.epsilon, 1.3)
    if not scheme.keyed:
        return Fate(1e-5, 4.0)
    if scheme.epsilon == np.inf:
        return Fate(1.0, 1.0)
    fates = {1: (1.0, 0.9), 2: (1.0, 0.9), 5: (1.0, 9.0), 100: (0.1, 0.5), 1000: (0.4, 5.0)}
    calm, latency = fates.get(scheme.virtual, (0.05, 0.5))
    return Fate(scheme.epsilon / 10, 1.2 - scheme.epsilon / 100, 10, calm, latency)


def all_otherwise(job: Job, scheme: Any) -> Fate:
    """A world in which nothing is as the paper has it."""
    n = scheme.workers
    if isinstance(scheme, Hash):
        return Fate(0.1, 2.0)
    if isinstance(scheme, PartialKey):
        return Fate(0.5, 2.5)
    if isinstance(scheme, RandomChoices):
        return Fate(0.5, 5.0)
    if isinstance(scheme, BoundedLoads) or (isinstance(scheme, ConsistentGrouping) and scheme.ring):
        return Fate(0.5, 4.5)
    if isinstance(scheme, ConsistentGrouping):
        epsilon = min(scheme.epsilon, 10.0)
        fates = {2: (1.0, 3.0), 5: (0.1, 1.0), 10: (1.0, 4.0), 20: (0.3, 1.0), 100: (1.0, 9.0), 1000: (0.0, 1.0)}
        calm, latency = fates.get(scheme.virtual, (1.0, 1.0)) if n < 100 else (1.0, 1.0)
        single = job.sources == 1
        return Fate(
            (11 - epsilon) * (1 if single else 9), 5 + epsilon + (0 if single else 40) + n, 10**7, calm, latency
        )
    return Fate(0.5, 1.2)


def made_up(some: Result, job: Job, scheme: Scheme, world: World) -> Result:
    fate = world(job, scheme)
    name = registration_of(scheme).name
    params = {name: value for name, value in scheme._asdict().items() if name != "workers"}  # type: ignore[attr-defined]
    tuples = job.stream.length or 1
    slack = tuples / scheme.workers
    over = fate.over + (
        2 / slack if (name in ("porc", "bounded") or params.get("ring")) and world is all_otherwise else 0.0
    )
    return replace(
        some,
        scheme=name,
        params=params,
        workers=scheme.workers,
        sources=job.sources,
        tuples=tuples,
        imbalance=over * slack,
        max_over_mean=1 + over,
        replicas_over_kg=fate.memory,
        latency_mean=fate.latency,
        latency_max=fate.latency,
        samples=[Sample(tuples, 0.0, over * slack, 0)],
        queue_samples=None if job.queues is None else day_of(job, scheme, fate, tuples),
    )


def day_of(job: Job, scheme: Any, fate: Fate, tuples: int) -> list[QueueSample]:
    steps = 220
    changes = [int(event.split()[0].removeprefix("t=")) / tuples for event in job.events]
    ends = [0, *(round(steps * share) for share in changes), steps]
    listens = isinstance(scheme, ConsistentGrouping)
    sample = some_sample()
    settled_from_start = job.experiment == "fig9"  # where all workers are alike
    made = []
    for step in range(1, steps + 1):
        start = max(end for end in ends if end < step)
        phase = next(end for end in ends if end >= step) - start
        calm = listens and (step - start) > fate.calm_after * phase
        over = (0.01 if calm else 0.5) if listens and not settled_from_start else fate.over
        queue = round(fate.backlog * step / steps)
        made.append(
            sample._replace(
                tuples=tuples * step // steps,
                time=tuples * step / steps / RATE,
                done=tuples * step // steps,
                stalled=tuples * step / steps / RATE * (1 / fate.speed - 1),
                longest_queue=queue,
                longest_wait=float(queue),
                recent_utilisation_max=0.8 + over,
            )
        )
    return made


@cache
def some_sample() -> QueueSample:
    (result,) = simulate(Zipf(0, 10, 16), [Hash(1)], queues=Queues(utilisation=0.8))
    assert result.queue_samples is not None
    return result.queue_samples[-1]._replace(shortest_queue=0, shortest_wait=0.0, recent_utilisation_mean=0.8)


def verdicts(data: Path, world: World) -> dict[str, str]:
    some = simulate(Zipf(1.0, 10, 1), [Hash(1)])[0]
    chosen, found = settings(data), {}
    for experiment in PAPER.experiments:
        jobs = experiment.jobs(chosen)
        outcomes = Outcomes(Outcome(job, made_up(some, job, scheme, world)) for job in jobs for scheme in job.schemes)
        found |= {claim.id: claim.verdict for claim in experiment.judged(outcomes, chosen)}
    return found


def test_every_claim_is_reproduced_where_all_is_as_published(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "LONG_ENOUGH", SHORT)
    found = verdicts(data, as_published)
    assert {id for id, verdict in found.items() if verdict == NOT_TESTABLE} == NEVER
    assert {id for id, verdict in found.items() if verdict == DIFFERS} <= COUNTED
    assert READING not in found.values()


def test_every_claim_differs_where_nothing_is_as_published(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "LONG_ENOUGH", SHORT)
    found = verdicts(data, all_otherwise)
    assert {id for id, verdict in found.items() if verdict in (REPRODUCED, READING)} <= COUNTED


def test_the_committed_results_have_all_claims_in_order(data: Path) -> None:
    assert ids(committed("cg")) == list(verdicts(data, as_published))
    assert list(committed("cg").experiments) == [experiment.name for experiment in PAPER.experiments]


def test_a_stream_that_is_too_short_to_settle_is_not_judged(data: Path) -> None:
    found = verdicts(data, as_published)
    assert {found[f"real-{name}-cg"] for name in real.STREAMS} == {NOT_TESTABLE}


# ---------------------------------------------------------------- PoRC's bound, on every stream of the grid


@pytest.mark.parametrize("bins", [10, 100, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_porc_is_within_its_bound_at_every_moment_on_every_stream(data: Path, bins: int, epsilon: float) -> None:
    """I(t) < epsilon t/n + 1: CG, section VI-A, but for whole tuples."""
    chosen = settings(data, quick=False)
    streams = {job.stream for experiment in PAPER.experiments for job in experiment.jobs(chosen)}
    streams = {stream for stream in streams if not isinstance(stream, readings.Daily)}  # the same keys at other times
    assert len(streams) == len(fig4.SKEWS) + 2 + 2 * len(real.STREAMS)  # WP and TW; the real ones also shuffled
    for stream in streams:
        part = replace(stream, tuples=20_000) if isinstance(stream, Generated) else stream  # type: ignore[call-arg]
        ids = np.concatenate([chunk.key_ids() for chunk in part.chunks()])
        chosen_bins = Router(RandomChoices(bins, epsilon)).route(ids)
        moments = np.arange(1, len(ids) + 1)
        highest = np.maximum.accumulate(_load_after(chosen_bins, bins))
        assert ((highest - 1) * bins < (1 + epsilon) * moments).all(), stream  # in whole numbers where it can be


def _load_after(chosen: Any, bins: int) -> Any:
    """The load of each tuple's bin, the tuple included."""
    order = np.argsort(chosen, kind="stable")
    starts = np.searchsorted(chosen[order], np.arange(bins))
    load = np.empty(len(chosen), np.int64)
    load[order] = np.arange(len(chosen)) - starts[chosen[order]] + 1
    return load


# ---------------------------------------------------------------- a tiny run of everything


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda experiment: experiment.name)
def test_a_tiny_run_has_claims_rules_and_pictures(experiment: Experiment, data: Path, tmp_path: Path) -> None:
    chosen = settings(data)
    outcomes = Outcomes(Outcome(job, result) for job in experiment.jobs(chosen) for result in job.run())
    for claim in experiment.judged(outcomes, chosen):
        assert claim.verdict in (REPRODUCED, READING, DIFFERS, NOT_TESTABLE)
        assert (claim.verdict == NOT_TESTABLE) == (claim.id in NEVER), claim.id
        assert claim.verdict == NOT_TESTABLE or claim.why.startswith("Rule: "), claim.id
        assert not re.search(r"\bnan\b|\binf\b", claim.measured), claim
        assert not re.search(r"\bWP\b(?! \(stand-in, first 2k of 22M\))", claim.measured), claim
        assert claim.command == f"unskew reproduce cg --only {experiment.name}"
    parts = experiment.parts(outcomes, chosen)
    assert parts
    for part in parts:
        if isinstance(part, Picture):
            part.figure.savefig(tmp_path / f"{part.name}.svg")
    assert all(
        isinstance(value, str | int | float | bool | None) for outcome in outcomes for value in outcome.flat().values()
    )
