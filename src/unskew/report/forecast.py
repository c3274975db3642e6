"""What each scheme would do with a stream: routed in miniature, from its measured frequencies.

With up to a million rows, the miniature has them all. A longer stream is made small in two ways, because one cannot
tell both numbers. For the loads, every key's rows are thinned out alike, so that each key keeps its share. For the
replicas, rare keys are left out and the others keep their rows: a key with one row of its hundred left would be on one
worker where it really is on many. Each key then stands for several, and its replicas count as often; that is why this
routes by itself rather than through `simulate`.

The hottest keys have their own ids, the others ids drawn by a seeded generator. The order is random: what a stream's
own order does (bursts, drift) shows only in a simulation of the stream itself.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.contract import Scheme
from unskew.frequencies import Frequencies
from unskew.hashing import KeyIds
from unskew.longest_first import longest_first
from unskew.planning import make_plan
from unskew.registry import SCHEMES, Registration, make
from unskew.report.counts import KeyCounts
from unskew.router import Router
from unskew.schemes.fanout import follow_plan

TUPLES = 1_000_000  # at most, to measure loads
TUPLES_FOR_REPLICAS = 250_000
ROWS_PER_WORKER = 4  # of a key, when replicas are measured: enough to be on all workers that the scheme would use
WHOLE = "whole"  # keys are placed, not split
LOTS = 16_384  # of keys that are placed together
MOST_WORKERS = 1024  # with more of them, each would get too few of the tuples to tell chance from skew
SOURCES = 8  # that route independently, as the tasks of the stage before the shuffle do


class Miniature(NamedTuple):
    """A small stream that is skewed as the large one."""

    ids: KeyIds  # of its keys
    weights: npt.NDArray[np.float64]  # how many keys of the large stream each stands for
    counts: npt.NDArray[np.int64]  # its tuples
    tuples: npt.NDArray[np.int64]  # the stream: positions in `ids`


@dataclass(frozen=True)
class Forecast:
    """What one scheme, in one mode, would do with W workers.

    Parameters
    ----------
    scheme
        Its name; "whole" for keys that are placed whole, as level as they can be.
    mode
        "planned" or "online"; "spark" for Spark's own hash; "fit" for an offline scheme that Spark cannot run.
    max_over_mean
        Rows of the busiest worker over the mean.
    replicas
        (worker, key) pairs that hold state.
    straggler
        How many times as long the stage takes as with perfect balance, merging included.
    load
        Rows of each worker over the mean.

    Examples
    --------
    >>> from unskew.report import Forecast
    >>> Forecast("pkg", "online", max_over_mean=1.0, replicas=3, straggler=1.03, load=(1.0, 1.0)).on_spark
    True
    """

    scheme: str
    mode: str
    max_over_mean: float
    replicas: int
    straggler: float
    load: tuple[float, ...] = field(repr=False)

    @property
    def on_spark(self) -> bool:
        return self.mode != "fit"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def miniature(counts: KeyCounts, tuples: int, known: int, rows_per_key: float = 1.0, seed: int = 0) -> Miniature:
    """The stream with about `tuples` tuples, all of it where it has no more.

    The `known` hottest keys keep their ids and shares. Of any other key `rows_per_key` rows are kept if it has so many,
    or as many as its share is, whichever is more; to make up for it, fewer such keys are kept.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    scale = min(1.0, tuples / max(1, counts.tuples))
    hot = _rounded(counts.top.counts[:known] * scale, generator)
    keys = np.concatenate([np.ones(len(counts.top.counts[known:]), np.int64), counts.tail_keys])
    bucket_tuples = np.concatenate([counts.top.counts[known:], counts.tail_tuples])
    each = bucket_tuples / keys
    rows = np.minimum(each, np.maximum(each * scale, rows_per_key))
    wanted = bucket_tuples * scale / rows  # keys of each bucket
    kept = _rounded(wanted, generator)
    rest = [_split(total, parts) for total, parts in zip(_rounded(kept * rows, generator), kept, strict=True)]
    made = generator.integers(0, 2**64, int(kept.sum()), np.uint64)
    all_counts = np.concatenate([hot, *rest])
    return Miniature(
        np.concatenate([counts.top.key_ids[:known], made]),
        np.concatenate([np.ones(known), np.repeat(keys / wanted, kept)]),
        all_counts,
        generator.permutation(np.repeat(np.arange(len(all_counts)), all_counts)),
    )


def _rounded(numbers: npt.NDArray[Any], generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Each up or down to a whole number, by chance, so that it is right on average."""
    whole = np.floor(numbers)
    return (whole + (generator.random(len(numbers)) < numbers - whole)).astype(np.int64)


def _split(total: int, parts: int) -> npt.NDArray[np.int64]:
    """`total` as `parts` whole numbers that differ by one at most."""
    return (total + np.arange(parts)) // max(1, parts)


def forecasts(counts: KeyCounts, workers: int, merge_cost: float) -> list[Forecast]:
    """Spark's own hash, whole keys and all schemes, the lowest straggler factor first; none above `MOST_WORKERS`.

    The scheme ``hash`` is there as Spark does it, ``df.repartition(W, key)``. A scheme with two modes is there twice,
    unless they do the same. `merge_cost`: what merging a partial result costs, in rows.
    """
    if workers > MOST_WORKERS or not counts.tuples:
        return []
    small = miniature(counts, TUPLES, len(counts.top.counts))
    few_keys = small
    if counts.tuples > TUPLES:
        few_keys = miniature(counts, TUPLES_FOR_REPLICAS, counts.top.hot(workers), ROWS_PER_WORKER * workers)
    found = [_forecast("hash", "spark", _by_spark(counts, small, workers), counts.keys, counts, merge_cost)]
    found.append(_forecast(WHOLE, "planned", _level(small, workers), counts.keys, counts, merge_cost))
    for name, mode, scheme_for in _schemes(_as_measured(counts.top, small, workers), workers):
        chosen = _route(scheme_for(small), small)
        among_few = chosen if few_keys is small else _route(scheme_for(few_keys), few_keys)
        replicas = round(_replicas_per_key(among_few, few_keys, workers) * counts.keys)
        forecast = _forecast(name, mode, np.bincount(chosen, minlength=workers), replicas, counts, merge_cost)
        if not (found and found[-1].scheme == name and found[-1].load == forecast.load):
            found.append(forecast)
    return sorted(found, key=lambda forecast: (round(forecast.straggler, 3), forecast.replicas))


def _level(small: Miniature, workers: int) -> npt.NDArray[np.float64]:
    """Rows of each worker where keys are placed whole, as level as they can be: as ``apply_whole`` does it."""
    lots = np.bincount((small.ids % np.uint64(LOTS)).astype(np.int64), small.counts, LOTS)
    hottest = np.argsort(-small.counts)[:LOTS]  # a large lot is split by more bits, which tells hot keys apart
    lots -= np.bincount((small.ids[hottest] % np.uint64(LOTS)).astype(np.int64), small.counts[hottest], LOTS)
    return longest_first(np.concatenate([small.counts[hottest], lots]), workers).load


def _as_measured(top: Frequencies, small: Miniature, workers: int) -> Frequencies:
    """What Spark would measure before it makes a plan: also what the other keys of the miniature do to their homes."""
    load = np.bincount(Router(make("hash", workers)).route(small.ids), small.counts, workers)
    return replace(top, home_load=(load * (top.tuples / load.sum())).astype(np.int64))


def _schemes(measured: Frequencies, workers: int) -> Iterator[tuple[str, str, Callable[[Miniature], Scheme]]]:
    """Name, mode, and the scheme for a miniature."""
    for name, registration in SCHEMES.items():
        if name == "hash" or registration.by_cost:  # Spark's own does better; keys alone do not tell their costs
            continue
        if "planned" in registration.modes:
            planned = follow_plan(make_plan(name, workers, measured))
            yield name, "planned", lambda small, scheme=planned: scheme  # type: ignore[misc]
        if "online" in registration.modes:
            online = make(name, workers)
            yield name, "online", lambda small, scheme=online: scheme  # type: ignore[misc]
        if not registration.modes:
            yield name, "fit", partial(_fit, registration, workers)


def _by_spark(counts: KeyCounts, small: Miniature, workers: int) -> npt.NDArray[np.int64]:
    """Rows of each partition by Spark's own hash: as counted, or in the miniature."""
    if counts.partition_rows is not None:
        return counts.partition_rows
    placed = (small.ids >> np.uint64(32)).astype(np.uint32).view(np.int32) % workers
    return np.bincount(placed, small.counts, minlength=workers).astype(np.int64)


def _fit(registration: Registration, workers: int, small: Miniature) -> Scheme:
    ids, places = np.unique(small.ids, return_inverse=True)  # keys that share an id are routed as one
    scheme: Scheme = registration.type.fit(workers, ids, np.bincount(places, small.counts).astype(np.int64))
    return scheme


def _route(scheme: Scheme, small: Miniature) -> npt.NDArray[np.int64]:
    """The worker of each tuple."""
    chosen = np.empty(len(small.tuples), np.int64)
    ids = small.ids[small.tuples]
    for source in range(SOURCES):
        chosen[source::SOURCES] = Router(scheme, source=source).route(ids[source::SOURCES])
    return chosen


def _replicas_per_key(chosen: npt.NDArray[np.int64], small: Miniature, workers: int) -> float:
    pairs = np.sort(small.tuples * workers + chosen)
    new = np.diff(pairs, prepend=-1) > 0
    present = small.weights[small.counts > 0].sum()
    return float(small.weights[pairs[new] // workers].sum() / present)


def _forecast(
    name: str, mode: str, load: npt.NDArray[Any], replicas: int, counts: KeyCounts, merge_cost: float
) -> Forecast:
    relative = load / load.mean()
    # Whole keys need no second phase; but live routers can only happen to agree on a key's worker, so it counts there.
    merged = 0 if replicas == counts.keys and mode != "online" else replicas
    straggler = float(relative.max()) + merge_cost * merged / counts.tuples
    return Forecast(name, mode, float(relative.max()), replicas, straggler, tuple(relative.tolist()))
