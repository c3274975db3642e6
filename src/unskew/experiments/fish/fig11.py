"""Fig. 11 (RQ1): memory on the streams of Fig. 10, whose grid it shares."""

from unskew.experiments.claims import verdict
from unskew.experiments.fish.fig9 import COMPARABLE
from unskew.experiments.fish.rules import NEAR, Ratio, by_share, largest, near
from unskew.experiments.fish.setup import (
    COUNTERS,
    LONG,
    MOST,
    RIVALS,
    TUPLES,
    Cell,
    expected_sg_memory,
)
from unskew.experiments.paper import Finding

TEN_RANKINGS = (
    "ZF is ten runs of 5M tuples with ten rankings, one after the other: Table 2 has 50M tuples, section 6.1 has N = "
    "5M and ten runs with different seeds “to simulate the feature of time-evolving data”"
)


def memory_claims(cells: list[Cell], short: list[Cell], ten: list[Cell]) -> list[Finding]:
    """Claims on the memory of long streams, `cells`, which are short ones in a quick run; and of ten rankings."""

    def listed_memory(found: list[Cell], name: str) -> str:
        return ", ".join(f"{cell.memory(name):.2f} ({cell.place})" for cell in found)

    def is_comparable(found: list[Cell], name: str) -> bool:
        return max(cell.memory(name) for cell in found) <= COMPARABLE

    def shuffled(found: list[Cell]) -> list[Ratio]:
        return sorted((cell.memory("SG"), cell.place) for cell in found)

    def as_printed(found: list[Cell]) -> bool:
        least, *_, most = shuffled(found)
        return near(least[0], 15.52) and near(most[0], 88.32)

    def ends(found: list[Cell]) -> str:
        (least, first), *_, (most, last) = shuffled(found)
        return f"{least:.2f} ({first}) to {most:.2f} ({last})"

    short_sg, long_sg = (expected_sg_memory(1.0, tuples, MOST) for tuples in (TUPLES, LONG))
    others = [(cell.memory(name), f"{name}, {cell.place}") for cell in (*short, *ten) for name in RIVALS]
    return [
        Finding(
            "fig11-fish",
            f"FISH's memory is comparable to FG's with {MOST} workers",
            f"1.11x to {COMPARABLE}x of FG",
            why=f"Rule: at most {COMPARABLE}x in every cell. Cold keys have two candidates. Where f_k is a share of "
            "what the counters sum to, a single tuple after a decay makes its key hot, and sooner or later every key "
            f"is hot for a moment. On ten rankings: {listed_memory(ten, 'FISH')}; as a share of the counters "
            f"{listed_memory(ten, COUNTERS)}.",
            **by_share(
                lambda ending: is_comparable(cells, f"FISH{ending}"),
                lambda ending: listed_memory(cells, f"FISH{ending}"),
            ),
        ),
        Finding(
            "fig11-sg",
            f"SG's memory increases significantly with {MOST} workers",
            "15.52x to 88.32x of FG",
            f"{ends(cells)}; expected at z = 1.0: {short_sg:.1f} with 5M tuples, {long_sg:.1f} with 50M",
            verdict(as_printed(cells), as_printed(ten)),
            f"Rule: smallest and largest are within a factor {NEAR:g} of the printed ones. It depends on the length: a "
            "key of n tuples has at most n replicas. Only the 50M tuples of the paper's Table 2 give the size of the "
            "largest printed value, not the 5M of its section 6.1. A quick run is shorter still.",
            f"{TEN_RANKINGS}.",
            ends(ten),
        ),
        Finding(
            "fig11-others",
            "the memory of PKG, D-C and W-C is close to FG's too",
            "close; no numbers in the text",
            f"at most {largest(others)}; "
            + ", ".join(f"{name} {max(cell.memory(name) for cell in short):.2f} (one turn)" for name in RIVALS)
            + "; "
            + ", ".join(f"{name} {max(cell.memory(name) for cell in ten):.2f} (ten rankings)" for name in RIVALS),
            verdict(max(others)[0] <= COMPARABLE),
            f"Rule: at most {COMPARABLE}x, what the paper calls comparable, at W={MOST}. W-C puts each of some hundred "
            "hot keys on every worker; with a large z few keys occur at all, and these replicas weigh more.",
        ),
    ]
