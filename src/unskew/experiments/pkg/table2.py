"""Table 2 (Q1): imbalance of PKG, the greedies, PoTC and hashing on WP and TW, with one source."""

from unskew.experiments.claims import verdict, within
from unskew.experiments.grid import Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Settings, Table
from unskew.experiments.pkg.data import ORDER, WORKERS, label, shown, spread
from unskew.experiments.pkg.table2_grid import (
    A_FEW,
    NAMES,
    P1,
    PRINTED,
    SEEDS,
    UNBALANCED,
    as_long,
    cell,
    jobs,
    over_seeds,
    ratio_of,
    seeds_label,
)
from unskew.experiments.words import listed, median, size
from unskew.streams import PUBLISHED


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    return [
        _limit(outcomes),
        _metric(outcomes),
        _pkg_beats_off_greedy(outcomes),
        _lower_bound(outcomes),
        _negligible(outcomes),
        _hashing_worst(outcomes),
        _hashing_values(outcomes),
        _potc(outcomes),
        _on_greedy(outcomes),
    ]


def _limit(outcomes: Outcomes) -> Finding:
    measured, holds = [], True
    for name in PRINTED:
        for workers in UNBALANCED:
            result = cell(outcomes, name, "off_greedy", workers)
            value = result.imbalance_fraction
            printed = PRINTED[name]["off_greedy"][WORKERS.index(workers)] or 0
            # two printed digits are good to 1-7 %, and p1 of a stand-in to 2 % of p1: together under 10 %
            holds &= within(value, printed, 0.10)
            limit = shown(P1[name] - 1 / workers)
            measured.append((label(name, result.tuples), f"W={workers}: {shown(value)} (p1 - 1/W = {limit})"))
    return Finding(
        "table2-limit",
        "Off-Greedy's imbalance where W > 1/p1: one key alone fills a worker, whatever the rest does",
        "WP 7.4e-2 and 8.3e-2, TW 6.7e-3 and 1.7e-2 (W = 50, 100)",
        listed(measured),
        verdict(holds),
        "Rule: I(m)/m within 10 % of the printed value. It follows from p1 alone, so a stand-in must show it.",
        by_construction=True,
    )


def _metric(outcomes: Outcomes) -> Finding:
    result = cell(outcomes, "WP", "off_greedy", 5)
    unbalanced = cell(outcomes, "WP", "off_greedy", 100)
    # "average" could only be meant if the average were of the printed size: within an order of magnitude
    holds = result.mean_imbalance_fraction * result.tuples < ORDER and within(
        unbalanced.mean_imbalance_fraction, 8.3e-2, 0.10
    )
    return Finding(
        "table2-metric",
        "each value is the fraction of average imbalance measured throughout the simulation",
        "WP Off-Greedy: 3.7e-8 at W=5 (0.8 tuples of 22M), 8.3e-2 at W=100",
        f"{label('WP', result.tuples)}: I(m)/m at the end {shown(result.imbalance_fraction)} ({result.imbalance:.1f} "
        f"tuples) and {shown(unbalanced.imbalance_fraction)}; average over time of I(t), over m: "
        f"{shown(result.mean_imbalance_fraction)} ({result.mean_imbalance_fraction * result.tuples:,.0f} tuples) and "
        f"{shown(unbalanced.mean_imbalance_fraction)}",
        verdict(holds),
        "Rule: the average over time has the printed size in both cells. That is impossible: a fixed table of whole "
        "keys balances the final counts only, and on the way there chance moves I(t) by about sqrt(t). And an "
        "imbalance that grows linearly averages to half of its final value. The printed values are those of I(m)/m, "
        "so that is what we compare with.",
    )


def _pkg_beats_off_greedy(outcomes: Outcomes) -> Finding:
    worse, measured = [], []
    for name in PRINTED:
        for workers in WORKERS:
            off = cell(outcomes, name, "off_greedy", workers)
            pkg = as_long(outcomes, off, name, "pkg", workers)
            values = f"W={workers}: {shown(pkg.imbalance_fraction)} / {shown(off.imbalance_fraction)}"
            measured.append((label(name, off.tuples), values))
            if pkg.imbalance > off.imbalance + A_FEW:
                worse.append(f"{name} W={workers}")
    return Finding(
        "table2-pkg-off-greedy",
        "PKG performs even better than Off-Greedy, which knows all frequencies beforehand",
        "TW W=5: 3.4e-10 / 3.4e-10 (PKG / Off-Greedy)",
        listed(measured),
        verdict(not worse),
        f"Rule: in no cell is PKG's I(m) more than {A_FEW} tuples above Off-Greedy's. "
        + (f"Worse at {', '.join(worse)}; that hot keys share workers is a conjecture, not measured." if worse else ""),
    )


def _lower_bound(outcomes: Outcomes) -> Finding:
    measured, holds = [], True
    for name, workers in (("WP", 50), ("WP", 100), ("TW", 100)):
        bound = P1[name] / 2 - 1 / workers
        values = over_seeds(outcomes, name, "pkg", workers)
        # chance moves the measured share of the top key by sqrt(p1 / m): three of these, halved
        slack = 1.5 * (P1[name] / outcomes.one(data=name + SEEDS).tuples) ** 0.5
        holds &= min(values) >= bound - slack
        measured.append((seeds_label(outcomes, name), f"W={workers}: {spread(values)}, bound {shown(bound)}"))
    return Finding(
        "table2-bound",
        "if p1 > 2/W, PKG's imbalance is at least (p1/2 - 1/W) m (section 5.1)",
        "I(m)/m >= p1/2 - 1/W",
        listed(measured),
        verdict(holds),
        "Rule: no hash function is below the bound by more than chance (three standard deviations of p1). Median and "
        "range over hash functions.",
        by_construction=True,
    )


def _negligible(outcomes: Outcomes) -> Finding:
    values = {workers: over_seeds(outcomes, "TW", "pkg", workers) for workers in (5, 10, 50)}
    hashing = {workers: over_seeds(outcomes, "TW", "hash", workers) for workers in values}
    # "negligible": two orders of magnitude below hashing, for the median hash function
    holds = all(median(values[w]) * ORDER**2 <= median(hashing[w]) for w in values)
    return Finding(
        "table2-negligible",
        "PKG has negligible imbalance up to 50 workers on TW",
        "3.4e-10 at W=5; the other entries are not legible in the text that was used",
        f"{seeds_label(outcomes, 'TW')}: "
        + "; ".join(f"W={w}: {spread(values[w])}, hashing {spread(hashing[w])}" for w in values),
        verdict(holds),
        "Rule: the median over hash functions is at most a hundredth of hashing's.",
    )


def _hashing_worst(outcomes: Outcomes) -> Finding:
    beaten = [
        f"{label(name, hashing.tuples)} W={workers}, {NAMES[scheme]}"
        for name in PRINTED
        for workers in WORKERS
        for scheme in ("pkg", "off_greedy", "on_greedy", "potc")
        for hashing in [cell(outcomes, name, "hash", workers)]
        if as_long(outcomes, hashing, name, scheme, workers).imbalance > hashing.imbalance
    ]
    return Finding(
        "table2-hashing-worst",
        "hashing performs the worst, PoTC better than hashing in all the experiments",
        "all cells",
        f"worse than hashing on the stand-ins: {', '.join(beaten) or 'none of 32'}",
        verdict(not beaten),
        "Rule: in every cell no scheme's I(m) is above hashing's with the same hash functions.",
    )


def _hashing_values(outcomes: Outcomes) -> Finding:
    measured, holds = [], True
    for name, rows in PRINTED.items():
        for workers, printed in zip(WORKERS, rows["hash"], strict=True):
            values = over_seeds(outcomes, name, "hash", workers)
            # the authors' one hash function is one draw of a wide distribution: a factor 2 around what we drew
            holds &= min(values) / 2 <= (printed or 0) <= 2 * max(values)
            measured.append((seeds_label(outcomes, name), f"W={workers}: {spread(values)}"))
    return Finding(
        "table2-hashing",
        "KG causes large imbalance, up to about 9 % on WP",
        "WP 6.4e-2, 7.8e-2, 9.2e-2, 9.2e-2; TW 3.5e-2, 3.2e-2, 2.0e-2, 2.8e-2 (W = 5, 10, 50, 100)",
        listed(measured),
        verdict(holds),
        "Rule: every printed value lies within a factor 2 of the range over our hash functions.",
    )


def _potc(outcomes: Outcomes) -> Finding:
    pairs = [(w, cell(outcomes, "TW", "potc", w), cell(outcomes, "TW", "on_greedy", w)) for w in WORKERS]
    judged = {w: ratio_of(potc, greedy) for w, potc, greedy in pairs if w not in UNBALANCED}
    return Finding(
        "table2-potc",
        "PoTC without key splitting is outclassed by On-Greedy on TW",
        "TW W=5: 1.9e-5 / 7.2e-9 (PoTC / On-Greedy)",
        listed(
            (
                label("TW", potc.tuples),
                f"W={w}: {shown(potc.imbalance_fraction)} / {shown(greedy.imbalance_fraction)}",
            )
            for w, potc, greedy in pairs
        ),
        verdict(all(ratio >= ORDER for ratio in judged.values())),
        "Rule: PoTC's I(m)/m is at least an order of magnitude above On-Greedy's at W = 5 and 10, where balance is "
        f"possible. It is {' and '.join(f'{ratio:,.1f}' for ratio in judged.values())} times as high (an imbalance "
        "below one tuple counts as one). At W = 50 and 100 the hottest key fills a worker of its own, whichever the "
        "scheme: shown, not judged.",
    )


def _on_greedy(outcomes: Outcomes) -> Finding:
    measured, holds, contradictions = [], True, []
    for name, rows in PRINTED.items():
        for workers, on_printed, off_printed in zip(WORKERS, rows["on_greedy"], rows["off_greedy"], strict=True):
            on, off = (cell(outcomes, name, scheme, workers) for scheme in ("on_greedy", "off_greedy"))
            ratio = ratio_of(on, off)
            holds &= ratio < ORDER
            values = f"{shown(on.imbalance_fraction)} / {shown(off.imbalance_fraction)}"
            measured.append((label(name, on.tuples), f"W={workers}: {values} = {ratio:,.1f}"))
            if (on_printed or 0) >= ORDER * max(off_printed or 0, 1 / PUBLISHED[name].tuples):
                contradictions.append(
                    f"{name} W={workers} ({shown(on_printed or 0)} against {shown(off_printed or 0)})"
                )
    return Finding(
        "table2-on-greedy",
        "On-Greedy performs very close to Off-Greedy",
        "On-Greedy: WP 3.6e-7, 6.4e-3, 7.4e-2, 8.3e-2; TW 7.2e-9, 7.9e-8, 1.0e-2, 1.7e-2",
        listed(measured) + " (On-Greedy / Off-Greedy = ratio)",
        verdict(holds),
        "Rule: On-Greedy's I(m)/m is less than one order of magnitude above Off-Greedy's at every W, which is what the "
        "paper calls very close in Fig. 4; an imbalance below one tuple counts as one. By this rule the paper's own "
        f"row contradicts the sentence: {', '.join(contradictions)}.",
    )


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    made: list[Part] = [
        "A question mark is an entry that is not legible in the text of the paper that was used. Balanced cells hold "
        "about 1/m: a fraction of a shorter stream is larger."
    ]
    for name, rows in PRINTED.items():
        body = []
        for scheme, printed in rows.items():
            results = [cell(outcomes, name, scheme, workers) for workers in WORKERS]
            values = {
                "printed": ["?" if value is None else shown(value) for value in printed],
                "I(m)/m": [shown(result.imbalance_fraction) for result in results],
                "mean I(t)/m": [shown(result.mean_imbalance_fraction) for result in results],
                "tuples": [size(result.tuples) for result in results],
            }
            body += [[NAMES[scheme] if kind == "printed" else "", kind, *row] for kind, row in values.items()]
        caption = f"{label(name, cell(outcomes, name, 'pkg', 5).tuples)}, one source."
        shorter = cell(outcomes, name, "hash", 100).tuples
        if shorter < cell(outcomes, name, "hash", 5).tuples:
            caption += (
                f" The whole length where it matters, in the cells that can be balanced: W = 5 and 10, and PKG. The "
                f"other cells are those of the first {size(shorter)} tuples, since p1 - 1/W does not depend on m."
            )
        made.append(Table(caption, ["scheme", "", *(f"W = {workers}" for workers in WORKERS)], body))
        made.append(f"Several hash functions were tried on {seeds_label(outcomes, name)}.")
    return made


EXPERIMENT = Experiment("table2", "Table 2: PKG against schemes that keep keys whole", jobs, claims, parts)
