"""The constructions `scan` and `redist`: place the tracked keys one by one, each where the utility is best.

Paper: Gedik, section 4.2.2 (Algorithm 2) and section 4.2.3 (Algorithm 3).

`scan` takes the keys in order of falling frequency: R N steps for R keys and N workers. `redist` looks at every key
that is not placed yet and takes the pair of key and worker with the best utility per tuple: R^2 N steps.

Choices made here, where the pseudocode leaves one:
- Two variables of the paper are both printed m: the migration so far, and the ideal one that it is divided by.
- Algorithm 3 uses D_c without saying what it is at first, and never takes a key out of it: it is the tracked keys by
  falling frequency, and what is placed leaves it.
- Its last line but one adds the migration of the key that was chosen. As printed it would look at the old place of the
  key that happened to be tried last.
- Of equally good workers the lowest index wins, of equally good keys the more frequent one. The penalty knows extreme
  loads only, so many are equally good while several workers are empty. Where the load of other keys counts too, beyond
  the paper, the less loaded one wins.
"""

import numpy as np

from unskew.kernels import allocating_kernel
from unskew.partitioning.penalties import note_extremes, penalty_with, utility_of


@allocating_kernel
def scan(problem):
    """The worker of each key, by index."""
    resources, keys = problem.amounts.shape
    load, total = problem.base.copy(), problem.base.sum(axis=1)
    extremes = (np.zeros(resources), np.zeros(resources), np.zeros(resources), np.zeros(resources, np.int64))
    placed = np.empty(keys, np.int32)
    moved = problem.moved
    for key in range(keys):
        note_extremes(load, *extremes)
        best, chosen = np.inf, -1
        for worker in range(problem.workers):
            rho = penalty_with(problem, load, total, extremes, key, worker)
            more = problem.state[key] if worker != problem.old[key] else 0.0
            value = utility_of(problem.utility, rho, (moved + more) / problem.ideal)
            if value < best or (value == best and problem.by_load and load[0, worker] < load[0, chosen]):
                best, chosen = value, worker
        moved += problem.state[key] if chosen != problem.old[key] else 0.0
        placed[key] = chosen
        for k in range(resources):
            load[k, chosen] += problem.amounts[k, key]
            total[k] += problem.amounts[k, key]
    return placed


@allocating_kernel
def redist(problem):
    """The worker of each key, by index."""
    resources, keys = problem.amounts.shape
    load, total = problem.base.copy(), problem.base.sum(axis=1)
    extremes = (np.zeros(resources), np.zeros(resources), np.zeros(resources), np.zeros(resources, np.int64))
    placed = np.full(keys, -1, np.int32)
    moved = problem.moved
    for _ in range(keys):
        note_extremes(load, *extremes)
        best, chosen, chosen_key = np.inf, -1, -1
        for key in range(keys):
            if placed[key] >= 0:
                continue
            for worker in range(problem.workers):
                rho = penalty_with(problem, load, total, extremes, key, worker)
                more = problem.state[key] if worker != problem.old[key] else 0.0
                value = utility_of(problem.utility, rho, (moved + more) / problem.ideal) / problem.counts[key]
                less = problem.by_load and key == chosen_key and load[0, worker] < load[0, chosen]
                if value < best or (value == best and less):
                    best, chosen, chosen_key = value, worker, key
        moved += problem.state[chosen_key] if chosen != problem.old[chosen_key] else 0.0
        placed[chosen_key] = chosen
        for k in range(resources):
            load[k, chosen] += problem.amounts[k, chosen_key]
            total[k] += problem.amounts[k, chosen_key]
    return placed
