"""States that only Python can merge, in Spark's state store: ``transformWithState`` on few large groups.

A group of ``transformWithState`` costs milliseconds per micro-batch, so keys are not groups of their own: they are in
32 groups of 8 buckets by hash. What a worker found in a micro-batch travels as one Arrow table per group. A bucket is a
table of states in the store, by window where there are windows. All buckets of a group that got rows are merged at
once.

Which windows are over is for Spark to say, as for its own aggregates. So there is a row for each window of a table, and
Spark drops those of windows that are over, before Python sees them. The table itself is in the row of its latest
window, which is dropped last.

A key that is too old is forgotten when its bucket gets rows: not by a timer, for which Spark would run batches without
rows all the time.

These numbers, and the hash, are part of every checkpoint. The number of workers is not.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructField, StructType

from unskew.aggregates import Aggregate, Max
from unskew.aggregates.states import STATE, States, in_batches
from unskew.errors import InputError
from unskew.hashing import salt_for
from unskew.spark.frames import column, outside_compiled_code
from unskew.spark.mapping import Batches, CountingWork, CountKeys, arrow_schema, map_in_arrow
from unskew.spark.phases import OURS, Phases
from unskew.spark.tasks import spare_what_is_loaded
from unskew.spark.windows import WINDOW, Windows, microseconds

GROUPS, BUCKETS = 32, 8  # groups, and buckets of each
BUCKET, START, TOUCHED = f"{OURS}bucket", f"{OURS}start", f"{OURS}touched"
GROUP, TIME, CHUNK, OPEN, NOW = "group", "time", "chunk", "open", "now"  # Spark renames what begins with an underscore
TIMELESS, TIMED = f"{GROUP} int, {CHUNK} binary", f"{GROUP} int, {CHUNK} binary, {TIME} timestamp"
APPEND, UPDATE = "append", "update"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def require_state_store(spark: SparkSession) -> None:
    """InputError unless ``transformWithState`` can run."""
    if "RocksDB" not in str(spark.conf.get(PROVIDER)):
        raise InputError(
            f"{PROVIDER}: must be {ROCKS}, since these aggregates (sketches, or your own), or ttl, "
            "need transformWithState; set it with spark.conf.set before the query starts"
        )
    if find_spec("google.protobuf") is None:
        raise InputError("protobuf: transformWithState needs it; pip install 'unskew[spark]'")


def output_mode_of(asked: str | None, windows: Windows | None) -> str:
    """The output mode that a query of such states must have."""
    ends = windows is not None and windows.end
    if asked is None:
        return APPEND if ends else UPDATE
    allowed = [APPEND, UPDATE] if ends else [UPDATE]
    if asked not in allowed:
        hint = "" if ends else ", since append needs windows and a watermark"
        raise InputError(f"output_mode: must be {' or '.join(map(repr, allowed))} here{hint}, not {asked!r}")
    return asked


def bucket_of(columns: Sequence[Column]) -> Column:
    """The bucket of a key, a number from 0 on."""
    return F.pmod(F.hash(*columns), F.lit(GROUPS * BUCKETS))


def merge_in_python(
    place: Callable[[CountingWork, str], DataFrame],
    phases: Phases,
    names: Sequence[str],
    pane: str | None,
    windows: Windows | None,
    ttl: str | None,
    mode: str,
) -> DataFrame:
    """The results of a stream, in this output mode. `place` runs a function of the rows of a worker; `phases` are those
    of its rows, with the bucket, and the pane and its latest time where there are windows, as keys and as the last
    aggregate."""
    chunks = place(_in_chunks(phases, pane), TIMELESS if windows is None else TIMED)
    if windows is not None:
        chunks = _in_rows_per_window(chunks, windows)
    if ttl is not None:  # the time of the micro-batch, which is the same if it runs again
        chunks = chunks.withColumn(NOW, outside_compiled_code(F.unix_millis(F.current_timestamp())))
    ends = windows is not None and windows.end
    processor = Merging(phases, list(names), pane, windows, ttl, mode)
    finished = chunks.groupBy(GROUP).transformWithStateInPandas(
        processor, f"{CHUNK} binary", mode, "EventTime" if ends else "None"
    )
    result = processor.result_schema
    return map_in_arrow(finished, _out_of_chunks(arrow_schema(result)), result)


def _in_rows_per_window(chunks: DataFrame, windows: Windows) -> DataFrame:
    """A row for each window, which says when it begins; Spark drops those that are over. A chunk stays in one row."""
    marked = chunks if windows.watermark is None else chunks.withWatermark(TIME, windows.watermark)
    start = F.unix_micros(column(WINDOW)["start"])
    is_last = F.unix_micros(column(TIME)) < start + windows.lengths[1]
    per_window = marked.select("*", windows.of(column(TIME)))
    return per_window.select(GROUP, WINDOW, start.alias(OPEN), F.when(is_last, column(CHUNK)).alias(CHUNK))


class Merging(StatefulProcessor):  # type: ignore[misc]
    """Merges the tables of states that workers made into those of the state store."""

    def __init__(
        self, phases: Phases, names: list[str], pane: str | None, windows: Windows | None, ttl: str | None, mode: str
    ) -> None:
        aggregates = [*phases.results.items()]
        if windows is not None:
            del aggregates[-1]  # the latest time of a pane
        self._results = [name for name, _ in aggregates]
        self._kinds = phases.kinds[: len(aggregates)]
        self._names, self._pane, self._ends = names, pane, windows is not None and windows.end
        self._updates = mode == UPDATE
        self._keys = [*names, BUCKET] + ([START] if pane else [])
        self._merged: list[Aggregate] = [each for _, each in aggregates]
        self._ttl = None if ttl is None else microseconds("ttl", ttl) // 1000
        if self._ttl is not None:
            self._merged.append(Max(TOUCHED))  # when a key had rows last, in milliseconds
        self._window, self._slide = windows.lengths if windows else (0, 0)
        self.result_schema = _result_schema(phases, names, self._results, pane)

    def init(self, handle: Any) -> None:
        spare_what_is_loaded()
        self._handle = handle
        self._states = handle.getMapState("states", "start bigint, bucket int", "chunk binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        parts = list(rows)
        new = pa.concat_tables([_table(chunk) for part in parts for chunk in part[CHUNK].dropna()])
        if self._pane:
            new = self._in_windows(new, np.unique(np.concatenate([part[OPEN] for part in parts])))
        now = 0 if self._ttl is None else int(parts[0][NOW].iloc[0])
        if self._ttl is not None:
            touched = pa.StructArray.from_arrays([pa.array(np.full(len(new), now))], ["0"])
            new = new.append_column(STATE.format(len(self._merged) - 1), touched)
        states = States(self._keys, self._merged)
        states.merge(new)
        changed = len(states)  # their keys come first
        places = self._places_of(new)
        old = [self._fresh(_table(value[0]), now) for each in places if (value := self._states.getValue(each))]
        if old:
            states.merge(pa.concat_tables(old))
        self._save(states.partials(), places)
        if self._ends:  # have Spark call when the windows end
            for start in np.unique(new[START].to_numpy()).tolist():
                self._handle.registerTimer(-(-(start + self._window) // 1000))
        if self._updates:
            yield from self._finished(states, changed)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        due = expiredTimerInfo.getExpiryTimeInMs() * 1000 - self._window
        over = [place for place in self._states.keys() if place[0] <= due]  # noqa: SIM118  (not a dict)
        tables = [] if self._updates else [_table(self._states.getValue(place)[0]) for place in over]
        for place in over:
            self._states.removeKey(place)
        if tables:
            states = States(self._keys, self._merged)
            states.merge(pa.concat_tables(tables))
            yield from self._finished(states, len(states))

    def close(self) -> None:
        pass

    def _in_windows(self, panes: pa.Table, starts: npt.NDArray[np.int64]) -> pa.Table:
        """A row for each window that a pane is in, of the windows that begin at `starts`."""
        pane = panes[self._pane].cast(pa.int64()).to_numpy()
        tables = []
        for back in range(-(-self._window // self._slide)):
            start = pane - pane % self._slide - back * self._slide
            inside = (start + self._window > pane) & np.isin(start, starts)
            tables.append(panes.drop_columns([self._pane]).append_column(START, pa.array(start)).filter(inside))
        return pa.concat_tables(tables)

    def _places_of(self, table: pa.Table) -> list[tuple[int, int]]:
        """Where in the state store the rows of a table belong: pairs of window and bucket."""
        starts = table[START].to_numpy() if self._pane else np.zeros(len(table), np.int64)
        pairs = np.unique(np.stack([starts, table[BUCKET].to_numpy().astype(np.int64)], 1), axis=0)
        return [(start, bucket) for start, bucket in pairs.tolist()]

    def _save(self, partials: pa.Table, places: list[tuple[int, int]]) -> None:
        for start, bucket in places:
            inside = pc.equal(partials[BUCKET], bucket)
            if self._pane:
                inside = pc.and_(inside, pc.equal(partials[START], start))
            self._states.updateValue((start, bucket), (_bytes(partials.filter(inside)),))

    def _fresh(self, table: pa.Table, now: int) -> pa.Table:
        """The states that are not too old."""
        if self._ttl is None:
            return table
        touched = pc.struct_field(table[STATE.format(len(self._merged) - 1)], 0)
        return table.filter(pc.greater(touched, now - self._ttl))

    def _finished(self, states: States, rows: int) -> Iterator[Any]:
        import pandas as pd

        kinds = [*self._kinds, pa.int64()] if self._ttl is not None else self._kinds
        columns = [*self._results, TOUCHED] if self._ttl is not None else self._results
        table = states.results(columns, kinds).slice(0, rows)
        if self._pane:
            start = table[START].combine_chunks()
            kind = arrow_schema(self.result_schema).field(WINDOW).type
            ends = [start.cast(kind[0].type), pc.add(start, self._window).cast(kind[1].type)]
            table = table.append_column(WINDOW, pa.StructArray.from_arrays(ends, ["start", "end"]))
        yield pd.DataFrame({CHUNK: [_bytes(table.select(self.result_schema.names))]})


def _in_chunks(phases: Phases, pane: str | None) -> CountingWork:
    """Phase 1, whose rows are put together: one table per group. Where there are panes, there is a row with the latest
    time of each; the last one has the table."""
    phase_1 = phases.add_rows()
    ids = _group_ids()
    time = STATE.format(len(phases.results) - 1)

    def in_chunks(batches: Batches, count: CountKeys | None = None) -> Batches:
        def count_keys(keys: pa.Table, rows: npt.NDArray[np.int64]) -> None:
            if count is not None:
                count(keys.drop_columns([BUCKET]), rows)  # the rows of a key are in one bucket

        parts = list(phase_1(batches, count_keys))
        if not parts:
            return
        table = pa.Table.from_batches(parts)
        groups = table[BUCKET].to_numpy() % GROUPS
        for group in np.unique(groups).tolist():
            rows = table.filter(groups == group)
            times = [] if pane is None else _latest_times(rows[pane], pc.struct_field(rows[time], 0))
            height = max(1, len(times))
            columns = {
                GROUP: pa.array([ids[group]] * height, pa.int32()),
                CHUNK: pa.array([None] * (height - 1) + [_bytes(rows)], pa.binary()),
            }
            if pane is not None:
                columns[TIME] = times
            yield pa.record_batch(columns)

    return in_chunks


def _latest_times(panes: pa.ChunkedArray, times: pa.ChunkedArray) -> pa.Array:
    """The latest time in each pane, in order."""
    grouped = pa.table({"pane": panes, TIME: times}).group_by("pane").aggregate([(TIME, "max")]).sort_by("pane")
    return grouped[f"{TIME}_max"].combine_chunks().cast(pa.int64()).cast(pa.timestamp("us", "UTC"))


def _out_of_chunks(schema: pa.Schema) -> Callable[[Batches], Batches]:
    """The rows of the tables that a column of bytes holds."""

    def out_of_chunks(batches: Batches) -> Batches:
        for batch in batches:
            for chunk in batch.column(0):
                yield from in_batches(_table(chunk.as_py()), schema)

    return out_of_chunks


def _group_ids() -> list[int]:
    """The numbers of the groups, such that Spark spreads them evenly over 1, 2, 4, ... 32 state partitions."""
    return [int(np.int32(np.uint32(salt_for(np.uint64(42 << 32), group, GROUPS)))) for group in range(GROUPS)]


def _result_schema(phases: Phases, names: Sequence[str], results: Sequence[str], pane: str | None) -> StructType:
    fields = [*(phases.result[name] for name in names), *(phases.result[name] for name in results)]
    if pane is not None:
        kind = phases.result[pane].dataType
        fields.insert(0, StructField(WINDOW, StructType().add("start", kind).add("end", kind)))
    return StructType(fields)


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _table(chunk: bytes) -> pa.Table:
    return pa.ipc.open_stream(chunk).read_all()
