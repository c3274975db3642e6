"""Fig. 5 (Q2, Q3): imbalance through time with an oracle, with local estimation and with probing; and drift."""

from unskew import Hash, PartialKey
from unskew.experiments.claims import verdict, within
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, Table, not_testable
from unskew.experiments.pkg.data import COLOUR, ORDER, WORKERS, drawable, label, real, shown, stand_in
from unskew.experiments.real import absent, has_real
from unskew.experiments.words import listed, percent
from unskew.plots import new_figure
from unskew.simulate import Result
from unskew.simulate.estimation import PROBES
from unskew.streams import Stream

DATA = ("TW", "WP", "CT")
TW_PART = 120_000_000  # tuples: the first tenth
CASHTAGS = "stocknet_cashtags"  # real, and drifting as the paper's CT does
RARER = 10_800  # seconds between probes there: as many tuples as CT has in a minute, about 16
METHODS = {"G": (1, "local"), "L5": (5, "local"), "L5P1": (5, "probe:60")}  # one source knows all: the oracle
LITERAL = (5, "probe_whole:60")  # every source is told all of the true load, not its share
SHARED = (
    "a probe tells each of S sources the true load over S, as in the authors' public code. Taken literally (the "
    "estimate becomes the true load) each source closes the whole gap with tuples of its own, so that the gap becomes "
    "(1 - S) times itself and diverges for S > 2."
)
QUICK = {"CT": 100_000}  # tuples in a quick run: a probe every 16 tuples is slow
PERIODS = (600, 60, 6, 0.6)  # seconds between probes; a second of WP has 255 tuples
STUDY = "WP, probing"
PROBED = "WP"
PROBED_WORKERS = (5, 10)
PROBED_TUPLES, QUICK_PROBED = 1_000_000, 300_000


def jobs(settings: Settings) -> list[Job]:
    pkg = tuple(PartialKey(workers) for workers in WORKERS)
    made = [
        Job("fig5", name, _stream(name, settings), pkg, sources, estimation=estimation, samples=100)
        for name in DATA
        for sources, estimation in (*METHODS.values(), LITERAL)
    ]
    few = tuple(PartialKey(workers) for workers in PROBED_WORKERS)
    made += [
        Job("fig5", STUDY, stand_in(PROBED, settings, PROBED_TUPLES, QUICK_PROBED), few, sources, estimation=estimation)
        for sources in (1, 5)
        for estimation in ("local", *(f"{kind}:{period}" for kind in PROBES for period in PERIODS))
    ]
    if has_real(CASHTAGS, settings):
        both, stream = (*pkg, *(Hash(workers) for workers in WORKERS)), real(CASHTAGS, settings)
        made += [Job("fig5", CASHTAGS, stream, both, sources, replicas=True, samples=100) for sources in (1, 5)]
        made += [Job("fig5", CASHTAGS, stream, pkg, 5, estimation=f"{kind}:{RARER}", samples=100) for kind in PROBES]
    return made


def _stream(name: str, settings: Settings) -> Stream:
    return stand_in(name, settings, TW_PART, quick=QUICK.get(name, 1_000_000))


def _cell(outcomes: Outcomes, name: str, method: str, workers: int) -> Result:
    sources, estimation = (METHODS | {"literal": LITERAL})[method]
    if name == CASHTAGS:
        estimation = estimation.replace(":60", f":{RARER}")
    return outcomes.one(data=name, scheme="pkg", sources=sources, estimation=estimation, workers=workers)


def _label(outcomes: Outcomes, name: str) -> str:
    return label(name, outcomes.one(data=name).tuples)


def _tuples(result: Result) -> float:
    """The average over time of I(t), in tuples."""
    return result.mean_imbalance_fraction * result.tuples


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    return [
        _probing(outcomes),
        _probing_cashtags(outcomes, settings),
        _periods(outcomes),
        _too_many_workers(outcomes),
        _drift(outcomes, settings),
    ]


Ratios = dict[tuple[str, int], float]  # (data set, workers) -> average I(t) with probing over that without


def _ratios(outcomes: Outcomes, method: str, names: tuple[str, ...]) -> Ratios:
    return {
        (name, w): _tuples(_cell(outcomes, name, method, w)) / _tuples(_cell(outcomes, name, "L5", w))
        for name in names
        for w in WORKERS
    }


def _told(outcomes: Outcomes, ratios: Ratios) -> str:
    best, worst = (pick(ratios, key=lambda cell: ratios[cell]) for pick in (min, max))
    return (
        f"average I(t) with probing over without: from {ratios[best]:.2f} ({_label(outcomes, best[0])} W={best[1]}) to "
        f"{ratios[worst]:,.2f} ({_label(outcomes, worst[0])} W={worst[1]}); more than doubled in "
        f"{sum(ratio > 2 for ratio in ratios.values())} of {len(ratios)} cells, less than half in "
        f"{sum(ratio < 0.5 for ratio in ratios.values())}"
    )


def _alike(ratios: Ratios) -> bool:
    """Less than one order of magnitude apart, the paper's own measure."""
    return all(1 / ORDER < ratio < ORDER for ratio in ratios.values())


def _probing(outcomes: Outcomes) -> Finding:
    literal, shared = (_ratios(outcomes, method, DATA) for method in ("literal", "L5P1"))
    return Finding(
        "fig5-probing",
        "probing the true loads every minute (L5P1) does not improve on local estimation (L5)",
        "no improvement; no numbers in the text",
        _told(outcomes, literal),
        verdict(_alike(literal), _alike(shared)),
        "Rule: in every cell the averages of I(t) with and without probing are less than one order of magnitude apart, "
        "the paper's measure of “similar”. On CT a minute has 16 tuples, so few that sources that are probed act "
        "almost as one: there probing does help somewhat. (An earlier rule asked only that probing halve I(t) in no "
        "cell.)",
        SHARED,
        _told(outcomes, shared),
    )


def _probing_cashtags(outcomes: Outcomes, settings: Settings) -> Finding:
    text = (
        "fig5-probing-real",
        "the same on real cashtags, which drift (ours: the paper has CT)",
        "no improvement (CT)",
    )
    if not has_real(CASHTAGS, settings):
        return not_testable(*text, absent(CASHTAGS))
    literal, shared = (_ratios(outcomes, method, (CASHTAGS,)) for method in ("literal", "L5P1"))
    return Finding(
        *text,
        _told(outcomes, literal),
        verdict(_alike(literal), _alike(shared)),
        f"Rule: as for fig5-probing. A minute has less than a tuple here, so sources are probed every {RARER // 3600} "
        "hours: as many tuples as CT has in a minute, about 16.",
        SHARED,
        _told(outcomes, shared),
    )


def _periods(outcomes: Outcomes) -> Finding:
    def average(sources: int, estimation: str, workers: int) -> float:
        found = outcomes.one(data=STUDY, scheme="pkg", sources=sources, estimation=estimation, workers=workers)
        return _tuples(found)

    unprobed = {(s, w): average(s, "local", w) for s in (1, 5) for w in PROBED_WORKERS}

    def probed(kind: str) -> dict[tuple[int, int], list[float]]:
        return {cell: [average(cell[0], f"{kind}:{p:g}", cell[1]) for p in PERIODS] for cell in unprobed}

    def shown_times(kind: str) -> str:
        return f"{label(PROBED, outcomes.one(data=STUDY).tuples)}: " + "; ".join(
            f"S={s} W={w}: {unprobed[s, w]:,.1f} tuples without probing, "
            + ", ".join(f"{value:,.1f} every {period} s" for value, period in zip(values, PERIODS, strict=True))
            for (s, w), values in probed(kind).items()
        )

    def alike(kind: str) -> bool:
        values = probed(kind)
        return _alike({(str(p), w): v / unprobed[5, w] for w in PROBED_WORKERS for p, v in enumerate(values[5, w])})

    share, whole = PROBES
    return Finding(
        "fig5-probing-period",
        "even increasing the frequency of probing does not reduce imbalance",
        "not shown in the paper",
        shown_times(whole),
        verdict(alike(whole), alike(share)),
        "Rule: with every period the average I(t) of 5 sources is less than one order of magnitude from that without "
        "probing. One source knows the true load anyway, so probing changes nothing for it.",
        SHARED,
        shown_times(share),
    )


def _too_many_workers(outcomes: Outcomes) -> Finding:
    cells = [(w, [_cell(outcomes, "WP", method, w).imbalance_fraction for method in METHODS]) for w in (50, 100)]
    return Finding(
        "fig5-transition",
        "past a number of workers that depends on the data set, all techniques lead to the same high imbalance (WP, "
        "W=50)",
        "G = L5 = L5P1, high",
        listed((_label(outcomes, "WP"), f"W={w}: " + " / ".join(map(shown, values))) for w, values in cells)
        + " (G / L5 / L5P1)",
        # the hottest key's two workers get p1/2 each, whoever decides: equal up to chance, 2 % as for p1
        verdict(all(within(value, values[0], 0.02) and value > 1e-2 for _, values in cells for value in values)),
        "Rule: the three within 2 % of each other and above 1e-2: with p1 = 9.3 % > 2/W the hottest key's two workers "
        "carry p1/2 each, whoever decides.",
    )


def _drift(outcomes: Outcomes, settings: Settings) -> Finding:
    text = (
        "fig5-drift",
        "all techniques achieve a low imbalance on cashtags, whose popular keys change from week to week",
        "low, with occasional spikes (CT)",
    )
    if not has_real(CASHTAGS, settings):
        return not_testable(*text, absent(CASHTAGS))
    here = outcomes.where(data=CASHTAGS)
    pairs = {
        w: [here.one(scheme=s, sources=5, workers=w).mean_imbalance_fraction for s in ("pkg", "hash")] for w in WORKERS
    }
    p1 = here[0].result.p1 or 0.0
    few = [w for w in WORKERS if p1 < 2 / w]
    return Finding(
        *text,
        f"{_label(outcomes, CASHTAGS)}: "
        + "; ".join(f"W={w}: {shown(pkg)}, hashing {shown(hashing)}" for w, (pkg, hashing) in pairs.items()),
        verdict(all(pkg * ORDER <= hashing for pkg, hashing in (pairs[w] for w in few))),
        f"Rule: with 5 sources an order of magnitude below hashing, wherever p1 = {percent(p1, 1)} is below 2/W "
        "(beyond, the hottest key is too hot for two workers). Real cashtags of 2014-2016 (stocknet) stand in "
        "for CT, whose stand-in does not drift.",
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    names = [*DATA, *([CASHTAGS] if outcomes.where(data=CASHTAGS) else [])]
    figure = new_figure(11, 2.3 * len(names) + 0.6)
    axes = figure.subplots(len(names), len(METHODS), sharex="row", sharey="row", squeeze=False)
    for row, name in zip(axes, names, strict=True):
        for axis, method in zip(row, METHODS, strict=True):
            for workers in WORKERS:
                result = _cell(outcomes, name, method, workers)
                hours = [(sample.time - result.samples[0].time) / 3600 for sample in result.samples]
                values = [drawable(sample.imbalance / result.tuples, result.tuples) for sample in result.samples]
                axis.plot(hours, values, color=COLOUR[workers], linewidth=1, label=f"{workers} workers")
            axis.set_yscale("log")
            axis.set_title(f"{_label(outcomes, name)}: {method}", fontsize=9)
            axis.tick_params(labelsize=8)
            axis.grid(axis="y", alpha=0.25)
        row[0].set_ylabel("I(t) / m")
        row[1].set_xlabel("hours", fontsize=9)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(WORKERS), frameon=False)
    rows = [
        [
            _label(outcomes, name),
            workers,
            *(f"{_tuples(_cell(outcomes, name, method, workers)):,.1f}" for method in METHODS),
        ]
        for name in DATA
        for workers in WORKERS
    ]
    return [
        Picture(
            "fig5",
            figure,
            "Imbalance while the stream passes, as a share of its length. G: PKG with an oracle. L5: five sources "
            "that know only what they sent. L5P1: the same, told a fifth of the true loads every minute of stream "
            "time. A line "
            "that climbs from the first hour on is a key too hot for its two workers; a flat one is as good as "
            "balance gets.",
        ),
        Table("Average of I(t) over the stream, in tuples.", ["data set", "workers", *METHODS], rows),
    ]


EXPERIMENT = Experiment("fig5", "Figure 5: through time, with and without probing", jobs, claims, parts)
