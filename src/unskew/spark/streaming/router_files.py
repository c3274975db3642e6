"""The states of live routers, from one micro-batch to the next: each task leaves its own in the side folder.

A task goes on from what the task of its number left last. A batch that runs again reads the same and writes the same,
as long as its rows come in the same order. Where workers tell their sources something, a router first hears what was
told since then. A source that is new knows it too.
"""

from typing import NamedTuple

from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.router import Router
from unskew.spark.frames import warn
from unskew.spark.messages import KnownSources
from unskew.spark.streaming.batch_files import BatchFiles, Left
from unskew.spark.streaming.told_files import ToldFiles

ROUTERS = "routers"
NEWCOMER = "newcomer.npz"  # a router that has routed nothing, and heard what was told to all


class RouterFiles(NamedTuple):
    """Where routers leave their states. Travels with tasks."""

    checkpoint: str
    name: str
    start: bytes | None = None  # what routers begin with; None: empty
    told: ToldFiles | None = None  # None: nothing is told

    def router(self, scheme: Scheme, source: int) -> Router:
        """The router of a source, as it was at the end of its last micro-batch before this one; in the first, as at the
        start. It has heard what workers told since."""
        found = self._left(scheme, f"{source}.npz", source)
        if self.told is None:
            return self._new(scheme, source) if found is None else found[0]
        if found is None:
            found = self._left(scheme, NEWCOMER, source)
        router, first = (self._new(scheme, source), 0) if found is None else found
        self.told.catch_up(router, source, first)
        if source == 0:
            self._leave_newcomer(scheme, self.told)
            self.told.gather()
        return router

    def keep(self, router: Router, source: int) -> None:
        """Leave the state of a router to the next micro-batch."""
        self._files.leave(f"{source}.npz", router.to_bytes())

    @property
    def _files(self) -> BatchFiles:
        return BatchFiles(self.checkpoint, self.name, ROUTERS)

    def _left(self, scheme: Scheme, name: str, source: int) -> tuple[Router, int] | None:
        """The router that was left last under this name, and the first micro-batch of which it has heard nothing."""
        found = ((_loaded(scheme, source, left), left.batch) for left in self._files.left(name))
        return next(((router, batch) for router, batch in found if router is not None), None)

    def _new(self, scheme: Scheme, source: int) -> Router:
        return KnownSources({}, self.start).router(scheme, source)

    def _leave_newcomer(self, scheme: Scheme, told: ToldFiles) -> None:
        """Leave what a source starts as that is new in a later micro-batch."""
        found = self._left(scheme, NEWCOMER, 0)
        router, first = found or (self._new(scheme, 0), 0)
        if told.catch_up(router, None, first) or found:
            self._files.leave(NEWCOMER, router.to_bytes())


def _loaded(scheme: Scheme, source: int, left: Left) -> Router | None:
    try:
        return Router.from_bytes(scheme, left.data)
    except InputError as error:
        warn(f"routers: the file of source {source} of micro-batch {left.batch} is no state of it: {error}")
        return None
