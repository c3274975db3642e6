"""Section VI-B: how many bins a key needs; section V-C: what periodic aggregation costs.

Not a grid of simulations: a stream is routed once, and the bins of its hottest keys are counted.
"""

from math import ceil

import numpy as np

from unskew import Hash, PartialKey, Router, Scheme, Shuffle, key_ids
from unskew.experiments.cg.cluster import CG, grouping
from unskew.experiments.cg.setup import KG, NOBODY_ASKS, PKG, SG, WP, shown, wp_label
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Settings
from unskew.hashing import KeyIds
from unskew.schemes.porc import RandomChoices
from unskew.streams import StandIn, Stream, Zipf

BINS = (10, 50)
SKEWS = (1.0, 2.0)
TOP = 10  # keys
TUPLES, KEYS = 500_000, 100_000
WORKERS = 10
SCHEMES: dict[str, Scheme] = {
    KG: Hash(WORKERS),
    PKG: PartialKey(WORKERS),
    CG: grouping(WORKERS, **NOBODY_ASKS),
    SG: Shuffle(WORKERS),
}
PERIOD = 60.0  # seconds between two aggregations
AGGREGATED, QUICK_AGGREGATED = 1_000_000, 300_000  # tuples of WP: a bit over an hour
LOW = 1.1  # partial results over those of KG: a tenth more is a low overhead


def ids_of(stream: Stream) -> KeyIds:
    return key_ids(np.concatenate([chunk.keys for chunk in stream.chunks()]))


def bins_of_hottest(scheme: Scheme, keys: KeyIds) -> list[tuple[float, int]]:
    """(share of the tuples, number of bins) of the hottest keys."""
    chosen = Router(scheme).route(keys)
    values, counts = np.unique(keys, return_counts=True)
    hottest = np.argsort(-counts, kind="stable")[:TOP]
    return [(counts[i] / len(keys), len(np.unique(chosen[keys == values[i]]))) for i in hottest]


def _needed(share: float, bins: int, epsilon: float) -> int:
    return ceil(share * bins / (1 + epsilon))


def partial_results(scheme: Scheme, keys: KeyIds) -> int:
    """(worker, key) pairs of all periods together: what workers send to be aggregated."""
    chosen = Router(scheme).route(keys).astype(np.uint64)
    per_period = int(PERIOD * WP.tuples / WP.seconds)
    number = {key: i for i, key in enumerate(np.unique(keys).tolist())}
    numbers = np.array([number[key] for key in keys.tolist()], np.uint64)
    pairs = numbers * np.uint64(WORKERS) + chosen
    return sum(len(np.unique(pairs[start : start + per_period])) for start in range(0, len(pairs), per_period))


def jobs(settings: Settings) -> list[Job]:
    return []


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    streams = {f"z={z}": ids_of(Zipf(z, KEYS, TUPLES, settings.seed)) for z in SKEWS}
    told, least = [], []
    everywhere = []
    for data, keys in streams.items():
        for n in BINS:
            tight = bins_of_hottest(RandomChoices(n), keys)
            needed = [(used, _needed(share, n, 0.01)) for share, used in tight]
            least.append(all(used >= need for used, need in needed))
            told.append(f"{data} n={n}: the hottest key needs {needed[0][1]} and has {needed[0][0]}")
            loose = bins_of_hottest(RandomChoices(n, epsilon=1.5 / (n - 1)), keys)
            everywhere.append((max(used for _, used in loose), n, data))
    return [
        Finding(
            "section6-bins",
            "a key with the share p needs at least ceil(p n / (1 + epsilon)) bins (section VI-B)",
            "ceil(p n / (1 + epsilon))",
            "; ".join(told),
            verdict(all(least)),
            f"Rule: none of the {TOP} hottest keys has fewer. It must hold: no bin has more than (1 + epsilon) m/n.",
            by_construction=True,
        ),
        Finding(
            "section6-everywhere",
            "with epsilon > 1/(n-1) no key is on all workers (section VI-B)",
            "can not happen",
            "epsilon = 1.5/(n-1), most bins of a key: "
            + ", ".join(f"{used} of {n} ({data})" for used, n, data in everywhere),
            verdict(all(used < n for used, n, _ in everywhere)),
            "Rule: no key is on all n bins. It must hold: all bins but the last of a key's sequence would have to be "
            "full, and together they would have more than all tuples.",
            by_construction=True,
        ),
        _aggregation(settings),
    ]


def _aggregation(settings: Settings) -> Finding:
    stream = StandIn("WP", settings.tuples(AGGREGATED, QUICK_AGGREGATED), seed=settings.seed)
    keys = ids_of(stream)
    found = {name: partial_results(scheme, keys) for name, scheme in SCHEMES.items()}
    over = {name: count / found[KG] for name, count in found.items()}
    return Finding(
        "aggregation",
        "periodic aggregation imposes a very low overhead (section V-C)",
        "very low; no numbers in the text",
        f"{wp_label(len(keys))}, partial results per minute over those of KG: "
        + ", ".join(f"{name} {shown(value)}" for name, value in over.items()),
        verdict(over[CG] <= LOW),
        f"Rule: CG sends at most {LOW:g} times the partial results of KG, which has one per key and period. "
        f"{WORKERS} workers, aggregated every {PERIOD:g} s (ours).",
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    return ["Counted on Zipf streams of 500,000 tuples and on the first tuples of the stand-in for WP."]


EXPERIMENT = Experiment("section6", "Sections V-C and VI-B: bins of a key, and aggregation", jobs, claims, parts)
