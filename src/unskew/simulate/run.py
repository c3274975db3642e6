"""One scheme on its way through a stream: routers, workers that come and go, their queues, and the metrics.

`Run.take` is the way of a chunk; all else is called from there, or sets up what it needs.
"""

import time as clock
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from unskew.contract import Described, Growing, Replanning, Scheme, Sources, Tickets, Times, Workers, can
from unskew.errors import InputError
from unskew.registry import registration_of
from unskew.router import Router
from unskew.simulate.agenda import Agenda, Clock, EveryTuples, Item, Numbered, Probe, Timed
from unskew.simulate.crew import Crew
from unskew.simulate.estimation import Estimation
from unskew.simulate.events import Event, names_needed
from unskew.simulate.foreseeing import Foreseeing
from unskew.simulate.lines import NO_SOURCES
from unskew.simulate.load import Load, Sample, Work
from unskew.simulate.messaging import Messaging
from unskew.simulate.metrics import KeyCounter, Replicas, Rows, replicas_lower_bound
from unskew.simulate.migration import Migration
from unskew.simulate.queue_metrics import Look, QueueRun
from unskew.simulate.queues import Queues, parse_capacity
from unskew.simulate.rehearsal import rehearse
from unskew.simulate.reporting import Reporting
from unskew.simulate.result import Result
from unskew.simulate.sampling import Sampling
from unskew.simulate.tuples import Tuples
from unskew.worker_half import WorkerHalf

NO_TICKETS = np.zeros(0, np.int64)


class Setting(NamedTuple):
    """What all runs on a stream share. See `simulate`."""

    sources: int = 1
    estimation: Estimation = Estimation("local")
    replicas: bool = True
    oracle: bool = False
    samples: int = 200
    queues: Queues | None = None
    events: Sequence[Event] = ()
    length: int | None = None  # of the stream, where it is known
    mean_cost: float | None = None  # of its tuples; None where they have no costs


class Run:
    """One scheme, from the first chunk (`take`) to its `result`."""

    def __init__(self, scheme: Scheme, setting: Setting) -> None:
        self._scheme, self._setting = scheme, setting
        names = names_needed(scheme.workers, setting.events, setting.queues)
        shared = setting.estimation.kind == "global" or can(scheme, Replanning)
        self._routers = [Router(scheme, source=source) for source in range(1 if shared else setting.sources)]
        self._oracle = Router(scheme) if setting.oracle and not can(scheme, Replanning) else None
        self._agreed = 0  # tuples on which the sources decided as the oracle did
        self._crew = Crew(scheme.workers)
        self._load = Load(scheme.workers, names)
        self._work = None if setting.mean_cost is None else Work(names)
        self._replicas = Replicas(names) if setting.replicas else None
        self._listening = setting.queues is not None and self._routers[0].listens
        self._conversing = setting.queues is not None and self._routers[0].converses
        if (self._listening or self._conversing) and setting.oracle:
            raise InputError("oracle: a scheme that listens to workers has none: the oracle sends them no tuples")
        self._queues = None
        self._messaging: Messaging | None = None
        self._foreseeing: Foreseeing | None = None
        if setting.queues is not None:
            listeners = len(self._routers) if self._listening else 0
            lettered = self._conversing and not self._is_foreseeable()
            self._queues = QueueRun(setting.queues, scheme.workers, names, listeners, setting.mean_cost, lettered)
            if self._conversing:
                half, delay = WorkerHalf(scheme, names, len(self._routers)), setting.queues.feedback_delay
                workers = self._queues.workers
                if lettered:
                    self._messaging = Messaging(self._routers, workers, half, delay)
                else:
                    self._foreseeing = Foreseeing(self._routers[0], half, workers.service, delay)
        self._migration = None
        if can(scheme, Replanning):
            seconds = 0.0 if setting.queues is None else setting.queues.migration
            self._migration = Migration(self._routers[0], seconds, names)
        rehearse(scheme, setting.events, None if self._queues is None else self._queues.rate)
        self._sampling: Sampling[tuple[Sample, Look | None]] = Sampling(setting.samples, setting.length)
        self._took_place: list[str] = []
        self._agenda = Agenda(self._items())
        probing = setting.estimation.probes
        self._clock = Clock() if setting.queues is not None or setting.events or probing else None
        self._seconds = 0.0

    def _is_foreseeable(self) -> bool:
        """Whether it is known when a tuple will be done as soon as it is sent, and nothing but messages comes between
        two tuples. A table that grows needs stops, too."""
        assert self._setting.queues is not None
        changes = self._setting.queues.bound is not None or self._setting.events or can(self._scheme, Replanning)
        told = self._listening or (self._setting.estimation.probes and self._routers[0].estimates_load)
        return len(self._routers) == 1 and not changes and not told and not can(self._scheme, Growing)

    def _items(self) -> list[Item]:
        """What is on the agenda; what stands first comes first where the moment is the same."""
        items: list[Item] = []
        if self._queues is not None and self._setting.queues is not None and self._listening:
            reporting = Reporting(self._routers, self._queues.workers, self._setting.queues.feedback_delay)
            items += [reporting, reporting.deliveries]
        if self._messaging is not None:
            items.append(self._messaging)
        events = self._setting.events
        if events:
            numbered = [(e.after, partial(self._change, e)) for e in events if e.after is not None]
            timed = [(e.time, partial(self._change, e)) for e in events if e.time is not None]
            items += [Numbered(numbered), Timed(timed)]
        if self._migration is not None:
            items.append(EveryTuples(self._routers[0].scheme.replan_every, self._replan))  # type: ignore[attr-defined]
        if self._setting.estimation.probes and self._routers[0].estimates_load:
            items.append(Probe(self._setting.estimation.period, self._probe))
        return items

    # ---------------------------------------------------------------- the way of a chunk

    def take(self, chunk: Tuples, rows: Rows | None, keys: int) -> None:
        """The way of a chunk; `rows` are the numbers of its keys among the `keys` seen so far.

        The chunk is cut where something is due that routers or workers notice: worker report, event or probe. Each part
        is routed as a whole. Its tuples then arrive at their workers in pieces that end where a sample is due: samples
        change nothing, so routers need not stop for them (there may be thousands of routers).
        """
        started = clock.perf_counter()
        if self._queues is not None and self._queues.rate is not None:
            numbers = np.arange(chunk.first, chunk.first + len(chunk.ids))
            chunk = chunk._replace(times=numbers / self._queues.rate)
        now = chunk.times if self._clock is None else self._clock.follow(chunk.times)
        names = np.empty(len(chunk.ids), np.int32)
        self._agenda.begin(now, chunk.first)
        start = 0
        while start < len(chunk.ids):
            self._agenda.let_happen(start)
            stop = self._agenda.next_cut(start)
            part = chunk.part(start, stop)
            chosen, tickets = self._route(part, now[start:stop])
            names[start:stop] = self._crew.names_of(chosen)
            if self._migration is not None:
                self._migration.count(part.ids)
            senders = self._senders(part)
            for piece in self._sampling.pieces(stop - start):
                self._load.add(chosen[piece], part.times[piece])
                if self._queues is not None:
                    arriving = slice(start + piece.start, start + piece.stop)
                    costs = None if part.costs is None else part.costs[piece]
                    letters = None if self._messaging is None else (part.ids[piece], tickets[piece])
                    self._queues.serve(names[arriving], now[arriving], senders[piece], costs, letters)
                if self._sampling.is_due:
                    self._sampling.keep(self._look())
            if self._work is not None and part.costs is not None:
                self._work.add(names[start:stop], part.costs)
            start = stop
        if self._replicas is not None and rows is not None:
            self._replicas.add(rows, names, keys)
        self._seconds += clock.perf_counter() - started

    def _route(self, part: Tuples, now: Times) -> tuple[Workers, Tickets]:
        """The worker, by index, that the source of each tuple chooses, and the ticket that the tuple carries to a
        worker half, where one is to read it. `now` is what the stream's clock shows at each."""
        tickets = NO_TICKETS
        if self._foreseeing is not None:
            chosen = self._foreseeing.route(part, now)
        elif len(self._routers) == 1:
            chosen, sent = self._routers[0].send(part.ids, part.times, part.costs)
            tickets = tickets if sent is None else sent
        else:
            chosen = np.empty(len(part.ids), np.int32)
            if self._messaging is not None:
                tickets = np.zeros(len(part.ids), np.int64)
            for router, mine in zip(self._routers, part.positions_by_source(len(self._routers)), strict=True):
                costs = None if part.costs is None else part.costs[mine]
                chosen[mine], sent = router.send(part.ids[mine], part.times[mine], costs)
                if self._messaging is not None and sent is not None:
                    tickets[mine] = sent
        if self._oracle is not None:
            self._agreed += int((chosen == self._oracle.route(part.ids, part.times, part.costs)).sum())
        elif self._setting.oracle:  # the sources share one table, which is the oracle's too
            self._agreed += len(chosen)
        return chosen, tickets

    def _senders(self, part: Tuples) -> Sources:
        """The source of each tuple, where several listen; else none need be told apart."""
        several = (self._listening or self._conversing) and len(self._routers) > 1
        return part.source_of_each(len(self._routers)) if several else NO_SOURCES

    def _look(self) -> tuple[Sample, Look | None]:
        return self._load.sample, None if self._queues is None else self._queues.look()

    # ---------------------------------------------------------------- what happens between two tuples

    def _probe(self) -> None:
        """Tell every source the true load, or its share of it."""
        shared = self._setting.estimation.kind == "probe"
        known = self._load.known // (len(self._routers) if shared else 1)
        for router in self._routers:
            router.probe(known)

    def _replan(self, time: float) -> None:
        """Let a scheme that keeps keys whole look at its table of them."""
        assert self._migration is not None
        before = self._migration.homes()
        if self._routers[0].replan():
            self._migration.replans += 1
            self._suspend(self._migration.move(before))

    def _suspend(self, seconds: float) -> None:
        """The stream waits while state is moved."""
        if self._queues is not None:
            self._queues.workers.suspend(seconds)

    def _change(self, event: Event, time: float) -> None:
        """Let `event` take place."""
        self._took_place.append(str(event))
        if event.what == "capacity":
            assert self._queues is not None  # checked by names_needed
            self._queues.set_capacities(parse_capacity(event.capacity), time)
            return
        before = self._crew.names
        homes = None if self._migration is None else self._migration.homes()
        self._crew.change(event)
        self._tell_routers(event)
        if self._queues is not None:
            if event.what == "add":
                self._queues.join(self._crew.names[-event.count :], time)
            else:
                self._queues.leave(event.workers, time, crash=event.what == "crash")
        self._load.change_workers(before, self._crew.names)
        if self._migration is not None and homes is not None:
            self._suspend(self._migration.move(homes, tuple(event.workers) if event.what == "crash" else ()))
        if self._work is not None:
            self._work.change_workers()

    def _tell_routers(self, event: Event) -> None:
        """Tell all routers who is there after `event`."""
        try:
            for router in (*self._routers, *([] if self._oracle is None else [self._oracle])):
                router.change_workers(self._crew.names)
        except InputError as error:
            name, workers = registration_of(self._scheme).name, len(self._crew.names)
            raise InputError(f"event: {event.brief}: {name} cannot go on with {workers:,} workers: {error}") from None

    # ---------------------------------------------------------------- the outcome

    def result(
        self, stream: str, feed: str, keys: KeyCounter | None, key_seconds: float, stream_seconds: float
    ) -> Result:
        """What was measured; all queues run empty first."""
        load, tuples = self._load, self._load.tuples
        seconds = self._seconds + key_seconds
        replicas = None if self._replicas is None else len(self._replicas)
        bound = None if keys is None else replicas_lower_bound(keys.counts, self._scheme.workers)
        looks = self._sampling.kept if self._sampling.is_due else [*self._sampling.kept, self._look()]
        carrier = self._messaging or self._foreseeing
        queue_looks = [look for _, look in looks if look is not None]
        return Result(
            scheme=registration_of(self._scheme).name,
            params=_parameters(self._scheme),
            stream=stream,
            workers=self._scheme.workers,
            sources=self._setting.sources,
            feed=feed,
            estimation=str(self._setting.estimation),
            tuples=tuples,
            keys=None if keys is None else len(keys),
            p1=None if keys is None else keys.p1,
            imbalance=load.imbalance,
            imbalance_fraction=load.imbalance / max(1, load.tuples_since),
            mean_imbalance_fraction=load.mean_imbalance / max(1, tuples),
            max_over_mean=load.max_over_mean,
            local_max_over_mean=load.local_max_over_mean,
            replicas=replicas,
            replicas_over_kg=None if replicas is None or keys is None else replicas / max(1, len(keys)),
            replicas_lower_bound=bound,
            replicas_over_lower_bound=None if replicas is None or bound is None else replicas / max(1, bound),
            agreement=None if not self._setting.oracle else self._agreed / max(1, tuples),
            jaccard=None if not self._setting.oracle else self._agreed / max(1, 2 * tuples - self._agreed),
            seconds=seconds,
            tuples_per_second=tuples / seconds if seconds else 0.0,
            stream_seconds=stream_seconds,
            load=load.by_name(self._crew.names)[: self._crew.ever].tolist(),
            samples=[sample for sample, _ in looks],
            members=self._crew.names.tolist() if self._setting.events else None,
            events=self._took_place if self._setting.events else None,
            **({} if self._queues is None else self._queues.finish(self._crew.ever, queue_looks)),
            late=None if self._clock is None else self._clock.late,
            messages=None if carrier is None else carrier.log,
            **({} if self._migration is None else self._migration.totals()),
            work=None if self._work is None else self._work.by_name[: self._crew.ever].tolist(),
            work_max_over_mean=None if self._work is None else self._work.max_over_mean(self._crew.names),
        )


def _parameters(scheme: Any) -> dict[str, Any]:
    if can(scheme, Described):
        described: dict[str, Any] = scheme.describe()
        return described
    return {name: value for name, value in scheme._asdict().items() if name != "workers"}
