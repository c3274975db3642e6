"""Where the `unskew` command begins: importing the package takes a second, in which Ctrl-C is one line too."""

import os
import signal
import sys
from typing import NoReturn


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from unskew.cli import main as run

    run()


def _leave(*_: object) -> NoReturn:
    """End at once. There is nothing to clean up yet, and an exception might get lost in somebody's import."""
    print("unskew: stopped", file=sys.stderr, flush=True)
    os._exit(130)


if __name__ == "__main__":
    main()
