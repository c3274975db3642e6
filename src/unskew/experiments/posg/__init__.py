"""POSG, "Proactive online scheduling for shuffle grouping in distributed stream processing systems": Figs. 4 to 10."""

from unskew.experiments.paper import Paper
from unskew.experiments.posg import fig4, fig5, fig6, fig7, fig8, fig9, fig10

PAPER = Paper(
    name="posg",
    title="POSG, rerun",
    reference="“Proactive Online Scheduling for Shuffle Grouping in Distributed Stream Processing Systems” (POSG)",
    introduction=(
        "Where the work keeps no state, a tuple may go to any worker. Round robin gives all workers the same number of "
        "tuples, but not the same work if costs depend on the content. POSG learns the costs from its workers, in "
        "sketches, and sends every tuple to the worker with the least estimated work. The paper claims that tuples are "
        "then done sooner, by about a fifth.",
        "The setup is that of section V-A: 32,768 tuples over 4,096 keys, costs of 1 to 64 ms dealt to the keys at "
        "random, 5 workers, an input rate that is exactly what they can take (100 % over-provisioning), 100 streams. "
        "The completion time is from the arrival of a tuple until it is done; the speed-up is the mean completion time "
        "of round robin over that of POSG. The paper's Figs. 11 and 12 are of a cluster and are not part of this grid.",
        "POSG (idle) is POSG whose workers count the time that they had nothing to do. The paper does not say so; it "
        "is here to show what the literal rule costs.",
    ),
    experiments=tuple(module.EXPERIMENT for module in (fig4, fig5, fig6, fig7, fig8, fig9, fig10)),
)
