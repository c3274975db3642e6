"""`cost_report`: how uneven the work on the rows of a DataFrame is, and what balancing it would gain."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.checks import require_integer
from unskew.errors import InputError
from unskew.report import CostFacts, CostLots, CostReport, cost_report_on
from unskew.spark.cost_dealing import MOST_WORKERS, CostDealing, cost_column
from unskew.spark.frames import column, columns_by_position, free_name, require_batch
from unskew.spark.keys import can_be_hashed, shown_key
from unskew.spark.learned_costs import KEY, LearnedCosts
from unskew.spark.mapping import Batches
from unskew.spark.timed_costs import time_rows

SHOWN = 5  # rows
COST, ROW = "__unskew_cost", "__unskew_row"
TIMED_FOR = 5.0  # seconds
LOTS = 100_000  # at most, that a sample is blown up to


def cost_report(
    df: DataFrame,
    cost: str | Column | LearnedCosts | Callable[[Batches], Batches],
    workers: int,
    *,
    cost_key: str | Sequence[str] | None = None,
) -> CostReport:
    """How uneven the work on the rows of `df` is, and what balancing it over `workers` workers would gain.

    Costs are added up in one native pass, as in `map_balanced`; three more find percentiles, the top rows, and what the
    partitions of `df` have as they are. The report compares these with ``df.repartition``, into as many partitions as
    workers or into many small ones, and with `map_balanced`.

    Parameters
    ----------
    df
        The rows, in a batch.
    cost
        What a row costs, as in `map_balanced`; or the function itself, which is then timed on the driver, on up to a
        thousand rows and for about five seconds.
    workers
        How many workers work at the same time, up to 10,000.
    cost_key
        Where `cost` is a function: the columns that determine the cost, so that the sample tells what all rows cost.
        Without them, only the sample is known.

    Examples
    --------
    >>> from unskew.spark import cost_report
    >>> report = cost_report(df, "if(v < 8, 500, 1)", workers=4)
    >>> report.facts.rows, report.longest, report.best.way
    (1000, 500.0, 'balanced')

    ``print(report)`` shows it all.
    """
    require_batch(df)
    require_integer("workers", workers, 1, MOST_WORKERS)
    if callable(cost) and not isinstance(cost, Column | LearnedCosts):
        if cost_key is None:
            return _by_sample(df, cost, workers)
        learned = LearnedCosts(cost_key)
        timed = learned.time_sample(df, cost, seconds=TIMED_FOR)
        told = _call(f"LearnedCosts({cost_key!r})")
        return _by_cost(df, learned.estimate(df), workers, unit="s", sampled=timed, call=told)
    if cost_key is not None:
        raise InputError("cost_key: must be left out where cost is no function")
    if isinstance(cost, LearnedCosts):
        return _by_cost(df, cost.estimate(df), workers, unit="s" if cost.known else "")
    return _by_cost(df, cost_column(df, cost), workers, call=_call(repr(cost) if isinstance(cost, str) else "..."))


def _call(cost: str) -> str:
    """What to write, with room for the number of workers."""
    escaped = cost.replace("{", "{{").replace("}", "}}")
    return f"map_balanced(df, function, schema, workers={{workers}}, cost={escaped})"


def _by_cost(df: DataFrame, cost: Column, workers: int, **options: Any) -> CostReport:
    """From the cost of each row."""
    measured = CostDealing(df, cost, workers, None).dealt.measured
    rows = int(measured.rows.sum())
    lots = CostLots(measured.rows.astype(float), measured.cost, measured.bound.longest)
    name, row = free_name(df, COST), free_name(df, ROW)
    costed = df.withColumn(name, cost.cast("double"))
    shown = [c for c, field in zip(columns_by_position(df), df.schema, strict=True) if can_be_hashed(field.dataType)]
    text = shown_key(shown) if shown else F.lit("row")
    top = df.withColumn(row, text).withColumn(name, cost.cast("double")).orderBy(F.desc_nulls_last(name)).limit(SHOWN)
    most = [(found[row], found[name]) for found in top.select(row, name).collect() if found[name] is not None]
    by_partition = costed.groupBy(F.spark_partition_id().alias("partition"))
    percentiles = F.percentile_approx(column(name), [0.5, 0.99])
    (middle,) = costed.agg(percentiles.alias("found")).collect()
    sums = {found["partition"]: found["cost"] or 0.0 for found in by_partition.agg(F.sum(name).alias("cost")).collect()}
    partitions = np.array([sums[partition] for partition in sorted(sums)], float)
    median, p99 = middle["found"] or (0.0, 0.0)
    facts = CostFacts(rows, measured.unknown, float(median), float(p99), tuple(most))
    return cost_report_on(lots, facts, workers, partitions=partitions, **options)


def _by_sample(df: DataFrame, function: Callable[[Batches], Batches], workers: int) -> CostReport:
    """From rows that were timed, for as many rows as there are."""
    timed = time_rows(df.withColumn(free_name(df, KEY), F.lit(0).cast("bigint")), function, TIMED_FOR)
    rows = df.count()
    each = np.array([took for _, took in timed])
    most = sorted(timed, key=lambda found: -found[1])[:SHOWN]
    top = tuple((", ".join(str(value[0]) for value in piece.rows.columns)[:200], took) for piece, took in most)
    median, p99 = (float(np.quantile(each, q)) if len(each) else 0.0 for q in (0.5, 0.99))
    facts = CostFacts(rows, 0, median, p99, top)
    return cost_report_on(_blown_up(each, rows), facts, workers, unit="s", sampled=len(each))


def _blown_up(each: Any, rows: int) -> CostLots:
    """`rows` rows whose costs are drawn from those of a sample; where there are too many, a lot stands for several."""
    if not len(each):
        return CostLots(np.zeros(0), np.zeros(0), 0.0)
    if rows == len(each):
        return CostLots(np.ones(rows), each, float(each.max()))
    number = min(rows, LOTS)
    together = rows / number
    drawn = np.random.Generator(np.random.PCG64(0)).choice(each, number)
    sums = np.maximum(0.0, together * each.mean() + np.sqrt(together) * (drawn - each.mean()))
    return CostLots(np.full(number, together), sums, float(each.max()))
