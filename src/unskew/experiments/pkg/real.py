"""Beyond the paper: all schemes on real streams, and where PKG loses."""

from unskew import Hash, OnGreedy, PartialKey, Shuffle, StaticPotc
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Fit, Job, Runs
from unskew.experiments.paper import Experiment, Finding, Part, Settings, Table, not_testable
from unskew.experiments.pkg.data import REAL, SLASHDOT, WORKERS, Shuffled, absent, has_real, median, percent, real

STREAMS = (SLASHDOT, *REAL)
SHOWN_WORKERS = (10, 50)
SCHEMES = ("hash", "potc", "on_greedy", "off_greedy", "pkg", "shuffle")
# Section 5.1 gives the load of the hottest key's workers; the rest is luck with collisions. A tenth more than predicted
# would be a straggler that an operator notices.
OFF = 1.1
SHUFFLED = ", shuffled"


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
            made += [Job("real", name, stream, again), Job("real", name + SHUFFLED, Shuffled(stream), again)]
    return made


def predicted(p1: float, workers: int) -> float:
    """The busiest worker over the mean if only the hottest key matters: its two workers get p1/2 each."""
    return max(1.0, p1 * workers / 2)


Heights = dict[int, list[float]]  # workers -> PKG's busiest worker over the mean, for each hash function


def _heights(runs: Runs, name: str) -> tuple[float, Heights, Heights]:
    """(p1, heights in the stream's own order, heights of the shuffled stream)."""
    p1 = max(run.result.p1 or 0.0 for run in runs.where(data=name))
    again = runs.where(replicas=False)
    ordered, shuffled = (
        {w: sorted(run.max_over_mean for run in again.results(data=data, workers=w)) for w in WORKERS}
        for data in (name, name + SHUFFLED)
    )
    return p1, ordered, shuffled


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
        p1, heights, shuffled = _heights(runs, name)
        found.append(
            Finding(
                *text,
                f"p1 {percent(p1)}; "
                + "; ".join(
                    f"W={w}: {median(v):.2f} ({v[0]:.2f} to {v[-1]:.2f}), shuffled {median(shuffled[w]):.2f}, "
                    f"predicted {predicted(p1, w):.2f}"
                    for w, v in heights.items()
                ),
                verdict(all(median(v) <= OFF * predicted(p1, w) for w, v in heights.items())),
                "Rule: at every W the median over hash functions is at most a tenth above the prediction. "
                + _where_it_loses(p1, heights, shuffled),
            )
        )
    return found


def _where_it_loses(p1: float, ordered: Heights, shuffled: Heights) -> str:
    """An honest sentence on one stream: too hot a key, keys hot for a while only, or hot keys that share workers."""
    lost = {w: median(values) for w, values in ordered.items() if median(values) > OFF}
    if not lost:
        return "PKG loses nowhere here: two choices suffice for every W tried."
    above = [w for w in lost if lost[w] > OFF * predicted(p1, w)]
    drift = [w for w in above if median(shuffled[w]) <= OFF * predicted(p1, w)]
    sentences = []
    if hot := [w for w in lost if p1 * w > 2]:
        sentences.append(
            f"PKG loses from W = {hot[0]} on: at W={hot[-1]} the hottest key would need {p1 * hot[-1]:.1f} workers and "
            f"has two, so the busiest gets {lost[hot[-1]]:.1f} times the mean."
        )
    if drift:
        sentences.append(
            f"At W = {_listed(drift)} it is worse than p1 explains because of drift: a key that is hot for a while "
            "comes on top of what its two workers already have. Shuffled, the same keys fit the prediction."
        )
    if shared := [w for w in above if w not in drift]:
        sentences.append(f"At W = {_listed(shared)} it is worse than p1 explains because hot keys share workers.")
    return " ".join(sentences)


def _listed(numbers: list[int]) -> str:
    return " and ".join(map(str, numbers))


def parts(runs: Runs, settings: Settings) -> list[Part]:
    made: list[Part] = []
    for name in dict.fromkeys(run.job.data for run in runs if run.job.replicas):
        here = Runs(run for run in runs.where(data=name) if run.job.replicas)
        first = here[0].result
        shown_workers = list(dict.fromkeys(run.result.workers for run in here))
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
