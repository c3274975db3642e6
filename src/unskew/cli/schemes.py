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
    registered = [SCHEMES[name] for name in sorted(SCHEMES)]
    if as_json:
        print_json(
            [
                {
                    "scheme": each.name,
                    "paper": each.paper,
                    "parameters": each.parameters,
                    "offline": each.offline,
                    "when": each.when,
                }
                for each in registered
            ]
        )
        return
    table = Table("scheme", "paper", "parameters", "use it when", show_lines=True)
    for each in registered:
        parameters = ", ".join(f"{name}={value}" for name, value in each.parameters.items())
        table.add_row(each.name, each.paper, parameters or "-", each.when)
    console.print(table)
    console.print("Try one: [bold]unskew simulate --scheme pkg --workers 10[/bold]")
