"""Fig. 13 (Q3): the machines change after 6M and after 12M tuples, the total of their capacity stays."""

from typing import Any

import numpy as np

from unskew.experiments.cg.cluster import (
    CG,
    HIGH_IMBALANCE,
    MINUTE,
    NEAR_ZERO,
    RATE,
    THREE,
    UNEQUAL,
    Machines,
    between,
    drained,
    grouping,
    hours,
    is_quick,
    queues_of,
    samples_for,
    settled,
    through_the_day,
    windows_of,
    worst,
)
from unskew.experiments.cg.readings import PRINTED, READINGS, Reading, judged
from unskew.experiments.cg.setup import KG, SG, Kinds, day_of_wikipedia, shown, wp_label
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, Table
from unskew.simulate import Result

WORKERS, VIRTUAL = 10, 100
CHANGES = {6 / 22: Machines(5, 4.0), 12 / 22: Machines(2, 10.0)}  # after 6M and 12M of 22M tuples
CG_SHORT, CG_PROBING = "CG, t0 = 10 s", "CG, rule of section VI-A"
EVEN, DELAYED = "WP", "WP, 5 sources, delay"
KINDS: Kinds = {
    **THREE,
    CG: lambda workers: grouping(workers, VIRTUAL),
    CG_SHORT: lambda workers: grouping(workers, VIRTUAL, window=10.0),
    CG_PROBING: lambda workers: grouping(workers, VIRTUAL, probe_capacity=True),
}


def events(tuples: int) -> tuple[str, ...]:
    return tuple(
        f"t={round(share * tuples)} capacity {machines.capacity(WORKERS)}" for share, machines in CHANGES.items()
    )


def jobs(settings: Settings) -> list[Job]:
    stream, schemes = day_of_wikipedia(settings), [kind(WORKERS) for kind in KINDS.values()]
    shared: dict[str, Any] = {"samples": samples_for(stream), "events": events(stream.tuples)}
    queues, late = queues_of(UNEQUAL, WORKERS), queues_of(UNEQUAL, WORKERS, delay=MINUTE)

    def of_reading(reading: Reading) -> Job:
        scheme, here = reading.scheme(WORKERS, VIRTUAL), reading.stream(stream)
        return Job("fig13", _name(reading), here, (scheme,), queues=reading.queues(WORKERS), **shared)

    return [
        *(Job("fig13", EVEN, stream, tuple(schemes[i::2]), queues=queues, **shared) for i in range(2)),
        *map(of_reading, READINGS),
        Job("fig13", DELAYED, stream, (KINDS[CG](WORKERS),), sources=5, queues=late, **shared),
    ]


def _name(reading: Reading) -> str:
    return f"WP, {reading.name}"


def _readings(outcomes: Outcomes) -> dict[Reading, Result]:
    """CG's runs, as printed and under each reading."""
    found = {PRINTED: outcomes.of(KINDS[CG](WORKERS), data=EVEN)}
    return found | {reading: outcomes.one(data=_name(reading)) for reading in READINGS}


def changes(result: Result) -> list[float]:
    """When the machines change, in seconds."""
    moments = [round(share * result.tuples) for share in CHANGES]
    if result.rate is not None:
        return [moment / RATE for moment in moments]
    before = [sample for sample in result.queue_samples or [] if sample.tuples <= moments[-1]]
    return [float(np.interp(moment, [s.tuples for s in before], [s.time for s in before])) for moment in moments]


def phases(result: Result) -> list[tuple[float, float]]:
    """Start and end in seconds of the time before the first change, between both, and after."""
    moments = [0.0, *changes(result), windows_of(result)[-1].end]
    return list(zip(moments, moments[1:], strict=False))


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    results = {name: outcomes.of(kind(WORKERS), data=EVEN) for name, kind in KINDS.items()}
    so, late = _readings(outcomes), outcomes.of(KINDS[CG](WORKERS), data=DELAYED)
    where = f"{wp_label(results[CG].tuples)}: "
    found = [_recovery(results, so, where, number) for number in range(1, len(CHANGES) + 1)]
    lowest = {}
    for name in (KG, SG):
        windows = windows_of(results[name])
        ends = [between(windows, *phase)[-1] for phase in phases(results[name])]
        lowest[name] = [window.imbalance for window in ends]
    return [
        *found,
        Finding(
            "fig13-others",
            "KG and SG do not adapt (reported for comparison)",
            "high throughout; no numbers in the text",
            where
            + "; ".join(f"{name} {', '.join(map(shown, values))}" for name, values in lowest.items())
            + " at the end of each phase",
            verdict(all(min(values) > HIGH_IMBALANCE for values in lowest.values())),
            f"Rule: highest utilisation less the mean is above {HIGH_IMBALANCE:g} at the end of each of the three "
            "phases, for both.",
        ),
        _queues(results, where),
        _delayed(late, results[CG], where),
    ]


def _recovered(result: Result, number: int) -> tuple[float | None, float, float, float | None]:
    """After change `number`: seconds until near zero for good, until the next change; imbalance then; until drained."""
    start, end = phases(result)[number]
    windows = windows_of(result)
    return (
        settled(windows, start, end),
        end - start,
        between(windows, start, end)[-1].imbalance,
        drained(windows, start, end),
    )


def _told(result: Result, number: int) -> str:
    calm, phase, last, empty = _recovered(result, number)
    return (
        f"imbalance near zero again after {hours(calm)} of {hours(phase)}, {shown(last)} at the end of the phase, "
        f"queues drained after {hours(empty)}"
    )


def _recovery(results: dict[str, Result], so: dict[Reading, Result], where: str, number: int) -> Finding:
    machines = list(CHANGES.values())[number - 1]

    def quick(result: Result) -> bool:
        calm, phase, *_ = _recovered(result, number)
        return is_quick(calm, phase)

    ours = {other: _recovered(results[other], number)[0] for other in (CG_SHORT, CG_PROBING)}
    return Finding(
        f"fig13-change{number}",
        f"CG with 100 virtual workers per worker adapts very efficiently to the change to {{y, z}} = "
        f"{{{machines.strong}, {machines.times:g}}}",
        "very efficiently; no numbers in the text",
        where
        + _told(results[CG], number)
        + "".join(f"; {o}: near zero after {hours(time)}" for o, time in ours.items()),
        why="Rule: from at most half of the time until the next change on, the highest utilisation is at most "
        f"{NEAR_ZERO:g} above the mean. One virtual worker moves for each pair of a busy and an idle worker in a "
        "window of a minute: a change that asks a worker for hundreds of them takes hours; and when the strong ones "
        "are just above 0.75, they ask for no more (see Fig. 12). Beside it a run with t0 = 10 s (ours), and one with "
        "the rule of section VI-A.",
        **judged(so, quick, lambda result: _told(result, number)),
    )


def _delayed(late: Result, prompt: Result, where: str) -> Finding:
    numbers = range(1, len(CHANGES) + 1)
    ends = [(_recovered(result, number)[2]) for result in (late, prompt) for number in numbers]
    return Finding(
        "fig13-delay",
        "CG adapts though sources are eventually consistent (section V-C)",
        "no numbers in the text",
        where + "5 sources that hear a minute late: " + "; ".join(_told(late, number) for number in numbers),
        verdict(all(end <= NEAR_ZERO for end in ends[: len(CHANGES)])),
        f"Rule: at the end of each phase after a change the imbalance is at most {NEAR_ZERO:g}. With one source that "
        f"hears at once it is {' and '.join(shown(end) for end in ends[len(CHANGES) :])} then. The number of sources "
        "and the delay, one window t0, are ours.",
    )


def _queues(results: dict[str, Result], where: str) -> Finding:
    ends = {name: windows_of(results[name])[-1].queue for name in (KG, SG, CG)}
    largest = {name: worst(windows_of(results[name]), lambda w: w.queue) for name in (KG, SG, CG)}
    return Finding(
        "fig13-queues",
        "with CG queue length and latency stay below those of KG and SG while resources change",
        "lower; no numbers in the text",
        where + "; ".join(f"{name} at most {largest[name]:,.0f}, at the end {ends[name]:,}" for name in ends),
        verdict(all(largest[CG] < largest[n] and ends[CG] < ends[n] for n in (KG, SG))),
        "Rule: the difference of the longest and the shortest queue is lower with CG, at its highest and at the end.",
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    results = {name: outcomes.of(kind(WORKERS), data=EVEN) for name, kind in KINDS.items()}
    pictured = dict(results)
    results |= {f"CG, {reading.name}": outcomes.one(data=_name(reading)) for reading in READINGS}
    results |= {"CG, 5 sources, delay": outcomes.of(KINDS[CG](WORKERS), data=DELAYED)}
    rows = []
    for name, result in results.items():
        windows = windows_of(result)
        row: list[object] = [name]
        for phase in phases(result):
            row += [hours(settled(windows, *phase)), hours(drained(windows, *phase))]
        rows.append([*row, f"{result.latency_mean:.3g} s"])
    names = ["3 of 10, 5 times as strong", *(f"{m.strong} of 10, {m.times:g} times" for m in CHANGES.values())]
    return [
        Picture(
            "fig13",
            through_the_day(pictured, changes(results[CG])),
            f"{wp_label(results[CG].tuples)}: 10 workers, of which at first 3 are 5 times as strong as the others, "
            "after 6M tuples 5 of them 4 times, after 12M 2 of them 10 times (dotted lines). CG has 100 virtual "
            "workers per worker and t0 = 1 minute, except where it says otherwise.",
        ),
        Table(
            "Balanced: time after the change from which on the highest utilisation is at most 0.1 above the mean until "
            "the next change. Drained: from which on no tuple waits a minute longer at one worker than at another.",
            ["scheme", *(f"{name}: {what}" for name in names for what in ("balanced", "drained")), "mean latency"],
            rows,
        ),
    ]


EXPERIMENT = Experiment("fig13", "Figure 13: resources that change", jobs, claims, parts)
