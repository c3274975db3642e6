"""A growing map from key id to a small number (a worker, a row): open addressing with linear probing.

The low half of a key id is a hash already (xxhash64), so it is the slot. Kernels `find` and fill slots; between batches
`with_room` doubles the table before it is more than half full. 24 to 48 bytes a key.

All functions take any NamedTuple that has a table's three fields, so that a scheme's state can be one.
"""

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.kernels import kernel

EMPTY = -1
SMALLEST = 1024  # slots


class KeyTable(NamedTuple):
    keys: npt.NDArray[np.uint64]  # [slots] key id, meaningless where the slot is empty
    values: npt.NDArray[np.int32]  # [slots] value, EMPTY where the slot is empty
    used: npt.NDArray[np.int64]  # [1] slots filled


def new_table(slots: int = SMALLEST) -> KeyTable:
    return KeyTable(np.zeros(slots, np.uint64), np.full(slots, EMPTY, np.int32), np.zeros(1, np.int64))


@kernel
def find(table, key):
    """The slot of `key`, or the empty slot where it belongs."""
    last = np.uint64(len(table.keys) - 1)
    slot = key & last
    while table.values[slot] != EMPTY and table.keys[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return slot


@kernel
def fill(table, slot, key, value):
    """Put a new key in the empty slot that `find` gave."""
    table.keys[slot] = key
    table.values[slot] = value
    table.used[0] += 1


@kernel
def remove(table, slot):
    """Empty a filled slot. Keys behind it that a search would then miss move forward (Knuth, volume 3, 6.4, R)."""
    last = np.uint64(len(table.keys) - 1)
    hole, slot = slot, (slot + np.uint64(1)) & last
    while table.values[slot] != EMPTY:
        wanted = table.keys[slot] & last
        if (slot - wanted) & last >= (slot - hole) & last:  # a search for this key passes the hole
            table.keys[hole] = table.keys[slot]
            table.values[hole] = table.values[slot]
            hole = slot
        slot = (slot + np.uint64(1)) & last
    table.values[hole] = EMPTY
    table.used[0] -= 1


@kernel
def _refill(table, larger):
    for slot in range(len(table.keys)):
        if table.values[slot] != EMPTY:
            key = table.keys[slot]
            fill(larger, find(larger, key), key, table.values[slot])


Table = TypeVar("Table", bound=Any)


def check_table(table: Any, below: int) -> None:
    """InputError unless the arrays are a table whose values are under `below`: kernels rely on it for their memory."""
    check_slots(table.keys, table.values, below)
    if table.used.shape != (1,) or table.used[0] != (table.values != EMPTY).sum():
        raise InputError("table: it does not know how many keys it has")


def check_slots(keys: npt.NDArray[np.uint64], values: npt.NDArray[np.int32], below: int) -> None:
    """InputError unless every search in the table ends, and every value is under `below`."""
    slots, filled = len(keys), int((values != EMPTY).sum())
    if keys.shape != values.shape or not slots or slots & (slots - 1) or 2 * filled > slots:
        raise InputError("table: it is not a table of keys")
    if not EMPTY <= values.min() <= values.max() < max(below, 0):
        raise InputError(f"table: it has a value that is not under {below}; it was made for another number")


def with_room(table: Table, more: int) -> Table:
    """The table, or a larger copy, that stays at most half full with `more` new keys."""
    slots = len(table.keys)
    while 2 * (int(table.used[0]) + more) > slots:
        slots *= 2
    if slots == len(table.keys):
        return table
    larger = new_table(slots)
    _refill(KeyTable(table.keys, table.values, table.used), larger)
    grown: Table = table._replace(**larger._asdict())
    return grown
