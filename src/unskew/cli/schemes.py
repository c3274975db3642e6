"""`unskew schemes`: what there is to choose from."""

from typing import Annotated

import typer
from rich.table import Table

from unskew import SCHEMES
from unskew.cli.output import console, print_json


def schemes(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array instead of a table.")] = False,
) -> None:
    """List the schemes: paper, parameters with their defaults, and when to use each.

    Example: [bold]unskew schemes --json[/bold]
    """
    entries = [SCHEMES[name] for name in sorted(SCHEMES)]
    if as_json:
        print_json(
            [
                {
                    "scheme": entry.name,
                    "paper": entry.paper,
                    "parameters": entry.parameters,
                    "offline": entry.offline,
                    "when": entry.when,
                }
                for entry in entries
            ]
        )
        return
    table = Table("scheme", "paper", "parameters", "use it when", show_lines=True)
    for entry in entries:
        parameters = ", ".join(f"{name}={value}" for name, value in entry.parameters.items())
        table.add_row(entry.name, entry.paper, parameters or "-", entry.when)
    console.print(table)
    console.print("Try one: [bold]unskew simulate --scheme pkg --workers 10[/bold]")
