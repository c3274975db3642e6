"""Workers that come and go: their names.

A decision is the index of a worker, 0..workers-1. A worker also has a name, a number that it keeps for as long as it
lives, while its index may change. At the start the worker with index i has the name i.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError

Names = npt.NDArray[np.int64]


def require_members(members: Any, most: int) -> Names:
    """The names as int64; InputError unless there is at least one and all are distinct whole numbers."""
    names = np.asarray(list(members) if isinstance(members, Iterable) else members)
    if names.ndim != 1 or names.dtype.kind not in "iu" or not 1 <= len(names) <= most:
        raise InputError(f"members: must be from 1 to {most} whole numbers, one per worker, not {members!r:.80}")
    if len(np.unique(names)) < len(names) or names.min() < 0 or names.max() > 2**63 - 1:
        raise InputError(f"members: must be distinct and at least 0, not {members!r:.80}")
    return names.astype(np.int64)


def carried_over(values: npt.NDArray[Any], before: Names, after: Names) -> npt.NDArray[Any]:
    """One value per worker of `after`: its own of before, or the least of those that stay for a new one."""
    of = dict(zip(before.tolist(), values.tolist(), strict=True))
    least = min((of[name] for name in after.tolist() if name in of), default=0)
    return np.array([of.get(name, least) for name in after.tolist()], values.dtype)
