"""What the driver knows of a micro-batch that is over, and how it reads that from what Spark observed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.frequencies import Frequencies
from unskew.hashing import candidates_of
from unskew.plan import Plan
from unskew.spark.counting import frequencies_of
from unskew.spark.streaming.plan_file import NO_PLAN
from unskew.spark.worker_counts import count_numbers, has_counters, load_in, number_of

Load = npt.NDArray[np.int64]  # [workers] rows


class Seen(NamedTuple):
    """A micro-batch."""

    rows: int
    load: Load | None  # rows of each worker; None with too many workers
    version: int | None = None  # of the plan that was used
    frequencies: Frequencies | None = None
    names: dict[int, str] = {}  # what some keys are called, by key id


def seen_in_load(metrics: Any, workers: int) -> Seen:
    """A micro-batch of which the rows per worker were observed, and nothing else."""
    if "load" not in metrics or not has_counters(metrics["load"], workers):  # of a query before this one, heard late
        return Seen(0, None)
    return Seen(metrics["rows"], load_in(metrics["load"], workers))


def counted_number(worker: Column, hot: Column, workers: int) -> Column:
    """The number by which a row is counted. Worker w has two counters: w for rows of cold keys, and W + w for rows of
    the plan's hot keys."""
    return number_of(worker + F.when(hot, F.lit(workers)).otherwise(F.lit(0)), 2 * workers)


def count_cold_and_hot(number: Column, workers: int) -> Column:
    """An aggregate of these numbers. `seen_in_rows` reads what comes out."""
    return count_numbers(number, 2 * workers)


def seen_in_rows(metrics: Any, workers: int, most: int, plans: Mapping[int, Plan]) -> Seen:
    """A micro-batch whose rows were observed, and its `most` frequent keys; `plans` are known by their version."""
    if "counters" not in metrics:  # a query before this one may be heard of late
        return Seen(0, None)
    rows, counters = metrics["rows"], metrics["counters"]
    if not rows or not has_counters(counters, 2 * workers):
        return Seen(0, None)
    version, load, found = int(metrics["version"]), None, frequencies_of(metrics["top"], rows, most)
    counted = load_in(counters, 2 * workers)
    if counted is not None:
        cold, hot = counted.reshape(2, workers)
        load = cold + hot
        plan = Plan("", workers) if version == NO_PLAN else plans.get(version)
        if plan is not None and plan.cold_salt == 0:
            found = replace(found, home_load=_home_load(cold, hot, plan, found))
    return Seen(rows, load, version, found, names_in(metrics["names"] or []))


def _home_load(cold: Load, hot: Load, plan: Plan, found: Frequencies) -> Load:
    """The rows of each worker if every key were at home.

    Cold keys are at home already. Hot keys that were found are counted at their homes. The other hot rows, of keys that
    have become too rare to be found, are spread as all hot rows are.
    """
    were_hot = np.isin(found.key_ids, np.array([each.key_id for each in plan.hot_keys], np.uint64))
    at_home = np.zeros_like(cold)
    np.add.at(at_home, candidates_of(found.key_ids[were_hot], 0, len(cold)), found.counts[were_hot])
    rows, known = int(hot.sum()), int(at_home.sum())
    if known > rows:  # a sketch may count too much
        return cold + (at_home * (rows / known)).astype(np.int64)
    return cold + at_home + (hot * (1 - known / max(1, rows))).astype(np.int64)


def names_in(found: Sequence[Any]) -> dict[int, str]:
    """What keys are called, by their ids."""
    return {int(np.int64(each["id"]).view(np.uint64)): str(each["key"]) for each in found}
