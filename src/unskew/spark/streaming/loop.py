"""The loop on the driver: what a micro-batch observed becomes the plan of the next one.

Spark tells a listener of each micro-batch when it is over, with the metrics that were observed in it. The next batch
may have begun by then, and then the plan is used one batch later. A listener must not fail, and neither must a query
because of it: what goes wrong here is a warning, and rows are balanced by the plan that there is.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from unskew.batch_records import MOST_SHOWN
from unskew.errors import InputError
from unskew.plan import HotKey, Plan
from unskew.planning import make_plan
from unskew.spark.frames import warn
from unskew.spark.streaming.fading import FadingCounts
from unskew.spark.streaming.plan_file import NAME as PLAN
from unskew.spark.streaming.plan_file import NO_PLAN, cells_for, cut_to_fit, line_of, version_in
from unskew.spark.streaming.recording import Recording
from unskew.spark.streaming.seen import Seen
from unskew.spark.streaming.side_folder import SideFolder

COUNTS = "counts.json"
PLANS = "plans"  # a folder: what plan.txt held of late, by version, for people
PLANS_KNOWN = 4  # versions whose plans are kept in memory: that of a running batch, and those after it
PLANS_KEPT = 10  # versions whose plans are kept in the folder


class Loop:
    """What is known of the keys of one query, the plan that it uses, and the records of its batches."""

    def __init__(
        self,
        folder: SideFolder,
        scheme: str,
        parameters: dict[str, Any],
        workers: int,
        key_types: list[str],
        read: Callable[[Any, Any, dict[int, Plan]], Seen],
        *,
        alpha: float,
        most: int,
        keep: int,
    ) -> None:
        self._folder, self._scheme, self._parameters, self._workers = folder, scheme, parameters, workers
        self._key_types, self._read, self._most = key_types, read, most
        self._counts = FadingCounts(alpha)
        self._plans: dict[int, Plan] = {}  # by version
        self._version = 0
        self._names: dict[int, str] = {}  # of hot keys, as text
        self._recording = Recording(folder, scheme, workers, keep)
        self._known = False  # whether the query has been seen
        self._begin()

    def take(self, progress: Any, metrics: Any) -> None:
        """Make the next plan from what a micro-batch observed."""
        seen = self._read(progress, metrics, self._plans)
        if not self._recording.is_new(progress, seen):
            return
        if not self._known:
            self._known = True
            self._check_checkpoint(str(progress.id))
        if seen.version == NO_PLAN:
            warn(
                f"plan: batch {progress.batchId} found {self._folder.address_of(PLAN)} damaged or missing, and "
                "balanced its rows without it; it is written anew"
            )
        if seen.frequencies is not None:
            self._counts.add(seen.frequencies)
        self._names |= seen.names
        self._save_counts()  # first: else a restart in between would go back to the plan before
        self._replace_plan(rewrite=seen.version == NO_PLAN)
        self._forget_names()
        self._record(progress, seen)

    def _begin(self) -> None:
        """Go on from the files, or write the first ones."""
        line, counts = self._folder.read(PLAN), self._folder.read(COUNTS)
        version = version_in(line)
        if line is not None and version is None:
            warn(f"plan: {self._folder.address_of(PLAN)} is damaged, and is written anew from what was counted")
        kept = [int(name) for name in map(_stem, self._folder.names(PLANS)) if name.isdigit()]
        self._version = max([-1 if version is None else version, *kept])  # so that no number is given twice
        types = None if counts is None else _key_types_in(counts)
        known = types == self._key_types and self._counts.load(counts, self._workers)
        damaged = counts is not None and not known and types in (None, self._key_types)  # not those of other keys
        if damaged:
            warn(f"counts: {self._folder.address_of(COUNTS)} is damaged; keys are counted anew from the next batch on")
        going_on = self._go_on_with(line, version)
        if not (going_on and damaged):  # then nothing is known to make another plan of
            self._replace_plan(rewrite=not going_on)

    def _go_on_with(self, line: str | None, version: int | None) -> bool:
        """Whether the plan of the last line is known: a batch that was cut short then runs again with the same."""
        if version is None:
            return False
        try:
            plan = Plan.from_json(self._folder.read(_file_of(version)) or "")
        except InputError:
            return False
        cells = cells_for(self._most)
        if plan.workers != self._workers or line_of(cut_to_fit(plan, cells), version, cells) != line:
            return False
        self._plans[version] = plan
        self._names = {hot.key_id: str(hot.key) for hot in plan.hot_keys if hot.key}
        return True

    def _check_checkpoint(self, query: str) -> None:
        """Warn where the files are beside another checkpoint than the query's own."""
        if not self._folder.is_of(query):
            warn(
                f"checkpoint: {self._folder.root} is not that of the query that uses it. It adapts all the same; but "
                "give Adaptive the query's checkpointLocation, in full, so that it goes on after a restart"
            )

    def _replace_plan(self, rewrite: bool) -> None:
        made = make_plan(self._scheme, self._workers, self._counts.frequencies(), **self._parameters)
        plan = cut_to_fit(made, cells_for(self._most))
        before = self._plans.get(self._version)
        if rewrite or before is None or _places(before) != _places(plan):
            self._write_plan(plan)

    def _write_plan(self, plan: Plan) -> None:
        version = self._version + 1
        self._folder.write(PLAN, line_of(plan, version, cells_for(self._most)))
        self._version = version
        self._plans = dict([*self._plans.items(), (version, plan)][-PLANS_KNOWN:])
        named = tuple(hot._replace(key=self._names.get(hot.key_id, "")) for hot in plan.hot_keys)
        self._folder.write(_file_of(version), replace(plan, hot_keys=named).to_json())
        for name in sorted(self._folder.names(PLANS))[:-PLANS_KEPT]:
            self._folder.remove(f"{PLANS}/{name}")

    def _save_counts(self) -> None:
        self._folder.write(COUNTS, json.dumps({"key_types": self._key_types, **self._counts.to_json()}))

    def _record(self, progress: Any, seen: Seen) -> None:
        assert seen.version is not None  # of a batch that had rows
        plan = self._plans.get(seen.version)
        self._recording.write(
            progress,
            seen,
            plan=seen.version,
            next_plan=self._version,
            planned_max_over_mean=None if plan is None else round(plan.predicted_max_over_mean, 4),
            hot_keys=() if plan is None else tuple(self._shown(plan, hot) for hot in plan.hot_keys[:MOST_SHOWN]),
        )

    def _shown(self, plan: Plan, hot: HotKey) -> dict[str, Any]:
        """A hot key, and over how many workers it is dealt."""
        return {
            "key_id": f"{hot.key_id:016x}",
            "key": self._names.get(hot.key_id),
            "share": round(hot.share, 6),
            "workers": len(set(plan.workers_of(hot))),
        }

    def _forget_names(self) -> None:
        """Of keys that no plan knows any more."""
        hot = {hot.key_id for plan in self._plans.values() for hot in plan.hot_keys}
        self._names = {key: name for key, name in self._names.items() if key in hot}


class Taker(Protocol):
    """What hears of the micro-batches of a query."""

    def take(self, progress: Any, metrics: Any) -> None: ...


class Listener(StreamingQueryListener):  # type: ignore[misc]
    """Hands the observed metrics of each micro-batch to the loop whose they are. One per session."""

    def __init__(self) -> None:
        self.loops: dict[str, Taker] = {}

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  (Spark's name)
        for name, metrics in event.progress.observedMetrics.items():
            loop = self.loops.get(name)
            if loop is None:
                continue
            _heard.setdefault(str(event.progress.id), set()).add(name)
            try:
                loop.take(event.progress, metrics)
            except Exception as error:
                warn(f"plan: stays as it was after batch {event.progress.batchId}: {type(error).__name__}: {error}")

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass


_heard: dict[str, set[str]] = {}  # names of metrics by the query's id: Spark forgets them when a query is idle
_listeners: "WeakKeyDictionary[SparkSession, Listener]" = WeakKeyDictionary()


def listen(spark: SparkSession, name: str, loop: Taker) -> None:
    """From now on `loop` hears of the metrics called `name`, in the place of an earlier one."""
    listener = _listeners.get(spark)
    if listener is None:
        listener = _listeners[spark] = Listener()
        spark.streams.addListener(listener)
    listener.loops[name] = loop


def heard_of(query: str) -> set[str]:
    """The names of the metrics that the query with this id told of, if it is one of ours."""
    return _heard.get(query, set())


def _file_of(version: int) -> str:
    return f"{PLANS}/{version:012d}.json"


def _stem(name: str) -> str:
    return name.removesuffix(".json")


def _places(plan: Plan) -> list[Any]:
    return [plan.cold_salt, *((hot.key_id, hot.salts) for hot in plan.hot_keys)]


def _key_types_in(text: str) -> Any:
    """The types of the keys that counts were made for; None where that cannot be read."""
    try:
        return json.loads(text)["key_types"]
    except (KeyError, TypeError, ValueError):
        return None
