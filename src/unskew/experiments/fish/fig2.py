"""Figs. 2 and 3 (section 2.3): D-C and W-C with sketches of 100 and 1000 keys, on streams that drift."""

from unskew import Hash, PartialKey
from unskew.experiments.claims import verdict
from unskew.experiments.fish.pictures import Row, by_workers
from unskew.experiments.fish.rules import NEAR, SAME, near
from unskew.experiments.fish.setup import (
    MOST,
    REAL,
    SG,
    WITH_HEADROOM,
    Cell,
    Kinds,
    cells_of,
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
    "W-C100 estimated": lambda workers: WChoices(workers, counters=100, error_weight=0.0),
    "W-C1000 estimated": lambda workers: WChoices(workers, counters=1000, error_weight=0.0),
    "D-C100 code": lambda workers: DChoices(workers, theta=2 / workers, counters=100, error_weight=1.0),
    "W-C100 code": lambda workers: WChoices(workers, theta=2 / workers, counters=100, error_weight=1.0),
    "D-C1000 code": lambda workers: DChoices(workers, theta=2 / workers, counters=1000, error_weight=1.0),
    "W-C1000 code": lambda workers: WChoices(workers, theta=2 / workers, counters=1000, error_weight=1.0),
}
LITERAL, CODE = "", " code"
READING = (
    "D-C and W-C are those of their authors' public code: a key is hot if count + error is above 2/W of the tuples. "
    "So the sketch's errors are counted as tuples, twice."
)
PRINTED_P99 = {"FG": 3945.0, "PKG": 2808.0}  # milliseconds
TEXTS = {
    "fig2-1000": ("latency of W-C1000 and D-C1000 is almost the same as PKG's", "99th percentile of PKG: 2,808 ms"),
    "fig2-100": (
        "with 100 keys the latency of D-C and W-C improves on that with 1000",
        "lower; no numbers in the text",
    ),
    "fig2-fg": (
        "the 99th percentile of the latency of FG and PKG is up to 3,945 and 2,808 ms",
        "FG over PKG: 1.40",
    ),
    "fig2-growth": (
        "with the increase of workers, the latency of PKG, D-C1000 and W-C1000 increases significantly",
        "rising with W; no numbers in the text",
    ),
    "fig4": (
        "the time of a worker for 50,000 tuples fluctuates by 4.37 % on average",
        "4.37 %, 10 workers, 12 times each",
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

    def as_pkg(ending: str) -> bool:
        names = (f"D-C1000{ending}", f"W-C1000{ending}")
        return all(near(p99(cell, name), p99(cell, "PKG")) for cell in cells for name in names)

    def fewer_is_faster(ending: str) -> bool:
        pairs = [(f"{kind}100{ending}", f"{kind}1000{ending}") for kind in ("D-C", "W-C")]
        return all(p99(cell, few) < p99(cell, many) for cell in cells for few, many in pairs)

    def as_sg(ending: str) -> bool:
        names = (f"D-C100{ending}", f"W-C100{ending}")
        return all(near(cell.memory(name), cell.memory("SG")) for cell in cells for name in names)

    return [
        Finding(
            "fig2-1000",
            *TEXTS["fig2-1000"],
            shown("p99", ("PKG", "D-C1000", "W-C1000", "SG")),
            verdict(as_pkg(LITERAL), as_pkg(CODE)),
            f"Rule: on every stream the 99th percentile of both is within a factor {NEAR:g} of PKG's at W={MOST}. 1000 "
            "counters find every key with a share above theta + 1/1000, so all keys that two workers cannot carry. "
            "Drift delays that; and D-C computes d from the shares of a lifetime, and that d may be too small for the "
            "keys of today.",
            READING,
            shown("p99", ("PKG", "D-C1000 code", "W-C1000 code", "SG")),
        ),
        Finding(
            "fig2-100",
            *TEXTS["fig2-100"],
            shown("p99", ("D-C100", "D-C1000", "W-C100", "W-C1000", "W-C100 estimated", "W-C1000 estimated")),
            verdict(fewer_is_faster(LITERAL), fewer_is_faster(CODE)),
            f"Rule: lower for both on every stream, at W={MOST}. With guaranteed counts, as here, 100 counters merely "
            "see fewer hot keys than 1000. Where the sketch's estimates are trusted, errors included (W-C estimated), "
            "100 counters call every key hot: the smallest counter is about N/100, above theta N = N/640. Then W-C is "
            "shuffle, with its latency and its memory, and that is what the paper describes.",
            READING,
            shown("p99", ("D-C100 code", "D-C1000 code", "W-C100 code", "W-C1000 code")),
        ),
        _fg_over_pkg(cells),
        _grows_with_workers(cells_of(outcomes, KINDS)),
        not_testable(
            "fig4", *TEXTS["fig4"], "It is measured on real machines; a simulated tuple always takes as long."
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
            verdict(as_sg(LITERAL), as_sg(CODE)),
            f"Rule: both within a factor {NEAR:g} of SG's on every stream, at W={MOST}. See fig2-100: that happens "
            "only where the sketch's errors are counted as tuples. With the guaranteed counts of this library no cold "
            "key is ever hot.",
            READING,
            shown("memory", ("SG", "D-C100 code", "W-C100 code", "D-C1000 code", "W-C1000 code")),
        ),
    ]


def _fg_over_pkg(cells: list[Cell]) -> Finding:
    printed = PRINTED_P99["FG"] / PRINTED_P99["PKG"]
    ratios = [(p99(cell, "FG") / p99(cell, "PKG"), cell.data) for cell in cells]
    return Finding(
        "fig2-fg",
        *TEXTS["fig2-fg"],
        f"W={MOST}, FG over PKG: " + ", ".join(f"{ratio:.2f} ({data})" for ratio, data in ratios),
        verdict(any(near(ratio, printed) for ratio, _ in ratios)),
        f"Rule: their ratio is within a factor {NEAR:g} of the printed one on one of the streams. The milliseconds "
        "themselves are a matter of the authors' machines and of their load.",
    )


def _grows_with_workers(cells: list[Cell]) -> Finding:
    names = ("PKG", "D-C1000", "W-C1000")
    fewest = min(cell.workers for cell in cells)
    told, holds = [], True
    for data in dict.fromkeys(cell.data for cell in cells):
        of = {cell.workers: cell for cell in cells if cell.data == data}
        for name in names:
            few, many = (p99(of[workers], name) for workers in (fewest, MOST))
            holds &= many >= SAME * few
            told.append((data, f"{name} {few:,.3g} s, {many:,.3g} s"))
    return Finding(
        "fig2-growth",
        *TEXTS["fig2-growth"],
        f"99th percentile at W={fewest} and W={MOST}; " + listed(told),
        verdict(holds),
        f"Rule: on every stream and for each of the three at least {SAME:g} times as long at W={MOST} as at "
        f"W={fewest}.",
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells = cells_of(outcomes, KINDS)
    if not cells:
        return ["No real stream was found; name their folder with --data."]
    errors = [name for name in KINDS if name.endswith((" estimated", CODE))]
    rows = [Row("99th percentile of latency, s", p99, log=True), Row("memory, over FG", Cell.memory, log=True)]
    return [
        Picture(
            "fig2",
            by_workers(cells, [name for name in KINDS if name not in errors], rows),
            "Simulated latency (workers of 100 tuples per second, 80 % busy on average) and memory on real streams "
            "that drift, instead of Amazon's film reviews. The number is that of the sketch's counters.",
        ),
        Picture(
            "fig2-errors",
            by_workers(cells, ["SG", "FG", "PKG", *errors], rows),
            "The same where the sketch's errors are taken for tuples. “Estimated”: a key is hot by its count, from "
            "1/(5 W) on; with 100 counters that is shuffle, slowly, from W = 32 on. “Code”: by count + error, from 2/W "
            "on, as in the authors' public code.",
        ),
    ]


EXPERIMENT = Experiment("fig2", "Figures 2 and 3: how many keys D-C and W-C count", jobs, claims, parts)
