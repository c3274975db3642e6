"""State that is moved when a scheme which keeps keys whole replaces its table of them, or workers come and go.

Which keys have state, and how much, is counted here from the first tuple on: the scheme itself knows the frequent keys
of late only. As in Gedik's paper the stream is suspended while state is moved. All workers send and receive at the same
time, so it is suspended for as long as the one takes that has the most to send and receive. What a crashed worker had
is lost.
"""

from typing import Any

import numpy as np

from unskew.hashing import KeyIds, frozen
from unskew.members import Names
from unskew.router import Router
from unskew.simulate.metrics import KeyCounter


class Migration:
    """The state of all keys, and what has been moved of it so far."""

    def __init__(self, router: Router, seconds: float, names: int) -> None:
        self.replans = self.moved_keys = 0
        self.moved_state = 0.0
        self._router, self._seconds, self._names = router, seconds, names
        self._keys = KeyCounter()

    def count(self, key_ids: KeyIds) -> None:
        """These tuples go to their workers."""
        self._keys.count(key_ids)

    def homes(self) -> Names:
        """The name of the worker that has the state of each key so far."""
        router = self._router
        scheme: Any = router.scheme
        names: Names = router.members[scheme.homes(router.state, frozen(self._keys.ids))]
        return names

    def move(self, before: Names, crashed: tuple[int, ...] = ()) -> float:
        """Move the state of keys that were on the workers `before` to where they belong now; how long that takes."""
        after = self.homes()
        moved = np.flatnonzero((before != after) & ~np.isin(before, crashed))
        scheme: Any = self._router.scheme
        state = scheme.sizes(self._keys.counts[moved])
        self.moved_keys += len(moved)
        self.moved_state += float(state.sum())
        passing = np.bincount(before[moved], state, self._names) + np.bincount(after[moved], state, self._names)
        return self._seconds * float(passing.max(initial=0.0))

    def totals(self) -> dict[str, Any]:
        """The fields of a Result."""
        return {"replans": self.replans, "moved_keys": self.moved_keys, "moved_state": self.moved_state}
