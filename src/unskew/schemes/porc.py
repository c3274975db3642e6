"""Power of random choices (PoRC): each tuple goes to the first candidate of its key that has room.

Paper: Nasir et al., "Load balancing for skewed streams on heterogeneous clusters", section V-A, Algorithm 1. A worker
has room while its load is under (1 + epsilon) m_t / n, a little more than the mean. So a cold key stays whole on its
first candidate, and a hot key spills over to as many more candidates as it needs. No sketch, no threshold.

Choices made here:
- m_t counts the present tuple too. Without it, the very first tuple would find no room anywhere.
- Every search starts at the first candidate of the key, which has room again as soon as the mean has risen.
- The load is what this source has sent, and no probe overwrites it.
- When workers come and go, candidates are taken modulo the new number. A new worker starts with the least load.

Guarantees: there is always a worker with room, and the search finds it. No load ever reaches (1 + epsilon) t/n + 1, so
the imbalance of a source is always under epsilon t/n + 1.

State: 8 bytes per worker. The proofs, several sources, short streams and costs: docs/schemes/porc.md.
"""

import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_number, require_workers
from unskew.errors import InputError
from unskew.hashing import candidate
from unskew.kernels import kernel
from unskew.members import Names, carried_over
from unskew.registry import register

MOST_TUPLES = 2**52


class State(NamedTuple):
    sent: npt.NDArray[np.int64]  # [workers] tuples this source has sent to each worker
    total: npt.NDArray[np.int64]  # [1] their sum, m_t before the present tuple


@kernel
def has_room(state, epsilon, worker):
    """Whether the worker's load is under (1 + epsilon) times the mean, the present tuple counted."""
    return state.sent[worker] * len(state.sent) < (1.0 + epsilon) * (state.total[0] + 1)


@kernel
def send(state, worker):
    state.sent[worker] += 1
    state.total[0] += 1
    return worker


@kernel
def first_with_room(state, epsilon, key, salt):
    """Algorithm 1, lines 2-6: from candidate number `salt` on."""
    worker = candidate(key, salt, len(state.sent))
    while not has_room(state, epsilon, worker):
        salt += 1
        worker = candidate(key, salt, len(state.sent))
    return worker


@kernel
def choose(scheme, state, key, now):
    return send(state, first_with_room(state, scheme.epsilon, key, 0))


def check_epsilon(epsilon: Any) -> None:
    require_number("epsilon", epsilon, "a number from 0 on", 0.0, sys.float_info.max)


def check_sent(state: Any) -> None:
    """A search ends only if there is room: where the loads sum to the total, and floats tell it from the next one."""
    if state.sent.min() < 0:
        raise InputError(f"sent: must be from 0 on, not {state.sent.min()}")
    total = sum(state.sent.tolist())
    if total != state.total[0] or total > MOST_TUPLES:
        raise InputError(f"total: must be the sum of sent ({total}) and at most {MOST_TUPLES}, not {state.total[0]}")


def carried_sent(state: Any, before: Names, after: Names) -> State:
    sent = carried_over(state.sent, before, after)
    return State(sent, sent.sum(keepdims=True))


@register(
    "porc",
    choose=choose,
    paper="CG, section V-A, Algorithm 1 (power of random choices)",
    when="a bound on the imbalance is needed, with few replicas and without counting keys",
)
class RandomChoices(NamedTuple):
    """Power of random choices: the first candidate of the key with a load under (1 + epsilon) times the mean.

    Parameters
    ----------
    workers
        n, the number of workers.
    epsilon
        How far a load may exceed the mean, as a share of the mean.

    Examples
    --------
    The hot key spills over to all workers, since it alone is the whole load:

    >>> import numpy as np
    >>> from unskew import RandomChoices, Router, key_ids
    >>> np.bincount(Router(RandomChoices(workers=4)).route(key_ids(["the"] * 100))).tolist()
    [25, 26, 25, 24]
    """

    workers: int  # n
    epsilon: float = 0.01

    def check(self) -> None:
        require_workers(self.workers)
        check_epsilon(self.epsilon)

    def new_state(self) -> State:
        return State(np.zeros(self.workers, np.int64), np.zeros(1, np.int64))

    def check_state(self, state: State) -> None:
        check_sent(state)

    def resized(self, state: State, before: Names, after: Names) -> "tuple[RandomChoices, State]":
        return self._replace(workers=len(after)), carried_sent(state, before, after)
