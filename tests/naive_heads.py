"""SpaceSaving and the schemes with heavy hitters again, in plain slow Python."""

from math import ceil

from naive import candidate


class SpaceSaving:
    """Counters in a list, found by looking at each: [key, count, error]."""

    def __init__(self, size):
        self.size, self.counters, self.total = size, [], 0.0

    def count(self, key):
        """The counter of the key, one tuple more."""
        self.total += 1
        counter = next((counter for counter in self.counters if counter[0] == key), None)
        if counter is None:
            if len(self.counters) < self.size:
                counter = [key, 0.0, 0.0]
                self.counters.append(counter)
            else:
                counter = min(self.counters, key=lambda counter: counter[1])  # the first of equals
                counter[0], counter[2] = key, counter[1]
        counter[1] += 1
        return counter

    def decay(self, factor):
        self.total *= factor
        for counter in self.counters:
            counter[1] *= factor
            counter[2] *= factor


def fan_out(shares, tail, workers, epsilon=1e-4):
    """The smallest d of the paper's condition, each d from 2 on tried with each prefix."""
    shares = sorted(shares, reverse=True)
    for d in range(2, workers):
        for h in range(1, len(shares) + 1):
            reach = workers - workers * ((workers - 1) / workers) ** (h * d)
            load = sum(shares[:h]) + (reach / workers) ** d * sum(shares[h:]) + (reach / workers) ** 2 * tail
            if load > reach * (1 / workers + epsilon):
                break
        else:
            return d
    return workers if shares else min(2, workers)


def naive_d_choices(stream, workers, theta=0.0, epsilon=1e-4, counters=0, seed=0, error_weight=-1.0, whole=False):
    """D-Choices, or W-Choices if `whole`."""
    theta = theta or 1 / (5 * workers)
    sketch = SpaceSaving(counters or ceil(4 / theta))
    load, decisions = [0] * workers, []
    choices, due = min(2, workers), 0.0

    def weight(counter):
        return counter[1] + error_weight * counter[2]

    def is_head(counter):
        return weight(counter) > max(10, theta * sketch.total)

    for key in stream:
        counter = sketch.count(key)
        if sketch.total >= due:
            head = [weight(counter) / sketch.total for counter in filter(is_head, sketch.counters)]
            choices = fan_out(head, max(0, 1 - sum(head)), workers, epsilon)
            due = sketch.total + max(1, min(sketch.total / 8, 4 * sketch.size))
        if is_head(counter) and (whole or choices >= workers):
            allowed = range(workers)
        else:
            number = choices if is_head(counter) else 2
            allowed = [candidate(key, 2 * seed + j, workers) for j in range(number)]
        worker = min(allowed, key=load.__getitem__)
        load[worker] += 1
        decisions.append(worker)
    return decisions


def naive_w_choices(stream, workers, **parameters):
    return naive_d_choices(stream, workers, **parameters, whole=True)
