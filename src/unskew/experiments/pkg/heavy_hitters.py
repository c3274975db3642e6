"""Section 4.2: the error of heavy hitters that are counted by SpaceSaving on each worker and merged.

Not a grid of simulations: a stream is routed once with each scheme, and each worker counts what it gets.
"""

import numpy as np
import numpy.typing as npt

from unskew import Hash, PartialKey, Router, Scheme, Shuffle, key_ids
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Settings, Table
from unskew.experiments.words import listed
from unskew.kernels import kernel
from unskew.sketches.space_saving import SpaceSaving, count_key, new_sketch
from unskew.streams import Zipf

WORKERS = (10, 50)
COUNTERS = 100  # of each worker
TOP = 20  # keys
TUPLES, KEYS, Z = 1_000_000, 100_000, 1.0
OFF = 1.5  # the error is one of two terms among W alike, give or take so much: hot keys fill some workers more
SCHEMES = {"KG": Hash, "PKG": PartialKey, "SG": Shuffle}


@kernel
def _count(sketch, keys):
    for i in range(len(keys)):
        count_key(sketch, keys[i])


def _bound(sketches: list[SpaceSaving], holders: list[int], key: int) -> float:
    """Berinde et al.: the error of a merged count is at most the sum of the errors of the summaries that it comes from.

    That of a key with a counter is the counter's, that of a key without one the smallest count.
    """
    total = 0.0
    for worker in holders:
        sketch = sketches[worker]
        mine = np.flatnonzero(sketch.counted == key)
        full = sketch.table.used[0] == len(sketch.counts)
        total += float(sketch.errors[mine[0]]) if len(mine) else float(sketch.counts.min()) if full else 0.0
    return total


def errors(scheme: Scheme, keys: npt.NDArray[np.uint64], hottest: npt.NDArray[np.uint64]) -> tuple[float, int]:
    """Mean bound on the error of the hottest keys, and the most summaries that one of them is in."""
    chosen = Router(scheme).route(keys)
    sketches = [new_sketch(COUNTERS) for _ in range(scheme.workers)]
    for worker, sketch in enumerate(sketches):
        _count(sketch, keys[chosen == worker])
    of = {key: np.unique(chosen[keys == key]).tolist() for key in hottest.tolist()}
    # where the counts of a key may be on any worker, all summaries have to be asked
    asked = {
        key: list(range(scheme.workers)) if isinstance(scheme, Shuffle) else holders for key, holders in of.items()
    }
    return float(np.mean([_bound(sketches, asked[key], key) for key in of])), max(map(len, asked.values()))


def measure(settings: Settings) -> dict[tuple[str, int], tuple[float, int]]:
    """(scheme, workers) -> `errors`."""
    stream = Zipf(Z, KEYS, TUPLES, seed=settings.seed)
    keys = key_ids(np.concatenate([chunk.keys for chunk in stream.chunks()]))
    values, counts = np.unique(keys, return_counts=True)
    hottest = values[np.argsort(-counts, kind="stable")[:TOP]]
    return {(name, w): errors(kind(w), keys, hottest) for name, kind in SCHEMES.items() for w in WORKERS}


def jobs(settings: Settings) -> list[Job]:
    return []


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    found = measure(settings)
    ratios = {w: found["PKG", w][0] / found["SG", w][0] for w in WORKERS}
    return [
        Finding(
            "heavy-hitters",
            "with PKG the error of a heavy hitter is the sum of only two error terms, whatever W is; with SG it is one "
            "of W terms",
            "2 terms; W terms",
            listed(
                (f"W={w}", f"{name} {found[name, w][1]} terms, bound on the error {found[name, w][0]:,.0f} tuples")
                for w in WORKERS
                for name in SCHEMES
            )
            + "; PKG over SG: "
            + ", ".join(f"{ratio:.3f} at W={w} (2/W = {2 / w:.3f})" for w, ratio in ratios.items()),
            verdict(all(2 / w / OFF <= ratio <= 2 / w * OFF for w, ratio in ratios.items())),
            f"Rule: at every W the bound on the error of the {TOP} hottest keys with PKG, over that with SG, is within "
            f"a factor {OFF:g} of 2/W. The number of terms itself holds by construction. ZF, z = {Z:g}, {TUPLES:,} "
            f"tuples, {COUNTERS} counters per worker.",
        )
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    found = measure(settings)
    rows = [[name, *(f"{found[name, w][0]:,.0f} ({found[name, w][1]})" for w in WORKERS)] for name in SCHEMES]
    caption = f"Bound on the error of the {TOP} hottest keys in tuples, and the most summaries that one is in."
    return [Table(caption, ["scheme", *(f"W = {w}" for w in WORKERS)], rows)]


EXPERIMENT = Experiment("heavy-hitters", "Section 4.2: heavy hitters", jobs, claims, parts)
