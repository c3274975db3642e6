"""On-Greedy: a new key goes to the least loaded of all workers, and stays there.

Paper: Partial Key Grouping, section 6.2 (Q1): "Online greedy algorithm that picks the least loaded worker to handle a
new key". One source, or shared state, is needed for a key to have exactly one worker; see `potc`.

Choices made here: ties go to the worker with the lowest number; the load is in tuples. A new key costs a scan of all
workers, a known one a look-up. The state grows with the number of distinct keys: 24 to 48 bytes a key.
"""

from typing import NamedTuple

from unskew.kernels import kernel
from unskew.key_table import EMPTY, fill, find, with_room
from unskew.scheme import register, require_workers
from unskew.schemes.potc import State, check_state, new_state


@kernel
def choose(scheme, state, key, now):
    cell = find(state, key)
    if state.values[cell] == EMPTY:
        fill(state, cell, key, state.load.argmin())
    worker = state.values[cell]
    state.load[worker] += 1
    return worker


@register(
    "on_greedy",
    choose=choose,
    paper="PKG, section 6.2 (On-Greedy)",
    when="as potc, with better balance where no key alone is too hot",
)
class OnGreedy(NamedTuple):
    """Online greedy: a key's first tuple picks the least loaded worker of all, the rest follow it."""

    workers: int  # W

    def check(self) -> None:
        require_workers(self.workers)

    def new_state(self) -> State:
        return new_state(self.workers)

    def grown(self, state: State, tuples: int) -> State:
        return with_room(state, tuples)

    def check_state(self, state: State) -> None:
        check_state(state, self.workers)
