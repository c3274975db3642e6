"""Numbers and lists as the reports print them."""

from collections.abc import Iterable
from itertools import groupby


def size(tuples: int) -> str:
    """A number of tuples as papers print it: 1.2G, 22M, 690k."""
    scale, unit = next(((s, u) for s, u in ((10**9, "G"), (10**6, "M"), (10**3, "k")) if tuples >= s), (1, ""))
    return f"{tuples / scale:.4g}{unit}"


def listed(cells: Iterable[tuple[str, str]]) -> str:
    """Pairs of a label and a text as one line, in which a label stands once before all its texts."""
    groups = groupby(cells, key=lambda cell: cell[0])
    return "; ".join(f"{name}: " + ", ".join(text for _, text in group) for name, group in groups)


def percent(share: float | None, digits: int = 2) -> str:
    return f"{100 * (share or 0.0):.{digits}f} %"


def median(values: list[float]) -> float:
    """The middle value; of two the lower, so that it is always one that was measured."""
    return sorted(values)[(len(values) - 1) // 2]
