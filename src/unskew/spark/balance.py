"""`measure_balance`: how many rows each partition of a DataFrame really has, beside what the plan predicted."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import DoubleType, IntegerType, LongType, StructField, StructType
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from unskew.errors import InputError, InputTypeError
from unskew.plan import Plan
from unskew.plots import check_picture, loads_figure
from unskew.report.printing import as_html, as_text
from unskew.spark.frames import columns_by_position, require_frame
from unskew.spark.keys import can_be_hashed
from unskew.spark.mapping import Batches, map_in_arrow

LONGEST_BAR = 30
MOST_SHOWN = 20  # workers, all of them; of more, only the busiest and the idlest
EXPECTED = 1.1  # times the planned max/mean: what the luck of hashing explains
MEASURED = StructType(
    [StructField("worker", IntegerType()), StructField("rows", LongType()), StructField("seconds", DoubleType())]
)


@dataclass(frozen=True)
class Balance:
    """Rows per worker, as `measure_balance` found them. Prints, also in notebooks; has `plot`, and `to_dict` for JSON.

    Attributes
    ----------
    rows
        Of each worker.
    planned
        Rows per worker that the plan predicted; empty where there is no prediction.
    seconds
        What each worker took for its rows; empty if not timed.

    Examples
    --------
    >>> from unskew.spark import Balance
    >>> Balance(rows=(5, 9, 1)).max_over_mean
    1.8
    """

    rows: tuple[int, ...]
    planned: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()

    @property
    def max_over_mean(self) -> float:
        """Rows of the busiest worker over the mean: 1 is perfect."""
        return _max_over_mean(self.rows)

    @property
    def planned_max_over_mean(self) -> float | None:
        return _max_over_mean(self.planned) if self.planned else None

    @property
    def seconds_max_over_mean(self) -> float | None:
        return _max_over_mean(self.seconds) if self.seconds else None

    @property
    def verdict(self) -> str:
        """What was achieved, in one or two sentences."""
        planned = self.planned_max_over_mean
        said = f"The busiest of {len(self.rows):,} workers has {self.max_over_mean:.2f} times the mean of the rows"
        if planned is not None:
            said += f"; {planned:.2f} were planned"
        if self.seconds_max_over_mean is not None:
            said += f". The slowest takes {self.seconds_max_over_mean:.2f} times the mean of the seconds"
        if planned is not None and self.max_over_mean > EXPECTED * planned:
            said += (
                ". That is more than planned: either the keys are not those that the plan was made for, or many rows "
                "of hot keys are equal in the columns that they are dealt by (then try deal='position')"
            )
        return f"{said}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "workers": len(self.rows),
            "rows": list(self.rows),
            "max_over_mean": self.max_over_mean,
            "planned": list(self.planned) or None,
            "planned_max_over_mean": self.planned_max_over_mean,
            "seconds": list(self.seconds) or None,
            "seconds_max_over_mean": self.seconds_max_over_mean,
            "verdict": self.verdict,
        }

    def plot(self, path: str | Path) -> None:
        """Write a picture (.png, .svg or .pdf): rows per worker, planned beside achieved, and seconds if timed."""
        check_picture(Path(path))
        try:
            loads_figure(self.rows, self.planned, self.seconds).savefig(path)
        except OSError as error:
            raise InputError(f"path: {str(path)!r} cannot be written: {error.strerror}") from None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield Text(self.verdict)
        yield self._table("#" if options.ascii_only else "━")

    def _table(self, block: str) -> Table:
        heads = ["worker", "rows", *["planned"] * bool(self.planned), *["seconds"] * bool(self.seconds), ""]
        table = Table(*heads, box=SIMPLE_HEAD, pad_edge=False)
        for column in table.columns:
            column.no_wrap, column.justify = True, "right" if column.header else "left"
        busiest_first = sorted(range(len(self.rows)), key=lambda worker: -self.rows[worker])
        left_out = len(self.rows) - MOST_SHOWN
        for i, worker in enumerate(busiest_first):
            if left_out > 0 and i == MOST_SHOWN // 2:
                table.add_row("...", f"({left_out:,} more)")
            if left_out > 0 and MOST_SHOWN // 2 <= i < MOST_SHOWN // 2 + left_out:
                continue
            cells = [str(worker), f"{self.rows[worker]:,}"]
            cells += [f"{self.planned[worker]:,.0f}"] if self.planned else []
            cells += [f"{self.seconds[worker]:.2f}"] if self.seconds else []
            bar = round(LONGEST_BAR * self.rows[worker] / max(1, max(self.rows)))
            table.add_row(*cells, block * bar)
        return table

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def measure_balance(df: DataFrame, plan: Plan | None = None, *, timed: bool = False) -> Balance:
    """Count the rows of each partition of `df`, in one Spark job, now: did it work?

    Parameters
    ----------
    df
        What `repartition` returned, or what you made of it without another shuffle. Worker w is partition w.
    plan
        The plan that rows were routed by, whose prediction is then shown beside what was achieved.
    timed
        Whether to measure how long each partition takes too: from the first row to the last, with everything that is
        done since the shuffle, such as a function of yours in ``mapInPandas``. All columns are computed, then thrown
        away. Partitions run as Spark schedules them, so seconds are comparable when each has a core of its own.

    Examples
    --------
    >>> from unskew.spark import measure_balance, plan_for, repartition
    >>> plan = plan_for(df, "word", workers=4)
    >>> found = measure_balance(repartition(df, "word", workers=4, plan=plan, deal="position"), plan)
    >>> sum(found.rows), round(found.max_over_mean, 1), round(found.planned_max_over_mean, 1)
    (1000, 1.0, 1.0)
    """
    require_frame(df)
    if df.isStreaming:
        raise InputError("df: is a stream, whose rows cannot be counted; count those of a batch in foreachBatch")
    if plan is not None and not isinstance(plan, Plan):
        raise InputTypeError(f"plan: must be a Plan, such as Plan.load('plan.json'), not {type(plan).__name__}")

    def measure(batches: Batches) -> Batches:  # inside, so that executors need no unskew
        task, began = TaskContext.get(), time.perf_counter()
        rows = sum(batch.num_rows for batch in batches)
        found = {"worker": task.partitionId(), "rows": rows, "seconds": time.perf_counter() - began}
        types = pa.schema({"worker": pa.int32(), "rows": pa.int64(), "seconds": pa.float64()})
        yield pa.RecordBatch.from_pylist([found], types)

    needed = columns_by_position(df) if timed else []
    needed = [each for each, field in zip(needed, df.schema, strict=timed) if can_be_hashed(field.dataType)]
    one = F.xxhash64(*needed) if needed else F.lit(1)
    found = sorted(map_in_arrow(df.select(one.alias("row")), measure, MEASURED).collect())
    rows = tuple(row["rows"] for row in found)
    if plan is not None and plan.workers != len(rows):
        raise InputError(f"plan: is for {plan.workers} workers, and df has {len(rows)} partitions")
    planned = tuple(share * sum(rows) for share in plan.predicted_load) if plan is not None else ()
    return Balance(rows, planned, tuple(row["seconds"] for row in found) if timed else ())


def _max_over_mean(loads: tuple[float, ...]) -> float:
    return max(loads, default=0) * len(loads) / sum(loads) if sum(loads) else 1.0
