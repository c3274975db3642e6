"""Ctrl-C: the command cleans up behind itself, says so in one line and ends with status 130.

The first Ctrl-C raises `Interrupted` where the main thread is. Context managers on the way out stop Spark and remove
temporary files, which may take seconds: impatient further ones are ignored for a while, then count as a first one.

Where Python calls back from C, such as from LLVM, an exception is printed and lost. So it is raised again until it gets
through.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

PATIENCE = 10.0  # seconds to clean up in
SOON = 0.05  # seconds until an interrupt that was lost is raised again


class Interrupted(BaseException):
    """Ctrl-C. Not a KeyboardInterrupt, which libraries on the way handle: py4j logs it, click prints an empty line."""


class Interrupts:
    """Whether Ctrl-C has come. Afterwards any error may be a consequence of it, such as a closed connection."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._lost = False

    def __bool__(self) -> bool:
        return self._last is not None

    def _take(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._last is not None and now < self._last + PATIENCE and not self._lost:
            return
        self._last, self._lost = now, False
        logging.disable(logging.CRITICAL)  # threads that wait for Spark's answer log how they lose it
        raise Interrupted

    def _say_nothing_of(self, lost: "UnraisableHookArgs") -> None:
        """In the place of `sys.unraisablehook`: what is lost now is the interrupt, or comes of it."""
        if not self:
            sys.__unraisablehook__(lost)
        elif isinstance(lost.exc_value, Interrupted):
            self._lost = True
            again = threading.Timer(SOON, os.kill, (os.getpid(), signal.SIGINT))
            again.daemon = True
            again.start()


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Within it, Ctrl-C raises `Interrupted`. A caller that ignores it, or runs the command in a thread, is left so."""
    seen = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield seen
        return
    signal.signal(signal.SIGINT, seen._take)
    hook, sys.unraisablehook = sys.unraisablehook, seen._say_nothing_of
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook
