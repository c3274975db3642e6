"""Runs the `unskew` command inside the test's process."""

import json
import sys
from typing import NamedTuple

from unskew.cli import main


class Outcome(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json_lines(self):
        return [json.loads(line, parse_constant=_refuse) for line in self.out.splitlines()]


def _refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def runner(capsys, monkeypatch):
    """The function that runs the command with the given arguments. What is no exit of the command is raised."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["unskew", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            status = 0
        except SystemExit as leaving:
            status = leaving.code or 0
        return Outcome(status, *capsys.readouterr())

    return run
