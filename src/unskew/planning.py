"""Makes plans: measured frequencies and the name of a scheme in, a `Plan` out."""

from typing import Any

from unskew.checks import require_integer
from unskew.contract import Plannable, can
from unskew.errors import InputError, InputTypeError
from unskew.frequencies import Frequencies
from unskew.partitioning import ALGORITHMS, Objective, PartitionFunction, construct
from unskew.plan import Plan
from unskew.registry import SCHEMES, lookup, make

MOST_WORKERS = 1_000_000  # a plan is made by looking at each worker
WHOLE = Objective("LLL", alpha=1.01, utility="A")  # as level as keys allow that are not split


def make_plan(name: str, workers: int, frequencies: Frequencies, **parameters: Any) -> Plan:
    """The plan that the scheme called `name` makes from measured frequencies.

    Parameters
    ----------
    name
        A scheme that can be planned, such as ``"fanout"``; or ``"readj"``, ``"redist"`` or ``"scan"``, which split no
        key: see `unskew.partitioning`.
    workers
        W, the number of workers.
    frequencies
        How often the keys occur.
    parameters
        Those of the scheme.

    Examples
    --------
    One key has half of the tuples, and W-Choices deals it over all four workers:

    >>> from unskew import Frequencies, key_ids, make_plan
    >>> frequencies = Frequencies(key_ids(["the", "cat"]), [500, 20], tuples=1000, names=["the", "cat"])
    >>> plan = make_plan("w_choices", workers=4, frequencies=frequencies)
    >>> plan.hot_keys[0].key, len(set(plan.hot_keys[0].salts))
    ('the', 4)
    """
    check_plannable(name, workers, **parameters)
    if not isinstance(frequencies, Frequencies):
        raise InputTypeError(
            "frequencies: must be Frequencies, such as Frequencies.of({key id: count, ...}), "
            f"not {type(frequencies).__name__}"
        )
    if name in ALGORITHMS:
        return _place_whole(name, workers, frequencies.merged())
    plan: Plan = lookup(name).type.plan(workers, frequencies.merged(), **parameters)
    return plan


def _place_whole(algorithm: str, workers: int, frequencies: Frequencies) -> Plan:
    """A plan of one place per key. No state has to be moved yet, so balance alone counts."""
    empty = PartitionFunction(workers, cold="home")
    return construct(empty, frequencies, objective=WHOLE, algorithm=algorithm).to_plan(frequencies)


def check_plannable(name: str, workers: int, **parameters: Any) -> None:
    """InputError where the scheme called `name` cannot make a plan for so many workers with these parameters."""
    require_integer("workers", workers, 1, MOST_WORKERS)
    if name in ALGORITHMS:
        return
    registration = lookup(name)
    if not can(registration.type, Plannable):
        able = ", ".join(
            sorted({*ALGORITHMS, *(name for name, other in SCHEMES.items() if can(other.type, Plannable))})
        )
        raise InputError(f"scheme: {name} cannot be planned; allowed are {able}")
    if not registration.offline:
        make(name, workers, **parameters)
    elif parameters:
        raise InputError(f"{min(parameters)}: not a parameter of {name}; it has none")
