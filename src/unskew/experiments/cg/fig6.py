"""Fig. 6 (Q1): epsilon trades imbalance for memory, between shuffling and hashing to the virtual workers.

The figure is about the assignment to virtual workers alone: none of them moves. That workers have a capacity, of which
they use 80 %, comes in only with Fig. 9.
"""

from typing import Any

from unskew.experiments.cg.cluster import grouping
from unskew.experiments.cg.setup import NOBODY_ASKS, shown, wikipedia, wp_label
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes, max_over_mean
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.experiments.spread import Spread, seeded, spread_of
from unskew.plots import COLOURS, new_figure
from unskew.schemes.cg import ConsistentGrouping

WORKERS = 10
EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # the paper's values are not legible in the text
SEEDS = 3  # hash functions
PORC = {epsilon: grouping(WORKERS, epsilon=epsilon, **NOBODY_ASKS) for epsilon in EPSILONS}
HASHED = grouping(WORKERS, epsilon=float("inf"), **NOBODY_ASKS)
SHUFFLED = grouping(WORKERS, keyed=False, **NOBODY_ASKS)
ENDS = {"KG": HASHED, "SG": SHUFFLED}


def jobs(settings: Settings) -> list[Job]:
    stream = wikipedia(settings)
    schemes = [s for scheme in (*PORC.values(), HASHED) for s in seeded(scheme, SEEDS)]
    return [
        Job("fig6", "WP", stream, group, replicas=True) for group in (tuple(schemes[::2]), tuple(schemes[1::2]))
    ] + [Job("fig6", "WP", stream, (SHUFFLED,), replicas=True)]


def _imbalance(outcomes: Outcomes, scheme: ConsistentGrouping) -> Spread:
    """Of the workers, at the end; an imbalance of less than one tuple counts as one."""
    results = _results(outcomes, scheme)
    return spread_of(max(max_over_mean(result) - 1.0, WORKERS / result.tuples) for result in results)


def _memory(outcomes: Outcomes, scheme: ConsistentGrouping) -> Spread:
    return spread_of(result.replicas_over_kg or 0.0 for result in _results(outcomes, scheme))


def _results(outcomes: Outcomes, scheme: ConsistentGrouping) -> Any:
    seeds = 1 if scheme is SHUFFLED else SEEDS
    return [outcomes.of(scheme._replace(seed=seed)) for seed in range(seeds)]


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    imbalance = [_imbalance(outcomes, scheme).mean for scheme in PORC.values()]
    memory = [_memory(outcomes, scheme).mean for scheme in PORC.values()]
    where = f"{wp_label(outcomes.of(SHUFFLED).tuples)}, epsilon = {', '.join(f'{e:g}' for e in EPSILONS)}: "
    ends = {name: (_imbalance(outcomes, scheme), _memory(outcomes, scheme)) for name, scheme in ENDS.items()}
    between = all(ends["SG"][0].mean <= value <= ends["KG"][0].mean for value in imbalance)
    between &= all(ends["KG"][1].mean <= value <= ends["SG"][1].mean for value in memory)
    told = "; ".join(f"{name} imbalance {i.text(shown)}, memory {m.text(shown)}" for name, (i, m) in ends.items())
    functions = f"on average over {SEEDS} hash functions"
    return [
        Finding(
            "fig6-imbalance",
            "CG generates low imbalance at lower values of epsilon",
            "rising with epsilon; no numbers in the text",
            where + ", ".join(map(shown, imbalance)),
            verdict(imbalance == sorted(imbalance) and imbalance[0] < imbalance[-1]),
            f"Rule: the normalised imbalance of the workers never falls with epsilon, {functions}.",
        ),
        Finding(
            "fig6-memory",
            "CG produces a low memory footprint for higher values of epsilon",
            "falling with epsilon; no numbers in the text",
            where + ", ".join(map(shown, memory)),
            verdict(memory == sorted(memory, reverse=True) and memory[0] > memory[-1]),
            f"Rule: the memory never rises with epsilon, {functions}.",
        ),
        Finding(
            "fig6-between",
            "CG is able to interpolate well between KG and SG",
            "between both; no numbers in the text",
            where + f"imbalance {shown(min(imbalance))} to {shown(max(imbalance))}, memory {shown(min(memory))} to "
            f"{shown(max(memory))}; {told}",
            verdict(between),
            "Rule: with every epsilon imbalance and memory lie between those of hashing and of shuffling to the "
            f"virtual workers, {functions}. No virtual worker moves: that comes with capacities, from Fig. 9 on.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    figure = new_figure(10, 4.0)
    axes = figure.subplots(1, 2)
    panels: dict[str, Any] = {"normalised imbalance of the workers": _imbalance, "memory, over KG": _memory}
    for axis, (label, value) in zip(axes, panels.items(), strict=True):
        spreads = [value(outcomes, scheme) for scheme in PORC.values()]
        axis.plot(EPSILONS, [s.mean for s in spreads], marker="o", color=COLOURS[0], label="PoRC to virtual workers")
        low, high = [s.least for s in spreads], [s.most for s in spreads]
        axis.fill_between(EPSILONS, low, high, color=COLOURS[0], alpha=0.15, linewidth=0)
        for i, (name, scheme) in enumerate(ENDS.items()):
            text = f"{name} to virtual workers"
            axis.axhline(value(outcomes, scheme).mean, color=COLOURS[i + 1], linestyle="--", label=text)
        axis.set(xscale="log", xlabel="epsilon", ylabel=label)
        axis.grid(alpha=0.25)
    axes[0].set_yscale("log")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return [
        Picture(
            "fig6",
            figure,
            f"{wp_label(outcomes.of(SHUFFLED).tuples)}: {WORKERS} equal workers with 10 virtual workers each, which do "
            f"not move; mean and range over {SEEDS} hash functions. The larger epsilon is, the more unequal the "
            "virtual workers may be, and the fewer keys have to wander.",
        )
    ]


EXPERIMENT = Experiment("fig6", "Figure 6: epsilon, between memory and balance", jobs, claims, parts)
