"""POSG and full knowledge again, in plain slow Python: dicts and lists, one tuple and one completion at a time."""

import heapq
from collections import defaultdict

from unskew.hashing import universal_functions

ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = "ROUND ROBIN", "SEND ALL", "WAIT ALL", "RUN"


def cell(function, key, columns):
    low, high, plus = function
    return ((low * (key % 2**32) + high * (key >> 32) + plus) % 2**64 >> 32) * columns >> 32


class Tables:
    """F and W: (row, column) -> count and seconds."""

    def __init__(self, functions, columns):
        self.functions, self.columns = functions, columns
        self.counts, self.seconds = defaultdict(float), defaultdict(float)

    def cells(self, key):
        return [(row, cell(function, key, self.columns)) for row, function in enumerate(self.functions)]

    def add(self, key, seconds):
        for where in self.cells(key):
            self.counts[where] += 1
            self.seconds[where] += seconds

    def estimate(self, key):
        where = min(self.cells(key), key=lambda c: self.counts.get(c, 0.0))  # the first of equals
        if self.counts.get(where, 0.0) == 0:
            first_row = [where for where in self.counts if where[0] == 0]
            columns = sorted(column for _, column in first_row)
            seconds, counts = ([table.get((0, c), 0.0) for c in columns] for table in (self.seconds, self.counts))
            return sum(seconds) / sum(counts)
        return self.seconds[where] / self.counts[where]

    def means(self):
        return {where: self.seconds[where] / count for where, count in self.counts.items()}


class Worker:
    """The worker half."""

    def __init__(self, functions, columns, window, tolerance, sources, count_idle):
        self.sources, self.count_idle, self.idle = sources, count_idle, 0.0
        self.fresh = lambda: Tables(functions, columns)
        self.window, self.tolerance = window, tolerance
        self.tables, self.snapshot, self.executed = self.fresh(), None, 0
        self.total = defaultdict(float)  # by source

    def execute(self, key, seconds, source, ticket, waited):
        """What it has to tell: a list of (source or None for all, message)."""
        self.tables.add(key, seconds)
        self.total[source] += seconds
        self.idle += waited
        total = self.total[source] + (self.idle / self.sources if self.count_idle else 0.0)
        told = [(source, ("Reply", ticket, total))] if ticket else []
        self.executed += 1
        if self.executed % self.window == 0:
            now, before = self.tables.means(), self.snapshot
            self.snapshot = now
            if before is not None:
                off = sum(abs(mean - now[where]) for where, mean in before.items())
                if off <= self.tolerance * sum(before.values()):
                    told.append((None, ("Matrices", self.tables)))
                    self.tables, self.snapshot = self.fresh(), None
        return told


class Source:
    """The source half, with the paper's four states."""

    def __init__(self, workers, first=0):
        self.workers, self.state, self.next = workers, ROUND_ROBIN, first
        self.tables, self.estimated = {}, [0.0] * workers
        self.number, self.asked, self.replies, self.restarts = 0, {}, {}, 0

    def choose(self, key):
        if self.state in (ROUND_ROBIN, SEND_ALL):
            worker = self.next
            self.next = (self.next + 1) % self.workers
        else:
            worker = self.estimated.index(min(self.estimated))
        if self.state == ROUND_ROBIN:
            return worker, 0
        self.estimated[worker] += self.tables[worker].estimate(key)
        if self.state != SEND_ALL:
            return worker, 0
        self.asked[worker] = self.estimated[worker]
        if worker == self.workers - 1:
            self.state = WAIT_ALL
        return worker, self.number

    def hear(self, worker, message):
        kind, *content = message
        if kind == "Matrices":
            (self.tables[worker],) = content
            if len(self.tables) < self.workers:
                return
            if self.state == SEND_ALL:
                return
            if self.state == WAIT_ALL:
                if self.restarts >= self.workers:
                    return
                self.restarts += 1
            self.state, self.next, self.replies = SEND_ALL, 0, {}
            self.number += 1
        else:
            number, total = content
            if number == self.number:
                self.replies[worker] = total
            if self.state == WAIT_ALL and len(self.replies) == self.workers:
                differences = {worker: total - self.asked[worker] for worker, total in self.replies.items()}
                self.estimated = [c + differences[worker] for worker, c in enumerate(self.estimated)]
                self.state, self.restarts = RUN, 0
                self.replies = {}
                self.asked = {}


class Simulation:
    """Queues without bound: what is done by the time of a tuple, and heard by then, is known when it is routed."""

    def __init__(
        self,
        keys,
        costs,
        gap,
        workers,
        *,
        delay=0.0,
        sources=1,
        service=None,
        window=1024,
        tolerance=0.05,
        columns=54,
        rows=4,
        seed=0,
        count_idle=False,
        firsts=(0,),
    ):
        functions = universal_functions(rows, seed).tolist()
        service = service or [1.0] * workers
        halves = [Worker(functions, columns, window, tolerance, sources, count_idle) for _ in range(workers)]
        free_since = [0.0] * workers
        self.sources = [Source(workers, first) for first in firsts]
        queues = [[] for _ in range(workers)]  # (key, cost, source, ticket, arrived)
        done, news, order = [], [], 0  # heaps: (time, worker), (time, worker, source, order, message)
        self.chosen, self.latencies, self.heard, self.states = [], [], [], []

        def execute_until(now):
            nonlocal order
            while done and done[0][0] <= now:
                time, worker, began = heapq.heappop(done)
                key, _, source, ticket, arrived = queues[worker].pop(0)
                self.latencies.append(time - arrived)
                waited, free_since[worker] = began - free_since[worker], time
                for to, message in halves[worker].execute(key, time - began, source, ticket, waited):
                    for source_number in range(sources) if to is None else [to]:
                        heapq.heappush(news, (time + delay, worker, source_number, order, message))
                        order += 1
                if queues[worker]:
                    heapq.heappush(done, (time + service[worker] * queues[worker][0][1], worker, time))

        for number, (key, cost) in enumerate(zip(keys, costs, strict=True)):
            now = number * gap
            execute_until(now)
            while news and news[0][0] <= now:
                _, worker, source, _, message = heapq.heappop(news)
                self.sources[source].hear(worker, message)
                self.heard.append((number, worker, source, message[0]))
            source = number % sources
            worker, ticket = self.sources[source].choose(key)
            self.states.append(self.sources[source].state)
            self.chosen.append(worker)
            queues[worker].append((key, cost, source, ticket, now))
            if len(queues[worker]) == 1:
                heapq.heappush(done, (now + service[worker] * cost, worker, now))
        execute_until(float("inf"))


def naive_posg(stream, workers, seed=0, **_):
    """Without a word from workers it is round robin."""
    source = Source(workers)
    return [source.choose(key)[0] for key in stream]


def naive_full_knowledge(stream, workers, costs=None):
    work, chosen = [0.0] * workers, []
    for cost in costs or [1.0] * len(stream):
        chosen.append(work.index(min(work)))
        work[chosen[-1]] += cost
    return chosen
