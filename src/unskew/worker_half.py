"""The worker half of a scheme, live: what executes tuples on the other side of a router.

It holds the loop that feeds executed tuples to a scheme's kernel ``execute``. The simulator has one for all of its
workers. Elsewhere each worker has its own.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.checks import require_integer
from unskew.contract import Conversing, Reply, Scheme, can
from unskew.errors import InputError
from unskew.hashing import KeyIds, frozen, require_key_ids
from unskew.registry import for_kernels, plain, registration_of
from unskew.states import arrays_of, read_arrays, to_bytes


class Message(NamedTuple):
    """What a worker tells after it has executed a tuple.

    Examples
    --------
    >>> from unskew.worker_half import Message
    >>> Message(position=3, worker=0, source=None, content="anything").source is None
    True
    """

    position: int  # of the tuple in its batch
    worker: int
    source: int | None  # whom it is for; None for all sources
    content: Any  # what `Router.hear` takes: a Reply, or what the worker tells all


class WorkerHalf:
    """The worker half of a scheme, for one worker or for several, numbered from 0.

    Parameters
    ----------
    scheme
        One that has a worker half, such as ``Posg(workers=5)``.
    workers
        For how many workers.
    sources
        How many sources send them tuples.

    Examples
    --------
    The worker has executed 2048 tuples of one second each, and tells what it has learnt:

    >>> import numpy as np
    >>> from unskew import Posg, Router, key_ids
    >>> from unskew.worker_half import WorkerHalf
    >>> scheme = Posg(workers=2)
    >>> keys = key_ids(np.arange(2048) % 10)
    >>> (message,) = WorkerHalf(scheme).execute(keys, seconds=np.ones(2048))
    >>> message.position, type(message.content).__name__
    (2047, 'Matrices')
    >>> Router(scheme).hear(0, message.content)
    """

    def __init__(self, scheme: Scheme, workers: int = 1, sources: int = 1) -> None:
        self._registration = registration_of(scheme)
        scheme = plain(scheme)
        scheme.check()
        if not can(scheme, Conversing):
            raise InputError(f"scheme: {self._registration.name} has no worker half")
        require_integer("workers", workers, 1, 2**31 - 1)
        require_integer("sources", sources, 1, 2**31 - 1)
        self.scheme: Any = for_kernels(scheme)
        self.states = self.scheme.new_worker_states(workers, sources)
        self._workers, self._sources = workers, sources

    def execute(
        self,
        key_ids: KeyIds,
        seconds: Any,
        workers: Any = None,
        sources: Any = None,
        tickets: Any = None,
        waited: Any = None,
    ) -> list[Message]:
        """Take in tuples that were executed, in order; returns what workers have to tell.

        Parameters
        ----------
        key_ids
            The id of the key of each tuple.
        seconds
            How long each took.
        workers, sources, tickets
            Which worker executed it, which source it came from, what it carried; left out, all are 0.
        waited
            How long the worker had nothing to do before it; left out, never.
        """
        ids = require_key_ids(key_ids)
        columns = (
            self._column("workers", workers, len(ids), self._workers),
            ids,
            _durations("seconds", seconds, len(ids)),
            _durations("waited", np.zeros(len(ids)) if waited is None else waited, len(ids)),
            self._column("sources", sources, len(ids), self._sources),
            self._column("tickets", tickets, len(ids), 2**63 - 1),
        )
        replies, told = self.take_in(columns)
        *_, senders, asked = columns
        messages = [
            Message(place, int(columns[0][place]), int(senders[place]), Reply(int(asked[place]), float(replies[place])))
            for place in np.flatnonzero(asked > 0).tolist()
        ]
        return sorted([*messages, *told], key=lambda message: (message.position, message.source is None))

    def take_in(self, columns: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.float64], list[Message]]:
        """The same, for columns of the right types that need no check, in the order of the kernel's arguments.

        Returns the reply of each tuple, which means something where it had a ticket, and what workers tell all.
        """
        replies, told, position = np.empty(len(columns[0])), [], 0
        while position < len(replies):
            position, tells = self._registration.execute_loop(self.scheme, self.states, *columns, replies, position)
            if tells:
                worker = int(columns[0][position - 1])
                told.append(Message(position - 1, worker, None, self.scheme.tell(self.states, worker)))
        return replies, told

    def _column(self, name: str, given: Any, tuples: int, below: int) -> npt.NDArray[np.int64]:
        array = np.zeros(tuples, np.int64) if given is None else np.asarray(given)
        if array.shape != (tuples,) or array.dtype.kind not in "iu":
            raise InputError(f"{name}: must be one whole number per tuple ({tuples}), not {given!r:.80}")
        if tuples and not 0 <= array.min() <= array.max() < below:
            raise InputError(f"{name}: must be whole numbers from 0 to {below - 1}, not {given!r:.80}")
        return frozen(array.astype(np.int64, copy=False))

    def to_bytes(self) -> bytes:
        """The states, without pickle: the npz of their arrays."""
        return to_bytes(self.states)

    @classmethod
    def from_bytes(cls, scheme: Scheme, data: bytes, workers: int = 1, sources: int = 1) -> "WorkerHalf":
        """What `to_bytes` wrote, for the same scheme and workers; there may be more sources now."""
        half = cls(scheme, workers, sources)
        fresh, loaded = arrays_of(half.states), read_arrays(data, "WorkerHalf.to_bytes")
        if set(fresh) != set(loaded):
            raise InputError(f"data: must have the arrays {sorted(fresh)}, not {sorted(loaded)}")
        for name, array in loaded.items():
            new = fresh[name]
            fits = array.dtype == new.dtype and array.ndim == new.ndim
            if not fits or any(n > room for n, room in zip(array.shape, new.shape, strict=True)):
                raise InputError(f"data: {name} must fit into {new.dtype}{new.shape}, not {array.dtype}{array.shape}")
            new[tuple(slice(n) for n in array.shape)] = array
        return half

    def quiet_for(self) -> npt.NDArray[np.int64]:
        """How many tuples each worker must execute before it can have something to tell that nobody asked."""
        quiet: npt.NDArray[np.int64] = self.scheme.quiet_for(self.states)
        return np.maximum(quiet, 1)


def _durations(name: str, given: Any, tuples: int) -> npt.NDArray[np.float64]:
    array = np.asarray(given, np.float64)
    if array.shape != (tuples,) or not ((array >= 0) & (array < np.inf)).all():
        raise InputError(f"{name}: must be one finite number from 0 on per tuple ({tuples})")
    return frozen(array)
