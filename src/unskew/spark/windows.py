"""Windows of event time, as the arguments `time`, `window`, `slide` and `watermark` say."""

import re
from collections.abc import Collection
from math import gcd
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import TimestampNTZType, TimestampType

from unskew.errors import InputError
from unskew.spark.frames import as_compared, column, count_of

WINDOW = "window"  # the column that results have, as in Spark
PANE, TIME = "__unskew_pane", "__unskew_time"  # of a partial result: its pane, the latest time of its rows
UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
LONGEST = 3_652_500 * UNITS["day"]  # later than the year 9999 is no timestamp
PART = re.compile(r"(\d+)\s+([a-z]+?)s?(?=\s|$)\s*", re.ASCII)
WATERMARK = "spark.watermarkDelayMs"  # Spark's mark in the metadata of a column


class Windows(NamedTuple):
    """Windows of event time."""

    time: str  # the name of the column of timestamps
    window: str
    slide: str
    watermark: str | None

    @property
    def lengths(self) -> tuple[int, int]:
        """Of a window, and from the beginning of one to that of the next, in microseconds."""
        return microseconds("window", self.window), microseconds("slide", self.slide)

    @property
    def pane(self) -> str:
        """The longest stretch of time that every window holds whole or not at all."""
        return f"{gcd(*self.lengths)} microseconds"

    @property
    def end(self) -> bool:
        """Whether a window is over at some time; without a watermark, rows may still come for any."""
        return self.watermark is not None

    def of(self, time: Column) -> Column:
        """The windows of a row with this event time, as a column `window`; as many rows come out as there are.

        On Connect, ``withColumn`` would take away that it has a watermark: select it, or group by it.
        """
        return F.window(time, self.window, self.slide)

    def added_to(self, df: DataFrame) -> DataFrame:
        """`df` with the column `window`, a row for each window that it is in."""
        return df.withColumn(WINDOW, self.of(column(self.time)))


def checked_windows(
    df: DataFrame,
    results: Collection[str],
    time: str | None,
    window: str | None,
    slide: str | None,
    watermark: str | None,
) -> Windows | None:
    """The windows that a user asked for, or None."""
    if window is None:
        given = {"time": time, "slide": slide, "watermark": watermark}
        alone = [name for name, value in given.items() if value is not None]
        if alone:
            raise InputError(f"{alone[0]}: is for windows only; give window='10 minutes' too, or leave it out")
        return None
    if time is None:
        raise InputError(f"time: must be the name of the column that windows go by, one of {', '.join(df.columns)}")
    if time not in df.columns or count_of(df, time) > 1:
        raise InputError(f"time: {time!r} is not a column that is there once; allowed are {', '.join(df.columns)}")
    if not isinstance(df.schema[time].dataType, TimestampType | TimestampNTZType):
        raise InputError(f"time: {time!r} must hold timestamps, not {df.schema[time].dataType.simpleString()}")
    if WINDOW in as_compared(df.sparkSession, [*df.columns, *results]):
        raise InputError(
            f"window: the result has a column called {WINDOW}; give another name to the one that you named so"
        )
    length, step = microseconds("window", window), microseconds("slide", window if slide is None else slide)
    if step > length:
        raise InputError(f"slide: must not be longer than the window, {window}, not {slide!r}")
    if watermark is not None:
        microseconds("watermark", watermark, least=0)
        _check_watermark(df, time)
    return Windows(time, window, window if slide is None else slide, watermark)


def _check_watermark(df: DataFrame, time: str) -> None:
    """InputError where Spark would refuse one more watermark, or one on this column, when the query starts."""
    if not df.isStreaming:
        return
    if isinstance(df.schema[time].dataType, TimestampNTZType):
        raise InputError(f"time: {time!r} must be a timestamp where there is a watermark, not timestamp_ntz; cast it")
    marked = [field.name for field in df.schema if WATERMARK in (field.metadata or {})]
    if marked:
        raise InputError(
            f"watermark: df has one already, on {marked[0]!r}, and a stream can have one only; leave out withWatermark"
        )


def microseconds(name: str, text: str, least: int = 1) -> int:
    """How long a text such as "1 hour 30 minutes" says."""
    if isinstance(text, str):
        parts = PART.findall(text.strip().lower())
        whole = "".join(PART.split(text.strip().lower())[::3])
        if parts and not whole and all(unit in UNITS for _, unit in parts):
            length = sum(int(number) * UNITS[unit] for number, unit in parts)
            if least <= length <= LONGEST:
                return length
    units = ", ".join(f"{unit}s" for unit in UNITS)
    raise InputError(
        f"{name}: must be a time such as '10 minutes' or '1 hour 30 minutes', up to 10,000 years, in {units}; not "
        f"{text!r}"
    )
