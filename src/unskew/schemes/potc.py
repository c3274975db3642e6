"""Static power of two choices (PoTC): a new key picks the less loaded of its two candidates, and stays there.

Paper: Partial Key Grouping, section 3.1, "static PoTC"; the row PoTC of Table 2.

Choices made here:
- Ties and colliding candidates as in `pkg`: the lowest candidate number wins, collisions stay.
- The load is in tuples, as everywhere in the paper, not in keys.
- Each source has a table of its own, so two sources may settle the same key on different workers. Only sources that
  agree with each other could prevent that, which is the paper's argument against this scheme. With one source, or with
  ``estimation="global"`` in the simulator (as in Table 2), a key has exactly one worker.

The state grows with the number of distinct keys: 24 to 48 bytes per key. More: docs/schemes/potc.md.
"""

from typing import NamedTuple

import numpy as np

from unskew.checks import require_workers
from unskew.contract import Loads
from unskew.errors import InputError
from unskew.kernels import kernel
from unskew.key_table import EMPTY, KeyTable, check_table, fill, find, new_table, with_room
from unskew.registry import register
from unskew.schemes.pkg import check_choices, least_loaded_candidate


class State(NamedTuple):
    load: Loads  # int64[workers], tuples this source believes each worker got
    homes: KeyTable  # key -> its worker


def new_state(workers: int) -> State:
    return State(np.zeros(workers, np.int64), new_table())


def check_state(state: State, workers: int) -> None:
    if state.load.shape != (workers,):
        raise InputError(f"load: must have one number per worker ({workers}), not shape {state.load.shape}")
    check_table("homes", state.homes, below=workers)


def grown(state: State, tuples: int) -> State:
    return state._replace(homes=with_room(state.homes, tuples))


@kernel
def choose(scheme, state, key, now):
    cell = find(state.homes, key)
    if state.homes.values[cell] == EMPTY:
        fill(state.homes, cell, key, least_loaded_candidate(scheme, state.load, key))
    worker = state.homes.values[cell]
    state.load[worker] += 1
    return worker


@register(
    "potc",
    choose=choose,
    paper="PKG, section 3.1 (static PoTC)",
    when="a key must not be split, a table of all keys is affordable, and there is one source",
)
class StaticPotc(NamedTuple):
    """Static power of two choices: a key's first tuple picks the less loaded candidate, the rest follow it.

    Parameters
    ----------
    workers
        W, the number of workers.
    choices
        d, the number of candidates that a new key picks from.
    seed
        Which set of d hash functions.

    Examples
    --------
    >>> from unskew import Router, StaticPotc, key_ids
    >>> Router(StaticPotc(workers=8)).route(key_ids(["to", "be", "or", "not", "to", "be"])).tolist()
    [1, 0, 5, 4, 1, 0]
    """

    workers: int  # W
    choices: int = 2  # d
    seed: int = 0

    def check(self) -> None:
        require_workers(self.workers)
        check_choices(self.choices, self.seed)

    def new_state(self) -> State:
        return new_state(self.workers)

    def grown(self, state: State, tuples: int) -> State:
        return grown(state, tuples)

    def load_of(self, state: State) -> Loads:
        return state.load

    def check_state(self, state: State) -> None:
        check_state(state, self.workers)
