"""The contract of a scheme: what each one has, and what it may be able to do besides.

A *scheme* is a NamedTuple of parameters with a kernel ``choose(scheme, state, key, now) -> worker``. A kernel with a
fifth parameter, ``cost``, is told the cost of each tuple. Everything else that a scheme can do is an *ability*: one of
the small protocols below. A scheme has an ability when its class defines the methods of that protocol; nothing has to
be declared twice. `registry.register` calls `check_class`, which refuses a public method that no ability knows, or one
with other parameters, so that a misspelt method cannot be overlooked.
"""

import difflib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.frequencies import Frequencies
from unskew.hashing import KeyIds
from unskew.members import Names
from unskew.plan import Plan
from unskew.worker_report import WorkerReport

Times = npt.NDArray[np.float64]  # seconds
Workers = npt.NDArray[np.int32]  # indices of workers
Sources = npt.NDArray[np.int32]  # numbers of sources
Loads = npt.NDArray[np.int64]  # tuples per worker
Tickets = npt.NDArray[np.int64]  # what tuples carry for their workers; 0 for nothing


class Reply(NamedTuple):
    """What a worker replies to a source that gave it a ticket."""

    ticket: int
    number: float


class Scheme(Protocol):
    """What every scheme has. Its fields are the parameters; all but ``workers`` have defaults.

    Examples
    --------
    >>> from unskew import PartialKey, Scheme
    >>> def double(scheme: Scheme) -> Scheme:
    ...     return scheme._replace(workers=2 * scheme.workers)
    >>> double(PartialKey(workers=8))
    PartialKey(workers=16, choices=2, seed=0)
    """

    @property
    def workers(self) -> int:
        """W, the first field."""

    def check(self) -> None:
        """Raise an InputError that names the parameter, the rule and the value."""

    def new_state(self) -> Any:
        """A NamedTuple of C-contiguous arrays, or of such NamedTuples, that shares no memory with another state."""


class Offline(Protocol):
    """It must know the frequencies of all keys before the first tuple, and is made from them."""

    @classmethod
    def fit(cls, workers: int, key_ids: KeyIds, counts: npt.NDArray[np.int64]) -> Scheme:
        """The scheme for a stream in which key ``key_ids[i]`` occurs ``counts[i]`` times."""


class Plannable(Protocol):
    """It can make a plan from measured frequencies, which runs without a router. May take its parameters besides."""

    @classmethod
    def plan(cls, workers: int, frequencies: Frequencies) -> Plan:
        """The plan for these frequencies."""


class Growing(Protocol):
    """Its state grows with the keys."""

    def grown(self, state: Any, tuples: int) -> Any:
        """The state, or a larger copy, with room for `tuples` more keys."""


class Listening(Protocol):
    """It listens to its workers."""

    @property
    def report_every(self) -> float:
        """Seconds from one worker report to the next."""

    def observe(self, state: Any, report: WorkerReport) -> None:
        """Take in what workers report, by changing the state's arrays in place."""


class Conversing(Protocol):
    """It has a *worker half*: its workers learn from what they execute, and have messages for its sources.

    A source asks by a *ticket*, a whole number above 0 that travels with a tuple: ``choose`` returns ``(worker,
    ticket)``. The kernel ``execute(scheme, states, worker, key_id, seconds, waited, source, ticket)`` takes in a tuple
    that the worker has executed in so many seconds, after it had waited for work. It returns ``(tells, reply)``:
    whether the worker has something to tell all sources now, and the number that it replies to the ticket, where there
    is one. The kernel ``hear_reply(scheme, state, worker, ticket, reply)`` takes that in at the source. What carries
    messages and tickets knows no scheme.
    """

    def new_worker_states(self, workers: int, sources: int) -> Any:
        """The states of so many workers in one NamedTuple of arrays, each with a row per worker, or shared by all.

        With more sources, arrays may be longer; what was there before keeps its place.
        """

    def tell(self, states: Any, worker: int) -> Any:
        """What the worker tells all sources, once `execute` has said so.

        A NamedTuple of arrays, of the type that was registered, that shares no memory with the states, which it may
        change.
        """

    def hear(self, state: Any, worker: int, message: Any) -> None:
        """Take in what a worker tells, by changing the state's arrays in place."""

    def may_ask(self, state: Any) -> bool:
        """Whether the next tuple may carry a ticket. Only `hear` and such a tuple itself change the answer."""

    def quiet_for(self, states: Any) -> Loads:
        """How many tuples each worker must execute before it can have something to tell that nobody asked: at least 1.

        It may have it with the last of them. Simulations need not stop before.
        """


class Resizable(Protocol):
    """It follows workers that come and go by rules of its own; `resizing.resize` has those for simple schemes."""

    def resized(self, state: Any, before: Names, after: Names) -> tuple[Any, Any]:
        """The scheme and the state for the workers named `after` in the place of those named `before`."""


class Replanning(Protocol):
    """It keeps each key on one worker, and replaces its table of them now and then: state must then be moved.

    All sources of a stream share one router, since tables of their own would split keys.
    """

    @property
    def replan_every(self) -> int:
        """Tuples from one look at the loads to the next."""

    def replanned(self, state: Any, members: Names) -> Any:
        """The state to go on with, for the same workers: another one, or the same where the table stays."""

    def homes(self, state: Any, key_ids: KeyIds) -> Workers:
        """The worker that has the state of each key, by index."""

    def sizes(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """How much state keys have of which so many tuples came."""


class LoadAware(Protocol):
    """It estimates how much each worker got. Probes overwrite the estimate with the truth."""

    def load_of(self, state: Any) -> Loads:
        """The estimate itself, not a copy: one int64 per worker, the tuples that it got as far as this source knows."""


class Staggered(Protocol):
    """It goes round its workers. Sources that all began at the same place would stay in step and send bursts."""

    def stagger(self, state: Any, source: int) -> None:
        """Move the fresh state of source number `source` to a place of its own; source 0 stays where it is."""


class SelfChecking(Protocol):
    """It checks more of a loaded state than names, types and shapes of the arrays."""

    def check_state(self, state: Any) -> None:
        """Raise an InputError unless the state fits the scheme: kernels trust it with their memory."""


class Described(Protocol):
    """Its parameters are too large to show."""

    def describe(self) -> dict[str, Any]:
        """What to show in their place."""


ABILITIES: tuple[type, ...] = (
    Offline,
    Plannable,
    Growing,
    Listening,
    Conversing,
    Resizable,
    Replanning,
    LoadAware,
    Staggered,
    SelfChecking,
    Described,
)
TAKES_PARAMETERS = "plan"  # besides the arguments of the protocol


def can(scheme: Any, ability: type) -> bool:
    """Whether a scheme, or a class of schemes, has `ability`."""
    return _has(scheme if isinstance(scheme, type) else type(scheme), ability)


@cache  # routers ask for every batch, and batches may be small
def _has(cls: type, ability: type) -> bool:
    return all(hasattr(cls, name) for name, _ in _members(ability))


def check_class(cls: Any) -> None:
    """InputError unless `cls` has what a scheme has, and all its other public methods are those of abilities."""
    fields = getattr(cls, "_fields", ())
    if not isinstance(cls, type) or not fields:
        raise InputError(f"scheme: must be a class that derives from NamedTuple, not {cls!r:.80}")
    if fields[0] != "workers":
        raise InputError(f"scheme: the first field of {cls.__name__} must be workers, not {fields[0]}")
    known = dict(_members(Scheme)) | {name: member for ability in ABILITIES for name, member in _members(ability)}
    for name in _public_names(cls):
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else f"; known are {', '.join(sorted(known))}"
            raise InputError(f"scheme: {cls.__name__} has a public method {name} that no ability knows{hint}")
        _check_member(cls, name, known[name])
    for protocol in (Scheme, *ABILITIES):
        wanted = [name for name, _ in _members(protocol) if name != "workers"]
        missing = [name for name in wanted if not hasattr(cls, name)]
        if missing and (protocol is Scheme or len(missing) < len(wanted)):
            has = ", ".join(name for name in wanted if name not in missing) or "nothing of it"
            raise InputError(f"scheme: {cls.__name__} must have {missing[0]} too: it has {has}")


def _members(protocol: type) -> Iterator[tuple[str, Any]]:
    return ((name, member) for name, member in vars(protocol).items() if not name.startswith("_"))


def _public_names(cls: Any) -> list[str]:
    """What the class defines itself, besides its fields and what every NamedTuple has."""
    inherited = {*cls._fields, *dir(tuple)}
    return [name for name in vars(cls) if not name.startswith("_") and name not in inherited]


def _check_member(cls: Any, name: str, expected: Any) -> None:
    """InputError unless `cls` has `name` as the protocol does: a property, a class method or a method, and its
    parameters."""
    found = inspect.getattr_static(cls, name)
    if isinstance(expected, property):
        if not isinstance(found, property):
            raise InputError(f"scheme: {cls.__name__}.{name} must be a property")
        return
    if isinstance(found, classmethod) != isinstance(expected, classmethod) or not callable(getattr(cls, name)):
        kind = "a class method" if isinstance(expected, classmethod) else "a method"
        raise InputError(f"scheme: {cls.__name__}.{name} must be {kind}")
    wanted, given = _parameters(expected), _parameters(found)
    more = given[len(wanted) :]
    same = [p.name for p in given[: len(wanted)]] == [p.name for p in wanted]
    if not same or not all(_is_optional(p) and name == TAKES_PARAMETERS for p in more):
        takes, has = (", ".join(p.name for p in parameters) for parameters in (wanted, given))
        raise InputError(f"scheme: {cls.__name__}.{name} must take ({takes}), not ({has})")


def _parameters(function: Any) -> list[inspect.Parameter]:
    plain: Callable[..., Any] = getattr(function, "__func__", function)
    return list(inspect.signature(plain).parameters.values())


def _is_optional(parameter: inspect.Parameter) -> bool:
    return parameter.default is not parameter.empty or parameter.kind is parameter.VAR_KEYWORD
