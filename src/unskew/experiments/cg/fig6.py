"""Fig. 6 (Q1): epsilon trades imbalance for memory, between shuffling and hashing to the virtual workers."""

from typing import Any

from unskew.experiments.cg.cluster import ALL_ALIKE, grouping, queues_of
from unskew.experiments.cg.setup import shown, wikipedia, wp_label
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes, max_over_mean
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings
from unskew.plots import COLOURS, new_figure
from unskew.schemes.cg import ConsistentGrouping

WORKERS = 10
EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # the paper's values are not legible in the text
PORC = {epsilon: grouping(WORKERS, epsilon=epsilon) for epsilon in EPSILONS}
HASHED = grouping(WORKERS, epsilon=float("inf"))
SHUFFLED = grouping(WORKERS, keyed=False)
ENDS = {"KG": HASHED, "SG": SHUFFLED}
# ours, to tell apart what epsilon does and what CG does about it: with these thresholds nobody ever asks for anything
STILL = {epsilon: scheme._replace(idle=0.0, busy=float("inf")) for epsilon, scheme in PORC.items()}
STILL_HASHED = HASHED._replace(idle=0.0, busy=float("inf"))


def jobs(settings: Settings) -> list[Job]:
    stream, queues = wikipedia(settings), queues_of(ALL_ALIKE, WORKERS)
    schemes = [*PORC.values(), HASHED, SHUFFLED, *STILL.values(), STILL_HASHED]
    return [Job("fig6", "WP", stream, tuple(schemes[i::4]), replicas=True, queues=queues) for i in range(4)]


def _imbalance(outcomes: Outcomes, scheme: ConsistentGrouping) -> float:
    """Of the workers, at the end; an imbalance of less than one tuple counts as one."""
    result = outcomes.of(scheme)
    return max(max_over_mean(result) - 1.0, WORKERS / result.tuples)


def _memory(outcomes: Outcomes, scheme: ConsistentGrouping) -> float:
    return outcomes.of(scheme).replicas_over_kg or 0.0


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    imbalance = [_imbalance(outcomes, scheme) for scheme in PORC.values()]
    memory = [_memory(outcomes, scheme) for scheme in PORC.values()]
    where = f"{wp_label(outcomes.of(SHUFFLED).tuples)}, epsilon = {', '.join(f'{e:g}' for e in EPSILONS)}: "
    ends = {name: (_imbalance(outcomes, scheme), _memory(outcomes, scheme)) for name, scheme in ENDS.items()}
    between = all(ends["SG"][0] <= value <= ends["KG"][0] for value in imbalance)
    between &= all(ends["KG"][1] <= value <= ends["SG"][1] for value in memory)
    still = [_imbalance(outcomes, scheme) for scheme in STILL.values()]
    told = "; ".join(f"{name} imbalance {shown(i)}, memory {shown(m)}" for name, (i, m) in ends.items())
    return [
        Finding(
            "fig6-imbalance",
            "CG generates low imbalance at lower values of epsilon",
            "rising with epsilon; no numbers in the text",
            where + ", ".join(map(shown, imbalance)) + f"; without moving {', '.join(map(shown, still))}",
            verdict(imbalance == sorted(imbalance) and imbalance[0] < imbalance[-1]),
            "Rule: the normalised imbalance of the workers never falls with epsilon. The larger epsilon is, the more "
            "unequal the virtual workers are; but as soon as that makes workers busy or idle, CG moves some and "
            "repairs it. The numbers without moving are ours: with thresholds at which no worker ever asks for "
            "anything.",
        ),
        Finding(
            "fig6-memory",
            "CG produces a low memory footprint for higher values of epsilon",
            "falling with epsilon; no numbers in the text",
            where + ", ".join(map(shown, memory)),
            verdict(memory == sorted(memory, reverse=True) and memory[0] > memory[-1]),
            "Rule: the memory never rises with epsilon. Virtual workers that move add replicas: each key of theirs "
            "gets one more.",
        ),
        Finding(
            "fig6-between",
            "CG is able to interpolate well between KG and SG",
            "between both; no numbers in the text",
            where + f"imbalance {shown(min(imbalance))} to {shown(max(imbalance))}, memory {shown(min(memory))} to "
            f"{shown(max(memory))}; {told}",
            verdict(between),
            "Rule: with every epsilon imbalance and memory lie between those of CG with hashing and of CG with "
            "shuffling to the virtual workers. With hashing, virtual workers are so unequal that CG keeps moving them, "
            "which adds replicas: without moving, hashing has a memory of 1 and an imbalance of "
            f"{shown(_imbalance(outcomes, STILL_HASHED))}.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    figure = new_figure(10, 4.0)
    axes = figure.subplots(1, 2)
    panels: dict[str, Any] = {"normalised imbalance of the workers": _imbalance, "memory, over KG": _memory}
    for axis, (label, value) in zip(axes, panels.items(), strict=True):
        line = [value(outcomes, scheme) for scheme in PORC.values()]
        axis.plot(EPSILONS, line, marker="o", color=COLOURS[0], label="PoRC to virtual workers")
        still = [value(outcomes, scheme) for scheme in STILL.values()]
        axis.plot(EPSILONS, still, ":", marker="x", color=COLOURS[0], label="the same, none moves (ours)")
        for i, (name, scheme) in enumerate(ENDS.items()):
            text = f"{name} to virtual workers"
            axis.axhline(value(outcomes, scheme), color=COLOURS[i + 1], linestyle="--", label=text)
        axis.set(xscale="log", xlabel="epsilon", ylabel=label)
        axis.grid(alpha=0.25)
    axes[0].set_yscale("log")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return [
        Picture(
            "fig6",
            figure,
            f"{wp_label(outcomes.of(SHUFFLED).tuples)}: {WORKERS} equal workers with 10 virtual workers each. The "
            "larger epsilon is, the more unequal the virtual workers may be, and the fewer keys have to wander.",
        )
    ]


EXPERIMENT = Experiment("fig6", "Figure 6: epsilon, between memory and balance", jobs, claims, parts)
