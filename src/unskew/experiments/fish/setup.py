"""What the experiments on FISH share: streams, schemes under the paper's names, and the cells of a grid.

Execution time is the makespan of a simulation with queues (paper, section 6.1): tuples arrive at the rate that all
workers together can execute, so whatever is unbalanced ends late. Memory is the number of (worker, key) pairs.

A makespan cannot see what the paper stresses, local imbalance (section 2.4): a queue that grows while a hot key goes
unnoticed is worked off later. Under back-pressure it can. A worker then holds at most `BOUND` tuples, and the stream
waits while the worker of its next tuple is full.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from unskew import Hash, PartialKey, Scheme, Shuffle
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Settings
from unskew.experiments.real import has_real, real_file
from unskew.schemes.d_choices import DChoices
from unskew.schemes.fish import Fish
from unskew.schemes.w_choices import WChoices
from unskew.simulate import Queues, Result
from unskew.streams import Drift, Evolving, Stream

WORKERS = (16, 32, 64, 128)
SKEWS = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
QUICK_WORKERS, QUICK_SKEWS = (16, 128), (1.0, 1.4, 2.0)
MOST = max(WORKERS)
KEYS = 100_000
TUPLES, QUICK_TUPLES = 5_000_000, 800_000
LONG = 50_000_000  # ZF by the paper's Table 2; memory depends on the length, so figures on memory have some such runs
RUNS = 10  # "the algorithms have been run 10 times with a different seed" (section 6.1): 10 x 5M are Table 2's 50M
TEN = ", ten rankings"
REAL = ("congress_hashtags", "stocknet_cashtags", "reddit_domains")  # the present ones stand in for MT and AM

# A worker executes 100 tuples per second. The unit matters only beside FISH's T = 10 s, which is then 1000 tuples of a
# worker; with one tuple per second (10 tuples) makespans were the same within 1 % and replicas within 3 % (1M tuples).
SPEED = 100.0
SATURATED = Queues(utilisation=1.0, capacity=SPEED)
BOUND = 10  # tuples at a worker, the one in work included: ours, and as local as windows of 10 tuples per worker
WIDER = (100, 1000)  # other bounds, to show what the bound changes
BACK_PRESSURE = Queues(utilisation=1.0, capacity=SPEED, bound=BOUND)
WITH_HEADROOM = Queues(utilisation=0.8, capacity=SPEED)  # for latencies, which have no limit in a saturated system

K_MAX = 1000  # counters of D-C and W-C in the paper's evaluation (section 2.3)
Kinds = Mapping[str, Callable[[int], Scheme]]  # a scheme's name in the reports -> the scheme for a number of workers
SG: Kinds = {"SG": Shuffle}
RIVALS: Kinds = {
    "PKG": PartialKey,
    "D-C": lambda workers: DChoices(workers, counters=K_MAX),
    "W-C": lambda workers: WChoices(workers, counters=K_MAX),
}
SIZED: Kinds = {"D-C sized": DChoices, "W-C sized": WChoices}  # counters by theta: 20 W
# As in the authors' public code: a key is hot if count + error is above 2/W of the tuples. FISH does not say which
# threshold it gives to D-C and W-C; by default they have 1/(5 W) here, which their paper recommends.
CODE: Kinds = {
    "D-C, 2/W": lambda workers: DChoices(workers, theta=2 / workers, counters=K_MAX, error_weight=1.0),
    "W-C, 2/W": lambda workers: WChoices(workers, theta=2 / workers, counters=K_MAX, error_weight=1.0),
}
CODE_100: Kinds = {  # with the 100 counters that the public code has too
    "D-C, 2/W, 100 counters": lambda workers: DChoices(workers, theta=2 / workers, counters=100, error_weight=1.0),
    "W-C, 2/W, 100 counters": lambda workers: WChoices(workers, theta=2 / workers, counters=100, error_weight=1.0),
}
# The paper does not say what f_k is a share of. FISH: of at least N_epoch tuples. The other reading: of what the
# counters sum to, which is 250 after each decay.
FISH: Kinds = {"FISH": lambda workers: Fish(workers, whole_epoch=True)}
OF_COUNTERS = ", share of counters"
COUNTERS = f"FISH{OF_COUNTERS}"
BOTH_FISH: Kinds = {**FISH, COUNTERS: lambda workers: Fish(workers, whole_epoch=False)}
SHARE_READING = (
    "f_k is a share of max(sum of the counters, N_epoch): after a decay the counters sum to 250, and a single tuple "
    "would be a share above theta. The paper does not say what f_k is a share of."
)
BY_BACK_PRESSURE = (
    f"Execution time is that under back-pressure, where a worker holds at most {BOUND} tuples (ours): by the makespan "
    "with endless queues the claim could not fail."
)
ALL: Kinds = {**SG, "FG": Hash, **RIVALS, **SIZED, **BOTH_FISH}
LOCAL: Kinds = {**SG, **RIVALS, **SIZED, **CODE, **FISH}  # those compared under back-pressure


def zipf_streams(
    settings: Settings, tuples: int = TUPLES, skews: tuple[float, ...] = SKEWS, kind: str = ""
) -> dict[str, Evolving]:
    """The paper's ZF for each exponent, by name; of another `kind` the name says so."""
    length = settings.tuples(tuples, QUICK_TUPLES)
    return {f"z={z}{kind}": Evolving(z, KEYS, length, settings.seed) for z in settings.pick(skews, QUICK_SKEWS)}


def ten_rankings(settings: Settings) -> dict[str, Drift]:
    """ZF as ten runs of 5M tuples, each with a ranking of its own: every tenth the hottest 10,000 keys go cold."""
    length = settings.tuples(LONG, QUICK_TUPLES)
    return {
        f"z={z}{TEN}": Drift(z, KEYS, length, every=length // RUNS, step=KEYS // RUNS, seed=settings.seed)
        for z in QUICK_SKEWS
    }


def real_streams(settings: Settings) -> dict[str, Stream]:
    """Those of the real streams that are present."""
    return {name: real_file(name, settings) for name in REAL if has_real(name, settings)}


def sizes(settings: Settings) -> tuple[int, ...]:
    """The numbers of workers."""
    chosen: tuple[int, ...] = settings.pick(WORKERS, QUICK_WORKERS)
    return chosen


def jobs_of(
    experiment: str, streams: Mapping[str, Stream], workers: tuple[int, ...], kinds: Kinds, **more: Any
) -> list[Job]:
    """One job for each stream and number of workers, with all `kinds` of schemes."""
    options: dict[str, Any] = {"queues": SATURATED, "replicas": True} | more
    return [
        Job(experiment, name, stream, tuple(kind(w) for kind in kinds.values()), **options)
        for name, stream in streams.items()
        for w in workers
    ]


class Cell(NamedTuple):
    """All schemes on one stream with one number of workers."""

    data: str
    workers: int
    of: dict[str, Result]

    @property
    def place(self) -> str:
        return f"{self.data} W={self.workers}"

    @property
    def skew(self) -> float:
        return float(self.data.removeprefix("z=").partition(",")[0])

    def makespan(self, name: str) -> float:
        return self.of[name].makespan or 0.0

    def time(self, name: str) -> float:
        """Execution time, over that of SG."""
        return self.makespan(name) / self.makespan("SG")

    def gain(self, other: str, name: str) -> float:
        """How many times as long as `name` the scheme `other` takes."""
        return self.makespan(other) / self.makespan(name)

    def local(self, name: str) -> float:
        """Highest load of windows of 10 tuples per worker, on average, over that of SG; 1 where no window was whole."""
        return (self.of[name].local_max_over_mean or 1.0) / (self.of["SG"].local_max_over_mean or 1.0)

    def latency(self, name: str, which: str = "latency_p99") -> float:
        """The 99th percentile of the latency, or another, in service times of a tuple."""
        return (getattr(self.of[name], which) or 0.0) * SPEED

    def memory(self, name: str) -> float:
        """Replicas, over those of FG, which has one of each key."""
        return self.of[name].replicas_over_kg or 0.0


def cells_of(outcomes: Outcomes, kinds: Kinds) -> list[Cell]:
    """The cells of the grid that `jobs_of` makes."""
    places = dict.fromkeys((outcome.job.data, outcome.result.workers) for outcome in outcomes)
    found = []
    for data, workers in places:
        here = outcomes.where(data=data, workers=workers)
        found.append(Cell(data, workers, {name: here.of(kind(workers)) for name, kind in kinds.items()}))
    return found


def queued(outcomes: Outcomes, queues: Queues) -> Outcomes:
    """The outcomes of runs with these queues."""
    return Outcomes(outcome for outcome in outcomes if outcome.job.queues == queues)


def of_kind(outcomes: Outcomes, kind: str) -> Outcomes:
    """The outcomes on streams of a kind, such as TEN; without one, on ZF itself."""
    return Outcomes(outcome for outcome in outcomes if outcome.job.data.partition(",")[2] == kind.removeprefix(","))


def shares(z: float, keys: int = KEYS) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Of the keys of a Zipf stream, the most frequent first."""
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -z
    return weights / weights.sum()


def expected_sg_memory(z: float, tuples: float, workers: int, keys: int = KEYS) -> float:
    """Replicas of SG over those of FG on ZF, as if each tuple went to a random worker."""
    hot = shares(z, keys)
    of_each_key = tuples * (0.8 * hot + 0.2 * hot[::-1])
    replicas = workers * -np.expm1(-of_each_key / workers)
    return float(replicas.sum() / -np.expm1(-of_each_key).sum())
