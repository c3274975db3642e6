"""Figs. 2 and 3 (section 2.3): D-C and W-C with sketches of 100 and 1000 keys, on streams that drift."""

from unskew import Hash, PartialKey
from unskew.experiments.claims import verdict
from unskew.experiments.fish.pictures import Row, by_workers
from unskew.experiments.fish.rules import NEAR, near
from unskew.experiments.fish.setup import (
    MOST,
    REAL,
    SG,
    WITH_HEADROOM,
    Cell,
    Kinds,
    cells_of,
    estimated,
    jobs_of,
    real_streams,
    sizes,
)
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, not_testable
from unskew.experiments.real import absent
from unskew.experiments.words import listed
from unskew.schemes.d_choices import DChoices
from unskew.schemes.w_choices import WChoices

KINDS: Kinds = {
    **SG,
    "FG": Hash,
    "PKG": PartialKey,
    "D-C100": lambda workers: DChoices(workers, counters=100),
    "W-C100": lambda workers: WChoices(workers, counters=100),
    "D-C1000": lambda workers: DChoices(workers, counters=1000),
    "W-C1000": lambda workers: WChoices(workers, counters=1000),
    "W-C100 estimated": lambda workers: estimated(workers, 100),
    "W-C1000 estimated": lambda workers: estimated(workers, 1000),
}
TEXTS = {
    "fig2-1000": ("latency of W-C1000 and D-C1000 is almost the same as PKG's", "99th percentile of PKG: 2,808 ms"),
    "fig2-100": (
        "with 100 keys the latency of D-C and W-C improves on that with 1000",
        "lower; no numbers in the text",
    ),
    "fig3-sg": ("SG has the highest memory overhead", "up to 23.16x of FG, with 128 workers (AM)"),
    "fig3-100": ("the memory of D-C100 and W-C100 is similar to SG's", "similar; no numbers in the text"),
}


def jobs(settings: Settings) -> list[Job]:
    return jobs_of("fig2", real_streams(settings), sizes(settings), KINDS, queues=WITH_HEADROOM)


def p99(cell: Cell, name: str) -> float:
    return cell.of[name].latency_p99 or 0.0


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = [cell for cell in cells_of(outcomes, KINDS) if cell.workers == MOST]
    if not cells:
        return [
            not_testable(id, *text, f"AM cannot be had, and {absent(', '.join(REAL))}") for id, text in TEXTS.items()
        ]

    def shown(value: str, names: tuple[str, ...]) -> str:
        measure = p99 if value == "p99" else Cell.memory
        unit = " s" if value == "p99" else "x"
        return f"W={MOST}, " + listed(
            (c.data, f"{name} {measure(c, name):,.3g}{unit}") for c in cells for name in names
        )

    return [
        Finding(
            "fig2-1000",
            *TEXTS["fig2-1000"],
            shown("p99", ("PKG", "D-C1000", "W-C1000", "SG")),
            verdict(all(near(p99(c, name), p99(c, "PKG")) for c in cells for name in ("D-C1000", "W-C1000"))),
            f"Rule: on every stream the 99th percentile of both is within a factor {NEAR:g} of PKG's at W={MOST}. 1000 "
            "counters find every key with a share above theta + 1/1000, so all keys that two workers cannot carry. "
            "Drift delays that; and D-C computes d from the shares of a lifetime, and that d may be too small for the "
            "keys of today.",
        ),
        Finding(
            "fig2-100",
            *TEXTS["fig2-100"],
            shown("p99", ("D-C100", "D-C1000", "W-C100", "W-C1000", "W-C100 estimated", "W-C1000 estimated")),
            verdict(all(p99(c, f"{s}100") < p99(c, f"{s}1000") for c in cells for s in ("D-C", "W-C"))),
            f"Rule: lower for both on every stream, at W={MOST}. With guaranteed counts, as here, 100 counters merely "
            "see fewer hot keys than 1000. Where the sketch's estimates are trusted, errors included (W-C estimated), "
            "100 counters call every key hot: the smallest counter is about N/100, above theta N = N/640. Then W-C is "
            "shuffle, with its latency and its memory, and that is what the paper describes.",
        ),
        Finding(
            "fig3-sg",
            *TEXTS["fig3-sg"],
            shown("memory", ("SG",)),
            verdict(near(max(c.memory("SG") for c in cells), 23.16)),
            f"Rule: the largest of the real streams' is within a factor {NEAR:g} of AM's. It depends on the data "
            "alone: a key of n tuples has at most min(n, W) replicas. AM has 32 tuples per key, the streams here 17 "
            "to 33, but more of theirs belong to few keys.",
        ),
        Finding(
            "fig3-100",
            *TEXTS["fig3-100"],
            shown("memory", ("SG", "D-C100", "W-C100", "W-C100 estimated", "W-C1000 estimated")),
            verdict(all(near(c.memory(f"{s}100"), c.memory("SG")) for c in cells for s in ("D-C", "W-C"))),
            f"Rule: both within a factor {NEAR:g} of SG's on every stream, at W={MOST}. See fig2-100: that happens "
            "only where the sketch's errors are counted as tuples. With the guaranteed counts of this library no cold "
            "key is ever hot.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells = cells_of(outcomes, KINDS)
    if not cells:
        return ["No real stream was found; name their folder with --data."]
    names = [name for name in KINDS if name not in ("SG", "FG")]
    rows = [Row("99th percentile of latency, s", p99, log=True), Row("memory, over FG", Cell.memory, log=True)]
    return [
        Picture(
            "fig2",
            by_workers(cells, ["SG", "FG", *names], rows),
            "Simulated latency (workers of 100 tuples per second, 80 % busy on average) and memory on real streams "
            "that drift, instead of Amazon's film reviews. The number is that of the sketch's counters. “Estimated” "
            "takes the sketch's errors for tuples: with 100 counters it is shuffle, slowly, from W = 32 on.",
        )
    ]


EXPERIMENT = Experiment("fig2", "Figures 2 and 3: how many keys D-C and W-C count", jobs, claims, parts)
