"""`unskew top`: how balanced a running stream is, live in the terminal or on a local page."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from unskew.batch_records import BatchRecord, names_in, read_records
from unskew.batch_screen import screen
from unskew.checks import require_integer, require_number
from unskew.cli.top_page import serve
from unskew.errors import InputError


def top(
    folder: Annotated[Path, typer.Argument(help="The checkpoint of a query that was routed with Adaptive.")],
    web: Annotated[bool, typer.Option("--web", help="Serve a page that updates itself, on this machine only.")] = False,
    port: Annotated[int, typer.Option(help="Of the page; 0 takes a free one.")] = 8077,
    once: Annotated[bool, typer.Option("--once", help="Show the last micro-batch and end.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print all records as a JSON object and end.")] = False,
    every: Annotated[float, typer.Option(help="Seconds from one look to the next.")] = 1.0,
) -> None:
    """Load per worker, max/mean through time, hot keys and their fan-out, rows and seconds of a stream's batches."""
    require_number("every", every, "seconds from 0.1 to 3600", 0.1, 3600.0)
    require_integer("port", port, 0, 65_535)
    names_in(folder)
    if web + once + json_ > 1:
        raise InputError("web: only one of --web, --once and --json can be given")
    if json_:
        records = {name: [json.loads(each.to_json()) for each in found] for name, found in _latest(folder).items()}
        print(json.dumps(records))
        return
    if web:
        serve(folder, port, every)
        return
    console = Console()
    if once:
        console.print(screen(folder, _latest(folder)))
        return
    with Live(screen(folder, _latest(folder)), console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while True:
            live.update(screen(folder, _latest(folder)), refresh=True)
            time.sleep(every)


def _latest(folder: Path) -> dict[str, list[BatchRecord]]:
    """The records by name."""
    return {name: read_records(folder, name) for name in names_in(folder)}
