"""CG, Figs. 14 and 15: KG, PKG, SG and CG on equal workers, and with two of them at 30 % of the speed.

As in the paper: 8 sources, 24 workers, TW. A row takes 10 ms, or 33 ms at a worker that is limited; rows come as fast
as they may with 300 on their way, about a dozen per worker (ours). CG first learns from its workers in rounds, as
`unskew.spark.Feedback` does it on Spark: they tell how long they worked, and virtual workers change hands; the paper
gives it ten minutes. The other schemes do not listen.
"""

from unskew import Hash, PartialKey, Shuffle
from unskew.experiments.deployments.pictures import bars
from unskew.experiments.deployments.rules import ALIKE, CLEARLY, NEAR, in_time, judged, near
from unskew.experiments.deployments.setup import (
    Cell,
    Deployment,
    Kinds,
    cells_of,
    milliseconds,
    of_kinds,
    per_second,
    repetitions,
    seed_of,
    spread,
    table_of,
)
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.experiments.words import median
from unskew.schemes.cg import ConsistentGrouping
from unskew.service import Service
from unskew.streams import StandIn

KG, PKG, SG, CG = "KG", "PKG", "SG", "CG"
KINDS: Kinds = {KG: Hash, PKG: PartialKey, SG: Shuffle, CG: ConsistentGrouping}
WORKERS = 24
COST = 0.010
PENDING = 300
EQUAL, LIMITED = "equal", "two at 30 %"
SPEEDS = {EQUAL: (), LIMITED: (0.3, 0.3, *[1.0] * (WORKERS - 2))}
ROWS, QUICK_ROWS = 4800, 2400
ROUNDS, QUICK_ROUNDS = 12, 7
ROUND_ROWS = 960  # four for each virtual worker
WHOLE, QUICK = 3, 1  # repetitions
MEMORY = {KG: 7.0, PKG: 8.5, CG: 8.5, SG: 14.0}  # per cent of the cluster's, as printed


def jobs(settings: Settings) -> list[Deployment]:
    found = []
    for repetition in repetitions(settings, WHOLE, QUICK):
        stream = StandIn("TW", settings.pick(ROWS, QUICK_ROWS), seed_of(settings, repetition))
        for data, speeds in SPEEDS.items():
            for kind, scheme in KINDS.items():
                learns = {"rounds": settings.pick(ROUNDS, QUICK_ROUNDS), "round_rows": ROUND_ROWS} if kind == CG else {}
                service = Service(WORKERS, pending=PENDING, speeds=speeds)
                found.append(Deployment("cg", data, kind, scheme(WORKERS), stream, COST, service, repetition, **learns))
    return found


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = cells_of(outcomes, KINDS)
    equal, limited = cells[EQUAL], cells[LIMITED]
    memory = {kind: equal.ratio(kind, KG, "replicas") for kind in KINDS}
    throughput = limited.ratios(CG, KG, "throughput")
    latency = limited.ratios(KG, CG, "latency_mean")
    others = (KG, PKG, SG)
    return [
        judged(
            "cg-fig14",
            "on equal machines PKG, SG and CG have more throughput and less latency than KG",
            "superior; no numbers in the text",
            _told(equal),
            f"each has at least {CLEARLY:g} times the throughput of KG, and KG {CLEARLY:g} times its latency",
            all(
                equal.ratio(kind, KG, "throughput") >= CLEARLY and equal.ratio(KG, kind, "latency_mean") >= CLEARLY
                for kind in (PKG, SG, CG)
            ),
            "As long as rows come the two are one claim (Little's law). At the end of a run the queues become empty, "
            "which shortens the mean latency of KG most.",
        ),
        judged(
            "cg-fig14-memory",
            "memory of KG, PKG, CG and SG on equal machines",
            "KG 7 %, PKG and CG 8.5 %, SG 14 % of the cluster's",
            "(worker, key) pairs over KG's: " + ", ".join(f"{kind} {value:.2f}" for kind, value in memory.items()),
            f"each within a factor {ALIKE:g} of the printed memory over KG's",
            all(1 / ALIKE <= memory[kind] / (printed / MEMORY[KG]) <= ALIKE for kind, printed in MEMORY.items()),
            "Memory holds more than counters, and the replicas of SG grow with the length of the stream, which is "
            f"{equal.of[KG][0].rows:,} rows here.",
        ),
        judged(
            "cg-fig15-throughput",
            "with two workers limited to 30 % CG has 3.44 times the throughput of KG (section VII)",
            "section VII: 3.44; section I: 2",
            f"{spread(throughput)}; {_told(limited)}",
            f"the median within a factor {NEAR:g} of 3.44",
            near(median(throughput), 3.44),
            "How bad KG is depends on which keys the two limited workers have.",
            "section I, with which the abstract agrees, has the two factors the other way round: 2x throughput",
            spread(throughput),
            near(median(throughput), 2.0),
        ),
        judged(
            "cg-fig15-latency",
            "with two workers limited to 30 % CG has half the latency of KG (section VII)",
            "section VII: 2x; section I and abstract: 3.44x",
            f"{spread(latency)}; mean latency {of_kinds(limited, 'latency_mean', milliseconds)}",
            f"the median within a factor {NEAR:g} of 2",
            near(median(latency), 2.0),
            "As long as rows come both factors are the same (Little's law): 2 and 3.44 cannot both be, unless more are "
            "on their way with CG. At the end of a run the queues become empty, which shortens the mean latency of KG "
            "most.",
            "section I and the abstract have 3.44x latency",
            spread(latency),
            near(median(latency), 3.44),
        ),
        judged(
            "cg-fig15-best",
            "with two limited workers CG outperforms all others in throughput and latency",
            "outperforms",
            _told(limited),
            f"CG has at least {CLEARLY:g} times the throughput of each, and each {CLEARLY:g} times its latency",
            all(
                limited.ratio(CG, kind, "throughput") >= CLEARLY and limited.ratio(kind, CG, "latency_mean") >= CLEARLY
                for kind in others
            ),
        ),
    ]


def _told(cell: Cell) -> str:
    return (
        f"rows per second: {of_kinds(cell, 'throughput', per_second)}; mean latency: "
        f"{of_kinds(cell, 'latency_mean', milliseconds)}"
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells = cells_of(outcomes, KINDS)
    panels = {"throughput": "rows per second", "latency_mean": "mean latency, s"}
    figure = bars(list(cells.values()), panels, list(KINDS))
    return [
        Picture("cg-fig15", figure, "24 workers, all equal (Fig. 14), and two of them at 30 % (Fig. 15)."),
        table_of(cells, f"TW (stand-in), 8 sources, {WORKERS} workers, {PENDING} rows on their way."),
    ]


EXPERIMENT = Experiment("cg", "CG: Figures 14 and 15", jobs, in_time(claims), parts)
