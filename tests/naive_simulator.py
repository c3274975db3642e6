"""The simulator again in plain slow Python: one tuple at a time, dicts and sets, every I(t) kept.

It takes decisions from the library's routers (tests/naive.py has the twins of those), and nothing else.
"""

import math
from collections import Counter
from fractions import Fraction

import numpy as np

import naive
from unskew import Router

SOURCE_SALT = 2**31 - 1  # the hash function that deals keys to sources


class Run:
    """All that is known after `tuples` of (key id, time, source key id or None) have been routed."""

    def __init__(self, scheme, tuples, sources=1, feed="round_robin", estimation="local"):
        workers = scheme.workers
        routers = [Router(scheme, source=source) for source in range(1 if estimation == "global" else sources)]
        oracle = Router(scheme)
        period = float(estimation.split(":")[1]) if estimation.startswith("probe") else None
        last_probe = None
        agreed = 0

        self.load = [0] * workers
        self.imbalances = []  # I(1), ..., I(m)
        self.max_loads = []
        self.times = []
        self.counts = Counter()
        self.pairs = set()
        for number, (key, time, source_key) in enumerate(tuples):
            if period is not None:
                due = math.floor(time / period)
                if last_probe is not None and due > last_probe:
                    share = 1 if estimation.startswith("probe_whole") else sources
                    for router in routers:
                        tell(router, [load // share for load in self.load])
                last_probe = due if last_probe is None else max(due, last_probe)
            if feed == "round_robin":
                source = number % sources
            else:
                source = naive.candidate(key if source_key is None else source_key, SOURCE_SALT, sources)
            worker = decide(routers[source % len(routers)], key, time)
            agreed += worker == decide(oracle, key, time)

            self.load[worker] += 1
            self.counts[key] += 1
            self.pairs.add((worker, key))
            self.max_loads.append(max(self.load))
            self.imbalances.append(max(self.load) - Fraction(sum(self.load), workers))
            self.times.append(time)
        tuples = len(self.times)
        self.metrics = {
            "tuples": tuples,
            "keys": len(self.counts),
            "p1": max(self.counts.values()) / tuples if tuples else 0.0,
            "load": self.load,
            "replicas": len(self.pairs),
            "imbalance": float(self.imbalances[-1]) if tuples else 0.0,
            "imbalance_fraction": float(self.imbalances[-1] / tuples) if tuples else 0.0,
            "mean_imbalance_fraction": float(sum(self.imbalances) / tuples**2) if tuples else 0.0,
            "max_over_mean": float(max(self.load) / Fraction(tuples, workers)) if tuples else None,
            "replicas_lower_bound": lower_bound(self.counts.values(), workers),
            "agreement": agreed / tuples if tuples else 0.0,
            "jaccard": agreed / (2 * tuples - agreed) if tuples else 0.0,
        }


def decide(router, key, time):
    return int(router.route(np.array([key], np.uint64), [time])[0])


def tell(router, load):
    """What a probe does: the estimate becomes the true load, where the scheme has an estimate."""
    router.probe(load)


def lower_bound(counts, workers):
    """Sum over the keys of max(1, ceil(p_k * workers))."""
    tuples = sum(counts)
    return sum(max(1, math.ceil(Fraction(count, tuples) * workers)) for count in counts)
