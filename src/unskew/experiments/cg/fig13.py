"""Fig. 13 (Q3): the machines change after 6M and after 12M tuples, the total of their capacity stays."""

from unskew.experiments.cg.cluster import (
    CG,
    HIGH_IMBALANCE,
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
from unskew.experiments.cg.setup import KG, SG, Kinds, shown, whole_wikipedia, wp_label
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, Table
from unskew.simulate import Result

WORKERS, VIRTUAL = 10, 100
CHANGES = {6 / 22: Machines(5, 4.0), 12 / 22: Machines(2, 10.0)}  # after 6M and 12M of 22M tuples
CG_SHORT, CG_PROBING, CG_IN_ALL = "CG, t0 = 10 s", "CG, rule of section VI-A", "CG, 100 in all"
KINDS: Kinds = {
    **THREE,
    CG: lambda workers: grouping(workers, VIRTUAL),
    CG_SHORT: lambda workers: grouping(workers, VIRTUAL, window=10.0),
    CG_PROBING: lambda workers: grouping(workers, VIRTUAL, probe_capacity=True),
    CG_IN_ALL: grouping,
}


def events(tuples: int) -> tuple[str, ...]:
    return tuple(
        f"t={round(share * tuples)} capacity {machines.capacity(WORKERS)}" for share, machines in CHANGES.items()
    )


def jobs(settings: Settings) -> list[Job]:
    stream, schemes = whole_wikipedia(settings), [kind(WORKERS) for kind in KINDS.values()]
    return [
        Job(
            "fig13",
            "WP",
            stream,
            tuple(schemes[i::2]),
            samples=samples_for(stream),
            queues=queues_of(UNEQUAL, WORKERS),
            events=events(stream.tuples),
        )
        for i in range(2)
    ]


def changes(result: Result) -> list[float]:
    """When the machines change, in seconds."""
    return [share * result.tuples / RATE for share in CHANGES]


def phases(result: Result) -> list[tuple[float, float]]:
    """Start and end in seconds of the time before the first change, between both, and after."""
    moments = [0.0, *changes(result), windows_of(result)[-1].end]
    return list(zip(moments, moments[1:], strict=False))


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    results = {name: outcomes.of(kind(WORKERS)) for name, kind in KINDS.items()}
    where = f"{wp_label(results[CG].tuples)}: "
    numbers = range(1, len(CHANGES) + 1)
    found = [_recovery(results, where, number, name) for name in (CG, CG_IN_ALL) for number in numbers]
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
    ]


def _recovery(results: dict[str, Result], where: str, number: int, name: str) -> Finding:
    start, end = phases(results[name])[number]
    machines = list(CHANGES.values())[number - 1]
    windows = windows_of(results[name])
    calm, last = settled(windows, start, end), between(windows, start, end)[-1]
    ours = {other: settled(windows_of(results[other]), start, end) for other in (CG_SHORT, CG_PROBING)}
    per_worker = name == CG
    return Finding(
        f"fig13-change{number}{'' if per_worker else '-in-all'}",
        f"CG with 100 virtual workers {'per worker' if per_worker else 'in all'} adapts very efficiently to the change "
        f"to {{y, z}} = {{{machines.strong}, {machines.times:g}}}",
        "very efficiently; no numbers in the text",
        where + f"imbalance near zero again after {hours(calm)} of {hours(end - start)}, "
        f"{shown(last.imbalance)} at the end of the phase, queues drained after {hours(drained(windows, start, end))}"
        + "".join(f"; {other}: near zero after {hours(time)}" for other, time in ours.items() if per_worker),
        verdict(is_quick(calm, end - start)),
        "Rule: from at most half of the time until the next change on, the highest utilisation is at most "
        f"{NEAR_ZERO:g} above the mean. One virtual worker moves for each pair of a busy and an idle worker in a "
        "window of a minute: "
        + (
            "a change that asks a worker for hundreds of them takes hours; and when the strong ones are just above "
            "0.75, they ask for no more (see Fig. 12). Beside it a run with t0 = 10 s (ours), and one with the rule of "
            "section VI-A."
            if per_worker
            else "of 100 in all (the other reading of the paper, see Fig. 12) few have to."
        ),
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
    results = {name: outcomes.of(kind(WORKERS)) for name, kind in KINDS.items()}
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
            through_the_day(results, changes(results[CG])),
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
