"""The `unskew` command: one file a subcommand."""

import io
import sys
from typing import Any, NoReturn

import typer

from unskew.cli.demo import demo
from unskew.cli.doctor import doctor
from unskew.cli.reproduce import reproduce
from unskew.cli.route import route
from unskew.cli.schemes import schemes
from unskew.cli.simulate import simulate
from unskew.errors import InputError

UsageError: type[Any] = typer.BadParameter.__mro__[1]  # typer exports its subclass only

app = typer.Typer(
    help="Keep skewed streams balanced: decide, tuple by tuple, which parallel worker gets which key.\n\n"
    "Start with [bold]unskew demo[/bold]; then try your own data with [bold]unskew simulate[/bold].",
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)
COMMANDS = {command.__name__: command for command in (demo, doctor, schemes, simulate, route, reproduce)}
for command in COMMANDS.values():
    app.command()(command)


def main() -> None:
    """Run the command; a user's mistake is one line and exit status 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character shows its code
    if not sys.argv[1:]:
        sys.argv.append("--help")
    try:
        sys.exit(app(standalone_mode=False))
    except InputError as error:
        _leave(2, str(error))
    except UsageError as error:  # an option that typer itself refuses
        known = sys.argv[1] if sys.argv[1] in COMMANDS else ""
        allowed = "" if known else f"; commands are {', '.join(COMMANDS)}"
        _leave(2, f"{error.format_message()}{allowed}; see: unskew {known} --help")
    except OSError as error:
        _leave(1, f"cannot go on: {error}")
    except MemoryError as error:
        _leave(1, f"out of memory: {error}")
    except (typer.Abort, KeyboardInterrupt):
        _leave(130, "stopped")


def _leave(status: int, why: str) -> NoReturn:
    print(f"unskew: {' '.join(why.split())}", file=sys.stderr)
    sys.exit(status)
