"""`unskew run`: the papers' applications on a local Spark, one command each."""

from typing import Annotated

import typer

from unskew.cli.run_options import (
    AsJson,
    Batches,
    FileFormat,
    Force,
    Options,
    Out,
    PathArgument,
    Rate,
    Rows,
    Seconds,
    Seed,
    Workers,
    start,
)

run = typer.Typer(
    help="Run an application of the papers on your data, or on rows that are made for it.\n\n"
    "Each takes a file (a batch), a folder (a stream, a micro-batch per file), or Spark's rate source, and writes its "
    "result as Parquet and a page with pictures. [bold]unskew run vwap --help[/bold] shows one.",
    rich_markup_mode="rich",
)


@run.command()
def vwap(
    path: PathArgument = None,
    workers: Workers = 8,
    add: Annotated[int, typer.Option(help="Workers that are added while the stream runs.")] = 0,
    after: Annotated[int, typer.Option(help="With --add: after so many micro-batches.")] = 2,
    scheme: Annotated[
        str | None, typer.Option(help="How tickers are placed: readj, redist or scan; readj moves least.")
    ] = None,
    file_format: FileFormat = "",
    rows: Rows = 60_000,
    batches: Batches = None,
    rate: Rate = None,
    seconds: Seconds = 30.0,
    seed: Seed = 0,
    out: Out = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Average prices per ticker, keys whole, workers added while it runs (Gedik).

    One worker sees all trades of a ticker in order of time. Hot tickers are placed evenly; when workers are added,
    few tickers move, and take their state with them. A file has the columns ticker, time, price and volume.

    The result has a row per ticker: trades, shares, vwap, and how often the price crossed it.

    Example: [bold]unskew run vwap --batches 4 --add 4[/bold]
    """
    options = Options(path, file_format, rows, seed, batches, rate, seconds, workers, scheme, out, force, as_json)
    start("vwap", options, keyed=False, add=add, after=after)


@run.command()
def enrich(
    path: PathArgument = None,
    workers: Workers = 8,
    scheme: Annotated[
        str | None,
        typer.Option(help="How rows are dealt: by costs that are learned (the default) or told, or shuffle: in turn."),
    ] = None,
    file_format: FileFormat = "",
    rows: Rows = 4_000,
    batches: Batches = None,
    rate: Rate = None,
    seconds: Seconds = 30.0,
    seed: Seed = 0,
    out: Out = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Look up mentions whose cost is 25, 5 or 1 ms, by a cost that is learnt (POSG).

    Any worker can look up any mention, but not all look-ups cost the same. What an entity costs is learnt from one
    micro-batch for the next, and rows are dealt so that all workers have the same work. A file has the columns
    tweet, entity and kind (media, politician or other).

    The result has a row per mention: what was looked up, and the worker that did it.

    Example: [bold]unskew run enrich --batches 4 --workers 10[/bold]
    """
    options = Options(path, file_format, rows, seed, batches, rate, seconds, workers, scheme, out, force, as_json)
    start("enrich", options, keyed=False, asleep=True)
