"""The balance penalty and the utilities that the constructions minimise, for kernels.

Paper: Gedik, section 4.2.1 (Eqs. 18-20) and section 4.3. Penalties are ratios, so counts stand for frequencies: whole
numbers, whose sums are exact as long as they are under 2^53.

The penalty of one more key on a worker takes constant time. Only that worker's load changes, so the highest load, the
lowest one and the second lowest (for the case that the worker has the lowest) say everything about the others.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.kernels import inlined, kernel

Amounts = npt.NDArray[np.float64]


class Problem(NamedTuple):
    """What there is to place. Keys are in order of falling frequency."""

    amounts: Amounts  # [resources that count, keys] the load that a key puts on its worker
    theta: Amounts  # [resources that count] the deviation that is allowed
    state: Amounts  # [keys] how much must be moved if the key changes its worker
    counts: Amounts  # [keys] the frequency
    base: Amounts  # [resources that count, workers] load of keys that are not placed here; the paper has none
    old: npt.NDArray[np.int64]  # [keys] index of the worker where its state is; -1 where that one has left
    moved: float  # migration that cannot be avoided any more: of keys that lose their entry
    ideal: float  # migration of one worker's share of all tracked keys
    workers: int
    by_load: bool  # whether the less loaded of two equally good workers is taken, instead of the first
    utility: int  # number of the utility function in UTILITIES


@inlined
def utility_of(code, rho, gamma):
    """Section 4.3: A, APM, APLM, ATM, ATLM. Less is better."""
    if code == 0:
        value = rho
    elif code == 1:
        value = rho + gamma
    elif code == 2:
        value = rho + np.log(1.0 + gamma)
    elif code == 3:
        value = rho * (1.0 + gamma)
    else:
        value = rho * (1.0 + np.log(1.0 + gamma))
    return value


@kernel
def note_extremes(load, highest, lowest, second, least):
    """For each resource the highest, lowest and second lowest load, and which worker has the lowest."""
    for k in range(len(load)):
        highest[k], lowest[k], second[k], least[k] = -np.inf, np.inf, np.inf, -1
        for worker in range(len(load[k])):
            amount = load[k, worker]
            highest[k] = max(highest[k], amount)
            if amount < lowest[k]:
                second[k], lowest[k], least[k] = lowest[k], amount, worker
            elif amount < second[k]:
                second[k] = amount


@kernel
def penalty_with(problem, load, total, extremes, key, worker):
    """rho if `key` is put on `worker` (Eqs. 19 and 20)."""
    highest, lowest, second, least = extremes
    product = 1.0
    for k in range(len(load)):
        amount = problem.amounts[k, key]
        after = load[k, worker] + amount
        low = second[k] if least[k] == worker else lowest[k]
        gap = max(highest[k], after) - min(low, after)
        product *= gap / (problem.theta[k] * ((total[k] + amount) / problem.workers))
    return product ** (1.0 / len(load))
