"""A grid of simulations, run as one Spark job: one task per pass over a stream.

The whole list of jobs travels with the task's function; a task looks up its own by number, so nothing has to be
shuffled or stored. Results come back as rows of JSON. The dearest jobs start first, so that no core idles at the end.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.experiments.kept_passes import KeptPasses
from unskew.registry import lookup, registration_of
from unskew.simulate import Queues, Result, count_keys, simulate
from unskew.streams import Stream

POLL_SECONDS = 0.5
SKETCH = 5  # what it costs to look for hot keys, in choices
OF_WORKERS = (  # lists in a result
    "load",
    "samples",
    "capacity",
    "utilisation",
    "members",
    "events",
    "queue_samples",
    "messages",
    "work",
)


class Fit(NamedTuple):
    """An offline scheme that is yet to be made: the task counts the keys first."""

    name: str
    workers: int


class Job(NamedTuple):
    """One pass over one stream with any number of schemes, which may differ in workers."""

    experiment: str
    data: str  # the stream's short name, such as WP
    stream: Stream
    schemes: tuple[Any, ...]  # Scheme, or Fit for an offline one
    sources: int = 1
    feed: str = "round_robin"
    estimation: str = "local"
    oracle: bool = False
    replicas: bool = False
    samples: int = 1
    queues: Queues | None = None
    events: tuple[str, ...] = ()  # workers that come and go, as `simulate` takes them

    @property
    def cost(self) -> float:
        """A rough measure of the time it takes, in tuples routed."""
        each = sum(2 + getattr(scheme, "choices", 1) + SKETCH * hasattr(scheme, "counters") for scheme in self.schemes)
        return (self.stream.length or 1) * (2 + each * (1 + self.replicas + self.oracle))

    def read(self, values: dict[str, Any]) -> Result:
        """One of the results of `run` that became plain values on its way."""
        return Result.from_dict(values)

    def row(self, result: Result) -> dict[str, Any]:
        """One row of the results table: plain values, the parameters as JSON."""
        row = result.to_dict()
        shown = {name: row[name] for name in row if name not in ("params", *OF_WORKERS)}
        return {
            "experiment": self.experiment,
            "data": self.data,
            **shown,
            "params": json.dumps(result.params),
            "events": "; ".join(self.events),
        }

    def run(self) -> list[Result]:
        """Simulate, here and now."""
        return simulate(
            self.stream,
            _fitted(self.schemes, self.stream),
            sources=self.sources,
            feed=self.feed,
            estimation=self.estimation,
            oracle=self.oracle,
            replicas=self.replicas,
            samples=self.samples,
            queues=self.queues,
            events=self.events,
        )


def _fitted(schemes: Sequence[Any], stream: Stream) -> list[Scheme]:
    if not any(isinstance(scheme, Fit) for scheme in schemes):
        return list(schemes)
    counted = count_keys(stream)
    return [
        lookup(scheme.name).type.fit(scheme.workers, counted.key_ids, counted.counts)
        if isinstance(scheme, Fit)
        else scheme
        for scheme in schemes
    ]


def max_over_mean(result: Result) -> float:
    """The highest load over the mean load of a run that had tuples, as every run of a grid has."""
    if result.max_over_mean is None:
        raise ValueError(f"no tuple of {result.stream} was routed by {result.scheme}")
    return result.max_over_mean


class Outcome(NamedTuple):
    """A job, and the result of one of its schemes."""

    job: Job
    result: Result

    def flat(self) -> dict[str, Any]:
        """One row of the results table."""
        return self.job.row(self.result)

    def has(self, name: str, value: Any) -> bool:
        """Whether the job, the scheme's parameters or the result have this value under this name, the first of them."""
        for place in (self.job._asdict(), getattr(self.result, "params", {}), vars(self.result)):
            if name in place:
                return bool(place[name] == value)
        return False


class Outcomes(list[Outcome]):
    """All outcomes of an experiment, to select from."""

    def where(self, **values: Any) -> "Outcomes":
        """The outcomes that have all these values, of job, result or scheme parameters."""
        return Outcomes(outcome for outcome in self if all(outcome.has(name, value) for name, value in values.items()))

    def one(self, **values: Any) -> Result:
        """The first result of `where`; the grid has one."""
        found = self.where(**values)
        if not found:
            raise KeyError(f"the grid has no run with {values}")
        return found[0].result

    def of(self, scheme: Any, **values: Any) -> Result:
        """The result of this very scheme, with all its parameters."""
        return self.one(scheme=registration_of(scheme).name, **scheme._asdict(), **values)

    def results(self, **values: Any) -> list[Result]:
        """The results of `where`."""
        return [outcome.result for outcome in self.where(**values)]


def run_on_spark(spark: Any, jobs: Sequence[Job], progress: Callable[[int], None], kept: KeptPasses) -> Outcomes:
    """Run `jobs` as one Spark job on the session `spark`; `progress` gets the number of jobs done since its last call.

    Jobs whose results are `kept` are not run again, and those that are run are kept. Any session will do. Progress is
    finer where the session has a context to ask (not on Spark Connect).
    """
    found = kept.load(jobs)
    progress(len(found))
    order = sorted(set(range(len(jobs))) - set(found), key=lambda number: -jobs[number].cost)
    dearest_first = [jobs[number] for number in order]

    def tasks(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for place in batch.column(0).to_pylist():
                results = [result.to_dict() for result in dearest_first[place].run()]
                kept.keep(dearest_first[place], results)
                yield pa.RecordBatch.from_pydict({"place": [place], "results": [json.dumps(results)]})

    if order:
        frame = spark.range(0, len(order), 1, len(order)).mapInArrow(tasks, "place long, results string")
        rows = _collect(spark, frame, progress)
        found |= {order[row["place"]]: json.loads(row["results"]) for row in rows}
    return Outcomes(Outcome(job, job.read(values)) for number, job in enumerate(jobs) for values in found[number])


def _collect(spark: Any, frame: Any, progress: Callable[[int], None]) -> list[Any]:
    """Collect in the background, and report the tasks done meanwhile."""
    from unskew.spark import run_watched

    seen = 0

    def watch() -> None:
        nonlocal seen
        done = _tasks_done(spark)
        progress(max(0, done - seen))
        seen = max(seen, done)

    try:
        rows: list[Any] = run_watched(frame.collect, watch, POLL_SECONDS)
    except Exception as error:
        raise InputError(f"spark: the grid failed: {last_line(error)}") from error
    progress(len(rows) - seen)
    return rows


def _tasks_done(spark: Any) -> int:
    try:
        tracker = spark.sparkContext.statusTracker()
    except Exception:  # Spark Connect has no context; each of its versions refuses with another error
        return 0
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)


def last_line(error: Exception) -> str:
    """What Spark's long error is about."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if "Error:" in line and not line.startswith(("at ", "File "))]
    return (raised or lines or [type(error).__name__])[-1 if raised else 0]
