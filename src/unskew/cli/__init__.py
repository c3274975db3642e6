"""The `unskew` command: one file a subcommand."""

import io
import sys

import typer

from unskew.cli.demo import demo
from unskew.cli.reproduce import reproduce
from unskew.cli.route import route
from unskew.cli.schemes import schemes
from unskew.cli.simulate import simulate
from unskew.errors import InputError

app = typer.Typer(
    help="Keep skewed streams balanced: decide, tuple by tuple, which parallel worker gets which key.\n\n"
    "Start with [bold]unskew demo[/bold]; then try your own data with [bold]unskew simulate[/bold].",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)
for command in (demo, schemes, simulate, route, reproduce):
    app.command()(command)


def main() -> None:
    """Run the command; a user's mistake is one line and exit status 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character shows its code
    try:
        app()
    except InputError as error:
        print(f"unskew: {error}", file=sys.stderr)
        sys.exit(2)
