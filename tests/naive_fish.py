"""The consistent-hash ring and FISH again, in plain slow Python: sorted lists, dicts, walks that look at every node."""

import struct

import naive
import naive_heads

KEY_SALT = 2**31 - 2


def ring_nodes(names, virtual_nodes):
    """(position, name, index) of every virtual node, in the order of the circle."""
    return sorted(
        (naive.murmur3(struct.pack("<I", v), seed=naive.murmur3(struct.pack("<q", name))), name, index)
        for index, name in enumerate(names)
        for v in range(virtual_nodes)
    )


def first_workers(nodes, key, count):
    """The indices of the first `count` distinct workers clockwise from the key."""
    home = naive.candidate(key, KEY_SALT, 2**32)
    clockwise = [node for node in nodes if node[0] >= home] + [node for node in nodes if node[0] < home]
    return list(dict.fromkeys(index for _, _, index in clockwise))[:count]


def in_24_bits(number):
    return struct.unpack("f", struct.pack("f", number))[0]


class Fish:
    """One source. `number` is the type of the counts: float as in the kernel, Fraction for exact ones."""

    def __init__(
        self,
        workers,
        epoch=1000,
        counters=1000,
        alpha=0.2,
        theta=0,
        least=2,
        interval=10.0,
        virtual_nodes=128,
        whole_epoch=True,
        solver=False,
        number=float,
    ):
        self.workers, self.epoch, self.counters, self.alpha = workers, epoch, counters, alpha
        self.theta, self.total, self.whole_epoch = theta, number(0), whole_epoch
        self.solver, self.choices = solver, 2
        self.least, self.interval, self.number = least, interval, number
        self.key_at, self.count, self.widest = [], [], []  # one entry a counter
        self.in_epoch = 0
        self.backlog, self.pace, self.known = [0.0] * workers, [1.0] * workers, False
        self.drained_at, self.paces = None, {}
        self.nodes = ring_nodes(range(workers), virtual_nodes)
        self.walks = {}  # key -> all workers in the order of its walk

    def candidates(self, key, fan_out):
        if fan_out == self.workers:
            return list(range(self.workers))
        if not self.nodes:
            return [naive.candidate(key, j, self.workers) for j in range(fan_out)]
        if key not in self.walks:
            self.walks[key] = first_workers(self.nodes, key, self.workers)
        return self.walks[key][:fan_out]

    def all_tuples(self):
        return max(self.total, self.epoch) if self.whole_epoch else self.total

    def is_hot(self, count):
        total = self.all_tuples()
        return count > (self.theta * total if self.theta else total / (4 * self.workers))

    def end_epoch(self):
        self.count = [count * self.alpha for count in self.count]
        self.total *= self.alpha
        self.in_epoch = 0

    def observe(self, paces):
        """`paces`: worker -> seconds per tuple, of those that report now."""
        self.paces |= {worker: in_24_bits(pace) for worker, pace in paces.items()}
        if self.paces:
            mean = sum(self.paces.values()) / len(self.paces)
            self.pace = [self.paces.get(worker, mean) for worker in range(self.workers)]
            self.known = True

    def route(self, key, now=0.0):
        if self.in_epoch == self.epoch:
            self.end_epoch()
        self.in_epoch += 1
        self.total += self.number(1)
        if key in self.key_at:
            mine = self.key_at.index(key)
        elif len(self.key_at) < self.counters:
            mine = len(self.key_at)
            self.key_at.append(key)
            self.count.append(self.number(0))
            self.widest.append(0)
        else:
            mine = self.count.index(min(self.count))
            self.key_at[mine], self.widest[mine] = key, 0
        self.count[mine] += 1
        self.top = max(self.count)

        if self.solver and self.in_epoch % 100 == 1:
            shares = [count / self.all_tuples() for count in self.count if self.is_hot(count)]
            self.choices = naive_heads.fan_out(shares, max(0, 1 - sum(shares)), self.workers)
        fan_out = 2
        if self.is_hot(self.count[mine]) and self.solver:
            fan_out = self.choices
        elif self.is_hot(self.count[mine]):
            index = 0
            while self.count[mine] * 2 ** (index + 1) <= self.top:
                index += 1
            self.widest[mine] = max(self.widest[mine], self.workers // 2**index, self.least)
            fan_out = self.widest[mine]
        fan_out = min(fan_out, self.workers)

        if self.drained_at is None:
            self.drained_at = now
        if self.known and now > self.drained_at + self.interval:
            elapsed = now - self.drained_at
            self.backlog = [max(0.0, c - elapsed / p) for c, p in zip(self.backlog, self.pace, strict=True)]
            self.drained_at = now
        worker = min(self.candidates(key, fan_out), key=lambda w: self.backlog[w] * self.pace[w])
        self.backlog[worker] += 1
        return worker


def naive_fish(stream, workers, times=None, **parameters):
    source = Fish(workers, **parameters)
    return [source.route(key, now) for key, now in zip(stream, times or [0.0] * len(stream), strict=True)]
