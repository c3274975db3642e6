"""D-Choices: a hot key goes to the least loaded of its d candidates, any other key to the less loaded of its two.

Paper: Nasir et al., "When two choices are not enough", ICDE 2016, section III; FISH, section 2.1. The hot keys are the
head of the stream, see `head`. With their shares p_1 >= ... >= p_H, d is the smallest number such that, for each
prefix h of the head,

    p_1 + ... + p_h + (b_h/W)^d (p_{h+1} + ... + p_H) + (b_h/W)^2 tail <= b_h (1/W + epsilon),

where b_h = W - W ((W-1)/W)^(h d) is the expected number of workers that are candidates of the first h keys. On the left
is what must go to these workers: those keys, and all others whose candidates are all among them.

Choices made here:
- d is at least 2. From d = W on, hot keys may go to all workers, as in `w_choices`.
- d is found anew when the stream has grown by an eighth, or by 4 tuples per counter if that is less.
- Ties and colliding candidates as in `pkg`. While no key is hot, every decision is that of `pkg` with the same seed.

State: about 1 to 1.5 kB per worker. More: docs/schemes/d_choices.md.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_integer, require_number
from unskew.contract import Loads
from unskew.errors import InputError
from unskew.frequencies import Frequencies
from unskew.kernels import allocating_kernel, kernel
from unskew.least import Least, new_least, sort_positions
from unskew.members import Names
from unskew.plan import Plan
from unskew.registry import register
from unskew.schemes.head import (
    check_head,
    check_head_state,
    counters_of,
    is_head,
    least_loaded_of_all,
    plan_of_head,
    resized_head,
    threshold,
    weight,
)
from unskew.schemes.pkg import least_loaded_of
from unskew.sketches.space_saving import SpaceSaving, count_key, new_sketch

EPSILON = 1e-4  # the share of all tuples by which a worker may exceed the mean, where the user says nothing
GROWTH = 8.0  # d is found anew when the stream has grown by one in so many tuples
MOST_PER_COUNTER = 4.0  # or by so many tuples per counter, if that is less


class State(NamedTuple):
    load: Loads  # int64[workers], tuples this source believes each worker got
    sketch: SpaceSaving  # of the keys
    idle: Least  # the queue of the least loaded workers
    choices: npt.NDArray[np.int64]  # [1] d
    due: npt.NDArray[np.float64]  # [1] number of the tuple at which it is found anew


@allocating_kernel
def fan_out(head_shares: npt.NDArray[np.float64], tail_share: float, workers: int, epsilon: float) -> int:
    """d: how many candidates each key of the head needs, from 2 to `workers` (which stands for all workers).

    Walks through the prefixes round and round, raises d wherever one fails, and is done when all pass in a row.
    """
    if len(head_shares) == 0 or workers <= 2:
        return min(2, workers)
    first_shares = _sums_of_largest(head_shares)
    limit = 1.0 / workers + epsilon
    # The first prefix needs p_1 <= b_1 * limit, and b_1 <= d. One less, against rounding.
    choices = max(2, np.int64(np.ceil(min(first_shares[0] / limit, float(workers)))) - 1)
    prefix, passed = 0, 0
    while passed < len(head_shares) and choices < workers:
        reach = 1.0 - ((workers - 1.0) / workers) ** ((prefix + 1.0) * choices)  # b_h / W
        others = first_shares[-1] - first_shares[prefix]
        if first_shares[prefix] + reach**choices * others + reach**2 * tail_share <= workers * reach * limit:
            prefix = (prefix + 1) % len(head_shares)
            passed += 1
        else:
            choices += 1
            passed = 0
    return choices


@allocating_kernel
def _sums_of_largest(shares):
    """p_1, p_1 + p_2, ..."""
    ascending = np.arange(len(shares))
    sort_positions(ascending, shares)
    sums, total = np.empty(len(shares), np.float64), 0.0
    for i in range(len(shares)):
        total += shares[ascending[-1 - i]]
        sums[i] = total
    return sums


@allocating_kernel
def _find_choices(scheme, state):
    """d for the present head, and when to look again."""
    sketch = state.sketch
    tuples = sketch.total[0]
    shares = np.empty(sketch.table.used[0], np.float64)
    keys, tail_share = 0, 1.0
    for counter in range(len(shares)):
        if is_head(scheme, sketch, counter):
            shares[keys] = weight(scheme, sketch, counter) / tuples
            tail_share -= shares[keys]
            keys += 1
    state.choices[0] = fan_out(shares[:keys], max(0.0, tail_share), scheme.workers, scheme.epsilon)
    state.due[0] = tuples + max(1.0, min(tuples / GROWTH, MOST_PER_COUNTER * len(sketch.counts)))


@kernel
def choose(scheme, state, key, now):
    counter = count_key(state.sketch, key)
    if state.sketch.total[0] >= state.due[0]:
        _find_choices(scheme, state)
    first = 2 * scheme.seed
    if not is_head(scheme, state.sketch, counter):
        worker = least_loaded_of(state.load, key, first, first + 2)
    elif state.choices[0] < scheme.workers:
        worker = least_loaded_of(state.load, key, first, first + state.choices[0])
    else:
        worker = least_loaded_of_all(state)
    state.load[worker] += 1
    return worker


@register(
    "d_choices",
    choose=choose,
    paper="When two choices are not enough (ICDE 2016), section III",
    when="pkg is not balanced, and frequencies are not known beforehand: hot keys on as many workers as needed",
)
class DChoices(NamedTuple):
    """D-Choices: hot keys by as many choices as they need, all others by two.

    Parameters
    ----------
    workers
        W, the number of workers.
    theta
        The share of the tuples above which a key is hot; 0 for 1/(5 W).
    epsilon
        The share of all tuples by which a worker may exceed the mean.
    counters
        How many counters the sketch has; 0 for 4/theta.
    seed
        Which hash functions: the candidates from number 2 * seed on.
    error_weight
        A key counts as hot by its count plus this times the error of its count: -1 takes what is guaranteed, 0 the
        sketch's estimate, 1 is what the authors' public code does.

    Examples
    --------
    Half of the tuples have the same key. It gets as many workers as it needs, here all eight:

    >>> import numpy as np
    >>> from unskew import DChoices, Router, key_ids
    >>> keys = [word for i in range(200) for word in ("the", f"word {i}")]
    >>> np.bincount(Router(DChoices(workers=8)).route(key_ids(keys))).tolist()
    [51, 50, 50, 50, 49, 50, 51, 49]
    """

    workers: int  # W
    theta: float = 0.0
    epsilon: float = EPSILON
    counters: int = 0
    seed: int = 0
    error_weight: float = -1.0

    def check(self) -> None:
        check_head(self)
        require_number("epsilon", self.epsilon, "a share from 0 to under 1", 0.0, np.nextafter(1.0, 0.0))

    def new_state(self) -> State:
        return State(
            load=np.zeros(self.workers, np.int64),
            sketch=new_sketch(counters_of(self)),
            idle=new_least(self.workers),
            choices=np.full(1, min(2, self.workers)),
            due=np.zeros(1),
        )

    def check_state(self, state: State) -> None:
        check_head_state(state)
        require_integer("choices", int(state.choices[0]), 1, self.workers)
        if not np.isfinite(state.due[0]):
            raise InputError(f"due: must be a finite number, not {state.due[0]}")

    def load_of(self, state: State) -> Loads:
        return state.load

    def resized(self, state: State, before: Names, after: Names) -> "tuple[DChoices, State]":
        return resized_head(self, state, before, after)

    @classmethod
    def plan(cls, workers: int, frequencies: Frequencies, **parameters: Any) -> Plan:
        """The head is dealt over its d candidates such that they are equally full, other hot keys over their two."""
        scheme = cls(workers, **parameters)
        shares = frequencies.counts / max(1, frequencies.tuples)
        head = int((shares > threshold(scheme)).sum())
        choices = fan_out(shares[:head], 1.0 - shares[:head].sum(), workers, scheme.epsilon)
        return plan_of_head("d_choices", scheme, frequencies, head, choices)
