"""Section 5.1: as many keys as workers, all equally frequent, leave some workers without any key."""

from unskew import PartialKey
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes, max_over_mean
from unskew.experiments.paper import Experiment, Finding, Part, Settings, Table
from unskew.experiments.words import percent
from unskew.streams import Zipf

SIZES = (100, 1_000)  # workers, and keys
SEEDS = 20
TUPLES = 1_000_000
PRINTED_IDLE = 0.135
PRINTED_IMBALANCE = 0.156


def jobs(settings: Settings) -> list[Job]:
    return [
        Job("section5", f"uniform over {size} keys", Zipf(0, size, TUPLES, seed=settings.seed),
            tuple(PartialKey(size, seed=seed) for seed in range(SEEDS)))
        for size in SIZES
    ]  # fmt: skip


def _idle(outcomes: Outcomes, size: int) -> list[float]:
    return [result.load.count(0) / size for result in outcomes.results(workers=size)]


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    idle = {size: _idle(outcomes, size) for size in SIZES}
    means = {size: sum(values) / len(values) for size, values in idle.items()}
    lowest = {size: min(result.imbalance_fraction for result in outcomes.results(workers=size)) for size in SIZES}
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
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    rows = []
    for size in SIZES:
        idle = _idle(outcomes, size)
        heights = [max_over_mean(result) for result in outcomes.results(workers=size)]
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
