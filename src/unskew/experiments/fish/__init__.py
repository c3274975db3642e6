"""FISH, "Efficient time-evolving stream processing at scale": the figures of its sections 2.3 and 6."""

from unskew.experiments.fish import fig2, fig9, fig10, fig12, fig13, fig15, fig16, fig17, fig18
from unskew.experiments.paper import Paper

PAPER = Paper(
    name="fish",
    title="FISH, rerun",
    reference="“Efficient Time-Evolving Stream Processing at Scale” (FISH)",
    introduction=(
        "FISH counts which keys are hot now, gives each as many workers as its frequency asks for, and sends every "
        "tuple to the candidate where it waits least, by what the source itself can infer. The paper claims that this "
        "balances streams whose hot keys change nearly as well as shuffling (SG), with nearly as little memory as "
        "hashing (FG), and far better than D-Choices (D-C) and W-Choices (W-C), which count over the whole lifetime.",
        "Execution time is the makespan of a simulation with queues: tuples arrive at the rate that all workers "
        "together can execute. It is shown over that of SG. Memory is the number of (worker, key) pairs, over that of "
        "FG. There is one source unless it says otherwise: the paper uses 32 on Storm and does not say how many in its "
        "simulation. The last section has 32.",
        "A makespan cannot see local imbalance, which the paper stresses: what a worker gets too much of now, it gets "
        "less of later. So there are two local measures as well. Under back-pressure a worker holds at most 10 tuples, "
        "and the stream waits while the worker of its next tuple is full; the bound is ours. Without any queue: the "
        "highest load of windows of 10 tuples per worker, on average.",
        "ZF is the paper's time-evolving Zipf stream with 100,000 keys: hottest and coldest change places after four "
        "fifths. (As printed, the second distribution is the same as the first; so the turn is our reading.) Table 2 "
        "of the paper gives it 50M tuples, section 6.1 says 5M and ten runs with different seeds. The grid has 5M with "
        "one turn, and 50M as ten runs of 5M with ten rankings. MT and AM cannot be had: real streams that drift stand "
        "in for them where they are present.",
        "In the paper D-C and W-C have sketches of 1000 keys. Here they have the same, and beside them stand “sized” "
        "ones with 20 counters per worker, for a fair comparison. Both call a key hot by its guaranteed count, which "
        "is the count less the sketch's error; Figs. 2 and 3 show what happens where the error is counted as tuples, "
        "as in their authors' public code.",
        "The paper does not say what the frequency f_k is a share of. “FISH” takes a share of at least an epoch's "
        "tuples, “share of counters” one of whatever the counters sum to.",
        "Every verdict is decided by a rule that is stated with it.",
    ),
    experiments=tuple(module.EXPERIMENT for module in (fig2, fig9, fig10, fig12, fig13, fig15, fig16, fig17, fig18)),
)
