"""A plan: a routing table made beforehand from measured frequencies, key -> the workers it is dealt over.

A plan knows its hot keys only; every other key stays whole on one candidate. A hot key has a list of *places*, and
its tuples are dealt over them evenly: a worker that should get more has more places. Each place holds the salt that
sends a tuple to its worker, so a plan becomes Spark columns without any Python in the data path, and can be kept and
used again on the next day's data: what is not as hot any more is split needlessly, what became hot since is not split.

A plan file (JSON, format 2) has beside each salt the worker that it leads to, so that a file whose number of workers or
places were edited is refused: its places would lead anywhere.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from unskew.checks import MOST_WORKERS, is_integer, is_number, require_integer, require_number
from unskew.errors import InputError, InputTypeError
from unskew.hashing import candidate, salt_for
from unskew.kernels import allocating_kernel
from unskew.writing import whole_file

FORMAT = 2  # of plan files
SALTS = -(2**31), 2**31 - 1  # Spark's int
FEW, MOST_IN_ONE_PASS = 8, 65_536  # workers of a key that are looked up together; workers in all
PLANNERS: set[str] = set()  # names of the schemes whose plans can be loaded: `register` enters those that can plan


class HotKey(NamedTuple):
    """A key of a plan."""

    key_id: int
    share: float  # of all tuples, when measured
    salts: tuple[int, ...]  # one per place; its tuples are dealt over them evenly
    key: str = ""  # to show to people


class KeyColumn(NamedTuple):
    """A column of the key that a plan was made for."""

    name: str
    type: str  # Spark's simpleString, such as "bigint"


@dataclass(frozen=True)
class Plan:
    """Hot keys and their places, hottest first. Schemes make it, see `make_plan`.

    Parameters
    ----------
    scheme
        The name of the scheme that made it.
    workers
        W, the number of workers that it is for.
    hot_keys
        The keys that are dealt over several places.
    cold_salt
        The salt of every other key.
    predicted_load
        The share of each worker; empty if not predicted.
    key_columns
        The columns of the key; empty if not known.

    Examples
    --------
    >>> from unskew import Frequencies, Plan, key_ids, make_plan
    >>> frequencies = Frequencies(key_ids(["the", "cat"]), [500, 10], tuples=1000, names=["the", "cat"])
    >>> plan = make_plan("pkg", workers=4, frequencies=frequencies)
    >>> plan.table().select(["key", "share", "workers"]).to_pylist()
    [{'key': 'the', 'share': 0.5, 'workers': [1, 2]}]
    >>> Plan.from_json(plan.to_json()) == plan
    True
    """

    scheme: str
    workers: int
    hot_keys: tuple[HotKey, ...] = ()
    cold_salt: int = 0
    predicted_load: tuple[float, ...] = field(default=(), repr=False)
    key_columns: tuple[KeyColumn, ...] = ()

    def __post_init__(self) -> None:
        require_integer("plan.workers", self.workers, 1, MOST_WORKERS)
        require_integer("plan.cold_salt", self.cold_salt, *SALTS)
        for hot in self.hot_keys:
            require_integer("plan.key_id", hot.key_id, 0, 2**64 - 1)
            if not hot.salts:
                raise InputError(f"plan: key {_shown(hot)} must have at least one salt, not none")
            for salt in hot.salts:
                if not is_integer(salt, *SALTS):
                    raise InputError(
                        f"plan: the salts of key {_shown(hot)} must be integers from -2**31 to 2**31 - 1, not {salt!r}"
                    )
        ids = Counter(hot.key_id for hot in self.hot_keys)
        if len(ids) < len(self.hot_keys):
            (key_id, times) = ids.most_common(1)[0]
            raise InputError(f"plan: every hot key must be there once, but {key_id:016x} is there {times} times")
        for hot in self.hot_keys:
            if not is_number(hot.share, 0.0, 1.0):
                raise InputError(
                    f"plan: the share of key {_shown(hot)} must be a number from 0 to 1, not {hot.share!r}"
                )
        if len(self.predicted_load) not in (0, self.workers):
            rule = f"one number per worker ({self.workers}) or none"
            raise InputError(f"plan: predicted_load must have {rule}, not {len(self.predicted_load)}")
        for load in self.predicted_load:
            if not is_number(load, 0.0, np.nextafter(1.0, 2.0)):
                raise InputError(f"plan: predicted_load must be shares, numbers from 0 to 1, not {load!r}")

    def workers_of(self, hot: HotKey) -> list[int]:
        """The worker of each place of a hot key."""
        return [int(candidate(np.uint64(hot.key_id), np.int64(salt), self.workers)) for salt in hot.salts]

    def table(self) -> pa.Table:
        """One row per hot key: key, share, its workers, how many places each has."""
        rows = []
        for hot in self.hot_keys:
            places = self.workers_of(hot)
            workers = sorted(set(places))
            rows.append((hot.key, hot.key_id, hot.share, workers, [places.count(w) for w in workers]))
        columns = ("key", "key_id", "share", "workers", "places")
        types = (pa.string(), pa.uint64(), pa.float64(), pa.list_(pa.int32()), pa.list_(pa.int32()))
        arrays = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
        return pa.table(dict(zip(columns, arrays, strict=True)))

    @property
    def predicted_max_over_mean(self) -> float:
        return max(self.predicted_load, default=1.0 / self.workers) * self.workers

    def to_json(self) -> str:
        """The plan as a text for `from_json`."""
        hot_keys = [
            {**hot._asdict(), "key_id": f"{hot.key_id:016x}", "workers": self.workers_of(hot)} for hot in self.hot_keys
        ]
        return json.dumps(
            {
                "unskew_plan": FORMAT,
                "scheme": self.scheme,
                "workers": self.workers,
                "key_columns": [column._asdict() for column in self.key_columns],
                "cold_salt": self.cold_salt,
                "predicted_load": self.predicted_load,
                "hot_keys": hot_keys,
            },
            default=lambda number: number.item(),  # numpy's
        )

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """The plan that `to_json` wrote; what cannot be true of one is refused."""
        try:
            found: Any = json.loads(text)
            if found["unskew_plan"] != FORMAT:
                raise InputError(
                    f"plan: must be of format {FORMAT}, not {found['unskew_plan']!r}; make it anew with this version"
                )
            hot_keys = tuple(
                HotKey(int(hot["key_id"], 16), hot["share"], tuple(hot["salts"]), str(hot["key"]))
                for hot in found["hot_keys"]
            )
            columns = tuple(KeyColumn(str(column["name"]), str(column["type"])) for column in found["key_columns"])
            plan = cls(
                str(found["scheme"]),
                found["workers"],
                hot_keys,
                found["cold_salt"],
                tuple(found["predicted_load"]),
                columns,
            )
            places = [hot["workers"] for hot in found["hot_keys"]]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("plan: not what Plan.save wrote") from None
        if plan.scheme not in PLANNERS:
            raise InputError(
                f"plan: must be of a scheme that makes plans ({', '.join(sorted(PLANNERS))}), not {plan.scheme!r}"
            )
        for hot, workers in zip(plan.hot_keys, places, strict=True):
            if plan.workers_of(hot) != workers:
                wrong = f"the places of key {_shown(hot)} were not made for {plan.workers} workers"
                raise InputError(f"plan: {wrong}; the file was edited")
        return plan

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the plan as JSON; an existing file is kept unless `force`."""
        if not isinstance(path, str | Path):
            raise InputTypeError(f"path: must be the name of a file to write, not {path!r}")
        if Path(path).exists() and not force:
            raise InputError(f"path: {str(path)!r} exists and was kept; use force=True to replace it")
        try:
            with whole_file(Path(path)) as unfinished:
                unfinished.write_text(self.to_json(), encoding="utf-8")
        except OSError as error:
            raise InputError(f"path: {str(path)!r} cannot be written: {error.strerror}") from None

    @classmethod
    def load(cls, path: str | Path) -> "Plan":
        """The plan that `save` wrote."""
        if not isinstance(path, str | Path):
            raise InputTypeError(f"path: must be the name of a file that Plan.save wrote, not {path!r}")
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"path: {str(path)!r} cannot be read: {error}") from None


def _shown(hot: HotKey) -> str:
    return repr(hot.key) if hot.key else f"{hot.key_id:016x}"


def require_sample(sample: float | None) -> None:
    if sample is not None:
        require_number("sample", sample, "a share of the rows above 0 and up to 1", np.nextafter(0.0, 1.0), 1.0)


def places_of(key_id: np.uint64, places: Mapping[int, int], workers: int) -> tuple[int, ...]:
    """The salts of `places` (worker -> how many), in an order in which neighbours differ where they can."""
    salts = dict(zip(places, _salts_of(key_id, np.array(list(places)), workers).tolist(), strict=True))
    turns = [((turn + 0.5) / count, worker) for worker, count in places.items() for turn in range(count)]
    return tuple(salts[worker] for _, worker in sorted(turns))


@allocating_kernel
def _salts_of(key_id, chosen, workers):
    """`salt_for` of one key and each of the workers `chosen`. One after the other where they are few, else all of them
    in one pass through the salts, which takes W log W hashes instead of W for each."""
    salts = np.empty(len(chosen), np.int32)
    if len(chosen) < FEW or workers > MOST_IN_ONE_PASS:
        for i in range(len(chosen)):
            salts[i] = np.int32(np.uint32(salt_for(key_id, chosen[i], workers)))
        return salts
    position = np.full(workers, -1)
    position[chosen] = np.arange(len(chosen))
    missing, salt = len(chosen), 0
    while missing:
        i = position[candidate(key_id, salt, workers)]
        if i >= 0:
            salts[i] = salt
            position[chosen[i]] = -1
            missing -= 1
        salt += 1
    return salts
