"""What the demo measures of each grouping, and how it is told, in the terminal and on the page."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from unskew.cli.demo_words import Words

LABELS = {"hash": "plain hash", "shuffle": "round robin", "pkg": "PKG", "fanout": "unskew"}
ROWS_GO = {
    "hash": "each word on one worker",
    "shuffle": "rows in turns",
    "pkg": "each word on one or two",
    "fanout": "hot words on just enough",
}
HEAVY = 1.2  # times the mean: from here on a worker is drawn in red


class Outcome(NamedTuple):
    """One grouping, measured. Times are in seconds from the beginning of the job."""

    scheme: str
    load: list[int]  # rows of each worker
    started: list[float]
    ended: list[float]
    replicas: int  # (worker, word) pairs that held a part of a count
    planning: float  # seconds for counting the hot words and making the plan
    seconds: float  # of the whole job

    @property
    def label(self) -> str:
        return LABELS[self.scheme]

    @property
    def mean(self) -> float:
        """Rows of a worker on average."""
        return sum(self.load) / len(self.load)

    @property
    def busy(self) -> list[float]:
        """Seconds that each worker worked."""
        return [end - start for start, end in zip(self.started, self.ended, strict=True)]

    @property
    def max_over_mean(self) -> float:
        return max(self.load) / self.mean

    @property
    def longest_over_mean(self) -> float:
        """The same for the measured time of the workers."""
        return max(self.busy) * len(self.busy) / sum(self.busy)

    @property
    def working(self) -> float:
        """Seconds from the start of the first worker to the end of the last."""
        return max(self.ended) - min(self.started)

    def to_dict(self) -> dict[str, Any]:
        """As in the demo's JSON."""
        found = self._asdict() | {
            "label": self.label,
            "max_over_mean": self.max_over_mean,
            "longest_over_mean": self.longest_over_mean,
            "working": self.working,
        }
        times = ("started", "ended", "planning", "seconds", "working")
        return found | {name: _rounded(found[name]) for name in times}


def _rounded(value: Any) -> Any:
    return [round(each, 3) for each in value] if isinstance(value, list) else round(value, 3)


def summary(outcomes: Sequence[Outcome]) -> tuple[list[str], list[list[str]]]:
    """The table of the terminal and the page: one column per grouping."""
    rest = [o.seconds - o.planning - o.working for o in outcomes]
    rows = [
        ["time, measured", *(f"{o.seconds:.1f} s" for o in outcomes)],
        ["- counting and plan", *(f"{o.planning:.1f} s" if o.planning else "-" for o in outcomes)],
        ["- workers at work", *(f"{o.working:.1f} s" for o in outcomes)],
        ["- shuffle and merge", *(f"{max(0.0, seconds):.1f} s" for seconds in rest)],
        ["longest worker / mean", *(f"{o.longest_over_mean:.2f}" for o in outcomes)],
        ["most rows / mean", *(f"{o.max_over_mean:.2f}" for o in outcomes)],
        ["replicas", *(f"{o.replicas:,}" for o in outcomes)],
    ]
    return ["", *(o.label for o in outcomes)], rows


class Told(NamedTuple):
    """The demo in sentences."""

    stream: str
    work: str
    finding: str
    checked: str
    limits: str


def tell(outcomes: Sequence[Outcome], words: Words, row_cost: float) -> Told:
    by_hash, robin, _, ours = outcomes
    workers, tuples, distinct = len(by_hash.load), sum(by_hash.load), len(words.counts)
    fair = 2 / workers
    enough = "is enough here" if words.hottest <= fair else "is not enough here"
    return Told(
        f"{tuples:,} words, {distinct:,} different ones, over {workers} workers. The hottest word is "
        f"{words.hottest:.0%} of the stream. Real streams are like that: 21% of the links on Reddit lead to one "
        "domain.",
        f"Every row takes {1000 * row_cost:g} ms, which a worker spends asleep. It stands for work that is expensive "
        f"per row, such as a model or a call to a service, on {workers} machines: sleeping lets {workers} workers run "
        f"side by side on the {os.cpu_count()} cores of this one. All times are measured, from the first line of the "
        "job to the merged counts.",
        f"By plain hash, Spark's own df.repartition({workers}, 'word'), the longest worker takes "
        f"{by_hash.longest_over_mean:.1f} times the mean, and the job waits for it. Round robin is even, but leaves a "
        f"part of the count of each word in {robin.replicas / distinct:.1f} places on average: cheap for a count, "
        f"dear for a big state. PKG gives a word two workers. That is enough while no word has more than "
        f"2/{workers} = {fair:.1%} of the stream, so it {enough}. unskew's default, fanout, counts the hot words "
        f"first, {ours.planning:.1f} s of its {ours.seconds:.1f} s, and gives each as many workers as it needs: "
        f"{by_hash.seconds / ours.seconds:.1f} times as fast as plain hash, with {ours.replicas / distinct:.2f} places "
        "per word.",
        "All four gave the same counts, and they are the stream's own: checked word by word.",
        "For a plain count you need none of this: Spark's groupBy().count() adds up before the shuffle and is faster "
        "than all four. This is what happens to work that cannot be added up first: expensive Python for each row, "
        "models or big state for each key, stateful streams. The cheaper a row, the less there is to gain: counting, "
        "plan, shuffle and merge take as long as before.",
    )
