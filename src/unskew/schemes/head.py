"""The head of a stream, found by SpaceSaving: the hot keys that `d_choices` and `w_choices` give more than two workers.

Paper: Nasir, De Francisci Morales, Kourtellis, Serafini, "When two choices are not enough: balancing at scale in
distributed stream processing", ICDE 2016, section III; as FISH describes it in section 2.1. A key is in the head if
its share of this source's tuples is above the threshold theta, 1/(5 W) by default.

Choices made here:
- The share is the guaranteed one, (count - error) / N with the present tuple counted, so a key whose true share is at
  most theta is never in the head. `error_weight` takes another: (count + weight error) / N.
- There are 4/theta counters, 20 per worker by default. Then every key with a share above 1.25 theta is in the head.
- A key of the head needs more than 10 guaranteed tuples besides: the first tuples of a stream are no evidence.
- Counts are for life, as in the paper.
- When workers come and go, the sketch keeps its counters and their number; only the default theta follows.

State: about 1 to 1.5 kB per worker, so there are at most 100,000 workers. Reasons: docs/schemes/d_choices.md.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from unskew.checks import is_number, require_integer, require_number
from unskew.contract import Loads
from unskew.errors import InputError
from unskew.filling import plan_over
from unskew.frequencies import Frequencies
from unskew.hashing import candidate
from unskew.kernels import kernel
from unskew.least import check_least, least
from unskew.members import Names, carried_over
from unskew.plan import Plan
from unskew.sketches.space_saving import check_sketch
from unskew.states import copied

MOST_WORKERS = 100_000
MARGIN = 4  # counters for each key that can have a share of theta
MOST_COUNTERS = 2_000_000
MOST_LOAD = 2**53  # until which a float64 counts one by one
LEAST_SEEN = 10.0  # guaranteed tuples, of which a key of the head has more


@kernel
def threshold(scheme):
    """theta."""
    return scheme.theta if scheme.theta > 0.0 else 1.0 / (5.0 * scheme.workers)


@kernel
def weight(scheme, sketch, counter):
    """The tuples that the key of this counter is taken to have: the guaranteed ones by default."""
    return sketch.counts[counter] + scheme.error_weight * sketch.errors[counter]


@kernel
def is_head(scheme, sketch, counter):
    """Whether the key of this counter is in the head."""
    return weight(scheme, sketch, counter) > max(LEAST_SEEN, threshold(scheme) * sketch.total[0])


@kernel
def least_loaded_of_all(state):
    """argmin of the load over all workers, the lowest number of equals; in constant time on average, see `least`."""
    return least(state.idle, state.load)


def counters_of(scheme: Any) -> int:
    """How many counters the sketch of the scheme has."""
    return int(scheme.counters or np.ceil(MARGIN / threshold(scheme)))


def check_head(scheme: Any) -> None:
    require_integer("workers", scheme.workers, 1, MOST_WORKERS)
    least_theta = MARGIN / MOST_COUNTERS
    theta = scheme.theta
    if not is_number(theta, 0.0, 1.0) or not (theta == 0 or least_theta <= theta < 1):
        raise InputError(
            f"theta: must be 0 for 1/(5 workers), or a share from {least_theta:g} to under 1, not {theta!r}"
        )
    require_integer("counters", scheme.counters, 0, MOST_COUNTERS)
    require_number("error_weight", scheme.error_weight, "a number from -1 to 1", -1.0, 1.0)
    require_integer("seed", scheme.seed, 0, (2**31 - 1 - MOST_WORKERS) // 2)  # every candidate's number fits an int


def check_load(load: Loads) -> None:
    """InputError unless these can be numbers of tuples."""
    wrong = load[(load < 0) | (load >= MOST_LOAD)]
    if len(wrong):
        raise InputError(f"load: must be from 0 to {MOST_LOAD - 1}, not {wrong[0]}")


def check_head_state(state: Any) -> None:
    check_sketch("sketch", state.sketch)
    check_least("idle", state.idle)
    check_load(state.load)


def resized_head(scheme: Any, state: Any, before: Names, after: Names) -> tuple[Any, Any]:
    """For other workers: the sketch stays as it is, with as many counters as before; theta follows the new number."""
    new_scheme = scheme._replace(workers=len(after), counters=counters_of(scheme))
    new_scheme.check()
    load = carried_over(state.load, before, after)
    return new_scheme, new_scheme.new_state()._replace(load=load, sketch=copied(state.sketch))


def plan_of_head(name: str, scheme: Any, frequencies: Frequencies, head: int, choices: int) -> Plan:
    """A plan in which the first `head` keys have `choices` candidates, or all workers, and other hot keys have two."""
    first, workers = 2 * scheme.seed, scheme.workers

    def candidates(i: int) -> Sequence[int]:
        if i < head and choices >= workers:
            return range(workers)
        numbers = range(first, first + (choices if i < head else 2))
        return [int(candidate(frequencies.key_ids[i], j, workers)) for j in numbers]

    return plan_over(name, workers, frequencies, candidates, cold_salt=first)
