"""A job in the background, for commands that show something meanwhile and that Ctrl-C can end at once."""

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def run_watched(job: Callable[[], Result], watch: Callable[[], None] = lambda: None, every: float = 0.1) -> Result:
    """What `job` returns, or raises, in a thread of its own; until then `watch` is called `every` so many seconds.

    The main thread never waits for Spark's answer itself, so Ctrl-C reaches it between two calls; nor does a
    SparkContext that is made by `job` take over Ctrl-C, as it would in the main thread.
    """
    outcome: list[Result] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            outcome.append(job())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(every)
        watch()
    if errors:
        raise errors[0]
    return outcome[0]
