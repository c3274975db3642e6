"""B. Gedik: Partitioning Functions for Stateful Data Parallelism in Stream Processing."""

from unskew.experiments.gedik import fig3, fig4, fig5, fig6, fig7, fig8, real, sizes, times
from unskew.experiments.paper import Paper

PAPER = Paper(
    name="gedik",
    title="Partitioning functions, rerun",
    reference="“Partitioning functions for stateful data parallelism in stream processing” (Gedik, 2014)",
    introduction=(
        "A partitioning function gives every key one worker: hot keys by an explicit map, all others by consistent "
        "hashing. When a worker is added, one of three algorithms (scan, redist, readj) makes the next function "
        "from the present one. The paper claims better balance than hashing, for little more migration than "
        "consistent hashing.",
        "b is the relative imbalance: highest load over lowest load, over the 1.2 that is allowed, as the "
        "geometric mean of state, computation and communication. m is the state that moves when the last worker is "
        "added, over one worker's share. LCL, LLL, ... say whether the load of state, computation and "
        "communication is constant, linear or quadratic in a key's frequency.",
        "As in the paper, frequencies are given (Zipf, a million keys, z = 1 unless said otherwise), the path "
        "starts with one worker and adds one at a time to ten, and numbers are averages of 5 runs. Each run has "
        "other keys, which is another hash function. Figures 9 to 11 and the real streams are counted by the lossy "
        "counter instead.",
        "Where the paper is ambiguous: the load of computation is the sum of beta(f), not of f beta(f) as Eq. 3 "
        "prints it (fig3-lql says why); Algorithms 3 and 4 are corrected where they cannot be meant as printed, as "
        "the modules `greedy` and `readj` say. The rules of the verdicts were written before the first whole run; "
        "two trial runs of LLL with ten workers had been seen by then.",
    ),
    experiments=tuple(module.EXPERIMENT for module in (fig3, fig4, fig5, fig6, fig7, fig8, sizes, times, real)),
)
