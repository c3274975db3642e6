"""Ctrl-C: the command cleans up behind itself, says so in one line and ends with status 130.

The first Ctrl-C raises `Interrupted` where the main thread is. Context managers on the way out stop Spark and remove
temporary files, which may take seconds: impatient further ones are ignored for a while, then count as a first one.
"""

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

PATIENCE = 10.0  # seconds to clean up in


class Interrupted(BaseException):
    """Ctrl-C. Not a KeyboardInterrupt, which libraries on the way handle: py4j logs it, click prints an empty line."""


class Interrupts:
    """Whether Ctrl-C has come. Afterwards any error may be a consequence of it, such as a closed connection."""

    def __init__(self) -> None:
        self._last: float | None = None

    def __bool__(self) -> bool:
        return self._last is not None

    def _take(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._last is not None and now < self._last + PATIENCE:
            return
        self._last = now
        logging.disable(logging.CRITICAL)  # threads that wait for Spark's answer log how they lose it
        raise Interrupted


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Within it, Ctrl-C raises `Interrupted`. A caller that ignores it, or runs the command in a thread, is left so."""
    seen = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield seen
        return
    signal.signal(signal.SIGINT, seen._take)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)
