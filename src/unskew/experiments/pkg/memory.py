"""Q5: the counters of a word count on WP, which are replicas; throughput under load, simulated; and the cluster."""

from unskew import Hash, PartialKey, Shuffle
from unskew.experiments.claims import verdict, within
from unskew.experiments.grid import Job, Outcomes, max_over_mean
from unskew.experiments.paper import Experiment, Finding, Part, Settings, Table, not_testable
from unskew.experiments.pkg.data import label, stand_in
from unskew.experiments.spread import seeded, spread_of
from unskew.experiments.words import percent
from unskew.simulate import Queues, Result

PRINTED = {"hash": 2_900_000, "pkg": 3_600_000, "shuffle": 7_200_000}  # counters
NAMES = {"hash": "KG, 10 workers", "pkg": "PKG, 8 workers", "shuffle": "SG, 8 workers"}
SOURCES = 8
# A stand-in has WP's tuples, keys and p1, but a Zipf tail; how many keys come twice, and so can have two counters,
# depends on the tail. A fifth leaves room for that and still tells 3.6M from 2.9M.
OFF = 0.2
# Fig. 10(a), simulated. The paper says that KG saturates at a delay of 0.4 ms per tuple on 10 workers (section 6.2,
# Q5). By its Table 2 the busiest of them has 1/10 + 7.8e-2 of the tuples. So tuples came at this rate per second:
SATURATES = 0.4e-3
RATE = 1 / (SATURATES * (1 / 10 + 7.8e-2))
DELAYS = {"0.1 ms": 0.1e-3, "1 ms": 1e-3}
LOSSES = {"hash": 0.60, "pkg": 0.37, "shuffle": 0.37}  # of throughput from the least delay to the largest, printed
POINTS = 0.10  # a printed loss is met within so much: the rate is derived from numbers of two digits
SEEDS = 6  # hash functions of KG, on which its busiest worker depends
BOUND = 100  # tuples at a worker (ours): sources wait for room, as on Storm
PART = 2_000_000
TABLE3 = {"KG": 19.35, "PKG": 11.01}  # ms at D = 1 ms, as printed
CLUSTER = (
    "It needs the paper's Storm cluster of 15 virtual servers under load; a simulation has no clock of its own. In "
    "small, on Spark: pkg-fig10b and pkg-fig10c of deployments."
)


def jobs(settings: Settings) -> list[Job]:
    stream = stand_in("WP", settings, quick=22_000_000)
    part = stand_in("WP", settings, PART, quick=300_000)
    schemes = (*seeded(Hash(10), SEEDS), PartialKey(8), Shuffle(8))
    return [
        Job("memory", "WP", stream, (Hash(10), PartialKey(8), Shuffle(8)), SOURCES, replicas=True),
        *(
            Job("memory", name, part, schemes, SOURCES, queues=Queues(rate=RATE, capacity=1 / delay, bound=BOUND))
            for name, delay in DELAYS.items()
        ),
    ]


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    counters = {scheme: outcomes.one(scheme=scheme, data="WP").replicas or 0 for scheme in PRINTED}
    more, printed_more = (found["pkg"] / found["hash"] - 1 for found in (counters, PRINTED))
    return [
        Finding(
            "memory",
            "PKG needs about half the memory of SG (WP)",
            "KG 2.9M counters at 10 workers, PKG 3.6M and SG 7.2M at 8 workers",
            f"{label('WP', outcomes[0].result.tuples)}: "
            + "; ".join(f"{NAMES[scheme]}: {count / 1e6:.2f}M" for scheme, count in counters.items())
            + f"; PKG/KG {counters['pkg'] / counters['hash']:.2f}, PKG/SG {counters['pkg'] / counters['shuffle']:.2f}",
            verdict(all(within(count, PRINTED[scheme], OFF) for scheme, count in counters.items())),
            "Rule: each count within 20 %. Replicas on the WP stand-in with 8 sources. The counts of KG and SG are "
            "what the stand-in was fitted to; that of PKG was not used.",
        ),
        Finding(
            "memory-30",
            "PKG requires about 30 % more memory than KG (WP)",
            f"30 %; by the paper's own counters {percent(printed_more, 0)}",
            f"{label('WP', outcomes[0].result.tuples)}: {percent(more, 0)}",
            verdict(within(more, 0.30, OFF)),
            "Rule: within 20 % of the printed 30 %. The paper's own counters, 3.6M over 2.9M, say 24 %.",
        ),
        _throughput(outcomes),
        not_testable(
            "fig10bc",
            "throughput of PKG, SG and KG against memory, for different periods of aggregation",
            "PKG's throughput is nearly 175 % above KG's on TW, with almost 30 % less memory than SG",
            CLUSTER,
        ),
        _latency(outcomes),
        not_testable(
            "table3-ms",
            "average latency of PKG, SG and KG at delays of 0.1 to 1 ms",
            "PKG 3.81 to 11.01 ms, KG 3.65 to 19.35 ms",
            "In a saturated system latency is a matter of how many tuples may be on their way, which the paper does "
            "not tell. Ratios of them, on Spark: pkg-table3 of deployments.",
        ),
    ]


def _throughput(outcomes: Outcomes) -> Finding:
    def loss(slow: Result, fast: Result) -> float:
        return 1 - (slow.throughput or 0.0) / (fast.throughput or 1.0)

    quick, slow = DELAYS
    losses = {
        scheme: spread_of(
            loss(*pair)
            for pair in zip(
                outcomes.results(scheme=scheme, data=slow), outcomes.results(scheme=scheme, data=quick), strict=True
            )
        )
        for scheme in LOSSES
    }
    short = {"hash": "KG", "pkg": "PKG", "shuffle": "SG"}
    return Finding(
        "fig10a",
        "throughput falls by about 60 % with KG where the delay per tuple grows tenfold, by about 37 % with PKG and SG",
        "KG 60 %, PKG and SG 37 % (WP, 0.1 to 1 ms)",
        f"simulated, {label('WP', outcomes.one(data=slow).tuples)}: "
        + "; ".join(f"{short[s]}: {values.text(lambda share: percent(share, 0))}" for s, values in losses.items()),
        verdict(all(abs(losses[scheme].mean - printed) <= POINTS for scheme, printed in LOSSES.items())),
        "Rule: the mean over hash functions is within 10 percentage points of the printed loss. Simulated with queues: "
        f"8 sources, 10 workers for KG and 8 for PKG and SG, {RATE:,.0f} tuples per second, which is what KG can just "
        "take with the 0.4 ms that the paper calls its saturation point and the imbalance of its Table 2. A worker "
        f"holds at most {BOUND} tuples (ours). The real Fig. 10 needs the paper's cluster; on Spark: "
        "pkg-fig10a of deployments.",
    )


def _latency(outcomes: Outcomes) -> Finding:
    slow = list(DELAYS)[-1]
    kg = spread_of(result.latency_mean or 0.0 for result in outcomes.results(scheme="hash", data=slow))
    pkg = outcomes.one(scheme="pkg", data=slow).latency_mean or 1.0
    printed = TABLE3["KG"] / TABLE3["PKG"]
    return Finding(
        "table3",
        "when the workers are heavily loaded, the average latency with KG is up to 45 % larger than with PKG",
        f"45 % in the text; {percent(printed - 1, 0)} by the paper's own Table 3 ({TABLE3['KG']} over {TABLE3['PKG']} "
        "ms at a delay of 1 ms)",
        f"simulated, {label('WP', outcomes.one(data=slow).tuples)}: KG's over PKG's "
        f"{spread_of(value / pkg for value in kg.values).text()}, which the bound on the queues decides",
        verdict(within(printed, 1.45, 0.1)),
        "Rule: the paper's own table agrees with its text within 10 %. It does not. (45 % is about what KG loses in "
        "throughput by then: 8 workers are 1.42 times as much as 10 of which one has 1.78 times the mean.)",
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    rows = [
        [
            NAMES[scheme],
            f"{printed:,}",
            f"{result.replicas:,}",
            f"{result.replicas_over_kg:.2f}",
            f"{max_over_mean(result):.3f}",
        ]
        for scheme, printed in PRINTED.items()
        for result in [outcomes.one(scheme=scheme, data="WP")]
    ]
    name = label("WP", outcomes[0].result.tuples)
    caption = f"Counters of a word count on {name}, 8 sources: one for each key on each worker that meets it."
    return [Table(caption, ["scheme", "counters, printed", "here", "over KG", "busiest worker over mean"], rows)]


EXPERIMENT = Experiment("memory", "Question 5: memory, and throughput under load", jobs, claims, parts)
