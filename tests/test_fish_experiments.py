"""The rerun of the FISH paper: its grid, its rules in made-up worlds, and a tiny run of everything."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from committed import committed, ids
from unskew import Hash, InputError, PartialKey, Scheme, Shuffle
from unskew.cli.reproduce import PAPERS
from unskew.experiments.claims import DIFFERS, NOT_TESTABLE, READING, REPRODUCED
from unskew.experiments.fish import PAPER, setup
from unskew.experiments.fish.rules import near
from unskew.experiments.grid import Job, Outcome, Outcomes
from unskew.experiments.paper import Experiment, Picture, Settings
from unskew.registry import registration_of
from unskew.schemes.d_choices import DChoices
from unskew.schemes.w_choices import WChoices
from unskew.simulate import Result, simulate
from unskew.streams import Evolving, Zipf

NEVER = {"fig18", "fig18-absolute", "fig19", "fig4"}  # claims that no simulation can judge
IMPOSSIBLE = {"abstract-memory"}  # the paper contradicts itself
OF_REAL_STREAMS = ("fig2-", "fig3-", "fig4", "fig9-", "fig11-real")
Numbers = dict[str, Any]
World = Callable[[Job, Any], Numbers]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Short files in the place of the real streams."""
    keys = pa.array([f"key {n % 7}" if n % 3 else "hot" for n in range(1_000)])
    for name in setup.REAL:
        pq.write_table(pa.table({"key": keys, "ts": pa.array(range(1_000), pa.int64())}), tmp_path / f"{name}.parquet")
    return tmp_path


def settings(data: Path, quick: bool = True) -> Settings:
    return Settings("fish", data, quick)


def skew(job: Job) -> float | None:
    return float(job.data[2:5]) if job.data.startswith("z=") else None


# ---------------------------------------------------------------- the grid


def test_the_grid_has_every_number_of_workers_and_every_skew(data: Path) -> None:
    for name in ("fig10", "fig12", "fig13", "fig16"):
        for quick, workers, skews in (
            (False, setup.WORKERS, setup.SKEWS),
            (True, setup.QUICK_WORKERS, setup.QUICK_SKEWS),
        ):
            jobs = PAPER.chosen([name])[0].jobs(settings(data, quick))
            turned = [job for job in jobs if isinstance(job.stream, Evolving) and "," not in job.data]
            assert {(scheme.workers, skew(job)) for job in turned for scheme in job.schemes} == {
                (w, z) for w in workers for z in skews
            }
            assert {job.stream.length for job in turned} == {setup.QUICK_TUPLES if quick else setup.TUPLES}


def test_no_cell_of_the_grid_is_simulated_twice(data: Path) -> None:
    for experiment in PAPER.experiments:
        jobs = experiment.jobs(settings(data, quick=False))
        places = [(job.data, job.schemes[0].workers, job.sources, job.events, job.queues) for job in jobs]
        assert len(set(places)) == len(places), experiment.name


def test_a_quick_grid_is_a_smaller_grid(data: Path) -> None:
    for experiment in PAPER.experiments:
        quick, full = (experiment.jobs(settings(data, kind)) for kind in (True, False))
        assert sum(job.cost for job in quick) < sum(job.cost for job in full), experiment.name


def test_the_paper_is_known_to_the_command() -> None:
    assert PAPERS["fish"] is PAPER
    with pytest.raises(InputError, match=r"only: 'fig4' is not part of fish; allowed are fig2, fig9, .*fig18"):
        PAPER.chosen(["fig4"])


def test_without_real_streams_their_claims_are_not_testable() -> None:
    nowhere = settings(Path("no-such-folder"))
    for experiment in PAPER.chosen(["fig2", "fig9"]):
        assert experiment.jobs(nowhere) == []
        claims = experiment.judged(Outcomes(), nowhere)
        assert {claim.verdict for claim in claims} == {NOT_TESTABLE}
        assert all("absent" in claim.why for claim in claims)
        assert "No real stream" in str(experiment.parts(Outcomes(), nowhere)[0])


# ---------------------------------------------------------------- the rules, in made-up worlds


def as_published(job: Job, scheme: Any) -> Numbers:
    """A world in which every number is the paper's."""
    w, z, params = scheme.workers, skew(job), scheme._asdict()
    extreme = z is None or (w == 128 and z == 2.0)
    time, memory, latency = 1.0, 2.0, 1.0
    if isinstance(scheme, Hash):
        latency = 4.2
    elif isinstance(scheme, PartialKey):
        time, latency = (1.19 if w == 16 else 8.32) if z is None else 20.0 if extreme else 5.0, 3.0 if w == 128 else 2.0
    elif isinstance(scheme, DChoices):
        time = (7.44 if z is None else 13.57) if extreme else 1.0
    elif isinstance(scheme, WChoices):
        time = (6.95 if z is None else 12.05) if extreme else 1.0
    elif isinstance(scheme, Shuffle):
        memory = 23.16 if z is None else 88.32 if z == 1.0 else 15.52
    elif params.get("alpha") == 1.0 and extreme:
        time = 12.0
    elif params.get("alpha") == 0.0:
        memory = 2 * 2.65 if z == 1.0 else 2.2
    elif params.get("theta") == 2 / w:
        time = 1.5
    elif params.get("theta") == 1 / (8 * w):
        memory = 2.3
    elif params.get("least") == w:
        memory = 2 / (1 - (0.2523 if w == 64 else 0.4534))
    elif params.get("solver"):
        time, memory = 1.5, 1.5
    elif params.get("interval") == float("inf"):
        time = 2.61
    elif params.get("virtual_nodes") == 0 and job.events:
        memory = 4.0 if z == 1.0 else 2.2
    if params.get("counters") == 1000 and isinstance(scheme, DChoices | WChoices):
        latency = 3.0 if w == 128 else 2.0
    if params.get("counters") == 100:
        memory = 23.16
    return {"makespan": time, "local_max_over_mean": time, "replicas_over_kg": memory, "latency_p99": latency}


def all_otherwise(job: Job, scheme: Any) -> Numbers:
    """A world in which nothing is as the paper has it."""
    w, params = scheme.workers, scheme._asdict()
    time, memory, latency = 2.0, 5.0, 2.0
    if isinstance(scheme, PartialKey):
        time, latency = 1.5, 30.0
    elif isinstance(scheme, DChoices | WChoices):
        memory = 30.0
    elif isinstance(scheme, Shuffle):
        time, memory, latency = 1.0, 3.0, 1.0
    elif params.get("alpha") == 0.0:
        memory = 5.0 + (skew(job) or 0.0)
    elif params.get("alpha") == 0.4 or params.get("theta") == 1 / (8 * w) or params.get("least") == w:
        time = 1.0
    elif params.get("theta") == 2 / w:
        memory = 3.0
    elif job.events:
        memory = 9.0 if params["virtual_nodes"] == 0 else 8.0
    return {"makespan": time, "local_max_over_mean": time, "replicas_over_kg": memory, "latency_p99": latency}


def verdicts(data: Path, world: World, quick: bool) -> dict[str, str]:
    some = simulate(Zipf(1.0, 10, 1), [Hash(1)])[0]
    chosen = settings(data, quick)
    found: dict[str, str] = {}
    for experiment in PAPER.experiments:
        outcomes = Outcomes(
            Outcome(job, made_up(some, job, scheme, world)) for job in experiment.jobs(chosen) for scheme in job.schemes
        )
        found |= {claim.id: claim.verdict for claim in experiment.judged(outcomes, chosen)}
    return found


def made_up(some: Result, job: Job, scheme: Scheme, world: World) -> Result:
    params = {name: value for name, value in scheme._asdict().items() if name != "workers"}  # type: ignore[attr-defined]
    ideal: Numbers = {"tuples": 1, "capacity": [1.0], "latency_mean": 1.0, "latency_p50": 1.0}
    return replace(
        some, scheme=registration_of(scheme).name, params=params, workers=scheme.workers, **ideal, **world(job, scheme)
    )


@pytest.mark.parametrize("quick", [True, False])
def test_every_claim_is_reproduced_where_all_is_as_published(data: Path, quick: bool) -> None:
    found = verdicts(data, as_published, quick)
    assert {id for id, verdict in found.items() if verdict == NOT_TESTABLE} == NEVER
    assert {id for id, verdict in found.items() if verdict == DIFFERS} == IMPOSSIBLE
    assert READING not in found.values()


@pytest.mark.parametrize("quick", [True, False])
def test_every_claim_differs_where_nothing_is_as_published(data: Path, quick: bool) -> None:
    found = verdicts(data, all_otherwise, quick)
    assert {id for id, verdict in found.items() if verdict in (REPRODUCED, READING)} == set()
    assert {id for id in found if id.startswith(OF_REAL_STREAMS)} >= {
        "fig2-100",
        "fig3-sg",
        "fig9-dc-fair",
        "fig11-real",
    }


def test_the_committed_results_have_all_claims_in_order(data: Path) -> None:
    assert ids(committed("fish")) == list(verdicts(data, as_published, quick=True))
    assert list(committed("fish").experiments) == [experiment.name for experiment in PAPER.experiments]


def only_as_read(job: Job, scheme: Any) -> Numbers:
    """A world in which the numbers are the paper's where it is read in another way, and nowhere else."""
    params = scheme._asdict()
    read_so = job.queues == setup.BACK_PRESSURE or params.get("error_weight") == 1.0
    numbers = (as_published if read_so else all_otherwise)(job, scheme)
    if isinstance(scheme, Shuffle | PartialKey | Hash) or params.get("whole_epoch"):
        numbers["replicas_over_kg"] = as_published(job, scheme)["replicas_over_kg"]
    if params.get("whole_epoch") is False:
        numbers["replicas_over_kg"] = all_otherwise(job, scheme)["replicas_over_kg"]
    return numbers


def test_what_holds_only_as_read_is_told_from_what_holds_literally(data: Path) -> None:
    found = verdicts(data, only_as_read, quick=True)
    expected = {"fig9-dc", "fig9-wc", "fig10-dc", "fig10-wc", "fig12-life", "fig14-epoch", "fig11-fish", "fig20"}
    assert {id for id in expected if found[id] == READING} == expected


def test_a_printed_factor_is_met_from_both_sides() -> None:
    assert near(2.0, 3.0)
    assert near(4.5, 3.0)
    assert not near(1.9, 3.0)
    assert not near(4.6, 3.0)


# ---------------------------------------------------------------- what is taken apart


def test_w_choices_that_trusts_estimates_of_too_few_counters_is_shuffle() -> None:
    stream = Evolving(1.0, 2_000, 20_000)
    shuffle, trusting, guaranteed = simulate(
        stream, [Shuffle(64), WChoices(64, counters=100, error_weight=0.0), WChoices(64, counters=100)], samples=1
    )
    assert trusting.imbalance < 1
    assert (trusting.replicas or 0) > 0.95 * (shuffle.replicas or 0)
    assert (guaranteed.replicas or 0) < 0.5 * (shuffle.replicas or 0)


def test_the_memory_of_shuffling_is_as_expected() -> None:
    result = simulate(Evolving(1.2, 1_000, 50_000), [Shuffle(16)], samples=1)[0]
    assert result.replicas_over_kg == pytest.approx(setup.expected_sg_memory(1.2, 50_000, 16, keys=1_000), rel=0.02)


# ---------------------------------------------------------------- a tiny run of everything


@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda experiment: experiment.name)
def test_a_tiny_run_has_claims_rules_and_pictures(
    experiment: Experiment, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "QUICK_TUPLES", 2_000)
    chosen = settings(data)
    outcomes = Outcomes(Outcome(job, result) for job in experiment.jobs(chosen) for result in job.run())
    for claim in experiment.judged(outcomes, chosen):
        assert claim.verdict in (REPRODUCED, READING, DIFFERS, NOT_TESTABLE)
        assert (claim.verdict == NOT_TESTABLE) == (claim.id in NEVER), claim.id
        assert claim.verdict == NOT_TESTABLE or claim.why.startswith("Rule: "), claim.id
        assert not re.search(r"\bnan\b|\binf\b", claim.measured), claim
        assert claim.command == f"unskew reproduce fish --only {experiment.name}"
    pictures = [part for part in experiment.parts(outcomes, chosen) if isinstance(part, Picture)]
    assert pictures
    for picture in pictures:
        picture.figure.savefig(tmp_path / f"{picture.name}.svg")
    assert all(
        isinstance(value, str | int | float | bool | None) for outcome in outcomes for value in outcome.flat().values()
    )
