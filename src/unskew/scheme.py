"""The contract of a scheme, the registry, and the router: one source's live scheme.

A *scheme* is a NamedTuple of parameters with a kernel ``choose(scheme, state, key_id, now) -> worker``. A *router* is a
scheme with its state, and holds the one batch loop of the project: the simulator and Spark both call `Router.route`.

To add a scheme, write one file in ``schemes/``: docstring (paper, section, every deviation), ``State``, ``choose``, and
the class under ``@register``. All checks of the test suite then run on it.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from unskew.checks import require_integer as require_integer  # this and the next: part of the contract
from unskew.checks import require_number as require_number
from unskew.errors import InputError, InputTypeError
from unskew.hashing import KeyIds, frozen, require_key_ids
from unskew.kernels import kernel, loop_over
from unskew.members import Names, checked_report, require_members, resized
from unskew.members import WorkerReport as WorkerReport  # part of the contract
from unskew.plan import Frequencies, Plan

Times = npt.NDArray[np.float64]
Workers = npt.NDArray[np.int32]

BATCH_LOOP = """
def loop(scheme, state, key_ids, times, chosen):
    for i in range(len(key_ids)):
        chosen[i] = choose(scheme, state, key_ids[i], times[i])
"""
UNREADABLE = (
    EOFError,
    KeyError,
    MemoryError,
    OSError,
    RuntimeError,  # an entry that claims to be encrypted, or packed in a way that is not known
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
GROWTH_STEP = 65_536  # tuples routed between two looks at whether a growing state still has room
MOST_WORKERS = 2**31 - 1  # Spark counts partitions in an int
MOST_PLANNED_WORKERS = 1_000_000  # a plan is made by looking at each worker


class Scheme(Protocol):
    """What the class under `register` has. Its fields are the parameters; all but ``workers`` have defaults.

    More methods are optional. ``fit(workers, key_ids, counts)`` (a class method) makes an *offline* scheme from the
    frequencies of all keys. ``grown(state, tuples)`` returns the state with room for `tuples` more keys, for a state
    that grows with the keys. ``check_state(state)`` raises an InputError unless a loaded state fits the scheme.
    ``describe()`` returns the parameters worth showing, where the fields are not. ``plan(workers, frequencies,
    **parameters)`` (a class method) makes a `Plan` that can run without a router.

    ``observe(state, report)`` takes in what workers tell (a `WorkerReport`) by changing the state's arrays in place; a
    scheme that has it also has ``report_every``, the seconds from one report to the next. ``resized(state, before,
    after)`` returns the scheme and the state for the workers named `after` instead of those named `before` (int64
    arrays, one name per worker, by index). A scheme without it is resized as `members.resized` says, or refuses.
    """

    @property
    def workers(self) -> int:
        """W, the first field."""

    def check(self) -> None:
        """Raise an InputError that names the parameter, the rule and the value."""

    def new_state(self) -> Any:
        """A NamedTuple of C-contiguous arrays that share no memory with another state.

        An array called ``load`` must be int64[workers], the tuples that each worker got as far as this source knows: a
        probe overwrites it with the true ones.
        """


@dataclass(frozen=True)
class Registration:
    """A scheme's entry in the registry."""

    name: str
    type: Any
    choose: Callable[..., int]
    paper: str
    when: str

    @property
    def offline(self) -> bool:
        """Whether the scheme must know the key frequencies before the first tuple."""
        return hasattr(self.type, "fit")

    @property
    def modes(self) -> tuple[str, ...]:
        """How it can run on Spark: by a plan made beforehand, by live routers."""
        return ("planned",) * hasattr(self.type, "plan") + ("online",) * (not self.offline)

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters with their defaults; an offline scheme has none to set."""
        return {} if self.offline else dict(self.type._field_defaults)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "loop"}  # compiled where it arrives

    @cached_property
    def loop(self) -> Callable[..., None]:
        return loop_over(BATCH_LOOP, f"route_{self.name}", self.choose)


SCHEMES: dict[str, Registration] = {}
SchemeType = TypeVar("SchemeType", bound=type)


def register(name: str, *, choose: Callable[..., int], paper: str, when: str) -> Callable[[SchemeType], SchemeType]:
    """Enter a scheme under `name`; `paper` cites it and `when` says in one line when to use it."""

    def enter(cls: SchemeType) -> SchemeType:
        if not name.isidentifier():
            raise InputError(f"scheme: the name must be an identifier, such as my_scheme, not {name!r}")
        known = SCHEMES.get(name)
        if known is not None and _address(known.type) != _address(cls):
            raise InputError(f"scheme: the name {name!r} is taken by {known.type.__qualname__}")
        compiled = choose if hasattr(choose, "py_func") else kernel(choose)
        SCHEMES[name] = Registration(name, cls, compiled, paper, when)
        return cls

    return enter


def adopt(entry: Registration) -> None:
    """Enter a scheme that comes from another process, where it is not known here."""
    if SCHEMES.setdefault(entry.name, entry).type is not entry.type and entry.type.__module__ == "__main__":
        SCHEMES[entry.name] = entry  # a script's or notebook's class is made anew in each process that gets it


def _address(cls: Any) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__  # the same for a module that is loaded again


def registration(name: str) -> Registration:
    """The entry of the scheme called `name`."""
    if name not in SCHEMES:
        raise InputError(f"scheme: {name!r} is not known; allowed are {', '.join(sorted(SCHEMES))}")
    return SCHEMES[name]


def registration_of(scheme: Scheme) -> Registration:
    """The entry that `scheme` is an instance of."""
    for entry in SCHEMES.values():
        if entry.type is type(scheme):
            return entry
    raise InputTypeError(f"scheme: {type(scheme).__name__} is not registered; decorate it with @register")


def make(name: str, workers: int, **parameters: Any) -> Scheme:
    """The scheme called `name`, checked. An offline scheme is made with its ``fit`` instead."""
    entry = registration(name)
    if entry.offline:
        raise InputError(
            f"scheme: {name} is offline, it needs the frequencies of all keys: "
            f"{entry.type.__name__}.fit(workers, key_ids, counts)"
        )
    unknown = sorted(set(parameters) - set(entry.parameters))
    if unknown:
        allowed = ", ".join(f"{k}={v}" for k, v in entry.parameters.items()) or "none"
        raise InputError(f"{unknown[0]}: not a parameter of {name}; allowed (with defaults): {allowed}")
    scheme: Scheme = plain(entry.type(workers, **parameters))
    scheme.check()
    return scheme


def plain(scheme: Any) -> Any:
    """The scheme with Python's integers for numpy's, whose products may overflow."""
    return type(scheme)(*(int(value) if isinstance(value, np.integer) else value for value in scheme))


def _for_kernels(scheme: Any) -> Any:
    """The scheme with floats for all numbers that may be one, so that one loop is compiled, and arrays read-only."""
    kinds = getattr(type(scheme), "__annotations__", {})
    floats = {name for name in scheme._fields if kinds.get(name) in (float, "float")}
    arrays = {name: frozen(value) for name, value in scheme._asdict().items() if isinstance(value, np.ndarray)}
    return scheme._replace(**arrays, **{name: float(getattr(scheme, name)) for name in floats})


def make_plan(name: str, workers: int, frequencies: Frequencies, **parameters: Any) -> Plan:
    """The plan that the scheme called `name` makes for measured `frequencies`."""
    plan: Plan = check_plannable(name, workers, **parameters).type.plan(workers, frequencies.merged(), **parameters)
    return plan


def check_plannable(name: str, workers: int, **parameters: Any) -> Registration:
    """The entry of `name`, after every reason why it cannot make a plan."""
    entry = registration(name)
    require_integer("workers", workers, 1, MOST_PLANNED_WORKERS)
    if "planned" not in entry.modes:
        able = ", ".join(sorted(name for name, entry in SCHEMES.items() if "planned" in entry.modes))
        raise InputError(f"scheme: {name} cannot be planned; allowed are {able}")
    if not entry.offline:
        make(name, workers, **parameters)
    elif parameters:
        raise InputError(f"{min(parameters)}: not a parameter of {name}; it has none")
    return entry


def require_workers(workers: Any) -> None:
    require_integer("workers", workers, 1, MOST_WORKERS)


class Router:
    """One source's live scheme. Knows only what it has routed itself."""

    def __init__(self, scheme: Scheme, state: Any = None, members: Names | None = None) -> None:
        self._entry = registration_of(scheme)
        scheme = plain(scheme)
        scheme.check()
        self._continue_with(scheme, scheme.new_state() if state is None else _checked_state(scheme, state), members)
        self._one_at_a_time = Lock()  # kernels run without Python's own lock, and a table must not fill up unseen

    def _continue_with(self, scheme: Scheme, state: Any, members: Names | None) -> None:
        members = None if members is None else require_members(members, MOST_WORKERS)
        if members is not None and len(members) != scheme.workers:
            raise InputError(f"members: must be one name a worker ({scheme.workers}), not {len(members)}")
        self.state, self._members, self.scheme = state, members, _for_kernels(scheme)

    @property
    def members(self) -> Names:
        """The name of each worker, by index; at the start its own index."""
        return np.arange(self.scheme.workers, dtype=np.int64) if self._members is None else self._members

    def workers_changed(self, members: Iterable[int]) -> None:
        """From now on there are the workers named `members`, with indices in that order. See `members.resized`."""
        after = require_members(members, MOST_WORKERS)
        with self._one_at_a_time:
            scheme, state = resized(self._entry.name, self.scheme, self.state, self.members, after)
            scheme.check()
            self._continue_with(scheme, _checked_state(scheme, state), after)

    @property
    def listens(self) -> bool:
        """Whether `observe` has any effect."""
        return hasattr(self.scheme, "observe")

    def observe(self, report: WorkerReport) -> None:
        """Tell the scheme what its workers report, where it listens."""
        checked = checked_report(report, self.scheme.workers)
        if self.listens:
            with self._one_at_a_time:
                self.scheme.observe(self.state, checked)

    def route(self, key_ids: KeyIds, times: Times | None = None) -> Workers:
        """The worker of each tuple, in order. `times` are seconds; left out, all are 0.

        Cutting a batch in two never changes an answer.
        """
        ids = require_key_ids(key_ids)
        moments = np.zeros(len(ids)) if times is None else _numbers(times)
        if moments.shape != ids.shape:
            raise InputError(f"times: must have one entry a tuple ({len(ids)}), not shape {moments.shape}")
        moments = frozen(moments)
        chosen = np.empty(len(ids), np.int32)
        with self._one_at_a_time:
            for part in self._parts(len(ids)):
                self._entry.loop(self.scheme, self.state, ids[part], moments[part], chosen[part])
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < self.scheme.workers:
            wrong = chosen.min() if chosen.min() < 0 else chosen.max()
            raise InputError(
                f"scheme: {self._entry.name} chose worker {wrong}, not one of 0..{self.scheme.workers - 1}"
            )
        return chosen

    def _parts(self, tuples: int) -> Iterable[slice]:
        """The whole batch at once, or in steps between which a growing state is given room."""
        grown = getattr(self.scheme, "grown", None)
        if grown is None:
            yield slice(0, tuples)
            return
        for start in range(0, tuples, GROWTH_STEP):
            self.state = grown(self.state, min(GROWTH_STEP, tuples - start))
            yield slice(start, start + GROWTH_STEP)

    def __reduce__(self) -> tuple[Any, ...]:
        return Router, (self.scheme, self.state, self._members)

    def to_bytes(self) -> bytes:
        """The state, without pickle: the npz of its arrays."""
        buffer = io.BytesIO()
        np.savez(buffer, **self.state._asdict())
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, scheme: Scheme, data: bytes, members: Names | None = None) -> "Router":
        """The router whose state `to_bytes` wrote, for the same scheme; `members` where its workers had changed."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                loaded = {name: np.ascontiguousarray(arrays[name]) for name in arrays.files}
        except UNREADABLE:
            raise InputError("data: not what to_bytes wrote") from None
        scheme.check()
        fresh = scheme.new_state()
        if set(loaded) != set(fresh._fields):
            raise InputError(f"data: has the arrays {sorted(loaded)}, the scheme's state {sorted(fresh._fields)}")
        return cls(scheme, type(fresh)(**loaded), members)


def _checked_state(scheme: Scheme, state: Any) -> Any:
    """`state`, after every reason to refuse it: kernels trust its arrays with their memory."""
    fresh = scheme.new_state()
    if getattr(state, "_fields", None) != fresh._fields:
        raise InputError(f"data: the state must have the arrays {', '.join(fresh._fields)}, not those of {state!r:.80}")
    for name, expected, array in zip(fresh._fields, fresh, state, strict=True):
        grows = hasattr(scheme, "grown")  # then check_state knows the shapes that fit
        if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
            raise InputError(f"data: {name} must be a C-contiguous array, not {type(array).__name__}")
        if array.dtype != expected.dtype or (array.shape != expected.shape and not grows):
            raise InputError(
                f"data: {name} is {array.dtype}{array.shape}, the scheme's is {expected.dtype}{expected.shape}"
            )
    if hasattr(scheme, "check_state"):
        scheme.check_state(state)
    return state


def _numbers(times: Any) -> Times:
    array = np.asarray(times)
    if array.dtype.kind not in "iuf":
        raise InputTypeError(f"times: must be numbers of seconds, not {array.dtype}")
    return array.astype(np.float64, copy=False)
