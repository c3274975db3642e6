"""Beyond the paper: all schemes on real streams, and where PKG loses."""

from unskew import Hash, OnGreedy, PartialKey, Shuffle, StaticPotc
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Fit, Job, Runs
from unskew.experiments.paper import Experiment, Finding, Part, Settings, Table, not_testable
from unskew.experiments.pkg.data import REAL, SLASHDOT, WORKERS, absent, has_real, median, percent, real

STREAMS = (SLASHDOT, *REAL)
SHOWN_WORKERS = (10, 50)
SCHEMES = ("hash", "potc", "on_greedy", "off_greedy", "pkg", "shuffle")
# Section 5.1 gives the load of the hottest key's workers; the rest is luck with collisions. A tenth more than predicted
# would be a straggler that an operator notices.
OFF = 1.1


def jobs(settings: Settings) -> list[Job]:
    made = []
    for name in STREAMS:
        if has_real(name, settings):
            stream = real(name, settings)
            schemes = tuple(
                scheme
                for w in settings.pick(SHOWN_WORKERS, SHOWN_WORKERS[1:])
                for scheme in (Hash(w), StaticPotc(w), OnGreedy(w), Fit("off_greedy", w), PartialKey(w), Shuffle(w))
            )
            made.append(Job("real", name, stream, schemes, replicas=True))
            again = tuple(PartialKey(w, seed=seed) for w in WORKERS for seed in range(settings.pick(5, 3)))
            made.append(Job("real", name, stream, again))
    return made


def predicted(p1: float, workers: int) -> float:
    """The busiest worker over the mean if only the hottest key matters: its two workers get p1/2 each."""
    return max(1.0, p1 * workers / 2)


def _heights(runs: Runs, name: str) -> tuple[float, dict[int, list[float]]]:
    """(p1, workers -> PKG's busiest worker over the mean for each hash function) on one stream."""
    here = runs.where(data=name)
    p1 = max(run.result.p1 or 0.0 for run in here)
    again = [run.result for run in here if not run.job.replicas]
    return p1, {w: sorted(run.max_over_mean for run in again if run.workers == w) for w in WORKERS}


def claims(runs: Runs, settings: Settings) -> list[Finding]:
    found = []
    for name in STREAMS:
        text = (
            f"real-{name}",
            f"PKG's load on the real stream {name} is balanced until W exceeds 2/p1, then ruled by the hottest key "
            "(section 5.1)",
            "busiest worker over mean = max(1, p1 W / 2)",
        )
        if not has_real(name, settings):
            found.append(not_testable(*text, absent(name)))
            continue
        p1, heights = _heights(runs, name)
        found.append(
            Finding(
                *text,
                f"p1 {percent(p1)}; "
                + "; ".join(
                    f"W={w}: {median(v):.2f} ({v[0]:.2f} to {v[-1]:.2f}), predicted {predicted(p1, w):.2f}"
                    for w, v in heights.items()
                ),
                verdict(all(median(v) <= OFF * predicted(p1, w) for w, v in heights.items())),
                "Rule: at every W the median over hash functions is at most a tenth above the prediction. "
                + _where_it_loses(p1, heights),
            )
        )
    return found


def _where_it_loses(p1: float, heights: dict[int, list[float]]) -> str:
    """An honest sentence on one stream."""
    lost = {w: median(v) for w, v in heights.items() if median(v) > OFF}
    if not lost:
        return "PKG loses nowhere here: two choices suffice for every W tried."
    hot = [w for w in lost if p1 * w > 2]
    unlucky = [w for w in lost if p1 * w <= 2]
    sentences = []
    if unlucky:
        shown = " and ".join(f"{lost[w]:.2f} times the mean at W={w}" for w in unlucky)
        sentences.append(f"No key alone is too hot up to W = {2 / p1:.0f}, but hot keys share workers: {shown}.")
    if hot:
        sentences.append(
            f"PKG loses from W = {hot[0]} on: at W={hot[-1]} the hottest key would need {p1 * hot[-1]:.1f} workers "
            f"and has two, so the busiest gets {lost[hot[-1]]:.1f} times the mean."
        )
    return " ".join(sentences)


def parts(runs: Runs, settings: Settings) -> list[Part]:
    made: list[Part] = []
    for name in dict.fromkeys(run.job.data for run in runs):
        here = runs.where(data=name)
        first = here[0].result
        shown_workers = list(dict.fromkeys(run.result.workers for run in here if run.job.replicas))
        rows = []
        for scheme in SCHEMES:
            row: list[object] = [scheme]
            for workers in shown_workers:
                run = here.one(scheme=scheme, workers=workers)
                row += [
                    f"{run.max_over_mean:.3f}",
                    f"{run.replicas_over_kg:.3f}",
                    f"{run.replicas_over_lower_bound:.3f}",
                ]
            rows.append(row)
        made.append(
            Table(
                f"{name}: {first.messages:,} messages, {first.keys:,} keys, p1 {percent(first.p1)}. "
                f"{_where_it_loses(*_heights(runs, name))}",
                [
                    "scheme",
                    *(
                        f"W={w}: {column}"
                        for w in shown_workers
                        for column in ("max / mean load", "replicas over KG", "replicas over bound")
                    ),
                ],
                rows,
            )
        )
    bound = "The bound is the fewest replicas with which perfect balance is possible at all: ceil(p W) for each key."
    return [*made, bound] if made else ["No real stream was found; name their folder with --data."]


EXPERIMENT = Experiment("real", "Beyond the paper: real streams", jobs, claims, parts)
