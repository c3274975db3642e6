"""Fig. 12 (Q3): how many virtual workers; 3 of 10 machines are 5 times as strong.

A worker has so many at the start (`numReplicas` of the authors' code is per server). Imbalance is looked at in windows
of about t0: an average over several of them would hide virtual workers that are passed to and fro.
"""

from typing import Any

from unskew.experiments.cg.cluster import (
    CODE_READING,
    CYCLE_READING,
    HOUR,
    NEAR_ZERO,
    PER_MINUTE,
    UNEQUAL,
    Daily,
    as_in_code,
    between,
    drained,
    grouping,
    hours,
    queues_of,
    samples_for,
    settled,
    through_the_day,
    windows_of,
    worst,
)
from unskew.experiments.cg.setup import shown, whole_wikipedia, wp_label
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, Table
from unskew.schemes.cg import ConsistentGrouping
from unskew.simulate import Result

WORKERS = 10
VIRTUAL = (5, 10, 20, 50, 100, 1000)  # of each worker
SHORT = 10.0  # t0 in seconds (ours), beside the minute of the other figures
EVEN, CYCLE = "WP", "WP, daily cycle"
LITERAL, CODE = "literal", "as in the code"
SIMILAR = 2.0  # mean latencies within this factor
ALIKE = 1.1
READING = f"{CODE_READING}; and {CYCLE_READING}"


def _scheme(virtual: int, kind: str = LITERAL, **more: Any) -> ConsistentGrouping:
    return (grouping if kind == LITERAL else as_in_code)(WORKERS, virtual, **more)


PROBING = _scheme(100, probe_capacity=True)  # with the rule of section VI-A, for busy workers that find no idle one
QUICKER = _scheme(100, window=SHORT)


def jobs(settings: Settings) -> list[Job]:
    stream = whole_wikipedia(settings)
    samples = samples_for(stream, PER_MINUTE)
    even, own_times = queues_of(UNEQUAL, WORKERS), queues_of(UNEQUAL, WORKERS, own_times=True)
    literal = [_scheme(virtual) for virtual in VIRTUAL] + [PROBING, QUICKER]
    code = [_scheme(virtual, CODE) for virtual in VIRTUAL]
    return [
        *(Job("fig12", EVEN, stream, tuple(literal[i::3]), samples=samples, queues=even) for i in range(3)),
        *(Job("fig12", CYCLE, Daily(stream), tuple(code[i::2]), samples=samples, queues=own_times) for i in range(2)),
    ]


def _latency(result: Result) -> float:
    """Mean of all tuples: what the three panels of the figure come to."""
    return result.latency_mean or 0.0


def _settled(result: Result) -> float | None:
    windows = windows_of(result)
    return settled(windows, 0, windows[-1].end)


def _late(result: Result) -> float:
    """Highest imbalance in the second half of the day."""
    windows = windows_of(result)
    return worst(between(windows, windows[-1].end / 2, windows[-1].end), lambda w: w.imbalance)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    where = f"{wp_label(outcomes[0].result.tuples)}: "
    literal = {virtual: outcomes.of(_scheme(virtual), data=EVEN) for virtual in VIRTUAL}
    so = {virtual: outcomes.of(_scheme(virtual, CODE), data=CYCLE) for virtual in VIRTUAL}
    return [
        _too_few(where, literal[5], literal[10]),
        _convergence(where, literal, so),
        _similar(where, literal, so),
        _best(where, literal, so, outcomes),
    ]


def _too_few(where: str, five: Result, ten: Result) -> Finding:
    windows = windows_of(five)
    second_half = between(windows, windows[-1].end / 2, windows[-1].end)
    uneven = sum(window.imbalance > NEAR_ZERO for window in second_half)
    return Finding(
        "fig12-5",
        "5 virtual workers per worker do not provide the desired results: not enough of them to move around",
        "5 are too few",
        where
        + f"highest imbalance in the second half of the day {shown(_late(five))} with 5, {shown(_late(ten))} with "
        f"10; with 5 it is above {NEAR_ZERO:g} in {uneven} of {len(second_half)} windows of about a minute",
        verdict(2 * uneven > len(second_half)),
        f"Rule: with 5 the imbalance is above {NEAR_ZERO:g} in more than half of the windows of about t0 in the second "
        "half of the day. One of 50 virtual workers is 0.8 x 22 / 50 = 0.352 of a weak machine, which has 2 of them "
        "(utilisation 0.70) or 3 (1.06), and passes the third on and gets it back. (An earlier measurement, in windows "
        "of four minutes, hid that.)",
    )


def _latencies(of: dict[int, Result]) -> str:
    return f"mean latency {', '.join(f'{_latency(result):.3g} s ({number})' for number, result in of.items())}"


def _convergence(where: str, literal: dict[int, Result], so: dict[int, Result]) -> Finding:
    fewer = (10, 20)

    def shown_times(of: dict[int, Result]) -> str:
        return f"near zero for good after {', '.join(f'{hours(_settled(result))} ({n})' for n, result in of.items())}"

    def holds(of: dict[int, Result]) -> bool:
        times = {number: _settled(result) for number, result in of.items()}
        ends = {number: float("inf") if time is None else time for number, time in times.items()}
        return ends[1000] > max(ends[number] for number in fewer)

    return Finding(
        "fig12-1000",
        "with 1000 virtual workers per worker the system takes longer to converge",
        "longer",
        where + shown_times(literal),
        verdict(holds(literal), holds(so)),
        f"Rule: with {' and '.join(map(str, fewer))} the imbalance is near zero for good at some time, with 1000 later "
        "or never. At most one virtual worker moves for each pair of a busy and an idle worker in a window: where 3 "
        "strong workers lack 1270 each, that takes 1270 minutes at least.",
        READING,
        where + shown_times(so),
    )


def _similar(where: str, literal: dict[int, Result], so: dict[int, Result]) -> Finding:
    def shown_pair(of: dict[int, Result]) -> str:
        return (
            f"mean latency {_latency(of[10]):.3g} s and {_latency(of[20]):.3g} s; highest imbalance in the second half "
            f"of the day {shown(_late(of[10]))} and {shown(_late(of[20]))}"
        )

    def holds(of: dict[int, Result]) -> bool:
        pair = [_latency(of[number]) for number in (10, 20)]
        return max(pair) <= SIMILAR * min(pair)

    return Finding(
        "fig12-similar",
        "10 and 20 virtual workers per worker provide similar performance",
        "similar",
        where + shown_pair(literal),
        verdict(holds(literal), holds(so)),
        f"Rule: mean latencies within a factor {SIMILAR:g}. Twice as many take twice as long to move, and the tuples "
        "that queue up meanwhile make the mean.",
        READING,
        where + shown_pair(so),
    )


def _best(where: str, literal: dict[int, Result], so: dict[int, Result], outcomes: Outcomes) -> Finding:
    def holds(of: dict[int, Result]) -> bool:
        return _latency(of[100]) <= ALIKE * min(map(_latency, of.values()))

    probing, quicker = (outcomes.of(scheme, data=EVEN) for scheme in (PROBING, QUICKER))
    left = drained(windows_of(literal[100]), 0, windows_of(literal[100])[-1].end)
    return Finding(
        "fig12-100",
        "100 virtual workers per worker generate the best results",
        "100 best",
        where + f"{_latencies(literal)}; 100 with t0 = 10 s: {_latency(quicker):.3g} s; 100 with the rule of section "
        f"VI-A: {_latency(probing):.3g} s, near zero after {hours(_settled(probing))}",
        verdict(holds(literal), holds(so)),
        "Rule: with 100 the mean latency is at most a tenth above the least of all. Moving is slow, one virtual worker "
        "for each pair in a window, and at an even pace it stops too early: a strong worker above 0.75 is no longer "
        "idle, so a weak one at 0.9 finds nobody to give to, though the mean is 0.8. What queued up meanwhile drains "
        f"slowly (with 100, no tuple waits a minute longer than elsewhere after {hours(left)}). A daily cycle makes "
        "everybody idle at some time of the day. A shorter t0 helps (ours), and so does the rule of section VI-A.",
        READING,
        where + _latencies(so),
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    shown_runs = {f"{v} per worker": outcomes.of(_scheme(v), data=EVEN) for v in VIRTUAL}
    rows = [
        [
            outcome.job.data,
            outcome.result.params["virtual"],
            f"{outcome.result.params['window']:g} s",
            CODE if outcome.result.params["patient"] else LITERAL,
            "yes" if outcome.result.params["probe_capacity"] else "no",
            hours(_settled(outcome.result)),
            f"{_late(outcome.result):.3f}",
            f"{outcome.result.latency_mean:.3g} s",
            f"{(outcome.result.latency_max or 0.0) / HOUR:.2f} h",
        ]
        for outcome in outcomes
    ]
    return [
        Picture(
            "fig12",
            through_the_day(shown_runs),
            f"{wp_label(outcomes[0].result.tuples)}: 3 of 10 workers are 5 times as strong; CG with 5 to 1000 virtual "
            "workers per worker at the start, t0 = 1 minute.",
        ),
        Table(
            "Settled: from then on the highest utilisation is at most 0.1 above the mean. Late imbalance: its highest "
            "in the second half of the day.",
            [
                "arrivals",
                "virtual workers of each",
                "t0",
                "CG",
                "rule of VI-A",
                "settled after",
                "late imbalance",
                "mean latency",
                "worst",
            ],
            rows,
        ),
    ]


EXPERIMENT = Experiment("fig12", "Figure 12: how many virtual workers", jobs, claims, parts)
