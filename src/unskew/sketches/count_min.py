"""Count-Min: how much each key of a stream adds up to, in a table of fixed size that never says too little.

Cormode, Muthukrishnan, "An improved data stream summary: the count-min sketch and its applications", J. Algorithms 55,
2005. Each of r rows has c cells and a random function of its own, which gives every key one cell per row. A tuple adds
its value, any number from 0 on, to the cell of its key in each row. The estimate of a key is its lowest cell. With V
for the sum of the values of all *other* keys:

- true sum <= estimate, up to rounding (none where values are whole numbers and sums are under 2^53);
- estimate <= true sum + (e / c) V, with a probability of at least 1 - e^-r over the choice of the functions;
- the merged sketch of two streams is that of both together.

Choices made here: functions are strongly universal and drawn from a seed (`hashing.universal`). Sketches of the same
seed and shape have the same functions, and only such sketches merge. Of equal lowest cells the first row counts.

8 bytes per cell, 24 per row.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_integer
from unskew.errors import InputError, InputTypeError
from unskew.hashing import KeyIds, frozen, require_key_ids, universal, universal_functions
from unskew.kernels import inlined, kernel

MOST_ROWS = 64
MOST_COLUMNS = 2**26
MOST_SEED = 2**63 - 1

Values = npt.NDArray[np.float64]


class CountMin(NamedTuple):
    functions: npt.NDArray[np.uint64]  # [rows, 3] constants of the function of each row
    cells: Values  # [rows, columns] sums of values


def new_sketch(rows: int, columns: int, seed: int = 0) -> CountMin:
    """An empty sketch."""
    check_shape(rows, columns, seed)
    return CountMin(universal_functions(rows, seed), np.zeros((rows, columns)))


def check_shape(rows: int, columns: int, seed: int) -> None:
    """InputError unless a sketch may have this shape."""
    require_integer("rows", rows, 1, MOST_ROWS)
    require_integer("columns", columns, 1, MOST_COLUMNS)
    require_integer("seed", seed, 0, MOST_SEED)


# ---------------------------------------------------------------- one key, for kernels


@inlined
def cell_of(sketch, row, key):
    """The column of the key's cell in this row."""
    return universal(sketch.functions[row], key, sketch.cells.shape[1])


@kernel
def add(sketch, key, value):
    """The key's sum grows by `value`, from 0 on."""
    for row in range(len(sketch.cells)):
        sketch.cells[row, cell_of(sketch, row, key)] += value


@kernel
def lowest_row(sketch, key):
    """The row in which the cell of the key is lowest, so that it tells most about the key; the first of equals."""
    best, lowest = 0, np.inf
    for row in range(len(sketch.cells)):
        cell = sketch.cells[row, cell_of(sketch, row, key)]
        if cell < lowest:
            best, lowest = row, cell
    return best


@kernel
def estimate(sketch, key):
    """What the key adds up to, or more."""
    row = lowest_row(sketch, key)
    return sketch.cells[row, cell_of(sketch, row, key)]


# ---------------------------------------------------------------- many keys


def add_all(sketch: CountMin, key_ids: KeyIds, values: Any = 1.0) -> None:
    """Add a value per tuple, or the same value for each, to the sums of the keys of these tuples."""
    ids = require_key_ids(key_ids)
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iuf":
        raise InputTypeError(f"values: must be numbers, not {numbers.dtype}")
    if numbers.shape not in ((), ids.shape):
        raise InputError(f"values: must be one number, or one per tuple ({len(ids)}), not shape {numbers.shape}")
    wrong = numbers[~((numbers >= 0) & (numbers < np.inf))]
    if wrong.size:
        raise InputError(f"values: must be finite numbers from 0 on, not {wrong.flat[0]}")
    _add_all(sketch, ids, frozen(np.broadcast_to(numbers.astype(np.float64), ids.shape)))


@kernel
def _add_all(sketch, keys, values):
    for i in range(len(keys)):
        add(sketch, keys[i], values[i])


def merge(one: CountMin, other: CountMin) -> CountMin:
    """The sketch of both streams."""
    if one.cells.shape != other.cells.shape or not np.array_equal(one.functions, other.functions):
        shapes = f"{one.cells.shape} and {other.cells.shape}"
        raise InputError(f"sketches: only those of one seed and one shape merge; these have the shapes {shapes}")
    return CountMin(one.functions.copy(), one.cells + other.cells)


# ---------------------------------------------------------------- as data


def to_plain(sketch: CountMin) -> dict[str, Any]:
    """Lists of numbers, for JSON."""
    return {name: array.tolist() for name, array in sketch._asdict().items()}


def from_plain(name: str, values: Any) -> CountMin:
    """The sketch that `to_plain` was called on; InputError, which begins with `name`, for anything else."""
    try:
        sketch = CountMin(np.array(values["functions"], np.uint64), np.array(values["cells"], np.float64))
    except (TypeError, KeyError, ValueError, OverflowError):
        raise InputError(f"{name}: must be a sketch as lists of numbers, functions and cells") from None
    if sketch.cells.ndim != 2 or not sketch.cells.size or sketch.functions.shape != (len(sketch.cells), 3):
        shapes = f"{sketch.cells.shape} and {sketch.functions.shape}"
        raise InputError(f"{name}: must have rows of cells, and three constants per row, not the shapes {shapes}")
    check_sketch(name, sketch)
    return sketch


def check_sketch(name: str, sketch: CountMin) -> None:
    """InputError unless the cells of the part `name` can be sums of values."""
    wrong = sketch.cells[~((sketch.cells >= 0) & (sketch.cells < np.inf))]
    if len(wrong):
        raise InputError(f"{name}.cells: must be finite numbers from 0 on, not {wrong[0]}")
