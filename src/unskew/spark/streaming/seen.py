"""What the driver knows of a micro-batch that is over, and how it reads that from what Spark observed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.frequencies import Frequencies
from unskew.spark.counting import frequencies_in
from unskew.spark.streaming.plan_file import version_of
from unskew.spark.worker_counts import counts_workers, load_in

LEAST_COUNTED, COUNTED_PER_WORKER = 100_000, 5_000  # rows of a micro-batch, of which more are a sample


class Seen(NamedTuple):
    """A micro-batch."""

    rows: int
    load: npt.NDArray[np.int64] | None  # rows of each worker; None with too many workers
    version: int | None = None  # of the plan that was used
    counted: int = 0  # rows whose keys were counted
    frequencies: Frequencies | None = None  # of these
    names: dict[int, str] = {}  # what some keys are called, by key id
    halvings: int = 0  # how often the rows of the next one are to be halved before they are counted


def seen_in_load(metrics: Any, workers: int) -> Seen:
    """A micro-batch of which the rows per worker were observed, and nothing else."""
    if not counts_workers(metrics["load"], workers):
        return Seen(0, None)
    return Seen(metrics["rows"], load_in(metrics["load"], workers))


def seen_in_rows(metrics: Any, workers: int, most: int) -> Seen:
    """A micro-batch whose rows were observed, or a sample of them where there are many."""
    rows, counted = metrics["rows"], metrics["counted"]
    if not rows or not counts_workers(metrics["load"], workers):
        return Seen(0, None)
    load = load_in(metrics["load"], workers)
    if load is not None and load.any():
        load = np.rint(load * (rows / load.sum())).astype(np.int64)
    return Seen(
        rows,
        load,
        version_of(metrics["code"]),
        counted,
        frequencies_in(metrics, workers, most, counted),
        names_in(metrics["names"] or []),
        halvings_for(rows, workers),
    )


def halvings_for(rows: int, workers: int) -> int:
    """How often the rows of the next micro-batch are halved before they are counted, if it is like one of `rows`."""
    enough = max(LEAST_COUNTED, COUNTED_PER_WORKER * workers)
    return max(0, (rows // enough).bit_length() - 1)


def names_in(found: Sequence[Any]) -> dict[int, str]:
    """What keys are called, by their ids."""
    return {int(np.int64(each["id"]).view(np.uint64)): str(each["key"]) for each in found}
