"""One sentence on what to do, by rules with thresholds that are written down here.

In this order: nothing, where there are no rows, one worker, or fewer rows than workers; nothing for a built-in
aggregate, which Spark combines before the shuffle; nothing where hash is within `ENOUGH` of perfect balance; Spark's
own skew join for a join, which unskew does not offer yet; nothing where the best scheme is not `WORTHWHILE` times
faster than hash, merging included; otherwise that scheme. The best scheme is the one with the fewest replicas among
those within `ENOUGH` of the lowest straggler factor; only schemes that are offered on Spark are recommended.
"""

from collections.abc import Sequence
from typing import NamedTuple

from unskew.errors import InputError
from unskew.hashing import NULL_KEY_ID
from unskew.report.counts import KeyCounts, percent
from unskew.report.forecast import MOST_WORKERS, Forecast

ENOUGH = 1.2  # times the best: a stage that takes no longer is as good, and then fewer replicas are better
WORTHWHILE = 1.1  # times that a scheme must be faster than hash
NOTABLE_NULLS = 0.01  # share of rows without a key from which they are worth a remark


class Purpose(NamedTuple):
    meaning: str
    merge_cost: float  # of a partial result, in rows


PURPOSES: dict[str | None, Purpose] = {
    None: Purpose("not said: a partial result costs as much to merge as a row to process", 1.0),
    "aggregate": Purpose("built-in aggregates such as count, sum, avg: Spark combines them before the shuffle", 1.0),
    "python": Purpose("expensive Python for each row or key: merging a partial costs a tenth of a row", 0.1),
    "stateful": Purpose("a stateful stream: each replica is a state that is kept, and costs as much as a row", 1.0),
    "join": Purpose("a join: unskew has none yet, the numbers are for one side of it", 0.0),
}


class Advice(NamedTuple):
    sentence: str
    scheme: str | None = None  # None: do nothing
    mode: str | None = None


def purpose(for_: str | None) -> Purpose:
    """What `for_` stands for."""
    if for_ not in PURPOSES:
        allowed = ", ".join(str(name) for name in PURPOSES)
        raise InputError(f"for_: must be one of {allowed}, not {for_!r}")
    return PURPOSES[for_]


def advise(counts: KeyCounts, workers: int, forecasts: Sequence[Forecast], for_: str | None) -> Advice:
    """The recommendation."""
    if not counts.tuples:
        return Advice("Do nothing: there are no rows.")
    if workers == 1:
        return Advice("Do nothing: with one worker there is nothing to balance.")
    if for_ == "aggregate":
        return Advice(
            "Do nothing: Spark's own partial aggregation already handles this; it combines the rows of a key before "
            "the shuffle, so a hot key is no more work than a rare one."
        )
    if counts.tuples < workers:
        return Advice(f"Do nothing, or use fewer workers: {counts.tuples:,} rows leave most of {workers:,} idle.")
    if not forecasts:
        return _by_bounds(counts, workers, for_)
    by_hash = next(f for f in forecasts if f.scheme == "hash")
    if by_hash.straggler <= ENOUGH:
        return Advice(
            f"Do nothing: hash is balanced enough here; its busiest worker gets {by_hash.max_over_mean:.2f} times the "
            "mean, and no key has to be split."
        )
    if for_ == "join":
        return Advice(_use_skew_join(f"{by_hash.max_over_mean:.1f}"))
    best = _best(forecasts, counts.keys)
    gain = by_hash.straggler / best.straggler
    if best.scheme == "hash" or gain < WORTHWHILE:
        return Advice(
            f"Do nothing: hash's busiest worker gets {by_hash.max_over_mean:.2f} times the mean, but splitting keys "
            f"costs as much as it gains: the partial results of all {counts.keys:,} keys would have to be merged."
        )
    mode = "" if _only_mode(best, forecasts) else f" ({best.mode})"
    return Advice(
        f"Use {best.scheme}{mode}: the busiest worker gets {best.max_over_mean:.2f} times the mean instead of "
        f"{by_hash.max_over_mean:.1f} by hash, so the stage is about {gain:.1f} times as fast, "
        f"{_cost(best.replicas, counts.keys)}.",
        best.scheme,
        best.mode,
    )


def _best(forecasts: Sequence[Forecast], keys: int) -> Forecast:
    """The fewest replicas, to a hundredth of a replica a key; a plan rather than live routers, and of plans fanout."""
    able = [f for f in forecasts if f.on_spark]
    limit = ENOUGH * min(f.straggler for f in able)
    good = [f for f in able if f.straggler <= limit]
    return min(
        good, key=lambda f: (round(f.replicas / keys, 2), f.mode != "planned", f.scheme != "fanout", f.straggler)
    )


def _by_bounds(counts: KeyCounts, workers: int, for_: str | None) -> Advice:
    """Without a simulation, by p1 alone: the hottest key's workers cannot get less than its rows."""
    one, two = counts.p1 * workers, counts.p1 * workers / 2
    if one <= ENOUGH:
        return Advice(
            f"Do nothing, as far as p1 tells: no single key overloads one of {workers:,} workers (more than "
            f"{MOST_WORKERS:,} are not simulated)."
        )
    if for_ == "join":
        return Advice(_use_skew_join(f"at least {one:.1f}"))
    return Advice(
        f"Use fanout: by hash the busiest worker gets at least {one:.1f} times the mean, with two choices at least "
        f"{max(1.0, two):.1f} (from p1; more than {MOST_WORKERS:,} workers are not simulated).",
        "fanout",
        "planned",
    )


def _use_skew_join(times: str) -> str:
    return (
        f"Leave it to Spark's adaptive skew join (on by default: spark.sql.adaptive.skewJoin.enabled): by hash the "
        f"busiest worker gets {times} times the mean, and unskew does not offer joins yet."
    )


def _only_mode(best: Forecast, forecasts: Sequence[Forecast]) -> bool:
    return sum(f.scheme == best.scheme for f in forecasts) == 1


def _cost(replicas: int, keys: int) -> str:
    if replicas > 2 * keys:
        return f"for {replicas:,} partial results to merge, {replicas / keys:.1f} a key"
    more = replicas - keys
    return f"for {more:,} more partial {'result' if more == 1 else 'results'} than keys ({percent(more / keys)} more)"


def remarks(
    counts: KeyCounts, workers: int, advice: Advice, forecasts: Sequence[Forecast], for_: str | None, sample: float
) -> list[str]:
    """What a careful reader should know besides: where the numbers are estimates, and where splitting loses."""
    said = []
    if sample < 1:
        said.append(
            f"From a sample of {sample:.3g} of the rows: shares, exponent and loads are estimates, the number of keys "
            "and of replicas are lower bounds, because rare keys are missed."
        )
    nulls = counts.top.counts[counts.top.key_ids == NULL_KEY_ID].sum() / max(1, counts.tuples)
    if nulls >= NOTABLE_NULLS:
        said.append(
            f"{nulls:.1%} of the rows have no key (null): if they need no grouping, set them aside first, that is "
            "better than any scheme."
        )
    if advice.scheme is None:
        return said
    if for_ is None:
        said.append("For built-in aggregates (count, sum, avg, ...) do nothing: Spark combines before it shuffles.")
    if for_ in (None, "python"):
        said.append("If rows of a key need not meet at all, plain df.repartition(W) balances them without unskew.")
    if counts.p1 * workers > 1:
        said.append(
            f"The hottest key alone is {counts.p1 * workers:.1f} workers' work: no scheme that keeps keys whole can "
            "balance this, so partial results have to be merged. If they cannot be, use fewer workers."
        )
    if for_ == "stateful":
        said.append("A plan is for the keys that were hot when it was made: measure again when they change.")
    return said
