"""Schemes that bound the load, and two random choices, in plain slow Python."""

import naive
import naive_fish


def first_with_room(stream, workers, epsilon, candidates):
    """Each tuple to the first of `candidates(key)` whose load is under (1 + epsilon) times the mean."""
    load, decisions = [0] * workers, []
    for t, key in enumerate(stream, start=1):
        capacity = (1 + epsilon) * t  # of a worker, times the workers
        worker = next(worker for worker in candidates(key) if load[worker] * workers < capacity)
        load[worker] += 1
        decisions.append(worker)
    return decisions


def naive_porc(stream, workers, epsilon=0.01):
    def candidates(key):
        salt = 0
        while True:
            yield naive.candidate(key, salt, workers)
            salt += 1

    return first_with_room(stream, workers, epsilon, candidates)


def naive_bounded(stream, workers, epsilon=0.01, virtual_nodes=128):
    nodes = naive_fish.ring_nodes(range(workers), virtual_nodes)
    walks = {key: naive_fish.first_workers(nodes, key, workers) for key in set(stream)}
    return first_with_room(stream, workers, epsilon, walks.__getitem__)


def naive_random_two(stream, workers, seed=0):
    load, decisions = [0] * workers, []
    for t in range(len(stream)):
        worker = min((naive.candidate(t << 32, 2 * seed + j, workers) for j in (0, 1)), key=load.__getitem__)
        load[worker] += 1
        decisions.append(worker)
    return decisions
