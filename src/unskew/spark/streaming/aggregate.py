"""`aggregate` on a stream: a worker aggregates its rows of a micro-batch, and the state store holds one state per key.

Rows are routed, and each worker makes one row per key (and pane of time) of them: stateless. These few rows are merged
into the state of their key by Spark's own streaming aggregation, where it can, else in Python (`merging.py`). So no
state depends on how rows were routed: plans, schemes and the number of workers may change from batch to batch.

A watermark is defined after the first phase, on the latest time that a row of the first phase stands for: it is then
what it would be without that phase, to the microsecond.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import StructType

from unskew.aggregates import Aggregate, Count, Max, Mean, Min, StdDev, Sum, Variance
from unskew.aggregates.states import STATE
from unskew.errors import InputError
from unskew.spark.frames import column
from unskew.spark.mapping import CountingWork, nullable, result_schema
from unskew.spark.phases import Phases, refuse_our_names
from unskew.spark.route import Route
from unskew.spark.streaming.adaptive import Adaptive
from unskew.spark.streaming.merging import BUCKET, bucket_of, merge_in_python, output_mode_of, require_state_store
from unskew.spark.streaming.moments import finished_moments, merged_moments, with_exact_moments
from unskew.spark.streaming.same_states import require_same_states
from unskew.spark.windows import PANE, TIME, Windows, microseconds

NATIVE: dict[type[Aggregate], Callable[[Column], Column]] = {  # state -> merged, by functions of Spark
    Count: lambda state: F.sum(state["0"]),
    Sum: lambda state: F.sum(state["0"]),
    Min: lambda state: F.min(state["0"]),
    Max: lambda state: F.max(state["0"]),
    Mean: lambda state: F.try_divide(F.sum(state["0"]), F.sum(state["1"]).cast("double")),
    Variance: merged_moments,
    StdDev: merged_moments,
}


def aggregate_stream(
    route: Route,
    names: Sequence[str],
    used: Sequence[str],
    aggregates: Mapping[str, Aggregate],
    windows: Windows | None,
    ttl: str | None,
    output_mode: str | None,
) -> DataFrame:
    """The aggregates of a stream, whose rows go the way of `route`."""
    if ttl is not None:
        microseconds("ttl", ttl)
        if windows is not None:
            raise InputError("ttl: is for streams without windows; windows end by their watermark")
    refuse_our_names("aggregates", [*used, *aggregates])
    native = ttl is None and all(type(each) in NATIVE for each in aggregates.values())
    mode = None if native else output_mode_of(output_mode, windows)
    if not native:
        require_state_store(route.df.sparkSession)
    elif output_mode is not None:
        raise InputError("output_mode: is for states that Python merges; here Spark goes by the query's own outputMode")
    if isinstance(route.plan, Adaptive):
        described, merged_by = [*map(_described, aggregates.values())], "spark" if native else "python"
        states = {"aggregates": described, "merged_by": merged_by, "ttl": ttl is not None, "output_mode": mode}
        require_same_states(route.plan, route.df, names, windows, **states)
    df, keys, results = route.df, list(names), dict(aggregates)
    if windows is not None:
        df = df.withColumn(PANE, F.window(column(windows.time), windows.pane).start)
        keys.append(PANE)
        results[TIME] = Max(windows.time)  # of the rows of a pane: is in that pane itself
    if not native:
        df = df.withColumn(BUCKET, bucket_of(route.columns))
        keys.append(BUCKET)
    needed = list(dict.fromkeys([*keys, *used, *([windows.time] if windows else [])]))
    route, phases = route.on(df), Phases.of(df, keys, needed, results)

    def first_phase(work: CountingWork, schema: StructType | str) -> DataFrame:
        kind = nullable(result_schema(df, schema))  # so states are the same with any plan
        return route.work_on_stream(work, kind, needed)

    if mode is not None:
        pane = None if windows is None else PANE
        return merge_in_python(first_phase, phases, names, pane, windows, ttl, mode)
    partials = first_phase(*with_exact_moments(phases))
    groups = list(map(column, names))
    if windows is not None:
        times = partials.withColumn(TIME, column(STATE.format(len(aggregates)))["0"])
        partials = times if windows.watermark is None else times.withWatermark(TIME, windows.watermark)
        groups.insert(0, windows.of(column(TIME)))
    merged = [NATIVE[type(each)](column(STATE.format(i))) for i, each in enumerate(aggregates.values())]
    types = [phases.result[name].dataType for name in aggregates]
    together = partials.groupBy(*groups).agg(*(each.alias(name) for each, name in zip(merged, aggregates, strict=True)))
    finished = [
        finished_moments(each, column(name)) if isinstance(each, Variance) else column(name)
        for name, each in aggregates.items()
    ]
    columns = [each.cast(kind).alias(name) for each, kind, name in zip(finished, types, aggregates, strict=True)]
    return together.select(*map(column, together.columns[: len(groups)]), *columns)


def _described(aggregate: Aggregate) -> str:
    """What a state depends on, the same in every process: without addresses in memory."""
    if is_dataclass(aggregate):
        return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(aggregate))
    return f"{type(aggregate).__name__} of {', '.join(aggregate.columns)}"


def refuse_stream_options(ttl: str | None, output_mode: str | None) -> None:
    """InputError where a batch is given what only a stream has."""
    if ttl is not None:
        raise InputError("ttl: is for streams, which have a state to forget; leave it out for a batch")
    if output_mode is not None:
        raise InputError("output_mode: is for streams; leave it out for a batch")
