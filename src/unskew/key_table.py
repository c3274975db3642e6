"""A growing map from key id to a small number (a worker, a row): open addressing with linear probing.

The low half of a key id is a hash already (xxhash64), so its lowest bits are the number of the key's cell. Kernels
`find` and fill cells; between batches `with_room` doubles the table before it is more than half full. 24 to 48 bytes
per key. `find` takes any NamedTuple with `keys` and `values`, such as a scheme that has a fixed table.
"""

from typing import NamedTuple

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
    """An empty table; `cells` is a power of two."""
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
def fill_all(table, keys, values):
    """Put new keys in a table that has room for them; how many were put before one that was there already."""
    for i in range(len(keys)):
        cell = find(table, keys[i])
        if table.values[cell] != EMPTY:
            return i
        fill(table, cell, keys[i], values[i])
    return len(keys)


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


def check_table(name: str, table: KeyTable, below: int) -> None:
    """InputError unless the arrays of `name` are a table whose values are under `below`: kernels rely on it for their
    memory."""
    check_cells(name, table.keys, table.values, below)
    filled = int((table.values != EMPTY).sum())
    if table.used.shape != (1,) or table.used[0] != filled:
        raise InputError(
            f"{name}.used: must be [{filled}], the number of filled cells, not {table.used.tolist()!s:.40}"
        )


def check_cells(name: str, keys: npt.NDArray[np.uint64], values: npt.NDArray[np.int32], below: int) -> None:
    """InputError unless every search in the table ends, and every value is under `below`."""
    cells = len(keys)
    if keys.shape != values.shape:
        raise InputError(f"{name}.values: must have {cells} cells, as keys have, not {len(values)}")
    if not cells or cells & (cells - 1):
        raise InputError(f"{name}.keys: the number of cells must be a power of two, not {cells}")
    filled = int((values != EMPTY).sum())
    if 2 * filled > cells:
        raise InputError(f"{name}.values: at most {cells // 2} of {cells} cells may be filled, not {filled}")
    wrong = values[(values < EMPTY) | (values >= max(below, 0))]
    if len(wrong):
        raise InputError(f"{name}.values: must be {EMPTY} (empty) or from 0 to {below - 1}, not {wrong[0]}")


def with_room(table: KeyTable, more: int) -> KeyTable:
    """The table, or a larger copy, that stays at most half full with `more` new keys."""
    cells = len(table.keys)
    while 2 * (int(table.used[0]) + more) > cells:
        cells *= 2
    if cells == len(table.keys):
        return table
    larger = new_table(cells)
    _refill(table, larger)
    return larger
