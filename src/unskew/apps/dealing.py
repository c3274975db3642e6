"""What a scheme makes of rows with keys: the load of each worker, and on how many workers keys have a state."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.apps.found import bars, lines, max_over_mean
from unskew.apps.job import Job
from unskew.contract import Scheme
from unskew.registry import registration_of
from unskew.spark import repartition

HASH, ROUND_ROBIN = "hash", "shuffle"  # Spark's own, beside which the scheme is shown


class Dealt(NamedTuple):
    """How rows were dealt: rows per worker, and replicas, (worker, key) pairs that hold a state."""

    scheme: str
    load: list[int]
    replicas: int

    def to_dict(self) -> dict[str, Any]:
        return self._asdict() | {"max_over_mean": max_over_mean(self.load)}


def name_of(scheme: str | Scheme) -> str:
    return scheme if isinstance(scheme, str) else registration_of(scheme).name


def mode_of(scheme: str | Scheme) -> str:
    """PKG as published looks at the load, which only live routers do; a plan deals a key evenly over its workers."""
    return "online" if name_of(scheme) == "pkg" else "auto"


def deal(df: DataFrame, key: str, workers: int, scheme: str | Scheme, states: Sequence[str] = ()) -> Dealt:
    """Send the rows to their workers and count, in one native job. `states` are the columns with a state per value."""
    held = list(states or [key])
    rows = df.select(*dict.fromkeys([key, *held]))
    if scheme in (HASH, ROUND_ROBIN):
        placed = rows.repartition(workers, *([key] if scheme == HASH else []))
    else:
        placed = repartition(rows, key, workers, scheme, mode=mode_of(scheme))
    pairs = placed.groupBy(F.spark_partition_id().alias("worker"), *held).agg(F.count(F.lit(1)).alias("rows"))
    found = pairs.groupBy("worker").agg(F.sum("rows").alias("rows"), F.count(F.lit(1)).alias("states")).collect()
    rows_of = {row["worker"]: row["rows"] for row in found}
    load = [rows_of.get(worker, 0) for worker in range(workers)]
    return Dealt(name_of(scheme), load, sum(row["states"] for row in found))


def compare(job: Job, df: DataFrame, key: str, scheme: str | Scheme, states: Sequence[str] = ()) -> list[Dealt]:
    """The scheme between Spark's own hash and round robin, which never and always split a key."""
    compared = {name_of(each): each for each in (HASH, scheme, ROUND_ROBIN)} | {name_of(scheme): scheme}
    found: list[Dealt] = []
    for name, each in compared.items():
        job.say(f"how {name} deals the rows")
        found.append(deal(df, key, job.workers, each, states))
    return found


COLUMNS = {"scheme": "{scheme}", "busiest / mean": "{max_over_mean:.2f}", "replicas": "{replicas:,}"}


def dealt_pictures(found: Sequence[Dealt], what: str) -> list[tuple[Any, str]]:
    """The load of each worker by each scheme."""
    loads: Mapping[str, Sequence[float]] = {f"{each.scheme}: {each.replicas:,} replicas": each.load for each in found}
    return [(bars(loads, "rows"), f"Rows of each worker, their mean, and how many replicas of {what} there are.")]


def batch_pictures(job: Job) -> list[tuple[Any, str]]:
    """The balance of each micro-batch of a stream."""
    heights = [record.max_over_mean or 1.0 for record in job.records()]
    if not heights:
        return []
    told = "Each micro-batch, measured; 1 is perfect. The first has no plan."
    return [(lines({"busiest worker / mean": heights}, "busiest worker / mean", least=1.0), told)]
