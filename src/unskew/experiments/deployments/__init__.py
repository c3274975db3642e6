"""The papers' deployments, which simulations cannot give: on a local Spark, with workers that sleep."""

from unskew.experiments.deployments import cg, fish, gedik, pkg, posg, posg_change
from unskew.experiments.deployments.running import MASTER, SETTINGS, run_deployed
from unskew.experiments.paper import Paper

PAPER = Paper(
    name="deployments",
    title="The papers' deployments, rerun",
    reference="all five papers on clusters, in small on a local Spark",
    introduction=(
        "The papers ran their schemes on clusters too, mostly on Apache Storm. Here they run on one Spark of this "
        "machine. Sources are tasks that route rows, each with a router of its own; rows are shuffled; every worker is "
        "a task that serves its rows in the order in which they came. Rows are emulated by sleeping, so that up to 32 "
        "workers are busy at the same time on two cores. All times are of the clock.",
        "Spark is not Storm. A source does not talk to its workers while tasks run, so that schemes which listen hear "
        "of a round only after it. The shuffle ends before workers begin; so rows carry the moment at which they come, "
        "or come when so many before them are done as Storm would wait for. All workers begin at the same moment; what "
        "routing, shuffling and starting tasks took before is measured beside it, and not part of throughput or "
        "latency.",
        "Each point is run several times (in a quick run once), with other keys each time, "
        "which is another set of hash functions. CG learns in rounds before, from rows of the stream that it is then "
        "measured on. All schemes get the same rows, in turn, so that whatever else happens on the machine happens to "
        "all alike. Numbers are medians. Several runs share the machine; how late it made workers wake up is told "
        "beside each number.",
        "The rules of the verdicts were committed before the first whole run.",
    ),
    experiments=tuple(module.EXPERIMENT for module in (pkg, cg, fish, posg, posg_change, gedik)),
    run=run_deployed,
    doing="running",
    master=MASTER,
    settings=SETTINGS,
)
