"""Fig. 8 (Q3): skew at the sources. Edges of a graph reach the sources by source vertex, or evenly."""

from typing import Any

import numpy as np

from unskew import Hash, PartialKey
from unskew.experiments.claims import verdict
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, not_testable
from unskew.experiments.pkg.data import COLOUR, ORDER, SLASHDOT, WORKERS, label, real, shown, stand_in
from unskew.experiments.real import absent, has_real
from unskew.plots import new_figure
from unskew.simulate.tuples import sources_by_key
from unskew.streams import Stream

SOURCES = (5, 10, 15, 20)
SKEWED = 1.1  # busiest source over the mean: with less there is no skew on the sources that could do anything
FEEDS = {"round_robin": "uniform", "key": "skewed"}
STYLES: dict[str, dict[str, Any]] = {  # they nearly coincide: a broad pale line under a thin dashed one
    "round_robin": {"linewidth": 6, "alpha": 0.35},
    "key": {"linewidth": 1.2, "linestyle": "--", "marker": "o", "markersize": 4},
}


def jobs(settings: Settings) -> list[Job]:
    streams = {"LJ": stand_in("LJ", settings, quick=500_000)}
    if has_real(SLASHDOT, settings):
        streams[SLASHDOT] = real(SLASHDOT, settings)
    pkg = tuple(PartialKey(workers) for workers in WORKERS)
    made = [
        Job("fig8", name, stream, pkg, sources, feed)
        for name, stream in streams.items()
        for sources in SOURCES
        for feed in FEEDS
    ]
    hashing = tuple(Hash(workers) for workers in WORKERS)
    return [*made, *(Job("fig8", name, stream, hashing) for name, stream in streams.items())]


def _label(outcomes: Outcomes, name: str) -> str:
    found = outcomes.results(data=name)
    return label(name, found[0].tuples if found else 0)


def _value(outcomes: Outcomes, name: str, feed: str, sources: int, workers: int) -> float:
    found = outcomes.one(data=name, scheme="pkg", feed=feed, sources=sources, workers=workers)
    return found.mean_imbalance_fraction


def busiest_source(stream: Stream, sources: int) -> float:
    """Tuples of the busiest source over the mean, where source vertices decide; by the first chunk of the stream."""
    chunk = next(iter(stream.chunks()))
    loads = np.bincount(sources_by_key(chunk, chunk.key_ids(), sources), minlength=sources)
    return float(loads.max() / loads.mean())


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    return [finding for name in ("LJ", SLASHDOT) for finding in _claims_on(outcomes.where(data=name), name)]


def _claims_on(outcomes: Outcomes, name: str) -> list[Finding]:
    short = "LJ" if name == "LJ" else "SL2"
    shown_name = _label(outcomes, name)
    skew = (
        f"fig8-skew-{short}",
        f"the imbalance with skew on the sources is similar to that with uniform splitting, on {shown_name}",
        "similar (LJ shown, SL1 and SL2 alike)",
    )
    low = (
        f"fig8-low-{short}",
        f"the imbalance remains at very low values, on {shown_name}",
        "very low absolute values; no numbers in the text",
    )
    if not outcomes:
        return [not_testable(*skew, absent(name)), not_testable(*low, absent(name))]
    cells = [(s, w) for s in SOURCES for w in WORKERS]
    ratio = {c: _value(outcomes, name, "key", *c) / _value(outcomes, name, "round_robin", *c) for c in cells}
    worst = max(ratio, key=lambda cell: ratio[cell])
    hashing = {w: outcomes.one(scheme="hash", workers=w).mean_imbalance_fraction for w in WORKERS}
    highest = {w: max(_value(outcomes, name, feed, s, w) for s in SOURCES for feed in FEEDS) for w in WORKERS}
    busiest = {s: busiest_source(outcomes[0].job.stream, s) for s in SOURCES}
    return [
        Finding(
            *skew,
            f"{shown_name}: skewed over uniform {min(ratio.values()):.2f} to {ratio[worst]:.2f} "
            f"(S={worst[0]}, W={worst[1]}); busiest source over the mean "
            + ", ".join(f"{value:.2f} (S={s})" for s, value in busiest.items()),
            verdict(all(1 / ORDER < value < ORDER for value in ratio.values())),
            "Rule: averages of I(t) less than one order of magnitude apart, the paper's measure, for every S and W. "
            + (
                "The stand-in's source vertices are as skewed as its keys, but independent of them: so little that the "
                "sources are hardly skewed, and the claim could not fail."
                if name == "LJ"
                else "Graph and source vertices are the paper's own, so nothing of ours makes it hold. But the sources "
                "are hardly skewed, and it says little."
            ),
            by_construction=name == "LJ" and max(busiest.values()) < SKEWED,
        ),
        Finding(
            *low,
            f"{shown_name}: "
            + "; ".join(f"W={w}: at most {shown(highest[w])}, hashing {shown(hashing[w])}" for w in WORKERS),
            verdict(all(highest[w] * ORDER <= hashing[w] for w in WORKERS)),
            "Rule: for every S, W and feed at least one order of magnitude below hashing.",
        ),
    ]


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    names = list(dict.fromkeys(outcome.job.data for outcome in outcomes))
    figure = new_figure(11, 3.8)
    axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axis, name in zip(axes, names, strict=True):
        for workers in WORKERS:
            for feed, style in STYLES.items():
                values = [_value(outcomes, name, feed, sources, workers) for sources in SOURCES]
                axis.plot(SOURCES, values, color=COLOUR[workers], label=f"{workers} workers, {FEEDS[feed]}", **style)
        axis.set(yscale="log", xlabel="sources", xticks=SOURCES)
        axis.set_title(_label(outcomes, name), fontsize=10)
        axis.grid(axis="y", alpha=0.25)
    axes[0].set_ylabel("average of I(t), over m")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(WORKERS), frameon=False)
    return [
        Picture(
            "fig8",
            figure,
            "Imbalance of the workers when the sources get even shares of the edges (broad lines) and when each gets "
            "the edges of the source vertices that hash to it, so that some sources are much busier (dashed).",
        )
    ]


EXPERIMENT = Experiment("fig8", "Figure 8: sources that are skewed themselves", jobs, claims, parts)
