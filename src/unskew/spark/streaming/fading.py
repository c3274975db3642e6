"""Counts that fade: those of the latest micro-batch count fully, those of the one before `alpha` times, and so on."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.frequencies import MOST_HOT_KEYS, Frequencies

FINE = 1000  # counts are handed on in thousandths of a row, as by `count_keys_with_decay`
MOST_KEPT = 2 * MOST_HOT_KEYS  # keys; the others have faded, or were never hot


class FadingCounts:
    """How often keys occurred of late."""

    def __init__(self, alpha: float) -> None:
        self._alpha = alpha
        self._counts: dict[int, float] = {}  # by key id
        self._tuples = 0.0
        self._home: npt.NDArray[np.float64] | None = None  # rows per worker if every key were at home

    def add(self, batch: Frequencies) -> None:
        """Take in the counts of the next micro-batch."""
        found = dict(zip(batch.key_ids.tolist(), batch.counts.tolist(), strict=True))
        known = {*self._counts, *found}
        sums = {key: self._alpha * self._counts.get(key, 0.0) + found.get(key, 0) for key in known}
        largest = sorted(sums, key=lambda key: (-sums[key], key))[:MOST_KEPT]
        self._counts = {key: sums[key] for key in largest if sums[key] * FINE >= 1}
        self._tuples = self._alpha * self._tuples + batch.tuples
        if not batch.tuples:
            return
        if batch.home_load is None:  # what is known of batches before would not fit the counts
            self._home = None
        elif self._home is None:  # not known of the batches before: they were like this one
            self._home = batch.home_load.astype(np.float64) * (self._tuples / batch.tuples)
        else:
            self._home = self._alpha * self._home + batch.home_load

    def frequencies(self) -> Frequencies:
        """All of it, in thousandths of a row."""
        counts = np.array([round(FINE * count) for count in self._counts.values()], np.int64)
        home = None if self._home is None else (FINE * self._home).astype(np.int64)
        tuples = max(round(FINE * self._tuples), int(counts.sum()))
        return Frequencies(np.array(list(self._counts), np.uint64), counts, tuples, home_load=home)

    def to_json(self) -> dict[str, Any]:
        home = None if self._home is None else self._home.tolist()
        counts = {f"{key:016x}": count for key, count in self._counts.items()}
        return {"counts": counts, "tuples": self._tuples, "home": home}

    def load(self, text: str | None, workers: int) -> bool:
        """Go on from what `to_json` gave; False where that is damaged. For another number of workers, keys count on."""
        try:
            found = json.loads(text or "")
            counts = {int(key, 16): float(count) for key, count in found["counts"].items()}
            tuples = float(found["tuples"])
            home = None if found["home"] is None else np.array(found["home"], np.float64)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            return False
        if not np.isfinite([*counts.values(), tuples, *(() if home is None else home.ravel())]).all():
            return False
        loaded = FadingCounts(self._alpha)
        loaded._counts, loaded._tuples = counts, tuples
        loaded._home = home if home is not None and home.shape == (workers,) else None
        try:
            loaded.frequencies()
        except (InputError, OverflowError, ValueError):
            return False
        self._counts, self._tuples, self._home = loaded._counts, loaded._tuples, loaded._home
        return True
