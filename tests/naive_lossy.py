"""Lossy counting again, in plain slow Python: one counter over a list, and several that start one after the other."""


def naive_lossy(stream, window):
    """key -> (count, error), of one counter that has counted all of `stream`."""
    memory = {}
    for t, key in enumerate(stream):
        i = t // window + 1
        count, error = memory.get(key, (0, i - 1))
        memory[key] = (count + 1, error)
        if (t + 1) % window == 0:
            memory = {key: (count, error) for key, (count, error) in memory.items() if count + error > i}
    return memory


def naive_sliding(stream, window, history, counters):
    """The tuples seen and the memory of the counter in use: Gedik, Fig. 2."""
    hop = history // (counters - 1)
    used = []
    for start in range(counters):
        began = hop * start
        if len(stream) >= began:
            began += (len(stream) - began) // (hop * counters) * hop * counters
            used.append(stream[began:])
    oldest = max(used, key=len)
    return len(oldest), naive_lossy(oldest, window)
