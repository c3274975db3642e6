"""Section 5.1: as many keys as workers leave some workers without any key; Theorem 5.1, with 5 keys per worker."""

from unskew import PartialKey
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes, max_over_mean
from unskew.experiments.paper import Experiment, Finding, Part, Settings, Table
from unskew.experiments.spread import spread_of
from unskew.experiments.words import percent
from unskew.simulate import Result
from unskew.streams import Zipf

SIZES = (100, 1_000)  # workers, and keys
SEEDS = 20
TUPLES = 1_000_000
PRINTED_IDLE = 0.135
PRINTED_IMBALANCE = 0.156
BINS = (10, 100, 1_000)  # n of Theorem 5.1; m >= n^2
THEOREM = "Theorem 5.1, n="
CONSTANT = 1.0  # what we take for the O of O(m/n): the theorem names none


def jobs(settings: Settings) -> list[Job]:
    return [
        Job("section5", f"uniform over {size} keys", Zipf(0, size, TUPLES, seed=settings.seed),
            tuple(PartialKey(size, seed=seed) for seed in range(SEEDS)))
        for size in SIZES
    ] + [
        Job("section5", f"{THEOREM}{n}", Zipf(0, 5 * n, TUPLES, seed=settings.seed),
            tuple(PartialKey(n, choices, seed) for choices in (1, 2) for seed in range(SEEDS)))
        for n in BINS
    ]  # fmt: skip


def _idle(outcomes: Outcomes, size: int) -> list[float]:
    return [result.load.count(0) / size for result in _uniform(outcomes, size)]


def _uniform(outcomes: Outcomes, size: int) -> list[Result]:
    """The runs with as many keys as workers."""
    return outcomes.results(data=f"uniform over {size} keys")


def _theorem(outcomes: Outcomes) -> Finding:
    heights = {
        (d, n): spread_of(r.imbalance_fraction * n for r in outcomes.results(data=f"{THEOREM}{n}", choices=d))
        for d in (1, 2)
        for n in BINS
    }
    bounded = all(heights[2, n].most <= CONSTANT for n in BINS)
    grows = all(heights[1, few].mean < heights[1, many].mean for few, many in zip(BINS, BINS[1:], strict=False))
    above = all(heights[1, n].mean > heights[2, n].mean for n in BINS)
    return Finding(
        "section5-theorem",
        "Theorem 5.1: with p1 <= 1/(5n) and m >= n^2 the imbalance of Greedy-d is O(m/n) for d = 2, and for d = 1 it "
        "may grow as m/n ln n / ln ln n",
        "O(m/n), and tight for 5 n uniform keys",
        "I(m) over m/n, 5 n uniform keys: "
        + "; ".join(f"d={d} n={n}: {values.text()}" for (d, n), values in heights.items()),
        verdict(bounded and grows and above),
        f"Rule: with d = 2, I(m) is at most {CONSTANT:g} m/n for every n and hash function; with d = 1 it is larger, "
        "and its mean grows with n.",
    )


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    idle = {size: _idle(outcomes, size) for size in SIZES}
    means = {size: sum(values) / len(values) for size, values in idle.items()}
    lowest = {size: min(result.imbalance_fraction for result in _uniform(outcomes, size)) for size in SIZES}
    return [
        Finding(
            "section5-idle",
            "uniform keys over n = W keys leave about 13.5 % of the workers without any key (two choices)",
            "0.135 n",
            "; ".join(
                f"n={n}: {percent(means[n], 1)} on average ({percent(min(v), 1)} to {percent(max(v), 1)})"
                for n, v in idle.items()
            ),
            # n = 100 varies by 2.3 points per hash function, so by 0.5 over 20 of them: one point is two of these
            verdict(all(abs(mean - PRINTED_IDLE) <= 0.01 for mean in means.values())),
            f"Rule: the average over {SEEDS} hash functions is within one percentage point.",
        ),
        Finding(
            "section5-imbalance",
            "the imbalance after m balls will be at least m/(0.865 n) - m/n, about 0.156 m",
            "0.156 m",
            "; ".join(f"n={n}: I(m) from {value:.4f} m, that is {value * n:.2f} m/n" for n, value in lowest.items()),
            verdict(all(value >= PRINTED_IMBALANCE for value in lowest.values())),
            "Rule: I(m) is at least 0.156 m for every hash function. It is a slip of the pen: m/(0.865 n) - m/n is "
            "0.156 m/n, and that bound holds for the average number of idle workers.",
        ),
        _theorem(outcomes),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    rows = []
    for size in SIZES:
        idle = _idle(outcomes, size)
        heights = [max_over_mean(result) for result in _uniform(outcomes, size)]
        rows.append(
            [
                f"{size:,}",
                percent(sum(idle) / len(idle), 1),
                percent(min(idle), 1),
                percent(max(idle), 1),
                f"{sum(heights) / len(heights):.2f}",
            ]
        )
    caption = f"As many uniform keys as workers: share of workers that no key can reach, over {SEEDS} hash functions."
    return [Table(caption, ["workers = keys", "idle, mean", "least", "most", "busiest worker over mean"], rows)]


EXPERIMENT = Experiment("section5", "Section 5.1: why p1 below 2/W is not enough", jobs, claims, parts)
