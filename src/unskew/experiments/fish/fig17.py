"""Fig. 17 (RQ4): a worker joins or leaves in the middle; candidates on a ring, and by hashing modulo W."""

from unskew.experiments.claims import verdict
from unskew.experiments.fish.pictures import Row, panels_by_skew
from unskew.experiments.fish.rules import SAME, Ratio, largest
from unskew.experiments.fish.setup import LONG, MOST, QUICK_SKEWS, Cell, Kinds, cells_of, jobs_of, zipf_streams
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.schemes.fish import Fish

RING, MODULO = "ring", "modulo"
KINDS: Kinds = {RING: Fish, MODULO: lambda workers: Fish(workers, virtual_nodes=0)}
CHANGES = {"joins": "add", "leaves": "remove 0"}
HALF_WAY = 1.5  # memory of modulo over ring: nearer to "twice" than to "the same"
LITTLE_SKEW = 1.2
LESS = 0.9  # less by so little is chance


def events(what: str, tuples: int) -> tuple[str, ...]:
    return (f"t={tuples // 2} {what}",)


def jobs(settings: Settings) -> list[Job]:
    streams = zipf_streams(settings, LONG, QUICK_SKEWS)
    changes = [(), *(events(what, next(iter(streams.values())).length or 0) for what in CHANGES.values())]
    return [job for change in changes for job in jobs_of("fig17", streams, (MOST,), KINDS, events=change)]


def _cells(outcomes: Outcomes, change: str | None) -> list[Cell]:
    """The cells where a worker joins or leaves; with None those where nothing happens."""
    ending = None if change is None else CHANGES[change]
    chosen = (outcome for outcome in outcomes if bool(outcome.job.events) == (ending is not None))
    return cells_of(
        Outcomes(outcome for outcome in chosen if ending is None or outcome.job.events[0].endswith(ending)), KINDS
    )


def _over(above: list[Cell], name: str, below: list[Cell], other: str) -> list[Ratio]:
    pairs = zip(above, below, strict=True)
    return [(cell.memory(name) / reference.memory(other), cell.place) for cell, reference in pairs]


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    still = _cells(outcomes, None)
    found = []
    for change in CHANGES:
        cells = _cells(outcomes, change)
        mild = [cell for cell in cells if cell.skew <= LITTLE_SKEW]
        ratios = _over(mild, MODULO, mild, RING)
        steady = _over(cells, RING, still, RING)
        found += [
            Finding(
                f"fig17-{change}",
                f"without consistent hashing memory is almost twice as much when a worker {change}, for low skew",
                "about 2x",
                "modulo over ring: " + ", ".join(f"{ratio:.2f} ({place})" for ratio, place in ratios),
                verdict(min(ratios)[0] >= HALF_WAY),
                f"Rule: at least {HALF_WAY:g} in every cell with z up to {LITTLE_SKEW:g}. Each key has new candidates "
                "after the change. It has twice the replicas only if it comes often enough, before and after, to be "
                "sent to all of them: the longer the stream, the nearer to two.",
            ),
            Finding(
                f"fig17-{change}-ring",
                f"with consistent hashing memory hardly grows when a worker {change}",
                "only a small portion of the keys is mapped anew",
                f"ring with the change over ring without: at most {largest(steady)}",
                verdict(max(steady)[0] <= SAME),
                f"Rule: at most {SAME:g} in every cell.",
            ),
        ]
    return [*found, _less_with_skew(outcomes)]


def _less_with_skew(outcomes: Outcomes) -> Finding:
    texts, holds = [], True
    for change in CHANGES:
        cells = _cells(outcomes, change)
        first, last = (choose(cell.skew for cell in cells) for choose in (min, max))
        for workers in dict.fromkeys(cell.workers for cell in cells):
            here = {cell.skew: cell.memory(MODULO) / cell.memory(RING) for cell in cells if cell.workers == workers}
            holds &= here[last] - 1 <= LESS * (here[first] - 1)
            texts.append(f"{change} W={workers}: {here[first]:.2f} at z={first}, {here[last]:.2f} at z={last}")
    return Finding(
        "fig17-skew",
        "on highly skewed streams memory increases less",
        "less; no numbers in the text",
        "modulo over ring: " + "; ".join(texts),
        verdict(holds),
        "Rule: for both changes, the extra memory of modulo over the ring is at least a tenth less at the largest "
        "skew than at the smallest.",
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    panels = {f"a worker {change}": _cells(outcomes, change) for change in CHANGES} | {
        "nothing happens": _cells(outcomes, None)
    }
    figure = panels_by_skew(panels, list(KINDS), [Row("memory, over FG", Cell.memory)])
    return [
        Picture(
            "fig17",
            figure,
            f"Memory of FISH at W = {MOST} when a worker joins or leaves half-way, its candidates found on a ring or "
            "by hashing modulo the number of workers.",
        )
    ]


EXPERIMENT = Experiment("fig17", "Figure 17: workers that come and go", jobs, claims, parts)
