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
    SchemeName,
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
def wordcount(
    path: PathArgument = None,
    workers: Workers = 8,
    scheme: SchemeName = "pkg",
    top: Annotated[int, typer.Option(help="Words that are shown.")] = 20,
    file_format: FileFormat = "",
    rows: Rows = 20_000,
    batches: Batches = None,
    rate: Rate = None,
    seconds: Seconds = 30.0,
    seed: Seed = 0,
    out: Out = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """The most frequent words of texts, brought up to date in every period (PKG).

    Workers count the words that they get; the counts of a word are added up at the end of each micro-batch. A file
    has the column text, or is a text.

    The result has the top words of each period: period, rank, word, count.

    Example: [bold]unskew run wordcount --batches 4 --scheme pkg[/bold]
    """
    options = Options(path, file_format, rows, seed, batches, rate, seconds, workers, scheme, out, force, as_json)
    start("wordcount", options, top=top)


@run.command("naive-bayes")
def naive_bayes(
    path: PathArgument = None,
    classify: Annotated[str | None, typer.Option(help="A file of other texts, to be classified.")] = None,
    workers: Workers = 8,
    scheme: SchemeName = "pkg",
    file_format: FileFormat = "",
    rows: Rows = 20_000,
    batches: Batches = None,
    rate: Rate = None,
    seconds: Seconds = 30.0,
    seed: Seed = 0,
    out: Out = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Learn to classify texts from labelled ones; a word's counters are on 2 workers, not on W (PKG).

    Workers count how often each word occurs in texts of each class. A file has the columns text and label. Texts to
    be classified need no label; if they have one, you are told how many were right.

    The model has a row per word and label, the result a row per text that was classified.

    Example: [bold]unskew run naive-bayes --rows 20000 --workers 8[/bold]
    """
    options = Options(path, file_format, rows, seed, batches, rate, seconds, workers, scheme, out, force, as_json)
    start("naive-bayes", options, other=classify)


@run.command("decision-tree")
def decision_tree(
    path: PathArgument = None,
    classify: Annotated[str | None, typer.Option(help="A file of other rows, to be classified.")] = None,
    workers: Workers = 8,
    scheme: SchemeName = "pkg",
    depth: Annotated[int, typer.Option(help="How deep the tree may become.")] = 6,
    bins: Annotated[int, typer.Option(help="Bins of each histogram.")] = 32,
    file_format: FileFormat = "",
    rows: Rows = 10_000,
    batches: Batches = None,
    rate: Rate = None,
    seconds: Seconds = 60.0,
    seed: Seed = 0,
    out: Out = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Grow a decision tree from histograms: 2 D C L of them, not W D C L (PKG).

    Workers make a histogram per leaf, feature and class, the driver merges them and splits leaves, in rounds. A file
    has a column label; all other columns of numbers are features.

    The model has a row per node of the tree, the result a row per row that was classified.

    Example: [bold]unskew run decision-tree --depth 4 --workers 8[/bold]
    """
    options = Options(path, file_format, rows, seed, batches, rate, seconds, workers, scheme, out, force, as_json)
    start("decision-tree", options, other=classify, depth=depth, bins=bins)


@run.command("heavy-hitters")
def heavy_hitters(
    path: PathArgument = None,
    key: Annotated[str, typer.Option(help="The column whose values are counted.")] = "entity",
    workers: Workers = 8,
    scheme: SchemeName = "pkg",
    top: Annotated[int, typer.Option(help="Keys that are wanted.")] = 20,
    counters: Annotated[int, typer.Option(help="Counters of each worker.")] = 200,
    file_format: FileFormat = "",
    rows: Rows = 100_000,
    batches: Batches = None,
    rate: Rate = None,
    seconds: Seconds = 30.0,
    seed: Seed = 0,
    out: Out = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """The most frequent keys in bounded memory, with an error of 2 terms, not W (PKG).

    Each worker has a SpaceSaving summary; a key's count is the sum over the workers that may have it: one by hash,
    two under PKG, all of them in turn. A batch is summarised in all three ways, to compare the errors.

    The result has a row per key: count, error (the true count is at most so much lower), terms.

    Example: [bold]unskew run heavy-hitters --counters 100 --workers 16[/bold]
    """
    options = Options(path, file_format, rows, seed, batches, rate, seconds, workers, scheme, out, force, as_json)
    start("heavy-hitters", options, key=key, top=top, counters=counters)


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
