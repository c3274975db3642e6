"""The partitioning function p = <H_p, H_c>: an explicit map for the hot keys, and a hash for all others.

Paper: Gedik, section 4.1. A key is looked up in the explicit map first and else hashed (Algorithm 1). A key has one
worker: it is never split. Both look-ups take constant time, in a kernel.

H_c is one of three hashes, which `cold` names:
- ``"ring"``: consistent hashing, 1000 virtual nodes per worker, as in the paper's set-up. When a worker joins, keys
  move only to it; when one leaves, only its keys move.
- ``"arcs"``: the same ring rounded to 16,384 equal arcs. It is a table of workers by the high bits of a hash that Spark
  has too (`arc_workers`), so it can be a native expression there, and is as consistent. It is a little less even.
- ``"home"``: Spark's own hash modulo the number of workers. It needs nothing on Spark (`to_plan`), and it is the
  paper's *uniform* hash: when the number of workers changes, nearly all keys without an entry move.

Workers have names that they keep while their indices change, so that two functions can be compared (`moves`).
"""

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.checks import MOST_WORKERS, is_integer, require, require_integer
from unskew.contract import Workers
from unskew.errors import InputError, InputTypeError
from unskew.frequencies import Frequencies
from unskew.hashing import KeyIds, candidate, candidates_of, frozen, require_key_ids, salts_for
from unskew.kernels import allocating_kernel, kernel
from unskew.key_table import EMPTY, KeyTable, fill_all, find, new_table, with_room
from unskew.members import Names, require_members
from unskew.plan import HotKey, Plan
from unskew.ring import MOST_NODES, Ring, home_node, new_ring, rounded_ring

FORMAT = 1  # of a function as JSON
COLD = ("ring", "arcs", "home")
VIRTUAL_NODES, BUCKETS = 1000, 100  # per worker, of the ring: the paper's "replicas" and buckets
ARCS = 2**14
PLANNER = "partitioner"  # the scheme that plans are made by
NO_KEYS = frozen(np.empty(0, np.uint64))
NO_WORKERS = frozen(np.empty(0, np.int32))
NO_ENTRIES = new_table(2)


@kernel
def look_up(explicit, ring, key):
    """Algorithm 1: the worker of `key`, by index."""
    placed = explicit.values[find(explicit, key)]
    return np.int64(placed) if placed != EMPTY else np.int64(ring.node_worker[home_node(ring, key)])


@allocating_kernel
def look_up_all(explicit, ring, at_home, workers, key_ids):
    chosen = np.empty(len(key_ids), np.int32)
    for i in range(len(key_ids)):
        if at_home:
            placed = explicit.values[find(explicit, key_ids[i])]
            chosen[i] = placed if placed != EMPTY else candidate(key_ids[i], 0, workers)
        else:
            chosen[i] = look_up(explicit, ring, key_ids[i])
    return chosen


@dataclass(frozen=True, eq=False)
class PartitionFunction:
    """Which worker has which key: an explicit map of the hot keys, and a hash for the others.

    Parameters
    ----------
    members
        The names of the workers by index, or just their number: then they are called 0, 1, ...
    key_ids
        The keys that have an entry.
    placed
        The index of the worker of each of them.
    cold
        The hash for all other keys: ``"ring"``, ``"arcs"`` or ``"home"``.
    virtual_nodes, buckets
        Of the ring: its nodes per worker, and the parts that its index cuts it into. Buckets change no answer.

    Examples
    --------
    >>> from unskew import key_ids
    >>> from unskew.partitioning import PartitionFunction
    >>> ids = key_ids(["the", "cat", "sat"])
    >>> PartitionFunction(4).look_up(ids).tolist()
    [3, 1, 0]
    >>> function = PartitionFunction(4, key_ids=ids[:1], placed=[2])
    >>> function.look_up(ids).tolist()
    [2, 1, 0]
    >>> PartitionFunction.from_json(function.to_json()) == function
    True
    """

    members: Any
    key_ids: KeyIds = field(default_factory=lambda: NO_KEYS, repr=False)
    placed: Workers = field(default_factory=lambda: NO_WORKERS, repr=False)
    cold: str = "ring"
    virtual_nodes: int = VIRTUAL_NODES
    buckets: int = BUCKETS

    def __post_init__(self) -> None:
        require("cold", self.cold, f"one of {', '.join(COLD)}", self.cold in COLD)
        require_integer("virtual_nodes", self.virtual_nodes, 1, MOST_NODES)
        require_integer("buckets", self.buckets, 1, MOST_NODES)
        most = MOST_WORKERS if self.cold == "home" else MOST_NODES // self.virtual_nodes
        if isinstance(self.members, int | np.integer):
            require_integer("workers", self.members, 1, most)
            names: Names = np.arange(self.members, dtype=np.int64)
        else:
            names = require_members(self.members, most)
        ids, placed = require_key_ids(self.key_ids), np.asarray(self.placed)
        if placed.shape != ids.shape or (len(placed) and placed.dtype.kind not in "iu"):
            raise InputError(f"placed: must be one worker per key ({len(ids)}), not {self.placed!r:.80}")
        if len(placed) and not 0 <= placed.min() <= placed.max() < len(names):
            raise InputError(f"placed: must be indices of workers from 0 to {len(names) - 1}, not {self.placed!r:.80}")
        if len(np.unique(ids)) < len(ids):
            raise InputError("key_ids: must be distinct")
        order = np.argsort(ids)
        object.__setattr__(self, "members", frozen(names))
        object.__setattr__(self, "key_ids", frozen(ids[order]))
        object.__setattr__(self, "placed", frozen(placed[order].astype(np.int32)))

    @property
    def workers(self) -> int:
        """N, the number of workers."""
        return len(self.members)

    @cached_property
    def explicit(self) -> KeyTable:
        """The explicit map as a table for kernels."""
        table = with_room(new_table(), len(self.key_ids))
        fill_all(table, self.key_ids, self.placed)
        return table

    @cached_property
    def ring(self) -> Ring:
        """H_c as a ring for kernels; where keys are at home it is of no use."""
        if self.cold == "home":
            return new_ring(self.members[:1], 1)
        ring = new_ring(self.members, self.virtual_nodes, self.buckets)
        return ring if self.cold == "ring" else rounded_ring(ring, ARCS)

    def look_up(self, key_ids: KeyIds) -> Workers:
        """The worker of each key, by index."""
        ids = require_key_ids(key_ids)
        chosen: Workers = look_up_all(self.explicit, self.ring, self.cold == "home", self.workers, ids)
        return chosen

    def names_of(self, key_ids: KeyIds) -> Names:
        """The worker of each key, by name."""
        names: Names = self.members[self.look_up(key_ids)]
        return names

    def hashed(self, key_ids: KeyIds) -> Workers:
        """H_c of each key: its worker if it had no entry."""
        ids = require_key_ids(key_ids)
        chosen: Workers = look_up_all(NO_ENTRIES, self.ring, self.cold == "home", self.workers, ids)
        return chosen

    def with_entries(self, key_ids: KeyIds, placed: Workers) -> "PartitionFunction":
        """The function with the same hash and these entries in the place of its own."""
        other = replace(self, key_ids=key_ids, placed=placed)
        other.__dict__["ring"] = self.ring  # not made twice
        return other

    @property
    def arc_workers(self) -> Workers:
        """The worker of each of the 16,384 arcs, by index, for ``cold="arcs"``.

        A key is in the arc that the 14 high bits of Spark's ``hash(key, 2147483646)`` name.
        """
        if self.cold != "arcs":
            raise InputError(f"cold: must be 'arcs' to be a table of arcs, not {self.cold!r}")
        return self.ring.node_worker

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionFunction):
            return NotImplemented
        ring_alike = self.cold == "home" or self.virtual_nodes == other.virtual_nodes
        arrays = ((self.members, other.members), (self.key_ids, other.key_ids), (self.placed, other.placed))
        return self.cold == other.cold and ring_alike and all(np.array_equal(a, b) for a, b in arrays)

    __hash__ = None  # type: ignore[assignment]

    # ---------------------------------------------------------------- on Spark, and as a text

    def to_plan(self, frequencies: Frequencies | None = None) -> Plan:
        """The plan that places every row as this function does: one salt per key that has an entry.

        Only for ``cold="home"``, where keys without an entry are where Spark's own hash puts them. `frequencies` give
        the plan shares, names and a forecast of the load.
        """
        if self.cold != "home":
            raise InputError(f"cold: must be 'home' to become a plan, which leaves other keys there, not {self.cold!r}")
        if frequencies is not None and not isinstance(frequencies, Frequencies):
            raise InputTypeError(f"frequencies: must be Frequencies, not {type(frequencies).__name__}")
        salts = salts_for(self.key_ids, self.placed, self.workers).tolist()
        known = {} if frequencies is None else _shares_and_names(frequencies)
        hot = [
            HotKey(key, known.get(key, (0.0, ""))[0], (salt,), known.get(key, (0.0, ""))[1])
            for key, salt in zip(self.key_ids.tolist(), salts, strict=True)
        ]
        load = () if frequencies is None else tuple(self._shares(frequencies).tolist())
        return Plan(PLANNER, self.workers, tuple(sorted(hot, key=lambda each: -each.share)), predicted_load=load)

    @classmethod
    def from_plan(cls, plan: Plan) -> "PartitionFunction":
        """The function that places every key as `plan` does; a plan that splits a key is refused."""
        if not isinstance(plan, Plan):
            raise InputTypeError(f"plan: must be a Plan, not {plan!r:.80}")
        places = {hot.key_id: set(plan.workers_of(hot)) for hot in plan.hot_keys}
        split = [hot for hot in plan.hot_keys if len(places[hot.key_id]) > 1]
        if split:
            shown = repr(split[0].key) if split[0].key else f"{split[0].key_id:016x}"
            raise InputError(f"plan: must keep every key whole, but splits {shown} over {len(places[split[0].key_id])}")
        if plan.cold_salt:
            raise InputError(f"plan: must leave other keys at home (cold_salt 0), not with the salt {plan.cold_salt}")
        keys, placed = np.array(list(places), np.uint64), [next(iter(each)) for each in places.values()]
        return cls(plan.workers, keys, np.array(placed, np.int32), cold="home")

    def _shares(self, frequencies: Frequencies) -> npt.NDArray[np.float64]:
        """The share of all tuples of each worker. What was not counted is even, unless its load at home is known."""
        counted, home = frequencies.home_load, candidates_of(frequencies.key_ids, 0, self.workers)
        counts = frequencies.counts.astype(np.float64)
        if counted is not None and len(counted) == self.workers:
            others = np.maximum(counted - np.bincount(home, counts, self.workers), 0.0)
        else:
            others = np.full(self.workers, (frequencies.tuples - counts.sum()) / self.workers)
        load = others + np.bincount(self.look_up(frequencies.key_ids), counts, self.workers)
        return load / max(1.0, float(load.sum()))

    def to_json(self) -> str:
        """The function as a text for `from_json`: some 25 bytes per entry. The ring is made again from the names."""
        entries = {f"{key:016x}": w for key, w in zip(self.key_ids.tolist(), self.placed.tolist(), strict=True)}
        ring = {} if self.cold == "home" else {"virtual_nodes": self.virtual_nodes, "buckets": self.buckets}
        head = {"unskew_partition_function": FORMAT, "members": self.members.tolist(), "cold": self.cold, **ring}
        return json.dumps({**head, "placed": entries}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "PartitionFunction":
        """The function that `to_json` wrote; what cannot be one is refused."""
        try:
            found: Any = json.loads(text)
            version = found["unskew_partition_function"]
            ids = np.array([int(key, 16) for key in found["placed"]], np.uint64)
            placed = list(found["placed"].values())
            ring = {name: found[name] for name in ("virtual_nodes", "buckets") if name in found}
            members, cold = list(found["members"]), found["cold"]
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError):
            raise InputError("function: not what PartitionFunction.to_json wrote") from None
        if version != FORMAT or not all(is_integer(worker, 0) for worker in placed):
            raise InputError(f"function: must be of format {FORMAT} with an index of a worker per key")
        return cls(members, ids, np.array(placed, np.int64), cold, **ring)


def _shares_and_names(frequencies: Frequencies) -> dict[int, tuple[float, str]]:
    shares = frequencies.counts / max(1, frequencies.tuples)
    rows = zip(frequencies.key_ids.tolist(), shares.tolist(), frequencies.names, strict=True)
    return {key: (share, name) for key, share, name in rows}
