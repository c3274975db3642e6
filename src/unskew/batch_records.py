"""What is recorded of each micro-batch of a stream: a JSON line per batch, in a file of its own in the side folder."""

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from unskew.checks import is_integer, is_number
from unskew.errors import InputError

SIDE, BATCHES = "unskew", "batches"  # <checkpoint>/unskew/<name>/batches/000000000017.json
MOST_SHOWN = 10  # hot keys of a record


@dataclass(frozen=True)
class BatchRecord:
    """One micro-batch: the plan that it used, and how its rows were spread.

    Parameters
    ----------
    batch, time, query
        The number of the batch, when it began (ISO), and the id of its query.
    scheme, workers
        What routed it.
    rows, seconds
        How many, and how long the batch took.
    load
        Rows per worker; empty where there are too many workers to count.
    plan, next_plan
        The version of the plan that it used, -1 if that could not be read, and of the one that was made after it; None
        where live routers placed the rows.
    planned_max_over_mean
        What the plan predicted; None if not known.
    hot_keys
        The hottest keys of the plan: key_id, key (as text; null until its name was told), share, workers.
    """

    batch: int
    time: str
    query: str
    scheme: str
    workers: int
    rows: int
    seconds: float
    load: tuple[int, ...]
    plan: int | None = None
    next_plan: int | None = None
    planned_max_over_mean: float | None = None
    hot_keys: tuple[dict[str, Any], ...] = ()

    @property
    def max_over_mean(self) -> float | None:
        """Rows of the busiest worker over the mean."""
        return round(max(self.load) * self.workers / sum(self.load), 4) if any(self.load) else None

    @property
    def file_name(self) -> str:
        return f"{BATCHES}/{self.batch:012d}.json"

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "max_over_mean": self.max_over_mean})

    @classmethod
    def from_json(cls, text: str) -> "BatchRecord | None":
        """The record that `to_json` wrote; None where it is damaged."""
        try:
            found = json.loads(text)
            known = {field.name: found[field.name] for field in fields(cls)}
            load, hot_keys = tuple(map(int, known["load"])), tuple(map(dict, known["hot_keys"]))
            record = cls(**{**known, "load": load, "hot_keys": hot_keys})
            return record if record._can_be_shown() else None
        except (KeyError, OverflowError, RecursionError, TypeError, ValueError):
            return None

    def _can_be_shown(self) -> bool:
        """Whether all numbers are numbers, of as many workers as there are."""
        shares = [hot["share"] for hot in self.hot_keys if str(hot["key_id"]) and int(hot["workers"])]
        return (
            all(is_integer(number, 0) for number in (self.batch, self.rows, *self.load))
            and is_integer(self.workers, 1)
            and len(self.load) in (0, self.workers)
            and all(number is None or is_integer(number, -1) for number in (self.plan, self.next_plan))
            and all(is_number(number, 0.0, math.inf) for number in (self.seconds, *shares))
        )


def names_in(checkpoint: Path) -> list[str]:
    """The names of what is recorded beside a checkpoint. InputError where it is none."""
    if not (checkpoint / SIDE).is_dir():
        raise InputError(
            f"folder: {str(checkpoint)!r} must be the checkpoint of a query that was routed with Adaptive; it has no "
            f"folder {SIDE!r}"
        )
    return sorted(each.name for each in (checkpoint / SIDE).iterdir() if (each / BATCHES).is_dir())


def read_records(checkpoint: Path, name: str) -> list[BatchRecord]:
    """All records of one name, the oldest first."""
    found = []
    for path in sorted((checkpoint / SIDE / name / BATCHES).glob("[!.]*.json")):
        try:
            record = BatchRecord.from_json(path.read_text(encoding="utf-8", errors="replace"))
        except OSError:  # taken away meanwhile
            continue
        if record is not None:
            found.append(record)
    return found
