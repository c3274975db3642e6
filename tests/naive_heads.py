"""SpaceSaving and the schemes with heavy hitters again, in plain slow Python."""


class SpaceSaving:
    """Counters in a list, found by looking at each: [key, count, error]."""

    def __init__(self, capacity):
        self.capacity, self.counters, self.total = capacity, [], 0.0

    def count(self, key):
        """The counter of the key, one tuple more."""
        self.total += 1
        counter = next((counter for counter in self.counters if counter[0] == key), None)
        if counter is None:
            if len(self.counters) < self.capacity:
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
