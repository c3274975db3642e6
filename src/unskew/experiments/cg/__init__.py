"""M. A. U. Nasir et al., "Load Balancing for Skewed Streams on Heterogeneous Clusters": Consistent Grouping."""

from unskew.experiments.cg import (
    fig4,
    fig6,
    fig7,
    fig8,
    fig9,
    fig10,
    fig11,
    fig12,
    fig13,
    real,
    section6,
    storm,
)
from unskew.experiments.paper import Paper

PAPER = Paper(
    name="cg",
    title="Consistent Grouping, rerun",
    reference="“Load Balancing for Skewed Streams on Heterogeneous Clusters” (Nasir et al.)",
    introduction=(
        "Consistent Grouping (CG) deals tuples to many small virtual workers of equal load, by the power of random "
        "choices (PoRC): a tuple goes to the first of its key's candidates that has less than (1 + epsilon) times "
        "the mean. Workers hold virtual workers, and each asks for more when it is idle and for less when it is busy. "
        "So faster machines come to have more, without anybody knowing a capacity.",
        "Normalised imbalance is highest load over mean load, less 1; memory is the number of (worker, key) pairs over "
        "the number of keys. Where workers have queues, the imbalance is the highest utilisation less the mean, in "
        "windows of a few minutes. Differences are between the workers with the most and with the least.",
        "WP (Wikipedia) cannot be had: a stream with the same tuples, keys and p1 stands in for it, and is labelled "
        "so. It has neither WP's tail nor its peaks through the day: 22M tuples come evenly in 24 hours, except where "
        "a daily cycle is said to be ours. ZF has 100,000 keys and 10M tuples, as in Table I. What the paper does not "
        "say and was chosen here: the window t0 is a minute with 10 workers (in proportion with more). CH is a ring of "
        "equal arcs, each with a bound of its own, as in the authors' public code. A worker infers its capacity from "
        "how much it executed in what time.",
        "The rules were fixed before the grid was run, but after a first look at the speed of PoRC and at one day of "
        "CG. The readings, and the rules that follow the authors' public code, came after an audit of a first version. "
        "Variants that are not the paper's say that they are ours.",
        "Readings: the text has utilisation as what was assigned over the capacity, and no word on how long a wish "
        "stays; the authors' public code has what was executed, and wishes that stay until they are served. Each is "
        "tried alone, both together, and a daily cycle of arrivals (ours) from either end. The rule of a claim is "
        "applied to each of them, and the claim says under which it holds.",
    ),
    experiments=tuple(
        module.EXPERIMENT
        for module in (fig4, section6, fig6, fig7, fig8, fig9, fig10, fig11, fig12, fig13, storm, real)
    ),
)
