"""Fig. 12 (Q3): how many virtual workers; 3 of 10 machines are 5 times as strong."""

from unskew.experiments.cg.cluster import (
    HOUR,
    NEAR_ZERO,
    SAMPLES,
    UNEQUAL,
    between,
    drained,
    grouping,
    hours,
    queues_of,
    settled,
    through_the_day,
    windows_of,
    worst,
)
from unskew.experiments.cg.setup import shown, whole_wikipedia, wp_label
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Runs
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, Table
from unskew.schemes.cg import ConsistentGrouping
from unskew.simulate import Result

WORKERS = 10
VIRTUAL = (5, 10, 20, 50, 100, 1000)  # of each worker
SLOTS = (60.0, 10.0)  # t0: the minute of the other figures, and ours beside it
AT_THE_MEAN = grouping(WORKERS, 100, idle=0.8)  # ours: whoever is below the target utilisation asks for more
SIMILAR = 2.0  # mean latencies within this factor
ALIKE = 1.1


def _scheme(virtual: int, slot: float = SLOTS[0]) -> ConsistentGrouping:
    return grouping(WORKERS, virtual, slot=slot)


def jobs(settings: Settings) -> list[Job]:
    stream, queues = whole_wikipedia(settings), queues_of(UNEQUAL, WORKERS)
    groups = [tuple(_scheme(virtual, slot) for slot in SLOTS) for virtual in VIRTUAL]
    return [
        Job("fig12", "WP", stream, group, samples=SAMPLES, queues=queues, replicas=True)
        for group in (*groups, (AT_THE_MEAN,))
    ]


def _latency(result: Result) -> float:
    """Mean of all messages: what the three panels of the figure come to."""
    return result.latency_mean or 0.0


def _settled(result: Result) -> float | None:
    windows = windows_of(result)
    return settled(windows, 0, windows[-1].end)


def _late(result: Result) -> float:
    """Highest imbalance in the second half of the day."""
    windows = windows_of(result)
    return worst(between(windows, windows[-1].end / 2, windows[-1].end), lambda w: w.imbalance)


def claims(runs: Runs, settings: Settings) -> list[Finding]:
    of = {virtual: runs.of(_scheme(virtual)) for virtual in VIRTUAL}
    quick = {virtual: runs.of(_scheme(virtual, SLOTS[1])) for virtual in VIRTUAL}
    where = f"{wp_label(of[10].messages)}: "
    times = {virtual: _settled(result) for virtual, result in of.items()}
    ends = {virtual: float("inf") if time is None else time for virtual, time in times.items()}
    latencies = f"mean latency {', '.join(f'{_latency(result):.3g} s ({v})' for v, result in of.items())}"
    best = min(map(_latency, of.values()))
    return [
        Finding(
            "fig12-5",
            "5 virtual workers do not provide the desired results: not enough of them to move around",
            "5 are too few",
            where + f"highest imbalance in the second half of the day {shown(_late(of[5]))} with 5, "
            f"{shown(_late(of[10]))} with 10; {latencies}",
            verdict(_late(of[5]) > NEAR_ZERO),
            f"Rule: with 5 the imbalance is above {NEAR_ZERO:g} somewhere in the second half of the day. "
            "One of 50 virtual workers is 0.8 x 22 / 50 = 0.352 of a weak machine, so that it has 2 (utilisation 0.70) "
            "or 3 of them (1.06); 7 x 2 and 3 x 12 (0.845 of a strong one) is a state in which nobody asks for less.",
        ),
        Finding(
            "fig12-1000",
            "with 1000 virtual workers the system takes longer to converge",
            "longer",
            where + "near zero for good after " + ", ".join(f"{hours(time)} ({v})" for v, time in times.items()),
            verdict(ends[1000] > max(ends[10], ends[20])),
            "Rule: the imbalance is near zero for good later than with 10 and 20, or never. At most one virtual worker "
            "moves for each pair of a busy and an idle worker in a slot; 3 strong workers that lack 1270 of 10,000 "
            "each take 1270 minutes.",
        ),
        Finding(
            "fig12-similar",
            "10 and 20 virtual workers provide similar performance",
            "similar",
            where + f"mean latency {_latency(of[10]):.3g} s and {_latency(of[20]):.3g} s; highest imbalance in the "
            f"second half of the day {shown(_late(of[10]))} and {shown(_late(of[20]))}",
            verdict(max(_latency(of[10]), _latency(of[20])) <= SIMILAR * min(_latency(of[10]), _latency(of[20]))),
            f"Rule: mean latencies within a factor {SIMILAR:g}. Twice as many take twice as long to move, and the "
            "messages that came meanwhile are what the mean is made of.",
        ),
        Finding(
            "fig12-100",
            "100 virtual workers generate the best results",
            "100 best",
            where + f"{latencies}; with t0 = 10 s {', '.join(f'{_latency(r):.3g} s ({v})' for v, r in quick.items())}; "
            f"100 with idle below 0.8 in the place of 0.75: {_latency(runs.of(AT_THE_MEAN)):.3g} s, near zero after "
            f"{hours(_settled(runs.of(AT_THE_MEAN)))}",
            verdict(_latency(of[100]) <= ALIKE * best),
            f"Rule: with 100 the mean latency is at most a tenth above the least of all. {_why_not_100(of)}",
        ),
    ]


def _why_not_100(of: dict[int, Result]) -> str:
    end = windows_of(of[100])[-1].end
    left = drained(windows_of(of[100]), 0, end)
    return (
        "Moving is slow, one for each pair in a slot, and it stops too early: a strong worker that is above 0.75 is "
        "no longer idle, so that a weak one at 0.9 and more finds nobody to give to, though the mean is 0.8. What "
        f"queued up meanwhile drains slowly (with 100 no message waits a minute longer than elsewhere after "
        f"{hours(left)}). Coarse virtual workers overshoot that point, fine ones creep up to it. Two runs of ours "
        "beside it: with a shorter t0 all settle sooner, and with a threshold for idle at the target of 0.8 the 100 "
        "settle fully. So which number is best depends on t0 and thresholds, and the paper does not print its t0."
    )


def parts(runs: Runs, settings: Settings) -> list[Part]:
    shown_runs = {f"{v} virtual workers": runs.of(_scheme(v)) for v in VIRTUAL}
    shown_runs["100, idle below 0.8 (ours)"] = runs.of(AT_THE_MEAN)
    rows = [
        [
            run.result.params["virtual"],
            f"{run.result.params['slot']:g} s",
            run.result.params["idle"],
            hours(_settled(run.result)),
            f"{_late(run.result):.3f}",
            f"{run.result.latency_mean:.3g} s",
            f"{(run.result.latency_max or 0.0) / HOUR:.2f} h",
            f"{run.result.replicas_over_kg:.3f}",
        ]
        for run in runs
    ]
    return [
        Picture(
            "fig12",
            through_the_day(shown_runs),
            f"{wp_label(runs[0].result.messages)}: 3 of 10 workers are 5 times as strong; CG with 5 to 1000 virtual "
            "workers a worker at the start, t0 = 1 minute.",
        ),
        Table(
            "Settled: from then on the highest utilisation is at most 0.1 above the mean. Late imbalance: its highest "
            "in the second half of the day.",
            ["virtual", "t0", "idle below", "settled after", "late imbalance", "mean latency", "worst", "memory/KG"],
            rows,
        ),
    ]


EXPERIMENT = Experiment("fig12", "Figure 12: how many virtual workers", jobs, claims, parts)
