"""Gedik's constructions again, in plain slow Python from the pseudocode: every penalty from its definition."""

import math


def beta(exponent, count):
    return count**exponent


def theta(alpha, workers):
    return (alpha - 1) / (1 + alpha / (workers - 1))


def penalty(mapping, counts, workers, exponents, alpha):
    """rho of a partial mapping key -> worker (Eqs. 19 and 20); constant resources are left out."""
    considered = [exponent for exponent in exponents if exponent]
    parts = []
    for exponent in considered:
        loads = [0.0] * workers
        for key, worker in mapping.items():
            loads[worker] += beta(exponent, counts[key])
        mean = sum(beta(exponent, counts[key]) for key in mapping) / workers
        parts.append((max(loads) - min(loads)) / (theta(alpha, workers) * mean))
    return math.prod(parts) ** (1.0 / len(parts))


UTILITY = {
    "A": lambda rho, gamma: rho,
    "APM": lambda rho, gamma: rho + gamma,
    "APLM": lambda rho, gamma: rho + math.log(1.0 + gamma),
    "ATM": lambda rho, gamma: rho * (1.0 + gamma),
    "ATLM": lambda rho, gamma: rho * (1.0 + math.log(1.0 + gamma)),
}


class Setting:
    """What all three get: the tracked keys with their counts, where each was, where H_c puts each key now."""

    def __init__(self, tracked, old, hashed, dropped, workers, exponents, alpha, utility):
        self.tracked = tracked  # key -> count
        self.old = old  # key -> index of its worker, None where that one has left
        self.hashed = hashed  # key -> index of the worker that H_c gives it
        self.dropped = dropped  # key -> count, of those that lose their entry
        self.workers, self.exponents, self.alpha = workers, exponents, alpha
        self.utility = UTILITY[utility]
        state = exponents[0]
        self.size = {key: float(beta(state, count)) for key, count in {**tracked, **dropped}.items()}
        self.moved = sum(self.size[key] for key in dropped if old[key] != hashed[key])
        self.ideal = sum(self.size.values()) / workers

    def rho(self, mapping):
        return penalty(mapping, self.tracked, self.workers, self.exponents, self.alpha)

    def by_frequency(self):
        return sorted(self.tracked, key=lambda key: -self.tracked[key])


def naive_scan(setting):
    mapping, m = {}, setting.moved
    for d in setting.by_frequency():
        j, u, h = -1, math.inf, setting.old[d]
        for worker in range(setting.workers):
            a = setting.rho({**mapping, d: worker})
            gamma = (m + setting.size[d] * (worker != h)) / setting.ideal
            if setting.utility(a, gamma) < u:
                j, u = worker, setting.utility(a, gamma)
        m += setting.size[d] * (j != h)
        mapping[d] = j
    return mapping


def naive_redist(setting):
    mapping, m, candidates = {}, setting.moved, setting.by_frequency()
    while candidates:
        j, d, u = -1, None, math.inf
        for c in candidates:
            for worker in range(setting.workers):
                a = setting.rho({**mapping, c: worker})
                gamma = (m + (worker != setting.old[c]) * setting.size[c]) / setting.ideal
                value = setting.utility(a, gamma) / setting.tracked[c]
                if value < u:
                    j, d, u = worker, c, value
        m += (j != setting.old[d]) * setting.size[d]
        mapping[d] = j
        candidates.remove(d)
    return mapping


def start_of(setting):
    return {d: setting.hashed[d] if setting.old[d] is None else setting.old[d] for d in setting.by_frequency()}


def naive_readj(setting, most=5):
    mapping = start_of(setting)
    m = setting.moved + sum(setting.size[d] for d in mapping if mapping[d] != setting.old[d])
    times = dict.fromkeys(mapping, 0)

    def migration(i, d1, j, d2):
        cost = setting.size[d1] * (setting.old[d1] == i) - setting.size[d1] * (setting.old[d1] == j)
        if d2 is not None:
            cost += setting.size[d2] * (setting.old[d2] == j) - setting.size[d2] * (setting.old[d2] == i)
        return cost

    while True:
        u = setting.utility(setting.rho(mapping), m / setting.ideal)
        v, g = None, -math.inf
        for i in range(setting.workers):
            for j in range(setting.workers):
                if i == j:
                    continue
                here = [d for d in mapping if mapping[d] == i and times[d] < most]
                there = [d for d in mapping if mapping[d] == j and times[d] < most]
                for d1 in here:
                    for d2 in [None, *there]:
                        after = {**mapping, d1: j} if d2 is None else {**mapping, d1: j, d2: i}
                        a = setting.rho(after)
                        if a >= setting.rho(mapping):
                            continue
                        value = setting.utility(a, (m + migration(i, d1, j, d2)) / setting.ideal)
                        moved = setting.tracked[d1] - (0 if d2 is None else setting.tracked[d2])
                        gain = (u - value) / abs(moved)
                        if gain > g:
                            v, g = (i, d1, j, d2), gain
        if v is None:
            return mapping
        i, d1, j, d2 = v
        m += migration(i, d1, j, d2)
        mapping[d1] = j
        times[d1] += 1
        if d2 is not None:
            mapping[d2] = i
            times[d2] += 1
