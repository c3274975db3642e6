"""M. A. U. Nasir, G. De Francisci Morales, D. Garcia-Soriano, N. Kourtellis, M. Serafini: Partial Key Grouping."""

from unskew.experiments.paper import Paper
from unskew.experiments.pkg import (
    fig4,
    fig5,
    fig6,
    fig7,
    fig8,
    fig9,
    heavy_hitters,
    memory,
    real,
    section5,
    table1,
    table2,
)

PAPER = Paper(
    name="pkg",
    title="Partial Key Grouping, rerun",
    reference="“Partial Key Grouping: Load-Balanced Partitioning of Distributed Streams” (Nasir et al., 2015)",
    introduction=(
        "Partial Key Grouping (PKG) sends each tuple to the less loaded of two workers that its key hashes to. The "
        "paper claims that this balances skewed streams nearly perfectly, with sources that know only what they sent "
        "themselves, as long as no key is too hot. Below, its tables and figures again, from simulations of W workers "
        "and S sources in which every tuple is routed.",
        "Imbalance I(t) is the highest load minus the mean load after t tuples; m is the stream's length and p1 "
        "the share of the most frequent key. WP (Wikipedia), TW (Twitter), CT (cashtags) and LJ (LiveJournal) "
        "cannot be had: Zipf streams with the same tuples, keys and p1 stand in for them, and are labelled so. In WP's "
        "the hottest key is apart from a Zipf distribution of all others, whose exponent is fitted to one more "
        "published number, the 7.2M counters of SG. LJ's p1 is taken per node, as the paper's p1 of SL2 is. Stand-ins "
        "have neither the originals' tails nor their changes through time. LN1, LN2 and ZF are generated as the paper "
        "says; SL2 (Slashdot0902) and the streams of the last section are real.",
        "A note on the metric. The paper calls it the fraction of average imbalance. Its printed values are those of "
        "I(m)/m at the end of the stream: an imbalance that grows linearly averages to half of that, and the greedies' "
        "7.4e-2 and 8.3e-2 on WP are p1 - 1/W, not half of it. So tables compare with I(m)/m and show the average "
        "beside it. Where two nearly balanced methods are compared (Figs. 4, 5 and 8) the average is used, since the "
        "last moment of a balanced run is mostly chance.",
        "What is not run in full: of TW's 1.2G tuples Figs. 4 and 5 use the first tenth, and so does Table 2 where "
        "several hash functions are tried and in the cells that cannot be balanced, whose value does not depend on the "
        "length. A stand-in of which only a part was used says so wherever it is named.",
        "Every verdict is decided by a rule that is stated with it. Where the outcome hangs on luck, namely on "
        "which of the hottest keys the hash functions put together, several hash functions are tried and the spread "
        "is shown.",
    ),
    experiments=tuple(
        module.EXPERIMENT
        for module in (table1, table2, fig4, fig5, fig6, fig7, fig8, fig9, section5, heavy_hitters, memory, real)
    ),
)
