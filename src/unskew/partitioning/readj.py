"""The construction `readj`: tracked keys stay where they are, and are moved or swapped while that improves the balance.

Paper: Gedik, section 4.2.4 (Algorithm 4, Eqs. 21 and 22). A step tries to move each key to each other worker, and to
swap each two keys of different workers. Of those that lower the balance penalty it takes the one with the largest gain
in utility per frequency moved. Every step lowers the penalty, so the search ends, and it never leaves the balance of
the tracked keys worse than it found it. R^2 steps at most for each one taken; pairs of workers of which neither has the
highest or the lowest load of any resource cannot lower the penalty, and are passed over. The search stops too early
where several workers have the highest load and several the lowest: then no single step lowers the penalty. Keys of
equal frequency do that.

The printed algorithm does not do what its text says: docs/schemes/partitioner.md lists what was read otherwise and why.
Of equal gains the first one wins: by the two workers' indices, then by falling frequency, a move before the swaps.
"""

import numpy as np

from unskew.kernels import allocating_kernel, kernel
from unskew.partitioning.penalties import utility_of

MOST_MOVES = 5  # c, of one key


@allocating_kernel
def readj(problem, start):
    """The worker of each key, by index; `start` is where each one is at first."""
    resources, keys = problem.amounts.shape
    workers = problem.workers
    placed = start.copy()
    load, mean = problem.base.copy(), problem.base.sum(axis=1)
    moved = problem.moved
    for key in range(keys):
        moved += problem.state[key] if placed[key] != problem.old[key] else 0.0
        for k in range(resources):
            load[k, placed[key]] += problem.amounts[k, key]
            mean[k] += problem.amounts[k, key]
    for k in range(resources):
        mean[k] /= workers
    tops, bottoms = np.zeros((resources, 3), np.int64), np.zeros((resources, 3), np.int64)
    limits = np.zeros((2, resources))  # highest and lowest load of the workers that a readjustment leaves alone
    order, first = np.zeros(keys, np.int64), np.zeros(workers + 1, np.int64)
    times = np.zeros(keys, np.int64)
    while True:
        _note_three(load, tops, bottoms)
        _group(placed, order, first)
        product = 1.0
        for k in range(resources):
            product *= (load[k, tops[k, 0]] - load[k, bottoms[k, 0]]) / (problem.theta[k] * mean[k])
        now = utility_of(problem.utility, product ** (1.0 / resources), moved / problem.ideal)
        best, one, other, to, change = -np.inf, -1, -1, -1, 0.0
        for i in range(workers):
            for j in range(workers):
                if i == j or not _may_help(load, tops, bottoms, limits, i, j):
                    continue
                for at in range(first[i], first[i + 1]):
                    key = order[at]
                    if times[key] >= MOST_MOVES:
                        continue
                    mine = _migration(problem, key, i, j)
                    after = _product(problem, load, mean, limits, i, j, key, -1)
                    if after < product:
                        rho = after ** (1.0 / resources)
                        gain = now - utility_of(problem.utility, rho, (moved + mine) / problem.ideal)
                        gain /= problem.counts[key]
                        if gain > best:
                            best, one, other, to, change = gain, key, -1, j, mine
                    if i > j:  # swaps of these two workers were tried already
                        continue
                    for beside in range(first[j], first[j + 1]):
                        mate = order[beside]
                        if times[mate] >= MOST_MOVES or problem.counts[mate] == problem.counts[key]:
                            continue
                        after = _product(problem, load, mean, limits, i, j, key, mate)
                        if after < product:
                            both = mine + _migration(problem, mate, j, i)
                            rho = after ** (1.0 / resources)
                            gain = now - utility_of(problem.utility, rho, (moved + both) / problem.ideal)
                            gain /= abs(problem.counts[key] - problem.counts[mate])
                            if gain > best:
                                best, one, other, to, change = gain, key, mate, j, both
        if one < 0:
            return placed
        moved += change
        _put(problem, load, placed, times, one, to, other)


@kernel
def _put(problem, load, placed, times, key, worker, mate):
    """Move `key` to `worker`, and `mate`, where there is one, to where it was."""
    before = placed[key]
    placed[key] = worker
    times[key] += 1
    for k in range(len(load)):
        load[k, before] -= problem.amounts[k, key]
        load[k, worker] += problem.amounts[k, key]
    if mate >= 0:
        placed[mate] = before
        times[mate] += 1
        for k in range(len(load)):
            load[k, worker] -= problem.amounts[k, mate]
            load[k, before] += problem.amounts[k, mate]


@kernel
def _migration(problem, key, i, j):
    """Eq. 22: what moving `key` from worker i to j adds to the migration; less than nothing if it comes back."""
    return (problem.state[key] if problem.old[key] == i else 0.0) - (
        problem.state[key] if problem.old[key] == j else 0.0
    )


@kernel
def _product(problem, load, mean, limits, i, j, key, mate):
    """The product of the penalties of all resources with `key` on j and `mate`, where there is one, on i."""
    product = 1.0
    for k in range(len(load)):
        shift = problem.amounts[k, key] - (problem.amounts[k, mate] if mate >= 0 else 0.0)
        mine, other = load[k, i] - shift, load[k, j] + shift
        gap = max(limits[0, k], max(mine, other)) - min(limits[1, k], min(mine, other))
        product *= gap / (problem.theta[k] * mean[k])
    return product


@kernel
def _may_help(load, tops, bottoms, limits, i, j):
    """Note the highest and lowest load of all workers but i and j; False where all extremes are among these."""
    helps = False
    for k in range(len(load)):
        limits[0, k], limits[1, k] = -np.inf, np.inf
        for place in range(2, -1, -1):
            top, bottom = tops[k, place], bottoms[k, place]
            if top >= 0 and top != i and top != j:
                limits[0, k] = load[k, top]
            if bottom >= 0 and bottom != i and bottom != j:
                limits[1, k] = load[k, bottom]
        helps |= limits[0, k] < load[k, tops[k, 0]] or limits[1, k] > load[k, bottoms[k, 0]]
    return helps


@kernel
def _note_three(load, tops, bottoms):
    """For each resource the three workers of the highest load and of the lowest; -1 where there are fewer."""
    for k in range(len(load)):
        for place in range(3):
            tops[k, place] = bottoms[k, place] = -1
            for worker in range(len(load[k])):
                amount = load[k, worker]
                new = worker != tops[k, 0] and worker != tops[k, 1]
                if new or place == 0:
                    best = tops[k, place]
                    if best < 0 or amount > load[k, best]:
                        tops[k, place] = worker
                new = worker != bottoms[k, 0] and worker != bottoms[k, 1]
                if new or place == 0:
                    best = bottoms[k, place]
                    if best < 0 or amount < load[k, best]:
                        bottoms[k, place] = worker


@kernel
def _group(placed, order, first):
    """The keys by worker, each worker's in order of falling frequency: those of worker w are order[first[w]:...]."""
    first[:] = 0
    for key in range(len(placed)):
        first[placed[key] + 1] += 1
    for worker in range(len(first) - 1):
        first[worker + 1] += first[worker]
    for key in range(len(placed)):
        order[first[placed[key]]] = key
        first[placed[key]] += 1
    for worker in range(len(first) - 1, 0, -1):
        first[worker] = first[worker - 1]
    first[0] = 0
