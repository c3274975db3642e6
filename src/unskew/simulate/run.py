"""One scheme on its way through a stream: routers, workers that come and go, their queues, and the metrics."""

import time as clock
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.contract import Described, Scheme, Times, Workers, can
from unskew.errors import InputError
from unskew.hashing import KeyIds
from unskew.members import Names, carried_over
from unskew.registry import registration_of
from unskew.router import Router
from unskew.simulate.agenda import Agenda, Entry, Numbered, Probe, Timed
from unskew.simulate.estimation import Estimation
from unskew.simulate.events import Event, names_needed
from unskew.simulate.feedback import Feedback
from unskew.simulate.metrics import Keys, Load, Replicas, replicas_lower_bound
from unskew.simulate.queue_metrics import QueueRun
from unskew.simulate.queues import Queues, parse_capacity
from unskew.simulate.rehearsal import members_after, rehearse, tell
from unskew.simulate.result import Result
from unskew.simulate.workers import NO_SOURCES

Positions = slice | npt.NDArray[np.intp]  # which tuples of a segment enter at one source


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


class Run:
    def __init__(self, scheme: Scheme, setting: Setting) -> None:
        self._scheme, self._setting = scheme, setting
        names = names_needed(scheme.workers, setting.events, setting.queues)
        shared = setting.estimation.kind == "global"
        self._routers = [Router(scheme, source=source) for source in range(1 if shared else setting.sources)]
        self._oracle = Router(scheme) if setting.oracle else None
        self._load = Load(scheme.workers, setting.samples, setting.length)
        self._load_before = np.zeros(names, np.int64)  # by name, before workers last came or went
        self._members: Names | None = None  # by index; None while each name is the index
        self._next_name = scheme.workers
        self._replicas = Replicas(names) if setting.replicas else None
        listening = setting.queues is not None and self._routers[0].listens
        if listening and setting.oracle:
            raise InputError("oracle: a scheme that listens to workers has none: the oracle sends them no tuples")
        self._queues = None
        if setting.queues is not None:
            senders = len(self._routers) if listening else 0
            spread = (setting.samples, setting.length)
            self._queues = QueueRun(setting.queues, scheme.workers, names, spread, senders)
        rehearse(scheme, setting.events, None if self._queues is None else self._queues.rate, setting.length)
        self._listening = listening
        self._carried = np.zeros(scheme.workers, np.int64)  # what a probe adds: loads from before the last change
        self._agreed = 0
        self._took_place: list[str] = []
        self._agenda = Agenda(self._entries())
        self._seconds = 0.0

    @property
    def _has_clock(self) -> bool:
        """Whether anything follows the latest time seen."""
        return self._queues is not None or not self._agenda.empty

    def _entries(self) -> list[Entry]:
        entries: list[Entry] = []
        if self._queues is not None and self._setting.queues is not None and self._listening:
            feedback = Feedback(self._routers, self._queues.workers, self._setting.queues.feedback_delay)
            entries += [feedback, feedback.deliveries]
        events = self._setting.events
        if events:
            numbered = [(e.after, partial(self._change, e)) for e in events if e.after is not None]
            timed = [(e.time, partial(self._change, e)) for e in events if e.time is not None]
            entries += [Numbered(numbered), Timed(timed)]
        if self._setting.estimation.kind == "probe" and self._routers[0].estimates_load:
            entries.append(Probe(self._setting.estimation.period, self._probe))
        return entries

    def chunk(
        self,
        ids: KeyIds,
        times: Times,
        entry: Workers | None,
        position: int,
        rows: npt.NDArray[np.int32] | None,
        keys: int,
    ) -> None:
        """Take in the tuples `ids`, of which the first is number `position` of the stream."""
        started = clock.perf_counter()
        if self._queues is not None:
            times = self._queues.times(position, times)
        chosen = np.empty(len(ids), np.int32)
        latest = self._agenda.clock(times) if self._has_clock else times
        for part in self._agenda.segments(latest, position):
            first = position + part.start
            sources = None if entry is None else entry[part]
            chosen[part] = self._step(ids[part], times[part], latest[part], sources, first)
        if self._replicas is not None and rows is not None:
            self._replicas.add(rows, chosen, keys)
        self._seconds += clock.perf_counter() - started

    def _step(self, ids: KeyIds, times: Times, latest: Times, entry: Workers | None, first: int) -> Workers:
        """Route a segment in which no source learns anything from outside; account for it; the workers' names."""
        if len(self._routers) == 1:
            chosen = self._routers[0].route(ids, times)
        else:
            chosen = np.empty(len(ids), np.int32)
            for router, mine in zip(self._routers, self._deal(entry, first, len(ids)), strict=True):
                chosen[mine] = router.route(ids[mine], times[mine])
        if self._oracle is not None:
            self._agreed += int((chosen == self._oracle.route(ids, times)).sum())
        self._load.add(chosen, times)
        names = chosen if self._members is None else self._members[chosen].astype(np.int32)
        if self._queues is not None:
            self._queues.serve(names, latest, self._senders(entry, first, len(ids)))
        return names

    def _deal(self, entry: Workers | None, first: int, count: int) -> Iterator[Positions]:
        """For each source the positions of its tuples among `count`, of which the first is number `first`."""
        sources = self._setting.sources
        if entry is None:
            for source in range(sources):
                yield slice((source - first) % sources, count, sources)
            return
        order = np.argsort(entry, kind="stable")
        ends = np.searchsorted(entry[order], np.arange(sources), side="right")
        yield from np.split(order, ends[:-1])

    def _senders(self, entry: Workers | None, first: int, count: int) -> npt.NDArray[np.int32]:
        """The source of each tuple, where sources listen; none where they do not, or where they are one."""
        if not self._listening or len(self._routers) == 1:
            return NO_SOURCES
        return (np.arange(first, first + count) % len(self._routers)).astype(np.int32) if entry is None else entry

    def _probe(self) -> None:
        for router in self._routers:
            router.probe(self._carried + self._load.vector)

    # ---------------------------------------------------------------- workers that come and go

    @property
    def _names(self) -> Names:
        return np.arange(self._scheme.workers) if self._members is None else self._members

    def _change(self, event: Event, time: float) -> None:
        """Let `event` take place."""
        self._took_place.append(str(event))
        if event.what == "capacity":
            assert self._queues is not None  # checked by names_needed
            self._queues.set_capacities(parse_capacity(event.capacity), time)
            return
        members = members_after(event, self._names, self._next_name)
        tell([*self._routers, *([] if self._oracle is None else [self._oracle])], event, members)
        if event.what == "add":
            if self._queues is not None:
                self._queues.join(members[-event.count :], time)
            self._next_name += event.count
        elif self._queues is not None:
            self._queues.leave(event.workers, time, crash=event.what == "crash")
        self._load_before[self._names] += self._load.vector
        self._carried = carried_over(self._carried + self._load.vector, self._names, members)
        self._load.workers_changed(len(members))
        self._members = members

    # ---------------------------------------------------------------- the outcome

    def result(self, stream: str, feed: str, keys: Keys | None, key_seconds: float, stream_seconds: float) -> Result:
        load, tuples = self._load, self._load.tuples
        seconds = self._seconds + key_seconds
        replicas = None if self._replicas is None else len(self._replicas)
        bound = None if keys is None else replicas_lower_bound(keys.counts, self._scheme.workers)
        total = self._load_before[: self._next_name].copy()
        total[self._names] += load.vector
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
            replicas=replicas,
            replicas_over_kg=None if replicas is None or keys is None else replicas / max(1, len(keys)),
            replicas_lower_bound=bound,
            replicas_over_lower_bound=None if replicas is None or bound is None else replicas / max(1, bound),
            agreement=None if self._oracle is None else self._agreed / max(1, tuples),
            jaccard=None if self._oracle is None else self._agreed / max(1, 2 * tuples - self._agreed),
            seconds=seconds,
            tuples_per_second=tuples / seconds if seconds else 0.0,
            stream_seconds=stream_seconds,
            load=total.tolist(),
            samples=load.samples,
            members=self._names.tolist() if self._setting.events else None,
            events=self._took_place if self._setting.events else None,
            **({} if self._queues is None else self._queues.result(self._next_name)),
            late=self._agenda.late if self._has_clock else None,
        )


def _parameters(scheme: Any) -> dict[str, Any]:
    if can(scheme, Described):
        described: dict[str, Any] = scheme.describe()
        return described
    return {name: value for name, value in scheme._asdict().items() if name != "workers"}
