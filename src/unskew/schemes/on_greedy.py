"""On-Greedy: a new key goes to the least loaded of all workers, and stays there.

Paper: Partial Key Grouping, section 6.2 (Q1): "Online greedy algorithm that picks the least loaded worker to handle a
new key". A key has exactly one worker only with one source, or with a state that all sources share; see `potc`.

Choices made here: of equally loaded workers the one with the lowest index wins; the load is in tuples.

A new key costs a scan of all workers, a known key one look-up. The state grows with the number of distinct keys: 24 to
48 bytes per key. More: docs/schemes/on_greedy.md.
"""

from typing import NamedTuple

from unskew.checks import require_workers
from unskew.contract import Loads
from unskew.kernels import kernel
from unskew.key_table import EMPTY, fill, find
from unskew.registry import register
from unskew.schemes.potc import State, check_state, grown, new_state


@kernel
def choose(scheme, state, key, now):
    cell = find(state.homes, key)
    if state.homes.values[cell] == EMPTY:
        fill(state.homes, cell, key, state.load.argmin())
    worker = state.homes.values[cell]
    state.load[worker] += 1
    return worker


@register(
    "on_greedy",
    choose=choose,
    paper="PKG, section 6.2 (On-Greedy)",
    when="as potc, with better balance where no key alone is too hot",
)
class OnGreedy(NamedTuple):
    """Online greedy: a key's first tuple picks the least loaded worker of all, the rest follow it.

    Parameters
    ----------
    workers
        W, the number of workers.

    Examples
    --------
    >>> from unskew import OnGreedy, Router, key_ids
    >>> Router(OnGreedy(workers=4)).route(key_ids(["to", "be", "or", "not", "to", "be"])).tolist()
    [0, 1, 2, 3, 0, 1]
    """

    workers: int  # W

    def check(self) -> None:
        require_workers(self.workers)

    def new_state(self) -> State:
        return new_state(self.workers)

    def grown(self, state: State, tuples: int) -> State:
        return grown(state, tuples)

    def load_of(self, state: State) -> Loads:
        return state.load

    def check_state(self, state: State) -> None:
        check_state(state, self.workers)
