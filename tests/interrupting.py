"""Ctrl-C as a terminal sends it: to the command and to every process that it started."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

COMMAND = [sys.executable, "-c", "from unskew_command import main; main()"]
PATIENCE = 300.0  # seconds until a test gives up


class Stopped(NamedTuple):
    status: int
    out: str
    err: str
    left: list[str]  # files in the folders that the command wrote to
    processes: str  # that are still running


def _hear_interrupts() -> None:
    """A shell's background job starts with interrupts ignored, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupt(folder: Path, arguments: list[str], when: Callable[[Path], bool], presses: int = 1) -> Stopped:
    """Run the command in a folder of `folder`; Ctrl-C once `when` is true of its folder for temporary files."""
    temporary, working = folder / "tmp", folder / "here"
    temporary.mkdir()
    working.mkdir()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=working,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that all it starts can be told from the test's own processes
        preexec_fn=_hear_interrupts,
    )
    late = time.monotonic() + PATIENCE
    while not when(temporary):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < late, "it never came so far"
        time.sleep(0.05)
    for _ in range(presses):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.2)
    out, err = process.communicate(timeout=PATIENCE)
    left = [str(path.relative_to(folder)) for place in (temporary, working) for path in place.rglob("*")]
    running = subprocess.run(
        ["ps", "-s", str(process.pid), "-o", "stat=,args="], capture_output=True, text=True, check=False
    ).stdout
    alive = [line for line in running.splitlines() if not line.startswith("Z")]
    return Stopped(process.returncode, out, err, left, "\n".join(alive))
