"""What a tuple of each key costs on average, in fixed memory: a pair of Count-Min sketches with the same functions.

POSG (Rivetti et al., section III-B) keeps F, how often each key came, and W, what its tuples cost in all. The estimate
of a key is W / F at the row in which its cell of F is lowest: there the fewest other keys are mixed in. A key whose
cell of F is empty was never seen: it costs what all tuples do on average, not nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from unskew.errors import InputError
from unskew.hashing import KeyIds, require_key_ids
from unskew.kernels import allocating_kernel
from unskew.sketches.count_min import CountMin, Values, add_all, cell_of, from_plain, lowest_row, merge, new_sketch
from unskew.sketches.count_min import to_plain as sketch_to_plain

ENOUGH = 100  # tuples of a cell: their mean is off by a tenth, where costs differ by as much as they are
KNOWN = 0.1  # of the new tuples: so many must be of cells that have tuples already


class MeanCosts(NamedTuple):
    counts: CountMin  # F
    costs: CountMin  # W


def new_mean_costs(rows: int, columns: int, seed: int = 0) -> MeanCosts:
    """Empty sketches."""
    return MeanCosts(new_sketch(rows, columns, seed), new_sketch(rows, columns, seed))


def learn(sketches: MeanCosts, key_ids: KeyIds, counts: Any, costs: Any) -> None:
    """Take in how many tuples of each key came, and what they cost together."""
    add_all(sketches.counts, key_ids, counts)
    add_all(sketches.costs, key_ids, costs)


def mean_cost(sketches: MeanCosts) -> float:
    """Of all tuples; 0 where there were none."""
    came = sketches.counts.cells[0].sum()
    return float(sketches.costs.cells[0].sum() / came) if came else 0.0


def mean_costs_of(sketches: MeanCosts, key_ids: KeyIds) -> Values:
    """The estimate of each key."""
    return _mean_costs_of(sketches, require_key_ids(key_ids), mean_cost(sketches))


@allocating_kernel
def _mean_costs_of(sketches, keys, unseen):
    found = np.empty(len(keys))
    for i in range(len(keys)):
        row = lowest_row(sketches.counts, keys[i])
        cell = cell_of(sketches.counts, row, keys[i])
        count = sketches.counts.cells[row, cell]
        found[i] = sketches.costs.cells[row, cell] / count if count > 0 else unseen
    return found


def disagreement(old: MeanCosts, new: MeanCosts) -> float:
    """How far the costs of `new` are from what `old` says of the same cells, as a share of what they are.

    As the paper's Eq. 1, with the stream since then in the place of a snapshot. But a mean of few tuples differs from
    the next one by chance. So cells that have fewer than 100 of either count together: what is too much in one makes up
    for what is too little in another. 0 where fewer than 100 new tuples, or a tenth, are of cells that were known.
    """
    rows = len(new.counts.cells)
    both = (old.counts.cells > 0) & (new.counts.cells > 0)
    known, came = new.counts.cells[both].sum() / rows, new.counts.cells.sum() / rows
    if known < max(ENOUGH, KNOWN * came):
        return 0.0
    before, now, costs = old.counts.cells[both], new.counts.cells[both], new.costs.cells[both]
    off = costs - now * old.costs.cells[both] / before
    by_itself = (before >= ENOUGH) & (now >= ENOUGH)
    total = np.abs(off[by_itself]).sum() + abs(off[~by_itself].sum())
    return float(total / costs.sum()) if costs.sum() else 0.0


def merge_faded(old: MeanCosts, new: MeanCosts, keep: float) -> MeanCosts:
    """Both together, in which the old one counts `keep` times."""
    faded = (CountMin(each.functions, keep * each.cells) for each in old)
    return MeanCosts(*(merge(one, other) for one, other in zip(faded, new, strict=True)))


def to_plain(sketches: MeanCosts) -> dict[str, Any]:
    """Lists of numbers, for JSON."""
    return {name: sketch_to_plain(sketch) for name, sketch in sketches._asdict().items()}


def from_plain_costs(name: str, values: Any) -> MeanCosts:
    """What `to_plain` was called on; InputError, which begins with `name`, for anything else."""
    if not isinstance(values, dict) or set(values) != set(MeanCosts._fields):
        raise InputError(f"{name}: must have the sketches {' and '.join(MeanCosts._fields)}")
    found = MeanCosts(*(from_plain(f"{name}: {field}", values[field]) for field in MeanCosts._fields))
    merge(found.counts, found.costs)  # InputError unless they have the same functions
    return found
