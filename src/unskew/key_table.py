"""A growing map from key id to a small number (a worker, a row): open addressing with linear probing.

The low half of a key id is a hash already (xxhash64), so it is the cell. Kernels `find` and fill cells; between batches
`with_room` doubles the table before it is more than half full. 24 to 48 bytes a key.

All functions take any NamedTuple that has a table's three fields, so that a scheme's state can be one.
"""

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.kernels import kernel

EMPTY = -1
SMALLEST = 1024  # cells


class KeyTable(NamedTuple):
    keys: npt.NDArray[np.uint64]  # [cells] key id, meaningless where the cell is empty
    values: npt.NDArray[np.int32]  # [cells] value, EMPTY where the cell is empty
    used: npt.NDArray[np.int64]  # [1] cells filled


def new_table(cells: int = SMALLEST) -> KeyTable:
    return KeyTable(np.zeros(cells, np.uint64), np.full(cells, EMPTY, np.int32), np.zeros(1, np.int64))


@kernel
def find(table, key):
    """The cell of `key`, or the empty cell where it belongs."""
    last = np.uint64(len(table.keys) - 1)
    cell = key & last
    while table.values[cell] != EMPTY and table.keys[cell] != key:
        cell = (cell + np.uint64(1)) & last
    return cell


@kernel
def fill(table, cell, key, value):
    """Put a new key in the empty cell that `find` gave."""
    table.keys[cell] = key
    table.values[cell] = value
    table.used[0] += 1


@kernel
def remove(table, cell):
    """Empty a filled cell. Keys behind it that a search would then miss move forward (Knuth, volume 3, 6.4, R)."""
    last = np.uint64(len(table.keys) - 1)
    hole, cell = cell, (cell + np.uint64(1)) & last
    while table.values[cell] != EMPTY:
        wanted = table.keys[cell] & last
        if (cell - wanted) & last >= (cell - hole) & last:  # a search for this key passes the hole
            table.keys[hole] = table.keys[cell]
            table.values[hole] = table.values[cell]
            hole = cell
        cell = (cell + np.uint64(1)) & last
    table.values[hole] = EMPTY
    table.used[0] -= 1


@kernel
def _refill(table, larger):
    for cell in range(len(table.keys)):
        if table.values[cell] != EMPTY:
            key = table.keys[cell]
            fill(larger, find(larger, key), key, table.values[cell])


Table = TypeVar("Table", bound=Any)


def check_table(table: Any, below: int) -> None:
    """InputError unless the arrays are a table whose values are under `below`: kernels rely on it for their memory."""
    check_cells(table.keys, table.values, below)
    if table.used.shape != (1,) or table.used[0] != (table.values != EMPTY).sum():
        raise InputError("table: it does not know how many keys it has")


def check_cells(keys: npt.NDArray[np.uint64], values: npt.NDArray[np.int32], below: int) -> None:
    """InputError unless every search in the table ends, and every value is under `below`."""
    cells, filled = len(keys), int((values != EMPTY).sum())
    if keys.shape != values.shape or not cells or cells & (cells - 1) or 2 * filled > cells:
        raise InputError("table: it is not a table of keys")
    if not EMPTY <= values.min() <= values.max() < max(below, 0):
        raise InputError(f"table: it has a value that is not under {below}; it was made for another number")


def with_room(table: Table, more: int) -> Table:
    """The table, or a larger copy, that stays at most half full with `more` new keys."""
    cells = len(table.keys)
    while 2 * (int(table.used[0]) + more) > cells:
        cells *= 2
    if cells == len(table.keys):
        return table
    larger = new_table(cells)
    _refill(KeyTable(table.keys, table.values, table.used), larger)
    grown: Table = table._replace(**larger._asdict())
    return grown
