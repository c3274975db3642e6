"""One sentence on what to do, by rules with thresholds that are written down here.

In this order: nothing, where there are no rows, one worker, or fewer rows than workers; nothing for a built-in
aggregate, which Spark combines before the shuffle; nothing where Spark's own hash is within `ENOUGH` of perfect
balance; Spark's own skew join for a join, which unskew does not offer yet; nothing where the best scheme is not
`WORTHWHILE` times as fast as Spark's own hash; otherwise that scheme. The best scheme is the one with the fewest
replicas among those within `ENOUGH` of the lowest straggler factor; only schemes that Spark can run are recommended. So
whole keys come first, with nothing to merge, and keys are split only where the hottest one is too much for a worker.
Where keys must stay whole (``for_="whole"``), nothing else is looked at; a stateful stream cannot be placed so yet.

How fast is a matter of what a row costs. Where that is known (`row_cost`), whole stages are compared in seconds, with
what Spark and Python cost besides (see `costs`). Where it is not, rows are compared, merging included, and the advice
says from which cost of a row on it holds: below it, what splitting costs is more than what balance gains.
"""

from collections.abc import Sequence
from typing import NamedTuple

from unskew.errors import InputError
from unskew.hashing import NULL_KEY_ID
from unskew.report.costs import WORTHWHILE, Work, break_even, duration, seconds
from unskew.report.counts import KeyCounts, percent
from unskew.report.forecast import MOST_WORKERS, WHOLE, Forecast

ENOUGH = 1.2  # times the best: a stage that takes no longer is as good, and then fewer replicas are better
NOTABLE_NULLS = 0.01  # share of rows without a key from which they are worth a remark


class Purpose(NamedTuple):
    meaning: str
    merge_cost: float  # of a partial result, in rows


PURPOSES: dict[str | None, Purpose] = {
    None: Purpose("not said: a partial result costs as much to merge as a row to process", 1.0),
    "aggregate": Purpose("built-in aggregates such as count, sum, avg: Spark combines them before the shuffle", 1.0),
    "whole": Purpose("what must see all rows of a key: medians, sessions, models; keys are placed, never split", 0.0),
    "merge": Purpose("what can be merged, at the cost of a row for each partial result", 1.0),
    "python": Purpose("expensive Python for each row or key: merging a partial costs a tenth of a row", 0.1),
    "stateful": Purpose("a stateful stream: each replica is a state that is kept, and costs as much as a row", 1.0),
    "join": Purpose("a join: unskew has none yet, the numbers are for one side of it", 0.0),
}


class Advice(NamedTuple):
    """What to do: a sentence, and the scheme and mode that it recommends, None for none.

    Attributes
    ----------
    sentence
        The recommendation.
    scheme, mode
        The scheme that is recommended, and how to run it on Spark; None: do nothing.
    break_even
        Seconds per row from which on the scheme pays; None where the advice is not about a scheme.

    Examples
    --------
    >>> from unskew.report import Advice
    >>> Advice("Do nothing: there are no rows.").scheme is None
    True
    """

    sentence: str
    scheme: str | None = None
    mode: str | None = None
    break_even: float | None = None


def purpose(for_: str | None) -> Purpose:
    """What `for_` stands for."""
    if not isinstance(for_, str | None) or for_ not in PURPOSES:
        allowed = ", ".join(str(name) for name in PURPOSES)
        raise InputError(f"for_: must be one of {allowed}, not {for_!r}")
    return PURPOSES[for_]


def advise(counts: KeyCounts, workers: int, forecasts: Sequence[Forecast], for_: str | None, work: Work) -> Advice:
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
    by_spark = today(forecasts)
    if by_spark.straggler <= ENOUGH:
        return Advice(
            f"Do nothing: Spark's own hash is balanced enough here; its busiest worker gets "
            f"{by_spark.max_over_mean:.2f} times the mean, and no key has to be split."
        )
    if for_ == "join":
        return Advice(_use_skew_join(f"{by_spark.max_over_mean:.1f}"))
    best = _best(forecasts, counts.keys, for_)
    if by_spark.straggler < WORTHWHILE * best.straggler and for_ == WHOLE:
        return Advice(
            f"Do nothing, or use fewer workers: keys that are placed whole get the busiest worker from "
            f"{by_spark.max_over_mean:.2f} to {best.max_over_mean:.2f} times the mean, because of the hottest key."
        )
    if by_spark.straggler < WORTHWHILE * best.straggler:
        return Advice(
            f"Do nothing: the busiest worker of Spark's own hash gets {by_spark.max_over_mean:.2f} times the mean, but "
            f"splitting keys costs as much as it gains: the partial results of all {counts.keys:,} keys would have to "
            "be merged."
        )
    return _in_seconds(counts, workers, by_spark, best, work, _only_mode(best, forecasts))


def today(forecasts: Sequence[Forecast]) -> Forecast:
    """Spark's own hash: what happens if nothing is done."""
    return next(f for f in forecasts if f.mode == "spark")


def _in_seconds(counts: KeyCounts, workers: int, now: Forecast, best: Forecast, work: Work, only_mode: bool) -> Advice:
    """The best scheme, unless a row costs so little that the stage would not become faster."""
    pays_from = break_even(counts, workers, now, best, work.cores)
    if pays_from == float("inf"):
        return Advice(
            f"Do nothing: {work.cores:,} cores have enough to do with {workers:,} workers, however uneven these are."
        )
    label = best.scheme if only_mode else f"{best.scheme} ({best.mode})"
    label = "whole keys (placed evenly)" if best.scheme == WHOLE else label
    balance = (
        f"the busiest worker gets {best.max_over_mean:.2f} times the mean instead of {now.max_over_mean:.1f} by "
        "Spark's own hash"
    )
    if work.row_cost is None:
        return Advice(
            f"Use {label} if a row costs more than about {duration(pays_from)}: {balance}, so work on the rows takes "
            f"up to {now.max_over_mean / best.max_over_mean:.1f} times less time, {_cost(best, counts.keys)}.",
            best.scheme,
            best.mode,
            pays_from,
        )
    before, after = (seconds(f, counts, workers, work) or 0.0 for f in (now, best))
    if before < WORTHWHILE * after:
        return Advice(
            f"Do nothing: at {duration(work.row_cost)} per row the stage takes about {duration(before)} by Spark's own "
            f"hash and {duration(after)} by {label}: {balance}, but counting, splitting and merging cost as much. It "
            f"pays from about {duration(pays_from)} per row on.",
            break_even=pays_from,
        )
    return Advice(
        f"Use {label}: {balance}. At {duration(work.row_cost)} per row the stage takes about {duration(after)} instead "
        f"of {duration(before)}, {_cost(best, counts.keys)}.",
        best.scheme,
        best.mode,
        pays_from,
    )


def reason(forecast: Forecast, advice: Advice, forecasts: Sequence[Forecast], keys: int, for_: str | None) -> str:
    """Why the scheme is recommended, or why not, in a few words."""
    if (forecast.scheme, forecast.mode) == (advice.scheme, advice.mode):
        return "recommended"
    if forecast.mode == "spark":
        return "as it is now"
    if not forecast.on_spark:
        return "not on Spark"
    best = _best(forecasts, keys, for_)
    if forecast is best:
        return "costs too much"
    if forecast not in _able(forecasts, for_):
        return "splits keys" if for_ == WHOLE else "not for streams"
    if forecast.straggler > ENOUGH * min(f.straggler for f in forecasts if f.on_spark):
        return "less even"
    if round(forecast.replicas / keys, 2) > round(best.replicas / keys, 2):
        return "more replicas"
    return "Python per row" if forecast.mode == "online" else "as good"


def _able(forecasts: Sequence[Forecast], for_: str | None) -> list[Forecast]:
    """Those that can do what the rows are for."""
    on_spark = [f for f in forecasts if f.on_spark]
    if for_ == WHOLE:
        return [f for f in on_spark if f.scheme == WHOLE or f.mode == "spark"]
    return [f for f in on_spark if for_ != "stateful" or f.scheme != WHOLE]


def _best(forecasts: Sequence[Forecast], keys: int, for_: str | None) -> Forecast:
    """The fewest replicas, to a hundredth per key; of these whole keys, a plan rather than live routers, fanout."""
    able = [f for f in _able(forecasts, for_) if f.mode != "spark"]
    limit = ENOUGH * min(f.straggler for f in able)
    good = [f for f in able if f.straggler <= limit]
    return min(
        good,
        key=lambda f: (
            round(f.replicas / keys, 2) if f.scheme != WHOLE else 0.0,
            f.mode != "planned",
            f.scheme != "fanout",
            f.straggler,
        ),
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
    if for_ == WHOLE:
        return Advice(
            f"Use fewer workers, at most {1 / counts.p1:,.0f}: the hottest key alone is {one:.1f} times the mean of "
            f"{workers:,}, and keys that must stay whole cannot get below it."
        )
    return Advice(
        f"Use fanout: by Spark's own hash the busiest worker gets at least {one:.1f} times the mean, with two choices "
        f"at least {max(1.0, two):.1f} (from p1; more than {MOST_WORKERS:,} workers are not simulated).",
        "fanout",
        "planned",
    )


def _use_skew_join(times: str) -> str:
    return (
        f"Leave it to Spark's adaptive skew join (on by default: spark.sql.adaptive.skewJoin.enabled): by Spark's own "
        f"hash the busiest worker gets {times} times the mean, and unskew does not offer joins yet."
    )


def _only_mode(best: Forecast, forecasts: Sequence[Forecast]) -> bool:
    return sum(f.scheme == best.scheme for f in forecasts) == 1


def _cost(best: Forecast, keys: int) -> str:
    replicas = best.replicas
    if best.scheme == WHOLE:
        return "with nothing to merge"
    if replicas > 2 * keys:
        return f"for {replicas:,} partial results to merge, {replicas / keys:.1f} per key"
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
    if for_ in (None, "python", "merge"):
        said.append("If rows of a key need not meet at all, plain df.repartition(W) balances them without unskew.")
    if advice.scheme == WHOLE:
        most = int(ENOUGH / counts.p1) if counts.p1 else workers
        said.append(
            f"No key is split. Because of the hottest one, whole keys are within {ENOUGH:.1f} of the mean with up to "
            f"{most:,} workers; beyond, keys have to be split and partial results merged."
        )
        if counts.p1 * workers > ENOUGH:
            said.append(f"The hottest key alone is {counts.p1 * workers:.1f} workers' work: use fewer workers.")
        return said
    whole = next((f for f in forecasts if f.scheme == WHOLE), None)
    if whole is not None and for_ != "stateful":
        said.append(
            f"If results cannot be merged, apply_whole places keys whole: the busiest worker then has "
            f"{whole.max_over_mean:.1f} times the mean."
        )
    if counts.p1 * workers > 1:
        said.append(
            f"The hottest key alone is {counts.p1 * workers:.1f} workers' work: no scheme that keeps keys whole can "
            "balance this, so partial results have to be merged. If they cannot be, use fewer workers."
        )
    if for_ == "stateful":
        said.append("A plan is for the keys that were hot when it was made: measure again when they change.")
    return said
