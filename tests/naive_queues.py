"""The simulator with queues again, in plain slow Python: one tuple and one completion at a time, in exact fractions.

Decisions come from the library's routers, asked for one tuple at a time; what routers are told comes from here.
"""

import math
from collections import Counter
from fractions import Fraction

import numpy as np

from naive_simulator import decide, tell
from unskew import Router
from unskew.worker_report import WorkerReport


class Worker:
    def __init__(self, capacity, joined):
        self.capacity = Fraction(capacity)
        self.queue = []  # (arrived, source, cost) of each tuple at the worker
        self.left = Fraction(0)  # of the cost of the first one
        self.joined, self.gone = joined, None
        self.came = self.done = self.lost = self.longest = 0
        self.busy = self.work = self.spent = Fraction(0)
        self.told = set()  # sources of what it executed in this window
        self.window_start = (0, 0, Fraction(0), Fraction(0))

    def next_done(self, now):
        return now + self.left / self.capacity if self.queue else None

    def wait(self, one_more):
        """How long one more tuple of that cost would be there."""
        return ((self.left if self.queue else 0) + sum(cost for *_, cost in self.queue[1:]) + one_more) / self.capacity


def share(work, seconds):
    """Utilisation: infinite where there is work in no time."""
    return work / seconds if seconds > 0 else math.inf if work else 0


class Run:
    """`events` are (what, message or None, time or None, argument); `tuples` are (key id, time); each costs 1 or as
    `costs` say."""

    def __init__(
        self, scheme, tuples, *, sources=1, capacity, bound=None, rate=None, delay=0, events=(), probe=None, costs=()
    ):
        self.routers = [Router(scheme, source=source) for source in range(sources)]
        self.capacity, self.bound = dict(enumerate(capacity)), bound
        self.workers = {name: Worker(self.capacity[name], None) for name in range(scheme.workers)}
        self.members = list(range(scheme.workers))
        self.now = None  # the workers' clock
        self.stalled = Fraction(0)
        self.latencies, self.heard = [], []
        self.since = Counter()  # tuples of each member since workers last came or went
        self.told = Counter()  # the same for a probe, and what each had before; a new one as the least of the others
        self.imbalances = []
        self.looks = []  # after each tuple
        self.load, self.pairs = Counter(), set()
        self.costs = [Fraction(cost) for cost in costs] or [Fraction(1)] * len(tuples)
        self.cost = Counter()  # of what each worker got
        self.cost_since = Counter()  # of what each member got since workers last came or went
        self.makespan = Fraction(0)
        period = getattr(scheme, "report_every", None)
        window = last_probe = latest = None
        pending = []  # reports on their way: (time, source, names, report)
        events = list(events)
        for number, (key, time) in enumerate(tuples):
            time = Fraction(time) if rate is None else Fraction(number) / Fraction(rate)
            time = time if latest is None else max(time, latest)
            if latest is None:
                self.start = self.now = time
                window = math.floor(time / Fraction(period)) if period else None
                self.window_began = time
            latest = time
            while True:  # everything that is due before this tuple, in order of time
                due = []
                if period and (window + 1) * Fraction(period) <= time:
                    due.append(((window + 1) * Fraction(period), 0, None))
                due += [(when, 1, i) for i, (when, *_) in enumerate(pending) if when <= time]
                for i, (_, message, moment, _) in enumerate(events):
                    if message is not None and message <= number:
                        due.append((time, 2, message, i))
                    if moment is not None and moment <= time:
                        due.append((Fraction(moment), 3, moment, i))
                if not due:
                    break
                when, kind, *_, i = min(due)
                if kind == 0:
                    pending += [(when + Fraction(delay), *report) for report in self.end_window(when)]
                    window += 1
                elif kind == 1:
                    _, source, report = pending.pop(i)
                    self.deliver(source, report)
                else:
                    what, _, _, argument = events.pop(i)
                    self.change(what, argument, when)
            if probe is not None:
                tick = math.floor(time / Fraction(probe))
                if last_probe is not None and tick > last_probe:
                    for router in self.routers:
                        tell(router, [self.told[name] // sources for name in self.members])
                last_probe = tick
            source = number % sources
            name = self.members[decide(self.routers[source], key, float(time))]
            self.load[name] += 1
            self.since[name] += 1
            self.told[name] += 1
            self.pairs.add((name, key))
            total = sum(self.since.values())
            self.imbalances.append(max(self.since.values()) - Fraction(total, len(self.members)))
            self.cost[name] += self.costs[number]
            self.cost_since[name] += self.costs[number]
            self.arrive(name, time, source, self.costs[number])
            self.looks.append(self.look(time, rate))
        self.last = latest
        if tuples:
            self.finish(len(tuples), rate)

    # ------------------------------------------------------------ queues

    def advance(self, until):
        """Run the workers up to `until` (the workers' clock), one completion after the other."""
        while True:
            times = [worker.next_done(self.now) for worker in self.workers.values()]
            following = min((time for time in times if time is not None), default=None)
            target = until if following is None or following > until else following
            for worker in self.workers.values():
                if worker.queue:
                    worker.busy += target - self.now
                    worker.left -= (target - self.now) * worker.capacity
            self.now = target
            if following is None or following > until:
                return
            for worker in self.workers.values():
                if worker.queue and worker.left == 0:
                    arrived, source, cost = worker.queue.pop(0)
                    worker.left = worker.queue[0][2] if worker.queue else Fraction(0)
                    worker.done += 1
                    worker.spent += cost / worker.capacity
                    worker.told.add(source)
                    self.latencies.append(self.now - arrived)
                    self.makespan = self.now - self.start

    def arrive(self, name, time, source, cost):
        worker = self.workers[name]
        self.advance(time + self.stalled)
        if self.bound is not None and len(worker.queue) >= self.bound:
            self.advance(worker.next_done(self.now))
            self.stalled = self.now - time
        if not worker.queue:
            worker.left = cost
        worker.queue.append((self.now, source, cost))
        worker.came += 1
        worker.work += cost / worker.capacity
        worker.longest = max(worker.longest, len(worker.queue))

    def there(self, worker, end):
        """From when to when it was there, where `end` is the end."""
        since = self.start if worker.joined is None else max(worker.joined, self.start)
        return since, end if worker.gone is None else worker.gone

    def look(self, time, rate):
        """What a sample after this tuple has to tell, by member; all else is a difference of two looks."""
        tuples = len(self.imbalances)
        gap = 1 / Fraction(rate) if rate else (time - self.start) / max(1, tuples - 1)
        seconds, there = {}, {}
        for name, worker in self.workers.items():
            for spans, end in ((seconds, time + gap), (there, time)):
                since, until = self.there(worker, end)
                spans[name] = max(Fraction(0), until - since)
        return {
            "time": time,
            "now": time + self.stalled,
            "stalled": self.stalled,
            "members": self.members,
            "waiting": {name: len(worker.queue) for name, worker in self.workers.items()},
            "lost": sum(worker.lost for worker in self.workers.values()),
            "done": len(self.latencies),
            "waits": [self.workers[name].wait(sum(self.costs[:tuples]) / tuples) for name in self.members],
            "work": {name: worker.work for name, worker in self.workers.items()},
            "seconds": seconds,
            "there": there,
        }

    def finish(self, tuples, rate):
        gap = 1 / Fraction(rate) if rate else (self.last - self.start) / max(1, tuples - 1)
        self.waiting = sum(len(worker.queue) for worker in self.workers.values())
        self.utilisation = {}
        for name, worker in self.workers.items():
            since, until = self.there(worker, self.last + gap)
            self.utilisation[name] = share(worker.work, until - since)
        while any(worker.queue for worker in self.workers.values()):
            self.advance(self.now + 1)

    # ------------------------------------------------------------ events and reports

    def change(self, what, argument, when):
        self.advance(max(self.now, when + self.stalled))
        if what == "capacity":
            self.capacity |= argument
            for name, capacity in argument.items():
                if name in self.workers:
                    self.workers[name].capacity = Fraction(capacity)
            return
        if what == "add":
            name = len(self.workers)
            self.told[name] = min(self.told[other] for other in self.members)
            self.workers[name] = Worker(self.capacity[name], when)
            self.members = [*self.members, name]
        else:
            worker = self.workers[argument]
            worker.gone = when
            self.members = [name for name in self.members if name != argument]
            if what == "crash":
                worker.lost, worker.queue = len(worker.queue), []
        for router in self.routers:
            router.change_workers(self.members)
        self.since, self.cost_since = Counter(), Counter()

    def end_window(self, when):
        self.advance(when + self.stalled)
        reports = []
        for source in range(len(self.routers)):
            rows = [
                (
                    name,
                    worker.came - worker.window_start[0],
                    worker.done - worker.window_start[1],
                    worker.busy - worker.window_start[2],
                    len(worker.queue),
                    worker.spent - worker.window_start[3],
                )
                for name, worker in sorted(self.workers.items())
                if source in worker.told
            ]
            if rows:
                reports.append((source, (rows, self.now - self.window_began, when)))
        for worker in self.workers.values():
            worker.told = set()
            worker.window_start = (worker.came, worker.done, worker.busy, worker.spent)
        self.window_began = self.now
        return reports

    def deliver(self, source, report):
        rows, seconds, when = report
        rows = [(self.members.index(row[0]), *row[1:]) for row in rows if row[0] in self.members]
        if rows:
            workers, came, done, busy, waiting, spent = (list(column) for column in zip(*sorted(rows), strict=True))
            told = workers, came, done, [float(each) for each in busy], waiting
            window = float(seconds), float(when), [float(each) for each in spent]
            self.heard.append((*told, *window))
            self.routers[source].observe(WorkerReport(*map(np.array, told), *window[:2], np.array(window[2])))
