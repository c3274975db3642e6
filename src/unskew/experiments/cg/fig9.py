"""Fig. 9 (Q2): queues, latency and utilisation of 10 equal workers through a day."""

from unskew.experiments.cg.cluster import (
    ALL_ALIKE,
    CG,
    HIGH_IMBALANCE,
    HOUR,
    LOW,
    NEAR_ZERO,
    Window,
    grouping,
    grows,
    queues_of,
    samples_for,
    through_the_day,
    windows_of,
    worst,
)
from unskew.experiments.cg.setup import BALANCED, KG, KINDS, PKG, POTC, SG, Kinds, shown, wikipedia, wp_label
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings

WORKERS = 10
NEARLY_PERFECT = (PKG, POTC, SG)
COMPARED: Kinds = {**{name: KINDS[name] for name in (KG, *NEARLY_PERFECT)}, CG: grouping}


def jobs(settings: Settings) -> list[Job]:
    schemes, stream = tuple(kind(WORKERS) for kind in COMPARED.values()), wikipedia(settings)
    return [Job("fig9", "WP", stream, schemes, samples=samples_for(stream), queues=queues_of(ALL_ALIKE, WORKERS))]


def _windows(outcomes: Outcomes) -> dict[str, list[Window]]:
    return {name: windows_of(outcomes.of(kind(WORKERS))) for name, kind in COMPARED.items()}


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    of = _windows(outcomes)
    where = f"{wp_label(outcomes[0].result.tuples)}: "
    last = of[KG][-1]
    queue = {name: worst(windows, lambda w: w.queue) for name, windows in of.items()}
    wait = {name: worst(windows, lambda w: w.wait) for name, windows in of.items()}
    imbalance = {name: worst(windows, lambda w: w.imbalance) for name, windows in of.items()}
    lowest = min(window.imbalance for window in of[KG])
    return [
        Finding(
            "fig9-kg",
            "the differences between the largest and the least queue length and latency increase over time with KG",
            "growing; no numbers in the text",
            where + f"at the end of the stream {last.queue:,} tuples and {last.wait / HOUR:.1f} h",
            verdict(grows(of[KG], lambda w: w.queue) and grows(of[KG], lambda w: w.wait)),
            "Rule: both are larger at the end of each third of the time than of the third before.",
        ),
        Finding(
            "fig9-cg",
            "CG keeps both queue length and execution latency very low",
            "very low; no numbers in the text",
            where + f"at most {queue[CG]:,.0f} tuples and {wait[CG]:.2f} s at any sample; KG up to {queue[KG]:,.0f}",
            verdict(queue[CG] <= LOW * queue[KG] and wait[CG] <= LOW * wait[KG]),
            f"Rule: the largest difference of CG is at most {100 * LOW:g} % of KG's, for both.",
        ),
        Finding(
            "fig9-imbalance",
            "the imbalance is high for KG, whereas CG keeps it close to zero",
            "high, close to zero",
            where + f"KG at least {shown(lowest)}, CG at most {shown(imbalance[CG])} in any window",
            verdict(lowest > HIGH_IMBALANCE and imbalance[CG] <= NEAR_ZERO),
            f"Rule: highest utilisation less the mean is always above {HIGH_IMBALANCE:g} with KG (then a queue grows "
            f"without end) and never above {NEAR_ZERO:g} with CG.",
        ),
        Finding(
            "fig9-others",
            "PKG, PoTC and SG provide nearly perfect load balance, so that the differences are 0",
            "0",
            where
            + "; ".join(
                f"{name} queue {queue[name]:,.0f}, latency {wait[name]:.2f} s, imbalance {shown(imbalance[name])}"
                for name in NEARLY_PERFECT
            ),
            verdict(
                all(
                    queue[name] <= LOW * queue[KG] and wait[name] <= LOW * wait[KG] and imbalance[name] <= BALANCED
                    for name in NEARLY_PERFECT
                )
            ),
            f"Rule: differences of queues and latencies at most {100 * LOW:g} % of KG's and an imbalance of "
            f"utilisation of at most {BALANCED:g}, at every sample. They cannot be exactly 0: a worker that has just "
            "got a tuple has one more than the next.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    results = {name: outcomes.of(COMPARED[name](WORKERS)) for name in (KG, SG, CG)}
    return [
        Picture(
            "fig9",
            through_the_day(results),
            f"{wp_label(outcomes[0].result.tuples)}: {WORKERS} equal workers at 80 % of their capacity. "
            "Differences between the worker with the most and the one with the least.",
        )
    ]


EXPERIMENT = Experiment("fig9", "Figure 9: equal workers through a day", jobs, claims, parts)
