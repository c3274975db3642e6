"""`unskew simulate`: schemes side by side on a stream."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from unskew import simulate as simulator
from unskew.cli.choosing import make_schemes
from unskew.cli.output import check_can_write, console, group_size, notes, print_json, progress_bar, sparkline
from unskew.plots import check_picture, save_runs
from unskew.scheme import registration
from unskew.simulate import Keys, Result
from unskew.streams import parse

DEFAULT_STREAM = "zipf(z=1.0, keys=10_000, messages=1_000_000)"


def simulate(
    scheme: Annotated[
        list[str] | None,
        typer.Option(help="A scheme, such as pkg or pkg(choices=3); repeat to compare. See unskew schemes."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Workers W, at least 1.")] = 10,
    sources: Annotated[int, typer.Option(help="Sources S that route independently, at least 1.")] = 1,
    stream: Annotated[
        str,
        typer.Option(
            help="zipf(z, keys, messages), lognormal(mu, sigma, messages), matched(messages, keys, p1), "
            "stand_in(name), drift(z, keys, messages), evolving(z, keys, messages), graph(path), "
            "or the name of a .parquet, .csv or .txt file."
        ),
    ] = DEFAULT_STREAM,
    key: Annotated[str, typer.Option(help="The key column of a file.")] = "",
    time: Annotated[str, typer.Option(help="The time column of a file: seconds or timestamps.")] = "",
    param: Annotated[list[str] | None, typer.Option(help="A scheme's parameter, such as choices=3; repeat.")] = None,
    estimation: Annotated[
        str, typer.Option(help="How sources know the load: local, global (an oracle) or probe:SECONDS.")
    ] = "local",
    feed: Annotated[str, typer.Option(help="How tuples reach the sources: round_robin or key.")] = "round_robin",
    oracle: Annotated[bool, typer.Option("--oracle", help="Also measure agreement with a global oracle.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of a generated stream that names none.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Write a picture (.png, .svg or .pdf) of balance and load.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --plot replace a file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a run, each on a line.")] = False,
) -> None:
    """Route a stream with one or more schemes and measure balance and replicas.

    Examples:

    [bold]unskew simulate --scheme hash --scheme pkg --stream 'zipf(z=1.2, keys=10_000, messages=1_000_000)'[/bold]

    [bold]unskew simulate --scheme pkg --workers 64 --sources 8 --stream events.parquet --key user --plot p.png[/bold]
    """
    tuples = parse(stream, key=key, time=time, seed=seed)
    if plot is not None:
        check_picture(plot)
        check_can_write(plot, force)

    def count_keys() -> Keys:
        with progress_bar("counting keys", tuples.length) as done:
            return simulator.frequencies(tuples, done)

    schemes = make_schemes(scheme or ["hash", "shuffle", "pkg"], workers, param or [], count_keys)
    with progress_bar("routing", tuples.length) as done:
        results = simulator.simulate(
            tuples, schemes, sources=sources, feed=feed, estimation=estimation, oracle=oracle, progress=done
        )
    if plot is not None:
        save_runs(results, plot, [name_of(result) for result in results])
        notes.print(f"picture written to {plot}", markup=False, soft_wrap=True)
    if as_json:
        for result in results:
            print_json(result.to_dict())
    else:
        _show(results)


NARROWEST = 78  # columns; a smaller terminal wraps the table rather than hide its numbers
LEGEND = """max/mean: highest load over mean load. I: highest load less the mean, as a share of
all messages, at the end and averaged through time. replicas: (worker, key) pairs;
xKG: over one a key; xbound: over the fewest that allow perfect balance ({bound:,}).
M/s: million messages routed and measured a second."""


def _show(results: list[Result]) -> None:
    first = results[0]
    console.print(
        f"[bold]{escape(first.stream)}[/bold]: {first.messages:,} messages, {first.keys:,} keys, p1 {first.p1:.2%}\n"
        f"{_counted(first.workers, 'worker')}, {_counted(first.sources, 'source')} fed by {first.feed}, "
        f"{first.estimation} load estimation"
    )
    names = [name_of(result) for result in results]
    headers = ("scheme", "max/mean", "I(m)/m", "avg I/m", "replicas", "xKG", "xbound", "M/s")
    table = Table(*headers, box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        column.no_wrap = True
        column.justify = "left" if column.header == "scheme" else "right"
    for name, result in zip(names, results, strict=True):
        table.add_row(
            name,
            f"{result.max_over_mean:.3f}",
            f"{result.imbalance_fraction:.1e}",
            f"{result.mean_imbalance_fraction:.1e}",
            f"{result.replicas:,}",
            f"{result.replicas_over_kg:.2f}",
            f"{result.replicas_over_lower_bound:.2f}",
            f"{result.messages_per_second / 1e6:.3g}",
        )
    console.print(table, width=max(NARROWEST, console.width), crop=False)
    highest = max(max(result.load) for result in results)
    width = max(len(name) for name in names)
    grouped = group_size(first.workers)
    console.print(
        f"load of {_counted(first.workers, 'worker')}, all to one scale"
        + (f", each bar the highest of {grouped}:" if grouped > 1 else ":")
    )
    for name, result in zip(names, results, strict=True):
        agreement = "" if result.agreement is None else f"  agrees with the oracle on {result.agreement:.1%}"
        console.print(f"  {name:{width}} |{sparkline(result.load, highest)}|{agreement}", soft_wrap=True)
    console.print(LEGEND.format(bound=first.replicas_lower_bound), style="dim", soft_wrap=True)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def name_of(result: Result) -> str:
    """The scheme, with those of its parameters that are not at their default."""
    defaults = registration(result.scheme).parameters
    shown = ", ".join(f"{name}={value}" for name, value in result.params.items() if defaults.get(name, value) != value)
    return f"{result.scheme}({shown})" if shown else result.scheme
