"""Table 2 (Q1): imbalance of PKG, the greedies, PoTC and hashing on WP and TW, with one source."""

from unskew import Hash, OnGreedy, PartialKey, StaticPotc
from unskew.experiments.claims import verdict, within
from unskew.experiments.grid import Fit, Job, Runs
from unskew.experiments.paper import Experiment, Finding, Part, Settings, Table
from unskew.experiments.pkg.data import ORDER, WORKERS, fractions, median, shown, spread, stand_in
from unskew.simulate import Result

# The table as printed: fraction of average imbalance. Our copy of the paper has lost most entries of the rows PKG and
# PoTC; that the two numbers left in a cell are Off-Greedy and On-Greedy follows from their agreement with p1 - 1/W.
PRINTED: dict[str, dict[str, tuple[float | None, ...]]] = {
    "WP": {
        "pkg": (None, None, None, None),
        "off_greedy": (3.7e-8, 4.1e-8, 7.4e-2, 8.3e-2),
        "on_greedy": (3.6e-7, 6.4e-3, 7.4e-2, 8.3e-2),
        "potc": (None, None, None, None),
        "hash": (6.4e-2, 7.8e-2, 9.2e-2, 9.2e-2),
    },
    "TW": {
        "pkg": (3.4e-10, None, None, None),
        "off_greedy": (3.4e-10, 6e-10, 6.7e-3, 1.7e-2),
        "on_greedy": (7.2e-9, 7.9e-8, 1.0e-2, 1.7e-2),
        "potc": (1.9e-5, None, None, None),
        "hash": (3.5e-2, 3.2e-2, 2.0e-2, 2.8e-2),
    },
}
NAMES = {"pkg": "PKG", "off_greedy": "Off-Greedy", "on_greedy": "On-Greedy", "potc": "PoTC", "hash": "Hashing (KG)"}
UNBALANCED = (50, 100)  # of WORKERS: here p1 > 1/W on both data sets, so whole keys cannot be balanced
A_FEW = 10  # messages: what we call no imbalance at all
P1 = {"WP": 0.0932, "TW": 0.0267}


def jobs(settings: Settings) -> list[Job]:
    """One job a number of workers, so that the key tables of TW's greedies fit; more hash functions where cheap."""
    seeds = range(1, settings.pick(5, 3))
    made = []
    for name in PRINTED:
        stream = stand_in(name, settings, quick=1_500_000)
        for workers in WORKERS:
            schemes = (PartialKey(workers), Fit("off_greedy", workers), OnGreedy(workers), StaticPotc(workers))
            made.append(Job("table2", name, stream, (*schemes, Hash(workers))))
        again = tuple(kind(workers, seed=seed) for workers in WORKERS for seed in seeds for kind in (PartialKey, Hash))
        made.append(Job("table2", name, stand_in(name, settings, most=120_000_000, quick=1_500_000), again))
    return made


def cell(runs: Runs, name: str, scheme: str, workers: int) -> Result:
    """The run on the whole stream with the first hash functions."""
    return runs.one(data=name, scheme=scheme, workers=workers)


def over_seeds(runs: Runs, name: str, scheme: str, workers: int) -> list[float]:
    return fractions(runs.results(data=name, scheme=scheme, workers=workers))


def claims(runs: Runs, settings: Settings) -> list[Finding]:
    return [
        _limit(runs),
        _metric(runs),
        _pkg_beats_off_greedy(runs),
        _lower_bound(runs),
        _negligible(runs),
        _hashing_worst(runs),
        _hashing_values(runs),
        _potc(runs),
        _on_greedy(runs),
    ]


def _limit(runs: Runs) -> Finding:
    measured, holds = [], True
    for name in PRINTED:
        for workers in UNBALANCED:
            value = cell(runs, name, "off_greedy", workers).imbalance_fraction
            printed = PRINTED[name]["off_greedy"][WORKERS.index(workers)] or 0
            # two printed digits are good to 1-7 %, and p1 of a stand-in to 2 % of p1: together under 10 %
            holds &= within(value, printed, 0.10)
            measured.append(f"{name} W={workers}: {shown(value)} (p1 - 1/W = {shown(P1[name] - 1 / workers)})")
    return Finding(
        "table2-limit",
        "Off-Greedy's imbalance where W > 1/p1: one key alone fills a worker, whatever the rest does",
        "WP 7.4e-2 and 8.3e-2, TW 6.7e-3 and 1.7e-2 (W = 50, 100)",
        "; ".join(measured),
        verdict(holds),
        "Rule: I(m)/m within 10 % of the printed value. It follows from p1 alone, so a stand-in must show it.",
    )


def _metric(runs: Runs) -> Finding:
    run = cell(runs, "WP", "off_greedy", 5)
    unbalanced = cell(runs, "WP", "off_greedy", 100)
    # "average" could only be meant if the average were of the printed size: within an order of magnitude
    holds = run.mean_imbalance_fraction * run.messages < ORDER and within(
        unbalanced.mean_imbalance_fraction, 8.3e-2, 0.10
    )
    return Finding(
        "table2-metric",
        "each value is the fraction of average imbalance measured throughout the simulation",
        "WP Off-Greedy: 3.7e-8 at W=5 (0.8 messages of 22M), 8.3e-2 at W=100",
        f"I(m)/m at the end: {shown(run.imbalance_fraction)} ({run.imbalance:.1f} messages) and "
        f"{shown(unbalanced.imbalance_fraction)}; average over time of I(t), over m: "
        f"{shown(run.mean_imbalance_fraction)} ({run.mean_imbalance_fraction * run.messages:,.0f} messages) and "
        f"{shown(unbalanced.mean_imbalance_fraction)}",
        verdict(holds),
        "Rule: the average over time has the printed size in both cells. It cannot: a fixed table of whole keys "
        "balances the final counts only, on the way chance moves I(t) by about sqrt(t); and an imbalance that grows "
        "linearly averages to half its final value. The printed values are those of I(m)/m, so that is what we "
        "compare with.",
    )


def _pkg_beats_off_greedy(runs: Runs) -> Finding:
    worse, measured = [], []
    for name in PRINTED:
        for workers in WORKERS:
            pkg, off = (cell(runs, name, scheme, workers) for scheme in ("pkg", "off_greedy"))
            measured.append(f"{name} W={workers}: {shown(pkg.imbalance_fraction)} / {shown(off.imbalance_fraction)}")
            if pkg.imbalance > off.imbalance + A_FEW:
                worse.append(f"{name} W={workers}")
    return Finding(
        "table2-pkg-off-greedy",
        "PKG performs even better than Off-Greedy, which knows all frequencies beforehand",
        "TW W=5: 3.4e-10 / 3.4e-10 (PKG / Off-Greedy)",
        "; ".join(measured),
        verdict(not worse),
        f"Rule: in no cell is PKG's I(m) more than {A_FEW} messages above Off-Greedy's. "
        + (f"Worse at {', '.join(worse)}: hot keys whose two candidates coincide." if worse else ""),
    )


def _lower_bound(runs: Runs) -> Finding:
    measured, holds = [], True
    for name, workers in (("WP", 50), ("WP", 100), ("TW", 100)):
        bound = P1[name] / 2 - 1 / workers
        values = over_seeds(runs, name, "pkg", workers)
        # chance moves the measured share of the top key by sqrt(p1 / m): three of these, halved
        slack = 1.5 * (P1[name] / min(run.messages for run in runs.results(data=name))) ** 0.5
        holds &= min(values) >= bound - slack
        measured.append(f"{name} W={workers}: {spread(values)}, bound {shown(bound)}")
    return Finding(
        "table2-bound",
        "if p1 > 2/W, PKG's imbalance is at least (p1/2 - 1/W) m (section 5.1)",
        "I(m)/m >= p1/2 - 1/W",
        "; ".join(measured),
        verdict(holds),
        "Rule: no hash function is below the bound by more than chance (three standard deviations of p1). Median and "
        "range over hash functions.",
    )


def _negligible(runs: Runs) -> Finding:
    values = {workers: over_seeds(runs, "TW", "pkg", workers) for workers in (5, 10, 50)}
    hashing = {workers: over_seeds(runs, "TW", "hash", workers) for workers in values}
    # "negligible": two orders of magnitude below hashing, for the median hash function
    holds = all(median(values[w]) * ORDER**2 <= median(hashing[w]) for w in values)
    return Finding(
        "table2-negligible",
        "PKG has negligible imbalance up to 50 workers on TW",
        "3.4e-10 at W=5; the other entries are lost in our copy",
        "; ".join(f"W={w}: {spread(values[w])}, hashing {spread(hashing[w])}" for w in values),
        verdict(holds),
        "Rule: the median over hash functions is at most a hundredth of hashing's.",
    )


def _hashing_worst(runs: Runs) -> Finding:
    beaten = [
        f"{name} W={workers}, {NAMES[scheme]}"
        for name in PRINTED
        for workers in WORKERS
        for scheme in ("pkg", "off_greedy", "on_greedy", "potc")
        if cell(runs, name, scheme, workers).imbalance > max(over_seeds(runs, name, "hash", workers))
        * cell(runs, name, "hash", workers).messages
    ]  # fmt: skip
    return Finding(
        "table2-hashing-worst",
        "hashing performs the worst, PoTC better than hashing in all the experiments",
        "all cells",
        f"worse than hashing: {', '.join(beaten) or 'none of 32'}",
        verdict(not beaten),
        "Rule: no scheme is worse than hashing's worst over hash functions in any cell.",
    )


def _hashing_values(runs: Runs) -> Finding:
    measured, holds = [], True
    for name, rows in PRINTED.items():
        for workers, printed in zip(WORKERS, rows["hash"], strict=True):
            values = over_seeds(runs, name, "hash", workers)
            # the authors' one hash function is one draw of a wide distribution: a factor 2 around what we drew
            holds &= min(values) / 2 <= (printed or 0) <= 2 * max(values)
            measured.append(f"{name} W={workers}: {spread(values)}")
    return Finding(
        "table2-hashing",
        "KG causes large imbalance, up to about 9 % on WP",
        "WP 6.4e-2, 7.8e-2, 9.2e-2, 9.2e-2; TW 3.5e-2, 3.2e-2, 2.0e-2, 2.8e-2 (W = 5, 10, 50, 100)",
        "; ".join(measured),
        verdict(holds),
        "Rule: every printed value lies within a factor 2 of the range over our hash functions.",
    )


def _potc(runs: Runs) -> Finding:
    pairs = [
        (w, *(cell(runs, "TW", scheme, w).imbalance_fraction for scheme in ("potc", "on_greedy"))) for w in WORKERS
    ]
    return Finding(
        "table2-potc",
        "PoTC without key splitting is outclassed by On-Greedy on TW",
        "TW W=5: 1.9e-5 / 7.2e-9 (PoTC / On-Greedy)",
        "; ".join(f"W={w}: {shown(potc)} / {shown(greedy)}" for w, potc, greedy in pairs),
        # where the top key alone fills a worker (W=100) all whole-key schemes are equal up to chance: 1 %
        verdict(all(potc >= 0.99 * greedy for _, potc, greedy in pairs)),
        "Rule: On-Greedy at least as good at every W (within 1 %).",
    )


def _on_greedy(runs: Runs) -> Finding:
    measured, holds = [], True
    for name, rows in PRINTED.items():
        for workers, printed in zip(WORKERS, rows["on_greedy"], strict=True):
            value = cell(runs, name, "on_greedy", workers).imbalance_fraction
            if workers in UNBALANCED:
                # the order in which hot keys first arrive decides what joins them: half an order of magnitude
                holds &= (printed or 0) / ORDER**0.5 <= value <= (printed or 0) * ORDER**0.5
            measured.append(f"{name} W={workers}: {shown(value)}")
    return Finding(
        "table2-on-greedy",
        "On-Greedy performs very close to Off-Greedy",
        "WP 3.6e-7, 6.4e-3, 7.4e-2, 8.3e-2; TW 7.2e-9, 7.9e-8, 1.0e-2, 1.7e-2",
        "; ".join(measured),
        verdict(holds),
        "Rule: within a factor of 3.2 of the printed value at W = 50 and 100. At W = 5 and 10, where p1 < 1/W, the "
        "order in which keys first appear decides, which a stand-in does not copy: shown, not judged.",
    )


def parts(runs: Runs, settings: Settings) -> list[Part]:
    made: list[Part] = []
    for name, rows in PRINTED.items():
        body = []
        for scheme, printed in rows.items():
            for kind in ("printed", "I(m)/m", "mean I(t)/m"):
                results = [cell(runs, name, scheme, workers) for workers in WORKERS]
                values = {
                    "printed": ["?" if value is None else shown(value) for value in printed],
                    "I(m)/m": [shown(result.imbalance_fraction) for result in results],
                    "mean I(t)/m": [shown(result.mean_imbalance_fraction) for result in results],
                }[kind]
                body.append([NAMES[scheme] if kind == "printed" else "", kind, *values])
        messages = cell(runs, name, "pkg", 5).messages
        made.append(
            Table(
                f"{name} (stand-in), {messages:,} messages, one source. A question mark is an entry that our copy of "
                "the paper has lost. Balanced cells hold about 1/m: a fraction of a shorter stream is larger.",
                ["scheme", "", *(f"W = {workers}" for workers in WORKERS)],
                body,
            )
        )
    return made


EXPERIMENT = Experiment("table2", "Table 2: PKG against schemes that keep keys whole", jobs, claims, parts)
