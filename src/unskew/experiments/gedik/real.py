"""Real streams: the lossy counter counts the first half, functions are for 10 workers and judged on both halves."""

from typing import Any

from unskew.experiments.gedik.counting import Real
from unskew.experiments.gedik.rules import judged
from unskew.experiments.gedik.setup import METHODS, OURS, WORKERS, Case, found
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Settings, Table, not_testable
from unskew.experiments.real import absent, has_real, real_file

STREAMS = ("slashdot0902_edges", "stocknet_cashtags", "congress_hashtags", "reddit_domains", "orm_busy")
CLAIM = (
    "functions made from the first half of {name} are more balanced than consistent hashing, and move less than uniform"
)


def jobs(settings: Settings) -> list[Any]:
    cases = tuple(Case(method) for method in METHODS)
    present = [name for name in STREAMS if has_real(name, settings)]
    return [Real("real", name, real_file(name, settings), cases, WORKERS) for name in present]


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    findings = []
    for name in STREAMS:
        id, claim = f"real-{name}", CLAIM.format(name=name)
        if not outcomes.where(data=name):
            findings.append(not_testable(id, claim, "not in the paper", absent(name)))
            continue
        by = {method: found(outcomes, data=name, algorithm=method)[0] for method in METHODS}
        worst_b = max(by[x].b for x in OURS)
        most_m = max(by[x].m for x in OURS)
        text = "; ".join(
            f"{x}: b {m.b:.3g} (second half {m.b_printed:.3g}), m {m.m:.3g}, {m.entries} entries" for x, m in by.items()
        )
        rule = "scan, redist and readj all have a lower b than consistent on the first half, and a lower m than uniform"
        holds = worst_b < by["consistent"].b and most_m < by["uniform"].m
        findings.append(judged(id, claim, "not in the paper", text, rule, holds))
    return findings


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    rows = [
        [name, m.keys, m.algorithm, f"{m.b:.3g}", f"{m.b_printed:.3g}", f"{m.m:.3g}", m.entries, m.in_memory]
        for name in STREAMS
        for m in found(outcomes, data=name)
    ]
    headers = ["stream", "keys", "method", "b", "b, second half", "m", "entries", "in the lossy counter"]
    return [Table("Ten workers, LCL, sigma 0.1; frequencies counted, not given.", headers, rows)]


EXPERIMENT = Experiment("real", "Real streams", jobs, claims, parts)
