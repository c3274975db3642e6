"""What the sources and workers of a run start with, where it goes at its end, and the messages between them.

The driver keeps it from one run to the next, or, on a stream, files in the checkpoint do (`streaming/router_files.py`,
`streaming/half_files.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from unskew.contract import Reply, Scheme
from unskew.registry import registration_of
from unskew.router import Router
from unskew.states import read_arrays


class Sources(Protocol):
    """What the routers of a run start as, and where their states go at its end."""

    def router(self, scheme: Scheme, source: int) -> Router: ...

    def keep(self, router: Router, source: int) -> bytes | None:
        """Keep the state of a router for the next run. Returns what travels to the driver, if anything."""


class KnownSources(NamedTuple):
    """Sources whose routers the driver knows."""

    known: Mapping[int, bytes]  # by number
    newcomer: bytes | None  # others; None: empty

    def router(self, scheme: Scheme, source: int) -> Router:
        start = self.known.get(source, self.newcomer)
        return Router(scheme, source=source) if start is None else Router.from_bytes(scheme, start)

    def keep(self, router: Router, source: int) -> bytes | None:
        return router.to_bytes()


class Start(NamedTuple):
    """What a worker starts a run with."""

    half: bytes | None
    idle: float  # seconds that it had nothing to do before this run
    sources: int


class Halves(Protocol):
    """What the workers of a run start with, and where what they tell goes at its end."""

    def start(self, scheme: Scheme, worker: int) -> Start: ...

    def keep(self, worker: int, done: dict[str, Any]) -> dict[str, Any] | None:
        """Keep what a worker did for the next run. Returns what travels to the driver, if anything."""


class KnownHalves(NamedTuple):
    """Workers whose halves the driver knows."""

    known: Mapping[int, Start]

    def start(self, scheme: Scheme, worker: int) -> Start:
        return self.known[worker]

    def keep(self, worker: int, done: dict[str, Any]) -> dict[str, Any] | None:
        return done


def content_of(scheme: Scheme, message: Any) -> Any:
    """What a router hears of a message."""
    if message["told"] is None:
        return Reply(message["ticket"], message["number"])
    kind: Any = registration_of(scheme).message
    return kind(**read_arrays(bytes(message["told"]), "a worker"))


def in_order(messages: Mapping[int, Sequence[Any]]) -> list[tuple[int, Any]]:
    """The messages of all workers, each with its worker, by the time at which it had them."""
    found = [(each["at"], worker, each) for worker, own in messages.items() for each in own]
    return [(worker, message) for _, worker, message in sorted(found, key=lambda each: each[:2])]
