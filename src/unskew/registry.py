"""The registry of schemes: `register` enters one, `lookup` finds it by name, `make` makes an instance of it.

To add a scheme, write one file in ``schemes/``; importing ``unskew.schemes`` imports all of them.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from unskew import conversing
from unskew.contract import Conversing, Offline, Plannable, Replanning, Scheme, can, check_class
from unskew.errors import InputError, InputTypeError
from unskew.hashing import frozen
from unskew.kernels import kernel, loop_over
from unskew.plan import PLANNERS

BATCH_LOOP = """
def loop(scheme, state, key_ids, times, chosen):
    for i in range(len(key_ids)):
        chosen[i] = step(scheme, state, key_ids[i], times[i])
"""
COST_LOOP = """
def loop(scheme, state, key_ids, times, costs, chosen):
    for i in range(len(key_ids)):
        chosen[i] = step(scheme, state, key_ids[i], times[i], costs[i])
"""
TICKET_LOOP = """
def loop(scheme, state, key_ids, times, tickets, chosen):
    for i in range(len(key_ids)):
        chosen[i], tickets[i] = step(scheme, state, key_ids[i], times[i])
"""
EXECUTE_LOOP = """
def loop(scheme, states, workers, key_ids, seconds, waited, sources, tickets, replies, i):
    while i < len(key_ids):
        tells, replies[i] = step(scheme, states, workers[i], key_ids[i], seconds[i], waited[i], sources[i], tickets[i])
        i += 1
        if tells:
            return i, True
    return i, False
"""
REPLY_LOOP = """
def loop(scheme, state, workers, tickets, replies):
    for i in range(len(workers)):
        step(scheme, state, workers[i], tickets[i], replies[i])
"""

PARAMETERS = ("scheme", "state", "key", "now")  # of `choose`
TOLD_COSTS = (*PARAMETERS, "cost")


@dataclass(frozen=True)
class Registration:
    """What the registry knows of a scheme."""

    name: str
    type: Any
    choose: Callable[..., int]
    paper: str
    when: str
    execute: Callable[..., tuple[bool, float]] | None = None
    hear_reply: Callable[..., None] | None = None
    message: type | None = None  # what its workers tell

    @cached_property  # routers ask for every batch
    def knows_cost(self) -> bool:
        """Whether its kernel is told the cost of each tuple."""
        return _parameters(self.choose) == TOLD_COSTS

    @property
    def by_cost(self) -> bool:
        """Whether it balances the cost of tuples: without one it is round robin."""
        return self.knows_cost or self.execute is not None

    @property
    def offline(self) -> bool:
        """Whether the scheme must know the key frequencies before the first tuple."""
        return can(self.type, Offline)

    @property
    def modes(self) -> tuple[str, ...]:
        """How it can run on Spark: by a plan made beforehand, by live routers that need not agree on a table."""
        alone = not self.offline and not can(self.type, Replanning)
        return ("planned",) * can(self.type, Plannable) + ("online",) * alone

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters with their defaults; an offline scheme has none to set."""
        return {} if self.offline else dict(self.type._field_defaults)

    def __getstate__(self) -> dict[str, Any]:
        loops = ("loop", "conversing_loop", "execute_loop", "reply_loop")  # compiled where it arrives
        return {name: value for name, value in self.__dict__.items() if name not in loops}

    @cached_property
    def loop(self) -> Callable[..., None]:
        source = COST_LOOP if self.knows_cost else BATCH_LOOP if self.execute is None else TICKET_LOOP
        return loop_over(source, f"route_{self.name}", step=self.choose)

    @cached_property
    def conversing_loop(self) -> Callable[..., tuple[int, int]]:
        """Routes tuples, lets workers execute them, and hears replies; see `conversing`."""
        assert self.execute is not None
        halves = {"choose": self.choose, "execute": self.execute, "hear_reply": self.hear_reply}
        return loop_over(conversing.LOOP, f"converse_{self.name}", **halves, **conversing.STEPS)

    @cached_property
    def reply_loop(self) -> Callable[..., None]:
        assert self.hear_reply is not None
        return loop_over(REPLY_LOOP, f"hear_{self.name}", step=self.hear_reply)

    @cached_property
    def execute_loop(self) -> Callable[..., tuple[int, bool]]:
        assert self.execute is not None
        return loop_over(EXECUTE_LOOP, f"execute_{self.name}", step=self.execute)


SCHEMES: dict[str, Registration] = {}
SchemeType = TypeVar("SchemeType", bound=type)


def register(
    name: str,
    *,
    choose: Callable[..., Any],
    paper: str,
    when: str,
    execute: Callable[..., tuple[bool, float]] | None = None,
    hear_reply: Callable[..., None] | None = None,
    message: type | None = None,
) -> Callable[[SchemeType], SchemeType]:
    """Enter a scheme under a name, as a decorator of its class.

    The class is checked (`contract.check_class`): its public methods must be those of the contract.

    Parameters
    ----------
    name
        What users call the scheme; an identifier.
    choose
        Its kernel, ``choose(scheme, state, key, now) -> worker``, with these names; `key` is a key id. One that must
        know the cost of a tuple takes ``(scheme, state, key, now, cost)``. That of a scheme with a worker half returns
        ``(worker, ticket)``.
    paper
        Where it comes from.
    when
        One line on when to use it.
    execute, hear_reply, message
        The kernel of its worker half, where it has one, that for replies, and the type of what workers tell: see
        `contract.Conversing`.

    Examples
    --------
    A scheme that sends everything to worker 0:

    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> from unskew import SCHEMES, Router, key_ids, register
    >>> class State(NamedTuple):
    ...     nothing: np.ndarray
    >>> def choose(scheme, state, key, now):
    ...     return 0
    >>> @register("first", choose=choose, paper="none", when="never")
    ... class First(NamedTuple):
    ...     workers: int
    ...     def check(self): pass
    ...     def new_state(self): return State(np.zeros(0))
    >>> Router(First(workers=4)).route(key_ids(["the", "cat"])).tolist()
    [0, 0]
    >>> del SCHEMES["first"]
    """

    def enter(cls: SchemeType) -> SchemeType:
        if not name.isidentifier():
            raise InputError(f"scheme: the name must be an identifier, such as my_scheme, not {name!r}")
        known = SCHEMES.get(name)
        if known is not None and _address(known.type) != _address(cls):
            raise InputError(f"scheme: the name {name!r} is taken by {known.type.__qualname__}")
        check_class(cls)
        if _parameters(choose) not in (PARAMETERS, TOLD_COSTS):
            raise InputError(
                f"scheme: the parameters of {name}'s choose must be {', '.join(PARAMETERS)} and, if it is told costs, "
                f"cost, not {', '.join(_parameters(choose)) or 'none'}"
            )
        half = (execute, hear_reply, message)
        kernels = _compiled(choose), _compiled(execute), _compiled(hear_reply)
        registration = Registration(name, cls, kernels[0], paper, when, kernels[1], kernels[2], message)
        if any(can(cls, Conversing) != (each is not None) for each in half):
            raise InputError(
                f"scheme: {name} needs the methods of Conversing, execute, hear_reply and message, or none of them"
            )
        if execute is not None and registration.knows_cost:
            raise InputError(f"scheme: {name} cannot both be told costs and have a worker half")
        SCHEMES[name] = registration
        if can(cls, Plannable):
            PLANNERS.add(name)
        return cls

    return enter


def _parameters(choose: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(getattr(choose, "py_func", choose)).parameters)


def _compiled(function: Any) -> Any:
    return function if function is None or hasattr(function, "py_func") else kernel(function)


def adopt(sent: Registration) -> None:
    """Enter a scheme that another process has sent, unless it is known here."""
    if SCHEMES.setdefault(sent.name, sent).type is not sent.type and sent.type.__module__ == "__main__":
        SCHEMES[sent.name] = sent  # a script's or notebook's class is made anew in each process that gets it


def _address(cls: Any) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__  # the same for a module that is loaded again


def lookup(name: str) -> Registration:
    """The registration of the scheme called `name`."""
    if not isinstance(name, str) or name not in SCHEMES:
        raise InputError(f"scheme: {name!r} is not known; allowed are {', '.join(sorted(SCHEMES))}")
    return SCHEMES[name]


def registration_of(scheme: Scheme) -> Registration:
    """The registration of the class that `scheme` is an instance of."""
    for registration in SCHEMES.values():
        if registration.type is type(scheme):
            return registration
    if isinstance(scheme, str):
        raise InputTypeError(f"scheme: must be a scheme such as make({scheme!r}, workers=16), not the name {scheme!r}")
    raise InputTypeError(
        f"scheme: must be a scheme such as make('pkg', workers=16), not a {type(scheme).__name__}; "
        "decorate one of your own with @register"
    )


def make(name: str, workers: int, **parameters: Any) -> Scheme:
    """The scheme called `name`, checked. An offline scheme is made with its ``fit`` instead.

    Parameters
    ----------
    name
        One of `SCHEMES`, such as ``"pkg"``.
    workers
        W, the number of workers.
    parameters
        What else the scheme takes; what is left out has its default.

    Examples
    --------
    >>> from unskew import make
    >>> make("pkg", workers=16, choices=3)
    PartialKey(workers=16, choices=3, seed=0)
    """
    registration = lookup(name)
    if registration.offline:
        raise InputError(
            f"scheme: {name} is offline, it needs the frequencies of all keys: "
            f"{registration.type.__name__}.fit(workers, key_ids, counts)"
        )
    unknown = sorted(set(parameters) - set(registration.parameters))
    if unknown:
        allowed = ", ".join(f"{k}={v}" for k, v in registration.parameters.items()) or "none"
        raise InputError(f"{unknown[0]}: not a parameter of {name}; allowed (with defaults): {allowed}")
    scheme: Scheme = plain(registration.type(workers, **parameters))
    scheme.check()
    return scheme


def plain(scheme: Any) -> Any:
    """The scheme with Python's integers for numpy's, whose products may overflow."""
    return type(scheme)(*(int(value) if isinstance(value, np.integer) else value for value in scheme))


def for_kernels(scheme: Any) -> Any:
    """The scheme with floats for all numbers that may be one, so that one loop is compiled, and arrays read-only."""
    kinds = getattr(type(scheme), "__annotations__", {})
    floats = {name for name in scheme._fields if kinds.get(name) in (float, "float")}
    arrays = {name: frozen(value) for name, value in scheme._asdict().items() if isinstance(value, np.ndarray)}
    return scheme._replace(**arrays, **{name: float(getattr(scheme, name)) for name in floats})
