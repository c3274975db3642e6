"""Fig. 12 (Q3): how many virtual workers; 3 of 10 machines are 5 times as strong.

A worker has so many at the start (`numReplicas` of the authors' code is per server). Imbalance is looked at in windows
of about t0: an average over several of them would hide virtual workers that are passed to and fro.
"""

from unskew.experiments.cg.cluster import (
    HOUR,
    NEAR_ZERO,
    PER_MINUTE,
    UNEQUAL,
    Machines,
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
from unskew.experiments.cg.readings import PRINTED, READINGS, Reading, judged
from unskew.experiments.cg.setup import day_of_wikipedia, shown, wp_label
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, Table
from unskew.simulate import Result

WORKERS = 10
VIRTUAL = (5, 10, 20, 50, 100, 1000)  # of each worker
QUICK_READ = (10, 20, 100, 1000)  # those that readings are tried with in a quick run
SHORT = 10.0  # t0 in seconds (ours), beside the minute of the other figures
SIMILAR = 2.0  # mean latencies within this factor
ALIKE = 1.1
PROBING = grouping(WORKERS, 100, probe_capacity=True)  # section VI-A, for busy workers that find no idle one
QUICKER = grouping(WORKERS, 100, window=SHORT)
# section V-B: with ten times the workers, O(log n) are twice as many
MANY, ENOUGH, TWICE = 100, (5, 10, 20), 2
MANY_NAME, MANY_MACHINES = f"WP, {MANY} workers", Machines(UNEQUAL.strong * MANY // WORKERS, UNEQUAL.times)

Runs = dict[int, Result]  # of so many virtual workers per worker


def jobs(settings: Settings) -> list[Job]:
    stream = day_of_wikipedia(settings)
    samples = samples_for(stream, PER_MINUTE)
    printed = [PRINTED.scheme(WORKERS, virtual) for virtual in VIRTUAL] + [PROBING, QUICKER]

    def of_reading(reading: Reading) -> Job:
        schemes = tuple(reading.scheme(WORKERS, virtual) for virtual in settings.pick(VIRTUAL, QUICK_READ))
        here, queues = reading.stream(stream), reading.queues(WORKERS)
        return Job("fig12", _name(reading), here, schemes, samples=samples, queues=queues)

    return [
        *(
            Job("fig12", "WP", stream, tuple(printed[i::3]), samples=samples, queues=queues_of(UNEQUAL, WORKERS))
            for i in range(3)
        ),
        *map(of_reading, READINGS),
        Job(
            "fig12",
            MANY_NAME,
            stream,
            tuple(PRINTED.scheme(MANY, virtual) for virtual in ENOUGH),
            samples=samples * WORKERS // MANY,
            queues=queues_of(MANY_MACHINES, MANY),
        ),
    ]


def _name(reading: Reading) -> str:
    return "WP" if reading is PRINTED else f"WP, {reading.name}"


def _runs(outcomes: Outcomes, reading: Reading) -> Runs:
    """By the number of virtual workers per worker, as far as they were tried."""
    schemes = {virtual: reading.scheme(WORKERS, virtual) for virtual in VIRTUAL}
    here = outcomes.where(data=_name(reading))
    return {v: here.of(scheme) for v, scheme in schemes.items() if here.where(**scheme._asdict())}


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
    runs = {reading: _runs(outcomes, reading) for reading in (PRINTED, *READINGS)}
    return [
        _too_few(where, runs[PRINTED][5], runs[PRINTED][10]),
        _convergence(where, runs),
        _similar(where, runs),
        _best(where, runs, outcomes),
        _logarithm(where, runs[PRINTED], outcomes),
    ]


def _uneven(result: Result) -> tuple[int, int]:
    """In how many of how many windows of the second half of the day the imbalance is not near zero."""
    windows = windows_of(result)
    second_half = between(windows, windows[-1].end / 2, windows[-1].end)
    return sum(window.imbalance > NEAR_ZERO for window in second_half), len(second_half)


def _too_few(where: str, five: Result, ten: Result) -> Finding:
    uneven, of = _uneven(five)
    return Finding(
        "fig12-5",
        "5 virtual workers per worker do not provide the desired results: not enough of them to move around",
        "5 are too few",
        where
        + f"highest imbalance in the second half of the day {shown(_late(five))} with 5, {shown(_late(ten))} with "
        f"10; with 5 it is above {NEAR_ZERO:g} in {uneven} of {of} windows of about a minute",
        verdict(2 * uneven > of),
        f"Rule: with 5 the imbalance is above {NEAR_ZERO:g} in more than half of the windows of about t0 in the second "
        "half of the day. One of 50 virtual workers is 0.8 x 22 / 50 = 0.352 of a weak machine, which has 2 of them "
        "(utilisation 0.70) or 3 (1.06), and passes the third on and gets it back. (An earlier measurement, in windows "
        "of four minutes, hid that.)",
    )


def _latencies(of: Runs) -> str:
    return f"mean latency {', '.join(f'{_latency(result):.3g} s ({number})' for number, result in of.items())}"


def _convergence(where: str, runs: dict[Reading, Runs]) -> Finding:
    fewer = (10, 20)

    def shown_times(of: Runs) -> str:
        return f"near zero for good after {', '.join(f'{hours(_settled(result))} ({n})' for n, result in of.items())}"

    def holds(of: Runs) -> bool:
        times = {number: _settled(result) for number, result in of.items()}
        ends = {number: float("inf") if time is None else time for number, time in times.items()}
        return ends[1000] > max(ends[number] for number in fewer)

    return Finding(
        "fig12-1000",
        "with 1000 virtual workers per worker the system takes longer to converge",
        "longer",
        where + shown_times(runs[PRINTED]),
        why=f"Rule: with {' and '.join(map(str, fewer))} the imbalance is near zero for good at some time, with 1000 "
        "later or never. At most one virtual worker moves for each pair of a busy and an idle worker in a window: "
        "where 3 strong workers lack 1270 each, that takes 1270 minutes at least.",
        **judged(runs, holds, shown_times),
    )


def _similar(where: str, runs: dict[Reading, Runs]) -> Finding:
    def shown_pair(of: Runs) -> str:
        return (
            f"mean latency {_latency(of[10]):.3g} s and {_latency(of[20]):.3g} s, highest imbalance in the second half "
            f"of the day {shown(_late(of[10]))} and {shown(_late(of[20]))}"
        )

    def holds(of: Runs) -> bool:
        pair = [_latency(of[number]) for number in (10, 20)]
        return max(pair) <= SIMILAR * min(pair)

    return Finding(
        "fig12-similar",
        "10 and 20 virtual workers per worker provide similar performance",
        "similar",
        where + shown_pair(runs[PRINTED]),
        why=f"Rule: mean latencies within a factor {SIMILAR:g}. Twice as many take twice as long to move, and the "
        "tuples that queue up meanwhile make the mean.",
        **judged(runs, holds, shown_pair),
    )


def _best(where: str, runs: dict[Reading, Runs], outcomes: Outcomes) -> Finding:
    def holds(of: Runs) -> bool:
        return _latency(of[100]) <= ALIKE * min(map(_latency, of.values()))

    probing, quicker = (outcomes.of(scheme, data="WP") for scheme in (PROBING, QUICKER))
    windows = windows_of(runs[PRINTED][100])
    left = drained(windows, 0, windows[-1].end)
    return Finding(
        "fig12-100",
        "100 virtual workers per worker generate the best results",
        "100 best",
        where + f"{_latencies(runs[PRINTED])}; 100 with t0 = 10 s: {_latency(quicker):.3g} s; 100 with the rule of "
        f"section VI-A: {_latency(probing):.3g} s, near zero after {hours(_settled(probing))}",
        why="Rule: with 100 the mean latency is at most a tenth above the least of all that were run. Moving is slow, "
        "one virtual worker for each pair in a window, and at an even pace it stops too early: a strong worker above "
        "0.75 is no longer idle, so a weak one at 0.9 finds nobody to give to, though the mean is 0.8. What queued up "
        f"meanwhile drains slowly (with 100, no tuple waits a minute longer than elsewhere after {hours(left)}). In "
        "the quiet hours of a daily cycle everybody is idle. A shorter t0 helps (ours), and so does the rule of "
        "section VI-A.",
        **judged(runs, holds, _latencies),
    )


def _logarithm(where: str, few: Runs, outcomes: Outcomes) -> Finding:
    many = {virtual: outcomes.of(PRINTED.scheme(MANY, virtual), data=MANY_NAME) for virtual in ENOUGH}

    def told(of: Runs) -> str:
        counts = {virtual: _uneven(of[virtual]) for virtual in ENOUGH}
        return ", ".join(f"{uneven} of {windows} ({virtual})" for virtual, (uneven, windows) in counts.items())

    def least(of: Runs) -> float:
        """The fewest that are enough: near zero in at least half of the windows."""
        enough = [virtual for virtual in ENOUGH if 2 * _uneven(of[virtual])[0] <= _uneven(of[virtual])[1]]
        return min(enough, default=float("inf"))

    return Finding(
        "section5-log",
        "O(log n) virtual workers per worker are enough (section V-B)",
        "O(log n)",
        where + f"windows of about t0 in which the imbalance is above {NEAR_ZERO:g} in the second half of the day, n = "
        f"{WORKERS}: {told(few)}; n = {MANY}: {told(many)}",
        verdict(least(many) <= TWICE * least(few) < float("inf")),
        f"Rule: the fewest of {', '.join(map(str, ENOUGH))} virtual workers per worker that are enough with n = {MANY} "
        f"are at most {TWICE} times as many as with n = {WORKERS}, since log {MANY} is {TWICE} log {WORKERS}. Enough: "
        f"the imbalance is at most {NEAR_ZERO:g} in at least half of the windows of about t0. 3 of 10 machines are 5 "
        "times as strong; t0 is in proportion to n, so that a worker sees as many tuples in it (ours). How many are "
        "needed depends on how unequal the machines are, of which O(log n) says nothing.",
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    shown_runs = {f"{v} per worker": result for v, result in _runs(outcomes, PRINTED).items()}
    read = {reading.name: _runs(outcomes, reading)[100] for reading in (PRINTED, *READINGS)}
    rows = [
        [
            outcome.job.data.removeprefix("WP, ") if outcome.job.data != "WP" else PRINTED.name,
            outcome.result.params["virtual"],
            f"{outcome.result.params['window']:g} s",
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
        Picture(
            "fig12-readings",
            through_the_day(read),
            "The same with 100 virtual workers per worker, as printed and under each reading. A day that begins with "
            "quiet hours lets CG move virtual workers before queues grow.",
        ),
        Table(
            "Settled: from then on the highest utilisation is at most 0.1 above the mean. Late imbalance: its highest "
            "in the second half of the day.",
            [
                "read",
                "virtual workers of each",
                "t0",
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
