"""Seconds: what a stage takes, with what Spark and Python cost besides the work on the rows.

The constants are CPU seconds of one core of a small cloud machine with Spark 4.3, the user's function doing nothing;
``python benchmarks/spark_costs.py`` measures them where you are. They come from one machine, on which other work
was running: take them as orders of magnitude. Today's way is ``groupBy(keys).applyInArrow``, which
calls Python once per key; `apply_split` counts the keys first, calls Python once per replica, and once more per key to
merge; `apply_whole` counts the keys too, and cuts the sorted rows of a worker into tables itself, which takes more per
row and less per key.
"""

from typing import NamedTuple

from unskew.checks import require_integer, require_number
from unskew.report.counts import KeyCounts
from unskew.report.forecast import WHOLE, Forecast


class Overhead(NamedTuple):
    """CPU seconds besides the user's work."""

    start: float  # of the jobs, whatever they do
    row: float  # per row: shuffle, and the way to Python
    call: float  # per call of a Python function on a small table


MOST_CORES = 1_000_000
WORTHWHILE = 1.1  # times as fast as Spark's own hash that a scheme must be
TODAY = Overhead(start=1.4, row=1.2e-6, call=3.2e-4)
SPLIT = Overhead(start=3.1, row=1.1e-6, call=2.8e-4)  # the plan included
ENTIRE = Overhead(start=3.8, row=3.5e-6, call=5.5e-5)  # `apply_whole`, the counting included


class Work(NamedTuple):
    """What is known of the work on the rows."""

    row_cost: float | None  # seconds per row
    cores: int  # that work at the same time


def check_work(row_cost: float | None, cores: int | None) -> None:
    """InputError unless these can be the cost of a row, in seconds, and a number of cores, where they are known."""
    if row_cost is not None:
        require_number("row_cost", row_cost, "seconds per row from 0 to 1e6", 0.0, 1e6)
    if cores is not None:
        require_integer("cores", cores, 1, MOST_CORES)


def seconds(forecast: Forecast, counts: KeyCounts, workers: int, work: Work) -> float | None:
    """What the stage takes, where it is known what a row costs."""
    if work.row_cost is None:
        return None
    busiest = _work(forecast, counts, workers, work.cores)
    return busiest * work.row_cost + _besides(forecast, counts, work.cores)


def break_even(counts: KeyCounts, workers: int, now: Forecast, then: Forecast, cores: int) -> float:
    """Seconds per row from which on `then` is `WORTHWHILE` times as fast as `now`; infinity where it never is."""
    more = WORTHWHILE * _besides(then, counts, cores) - _besides(now, counts, cores)
    saved = _work(now, counts, workers, cores) - WORTHWHILE * _work(then, counts, workers, cores)
    return max(0.0, more) / saved if saved > 0 else float("inf")


def _work(forecast: Forecast, counts: KeyCounts, workers: int, cores: int) -> float:
    """Rows that are worked on one after the other: those of the busiest worker, or of a core that has several."""
    return max(forecast.max_over_mean * counts.tuples / workers, counts.tuples / cores)


def _besides(forecast: Forecast, counts: KeyCounts, cores: int) -> float:
    overhead, calls = SPLIT, forecast.replicas + counts.keys
    if forecast.scheme == WHOLE:
        overhead, calls = ENTIRE, counts.keys
    elif forecast.mode == "spark":
        overhead, calls = TODAY, counts.keys
    return overhead.start + (overhead.row * counts.tuples + overhead.call * calls) / cores


def duration(value: float) -> str:
    """Two digits and a unit: 0.12 ms, 45 s, 12 min."""
    for unit, length, least in (("h", 3600.0, 2.0), ("min", 60.0, 2.0), ("s", 1.0, 1.0), ("ms", 1e-3, 0.1)):
        if value >= least * length:
            number = value / length
            return f"{number:.0f} {unit}" if number >= 100 else f"{number:.2g} {unit}"
    return f"{value * 1e6:.2g} us"
