"""Figs. 18 to 20 (RQ5): what the paper measured on Storm with 32 sources and 128 workers, as far as queues can tell."""

from unskew.experiments.claims import NOT_TESTABLE, verdict
from unskew.experiments.fish.fig9 import latencies
from unskew.experiments.fish.pictures import Row, by_skew
from unskew.experiments.fish.rules import NEAR, SAME, at_most, by_share, largest, near
from unskew.experiments.fish.setup import (
    ALL,
    BOTH_FISH,
    LONG,
    MOST,
    OF_COUNTERS,
    QUICK_SKEWS,
    RIVALS,
    SG,
    SIZED,
    WITH_HEADROOM,
    Cell,
    Kinds,
    cells_of,
    jobs_of,
    real_streams,
    zipf_streams,
)
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, Table, not_testable
from unskew.experiments.words import percent

SOURCES = 32
ON_ZF: Kinds = {**SG, **RIVALS, **SIZED, **BOTH_FISH}
LONGER = ", 50M tuples"
MEMORY: Kinds = {**SG, **BOTH_FISH}
PRINTED_SHARE = 0.0334  # of SG's memory, at z = 1.0
MOST_SHARE = 0.16


def jobs(settings: Settings) -> list[Job]:
    longer = {} if settings.quick else zipf_streams(settings, LONG, QUICK_SKEWS, LONGER)
    return [
        *jobs_of("fig18", real_streams(settings), (MOST,), ALL, queues=WITH_HEADROOM, sources=SOURCES),
        *jobs_of("fig18", zipf_streams(settings), (MOST,), ON_ZF, sources=SOURCES),
        *jobs_of("fig18", longer, (MOST,), MEMORY, sources=SOURCES),
    ]


def _cells(outcomes: Outcomes, kinds: Kinds) -> list[Cell]:
    """Of the real streams (ALL), of ZF (ON_ZF) or of the long ones (MEMORY)."""

    def kinds_of(data: str) -> Kinds:
        return MEMORY if data.endswith(LONGER) else ON_ZF if data.startswith("z=") else ALL

    return cells_of(Outcomes(outcome for outcome in outcomes if kinds_of(outcome.job.data) is kinds), kinds)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    times = [(cell.time("FISH"), cell.place) for cell in _cells(outcomes, ON_ZF)]
    real = _cells(outcomes, ALL)
    return [
        _latency(real),
        _as_sg(real),
        not_testable(
            "fig18-absolute",
            "median and 99th percentile of FISH's latency on Storm",
            "7 and 562 ms (MT), 9 and 640 ms (AM)",
            "Milliseconds are a matter of the machines, the network and the load, which the paper does not tell. "
            "Ratios, on Spark: fish-fig18 of deployments.",
        ),
        not_testable(
            "fig19",
            "throughput of FISH is 1.32 times that of W-C and 1.48 times that of D-C, near SG's",
            "FG 30K (MT) and 23K (AM) tuples per second",
            "Throughput on a cluster of 8 machines is a matter of its network and of Storm; there is none here. "
            "Ratios, on Spark: fish-fig19 of deployments.",
        ),
        *_memory(_cells(outcomes, MEMORY) or _cells(outcomes, ON_ZF)),
        at_most(
            "sources-sg",
            f"FISH's execution time stays comparable to SG's with {SOURCES} sources (the paper does not say how many "
            "its simulation has)",
            1.32,
            times,
            "Each source knows its own tuples only, and thinks that the workers work for it alone.",
        ),
        _rivals(_cells(outcomes, ON_ZF)),
    ]


def _memory(cells: list[Cell]) -> list[Finding]:
    def shares(ending: str) -> dict[float, float]:
        return {cell.skew: cell.memory(f"FISH{ending}") / cell.memory("SG") for cell in cells}

    def shown(ending: str) -> str:
        return ", ".join(f"{percent(share)} (z={z})" for z, share in shares(ending).items())

    def as_printed(ending: str) -> bool:
        found = shares(ending)
        lowest = min(found, key=lambda z: found[z])
        return max(found.values()) < MOST_SHARE and lowest == 1.0 and near(found[1.0], PRINTED_SHARE)

    least = min(*shares(OF_COUNTERS).values(), *shares("").values())
    return [
        Finding(
            "fig20",
            "FISH's memory is less than 16 % of SG's, and as low as 3.34 % at skew 1.0",
            "< 16 %; 3.34 % at z = 1.0",
            why=f"Rule: below 16 % at every z, lowest at z = 1.0 and there within a factor {NEAR:g} of the printed "
            f"share, with {SOURCES} sources and W={MOST}. SG's memory grows with the length of the stream (see "
            f"fig11-sg). Each of {SOURCES} sources has its own idea of what is hot.",
            **by_share(as_printed, shown),
        ),
        Finding(
            "abstract-memory",
            "FISH reduces SG's memory by 99.96 % (abstract); by 96.66 % (introduction and conclusion)",
            "99.96 %, and 96.66 %, which is 100 % less 3.34 %",
            f"by at most {percent(1 - least)} here",
            verdict(near(least, 1 - 0.9996)),
            f"Rule: the least share of SG's memory is within a factor {NEAR:g} of the abstract's 0.04 %. It cannot be: "
            f"SG has at most W = {MOST} replicas of a key and FISH at least one, so the share is at least "
            f"{percent(1 / MOST)}. The abstract's digits are transposed; fig20 judges the other number.",
        ),
    ]


def _as_sg(cells: list[Cell]) -> Finding:
    text = (
        "fig18-sg",
        "FISH's latency on Storm is almost the ideal one of SG",
        "almost ideal; SG's is not in the text",
    )
    if not cells:
        return not_testable(*text, "MT and AM cannot be had, and no real stream is present.")

    def over(cell: Cell, which: str) -> float:
        return cell.latency("FISH", which) / cell.latency("SG", which)

    worst = max((over(cell, which), cell.data) for cell in cells for which in ("latency_p50", "latency_p99"))
    return Finding(
        *text,
        "simulated, FISH over SG: "
        + "; ".join(
            f"{cell.data}: median {over(cell, 'latency_p50'):.2f}, 99th percentile {over(cell, 'latency_p99'):.2f}"
            for cell in cells
        ),
        verdict(worst[0] <= NEAR),
        f"Rule: median and 99th percentile at most {NEAR:g} times SG's on every real stream, in a simulation with "
        f"{SOURCES} sources, W={MOST} and workers 80 % busy.",
    )


def _latency(cells: list[Cell]) -> Finding:
    def reduction(cell: Cell, name: str, which: str) -> str:
        mine, other = (getattr(cell.of[scheme], which) or 0.0 for scheme in ("FISH", name))
        return percent(1 - mine / other, 1)

    text = "; ".join(
        f"{cell.data}: mean {reduction(cell, 'W-C', 'latency_mean')}, 99th percentile "
        f"{reduction(cell, 'W-C', 'latency_p99')} (against W-C sized {reduction(cell, 'W-C sized', 'latency_mean')} "
        f"and {reduction(cell, 'W-C sized', 'latency_p99')})"
        for cell in cells
    )
    return Finding(
        "fig18",
        "FISH reduces the mean and the 99th percentile of W-C's latency on Storm",
        "by 87.12 % and 76.34 % (MT, AM)",
        f"simulated, not comparable: {text}" if text else "-",
        NOT_TESTABLE,
        "A simulation has no network, no acknowledgements and no backpressure of Storm's; the paper does not tell its "
        f"load; and MT and AM cannot be had. What queues say with {SOURCES} sources, W={MOST} and workers 80 % busy is "
        "given for what it is worth. On Spark: fish-fig18 of deployments.",
    )


def _rivals(cells: list[Cell]) -> Finding:
    ratios = [(cell.gain(name, "FISH"), f"{name}, {cell.place}") for cell in cells for name in ("D-C", "W-C")]
    fair = [(cell.gain(name, "FISH"), f"{name}, {cell.place}") for cell in cells for name in SIZED]
    return Finding(
        "sources-rivals",
        f"FISH is faster than D-C and W-C with {SOURCES} sources too",
        "13.57x and 12.05x in Fig. 10, which does not say how many sources it has",
        f"up to {largest(ratios)}, at least {min(ratios)[0]:.2f}; with sized sketches up to {largest(fair)}",
        verdict(max(ratios)[0] >= SAME and min(ratios)[0] >= 1 / SAME),
        f"Rule: faster by a factor {SAME:g} in some cell, and in none slower by {SAME:g}.",
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    made: list[Part] = []
    if cells := _cells(outcomes, ALL):
        body = [
            [cell.data if name == "SG" else "", name, *latencies(cell, name), f"{cell.memory(name):.2f}"]
            for cell in cells
            for name in ALL
        ]
        heads = ["stream", "scheme", "mean latency", "99th percentile", "longest queue", "memory over FG"]
        made.append(Table(f"{SOURCES} sources, {MOST} workers 80 % busy; latency in service times.", heads, body))
    rows = [Row("execution time, over SG", Cell.time, log=True), Row("memory, over FG", Cell.memory, log=True)]
    caption = (
        f"{SOURCES} sources and {MOST} workers on the time-evolving Zipf stream, as Figs. 10 and 11 with one source."
    )
    return [*made, Picture("fig20", by_skew(_cells(outcomes, ON_ZF), list(ON_ZF), rows), caption)]


EXPERIMENT = Experiment("fig18", "Figures 18 to 20: on Storm, and with 32 sources", jobs, claims, parts)
