"""Fig. 9 (Q4): more than two choices, on a stream too skewed for two (ZF, z = 1.2, K = 1M)."""

from unskew import PartialKey
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.experiments.pkg.data import BALANCED, drawable, zipf
from unskew.experiments.pkg.fig7 import p1
from unskew.experiments.spread import spread_of
from unskew.experiments.words import median, percent
from unskew.plots import COLOURS, new_figure

CHOICES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 75, 100)
QUICK_CHOICES = (2, 3, 4, 5, 7, 9, 12, 20, 40)
WORKERS = (5, 10, 20, 40, 50, 100)
SMALL = (5, 10)  # below 2/p1
Z, KEYS = 1.2, 1_000_000
A_FEW_TENS = 50
MANY = 40  # hash functions for two choices at the fewest workers, where luck decides
FEWEST = 10  # choices that are tried at every W; beyond, no more than there are workers


def jobs(settings: Settings) -> list[Job]:
    stream = zipf(Z, KEYS, settings, quick=300_000)
    choices = settings.pick(CHOICES, QUICK_CHOICES)
    seeds = settings.pick(5, 3)
    more = tuple(PartialKey(workers, 2, seed) for workers in SMALL for seed in range(seeds, MANY))
    return [
        *(
            Job("fig9", "ZF", stream, tuple(PartialKey(workers, d, seed) for d in choices if d <= max(workers, FEWEST)))
            for workers in WORKERS
            for seed in range(seeds)
        ),
        Job("fig9", "ZF", stream, more),
    ]


def _fractions(outcomes: Outcomes, workers: int) -> dict[int, list[float]]:
    """Choices -> I(m)/m of each hash function."""
    found: dict[int, list[float]] = {}
    for result in outcomes.results(workers=workers):
        found.setdefault(result.params["choices"], []).append(result.imbalance_fraction)
    return dict(sorted(found.items()))


def _fewest(outcomes: Outcomes, workers: int) -> int | None:
    """The fewest choices with which the median hash function is balanced."""
    for choices, values in _fractions(outcomes, workers).items():
        if 1 + median(values) * workers <= BALANCED:
            return choices
    return None


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    share = p1(Z, KEYS)
    fewest = {workers: _fewest(outcomes, workers) for workers in WORKERS}
    needed = {workers: share * workers for workers in WORKERS}
    two = {workers: spread_of(1 + value * workers for value in _fractions(outcomes, workers)[2]) for workers in WORKERS}

    def restored(workers: int, printed: int) -> Finding:
        count = fewest[workers]
        lucky = _fractions(outcomes, workers)[printed]
        good = sum(1 + value * workers <= BALANCED for value in lucky)
        return Finding(
            f"fig9-{workers}",
            f"{printed} choices restore balance with {workers} workers",
            f"d = {printed}",
            f"{good} of {len(lucky)} hash functions balance with d = {printed}; the median one from d = {count} on",
            verdict(count is not None and count <= printed),
            f"Rule: with at most {printed} choices the busiest worker of the median hash function is within 1 % of the "
            f"mean. No scheme can do with fewer than p1 * W = {needed[workers]:.1f} workers for the hottest key.",
        )

    return [
        Finding(
            "fig9-two",
            "with z = 1.2 two choices lead to high imbalance regardless of the number of workers",
            "all W",
            "busiest worker over mean: "
            + "; ".join(
                f"W={w}: {values.text()}, {values.count(lambda height: height > BALANCED)} not balanced"
                for w, values in two.items()
            ),
            verdict(all(values.mean > BALANCED for values in two.values())),
            "Rule: at every W the busiest worker has more than 1 % above the mean on average over hash functions: who "
            "runs a stream gets one of them, and does not know which. (An earlier rule took the median, which hides "
            f"that a third of them are unbalanced at W=5.) p1 = {percent(share, 1)} exceeds 2/W only from W = "
            f"{int(2 / share) + 1} on; below, an imbalance needs bad luck with the hash functions.",
        ),
        restored(5, 4),
        restored(40, 9),
        Finding(
            "fig9-many",
            "with 50 or 100 workers a few tens of choices lower the imbalance",
            "a few tens",
            "; ".join(f"W={w}: balanced from d = {fewest[w] or 'none tried'} on" for w in (50, 100)),
            verdict(all((fewest[w] or 10**9) <= A_FEW_TENS for w in (50, 100))),
            f"Rule: the median hash function is balanced with at most {A_FEW_TENS} choices.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    figure = new_figure(7.5, 4.2)
    axis, tuples = figure.subplots(), outcomes[0].result.tuples
    for colour, workers in zip(COLOURS, WORKERS, strict=False):
        line = _fractions(outcomes, workers)
        middle = [drawable(median(values), tuples) for values in line.values()]
        axis.plot(list(line), middle, color=colour, marker="o", markersize=4, label=f"{workers} workers")
    axis.set(xscale="log", yscale="log", xlabel="choices d", ylabel="I(m) / m")
    ticks = [2, 4, 9, 20, 50, 100]
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.grid(alpha=0.25)
    axis.legend(frameon=False)
    return [
        Picture(
            "fig9",
            figure,
            "Imbalance as a share of all tuples when each key may go to d workers (ZF, z = 1.2, one million keys, "
            f"the hottest with {percent(p1(Z, KEYS), 0)} of the tuples; median over hash functions). Each number of "
            "workers has its step: from there on d workers together can carry the hottest key.",
        )
    ]


EXPERIMENT = Experiment("fig9", "Figure 9: more than two choices", jobs, claims, parts)
