"""The head of a stream, which `d_choices` and `w_choices` give more than two workers, found by SpaceSaving.

Paper: Nasir, De Francisci Morales, Kourtellis, Serafini, "When two choices are not enough: balancing at scale in
distributed stream processing", ICDE 2016, section III; as FISH describes it in section 2.1. A key is in the head if
its share of this source's tuples is above the threshold theta, 1/(5 W) by default: from 2/W on two choices cannot
balance, below 1/(5 W) they do.

Choices made here:
- The share is the guaranteed one, (count - error) / N with the present tuple counted. So a key whose true share is at
  most theta is never in the head, however few counters there are; too few only hide keys from it.
- The number of counters follows from theta: 4/theta, 20 a worker by default. Then errors are at most theta/4 of N, and
  every key with a share above 1.25 theta is in the head. ``counters`` sets another number; then every key with a share
  above theta + 1/counters is.
- Ten tuples are no evidence: a key needs more than 10 guaranteed tuples besides. Otherwise the first tuple of a stream
  (share 1) and each of its first 1/theta new keys would be in the head, and be scattered over all workers for nothing.
- Counts are for life, as in the paper: what has just become hot is noticed late in a long stream.
- The least loaded of all workers is found in constant time on average (see `least`), provided that the load never
  shrinks: a probe that brought smaller numbers would be believed only after a while.
- When workers come and go, the sketch keeps its counters and their number; only the default theta follows.

The state is about 1 to 1.5 kB a worker, so there are at most 100,000 workers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from unskew.checks import is_number, require_integer
from unskew.contract import Loads
from unskew.errors import InputError
from unskew.filling import plan_over
from unskew.hashing import candidate
from unskew.kernels import kernel
from unskew.least import check_least, least
from unskew.members import Names, carried_over
from unskew.plan import Frequencies, Plan
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
def is_head(scheme, sketch, counter):
    """Whether the key of this counter is in the head."""
    return sketch.counts[counter] - sketch.errors[counter] > max(LEAST_SEEN, threshold(scheme) * sketch.total[0])


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
