"""The `unskew` command: one file per subcommand."""

import io
import sys
from typing import Annotated, Any, NoReturn

import typer

from unskew import __version__
from unskew.cli.demo import demo
from unskew.cli.doctor import doctor
from unskew.cli.interrupts import interrupts
from unskew.cli.reproduce import reproduce
from unskew.cli.route import route
from unskew.cli.run import run
from unskew.cli.schemes import schemes
from unskew.cli.simulate import simulate
from unskew.cli.top import top
from unskew.errors import InputError

UsageError: type[Any] = typer.BadParameter.__mro__[1]  # typer exports its subclass only

app = typer.Typer(
    help="Keep skewed streams balanced: decide, tuple by tuple, which parallel worker gets which key.\n\n"
    "Start with [bold]unskew demo[/bold]; then try your own data with [bold]unskew simulate[/bold].",
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)
COMMANDS = {command.__name__: command for command in (demo, doctor, schemes, simulate, route, reproduce, top)}
for command in COMMANDS.values():
    app.command()(command)
app.add_typer(run, name="run")
APPLICATIONS = [str(each.name or each.callback.__name__) for each in run.registered_commands if each.callback]


def _print_version(asked: bool) -> None:
    if asked:
        print(f"unskew {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that go before a command."""


def main() -> None:
    """Run the command. A user's mistake is one line and exit status 2; Ctrl-C is one line and 130."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character shows its code
    if sys.argv[1:] in ([], ["run"]):
        sys.argv.append("--help")
    with interrupts() as interrupted:
        try:
            sys.exit(app(standalone_mode=False))
        except BaseException as error:
            if interrupted or isinstance(error, typer.Abort | KeyboardInterrupt):
                _leave(130, "stopped")
            _explain(error)
            raise


def _explain(error: BaseException) -> None:
    """Leave with the line and the status of an error that a user can do something about."""
    if isinstance(error, InputError):
        _leave(2, str(error))
    if isinstance(error, UsageError):  # an option that typer itself refuses
        known, allowed = _command_of(sys.argv[1:])
        _leave(2, f"{error.format_message().rstrip('.')}{allowed}; see: unskew {known} --help")
    if isinstance(error, OSError):
        _leave(1, f"cannot go on: {error}")
    if isinstance(error, MemoryError):
        _leave(1, f"out of memory: {error}")


def _command_of(arguments: list[str]) -> tuple[str, str]:
    """The command as far as it is known, and what is allowed where it is not."""
    if arguments[0] == "run":
        known = len(arguments) > 1 and arguments[1] in APPLICATIONS
        return (f"run {arguments[1]}", "") if known else ("run", f"; applications are {', '.join(APPLICATIONS)}")
    known = arguments[0] in COMMANDS
    return (arguments[0], "") if known else ("", f"; commands are {', '.join([*COMMANDS, 'run'])}")


def _leave(status: int, why: str) -> NoReturn:
    print(f"unskew: {' '.join(why.split())}", file=sys.stderr)
    sys.exit(status)
