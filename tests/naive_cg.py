"""Consistent grouping in plain slow Python: a list of virtual workers for each worker, two queues."""

from functools import cache

import naive


@cache
def candidate(placement, salt, total):
    """Of the keys whose id has this high half: a search tries many, and many keys may share them."""
    return naive.candidate(placement << 32, salt, total)


class ConsistentGrouping:
    """One source."""

    def __init__(
        self,
        workers,
        virtual=10,
        epsilon=0.01,
        keyed=True,
        idle=0.75,
        busy=0.85,
        probe_capacity=False,
        seed=0,
        ring=False,
        patient=False,
    ):
        self.probe_capacity, self.first = probe_capacity, 65_536 * seed
        self.ring, self.patient = ring, patient
        self.reports, self.overloaded = 0, dict.fromkeys(range(workers), 0)
        self.total, self.epsilon, self.keyed = workers * virtual, epsilon, keyed
        self.below, self.above = idle, busy
        self.load = [0] * self.total
        self.held = [
            list(range(worker, self.total, workers)) for worker in range(workers)
        ]  # the last is the first to go
        self.idle, self.busy = [], []

    def virtual_worker(self, key):
        tuples = sum(self.load)
        if not self.keyed:
            return tuples % self.total
        salt = self.first
        while True:
            virtual = candidate(key >> 32, salt, self.total)
            if self.load[virtual] * self.total < (1 + self.epsilon) * (tuples + 1):
                return virtual
            salt += 1

    def next_on_ring(self, key):
        tuples, virtual = sum(self.load), candidate(key >> 32, self.first, self.total)
        while self.load[virtual] * self.total >= (1 + self.epsilon) * (tuples + 1):
            virtual = (virtual + 1) % self.total
        return virtual

    def route(self, key):
        virtual = self.next_on_ring(key) if self.ring else self.virtual_worker(key)
        self.load[virtual] += 1
        return next(worker for worker, held in enumerate(self.held) if virtual in held)

    def observe(self, utilisations):
        """`utilisations`: worker -> what came over what it could have done, in the order in which they tell."""
        self.reports += 1
        for worker, utilisation in utilisations.items():
            if utilisation > self.above:
                self.overloaded[worker] = self.reports
            signal = self.idle if utilisation < self.below else None
            if utilisation > self.above and len(self.held[worker]) > 1:
                signal = self.busy
            for queue in (self.idle, self.busy):
                if queue is signal and worker not in queue:
                    queue.append(worker)
                keeps = self.patient and signal is None and (queue is self.idle or len(self.held[worker]) > 1)
                if queue is not signal and worker in queue and not keeps:
                    queue.remove(worker)
        others = [
            worker
            for worker in sorted(self.overloaded, key=lambda worker: (self.overloaded[worker], worker))
            if worker not in self.idle + self.busy and self.overloaded[worker] < self.reports
        ]
        while self.idle and self.busy:
            self.held[self.idle.pop(0)].append(self.held[self.busy.pop(0)].pop())
        while self.probe_capacity and others and self.busy:
            self.held[others.pop(0)].append(self.held[self.busy.pop(0)].pop())


def naive_cg(stream, workers, **parameters):
    source = ConsistentGrouping(workers, **parameters)
    return [source.route(key) for key in stream]
