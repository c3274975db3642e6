"""`unskew simulate`: schemes side by side on a stream."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from unskew import simulate as simulator
from unskew.cli.choosing import make_queues, make_schemes
from unskew.cli.output import console, group_size, notes, print_json, progress_bar, sparkline
from unskew.contract import Conversing, Listening, Scheme, can
from unskew.frequencies import Frequencies
from unskew.plots import check_picture, new_figure, save_runs
from unskew.registry import lookup, registration_of
from unskew.simulate import Queues, Result, parse_event
from unskew.streams import parse
from unskew.writing import check_can_write

DEFAULT_STREAM = "zipf(z=1.0, keys=10_000, tuples=1_000_000)"


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
            help="zipf(z, keys, tuples), lognormal(mu, sigma, tuples), matched(tuples, keys, p1), "
            "stand_in(name), drift(z, keys, tuples), evolving(z, keys, tuples), costed(z, keys, tuples, values, "
            "least, most), graph(path), "
            "or the name of a .parquet, .csv or .txt file."
        ),
    ] = DEFAULT_STREAM,
    key: Annotated[
        list[str] | None, typer.Option(help="The key column of a file; repeat for a key of several columns.")
    ] = None,
    time: Annotated[str, typer.Option(help="The time column of a file: seconds or timestamps.")] = "",
    cost: Annotated[
        str,
        typer.Option(help="The cost column of a file: seconds of work per tuple, for a worker of capacity 1."),
    ] = "",
    param: Annotated[list[str] | None, typer.Option(help="A scheme's parameter, such as choices=3; repeat.")] = None,
    estimation: Annotated[
        str, typer.Option(help="How sources know the load: local, global (an oracle) or probe:SECONDS.")
    ] = "local",
    feed: Annotated[str, typer.Option(help="How tuples reach the sources: round_robin or key.")] = "round_robin",
    oracle: Annotated[bool, typer.Option("--oracle", help="Also measure agreement with a global oracle.")] = False,
    utilisation: Annotated[
        float | None,
        typer.Option(
            help="Give workers queues, and let tuples come at this share of their total capacity, such as 0.8."
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="The same, but so many tuples per second. Neither: at the stream's own times."),
    ] = None,
    capacity: Annotated[
        list[str] | None,
        typer.Option(
            help="Tuples (where they have costs: cost) per second that a worker executes: 5 for all; or for some, "
            "0-2:5,7:3 (workers 0 to 2, and 7)."
        ),
    ] = None,
    queue_bound: Annotated[
        int | None, typer.Option(help="Most tuples at a worker; the stream waits while there is no room.")
    ] = None,
    feedback_delay: Annotated[
        float | None, typer.Option(help="Seconds until sources that listen hear of their workers.")
    ] = None,
    migration: Annotated[
        float | None,
        typer.Option(help="Seconds to move the state of one tuple where keys change their worker (partitioner)."),
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(
            help="What happens to workers after so many tuples (k, M, G) or at so many seconds (s): 't=3M add', "
            "'t=3M remove 3', 't=30s crash 3' (its queue is lost), 't=6M capacity 0-4:2'; repeat."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of a generated stream that names none.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Write a picture (.png, .svg or .pdf) of balance and load.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --plot replace a file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per run, each on a line.")] = False,
) -> None:
    """Route a stream with one or more schemes and measure balance and replicas; with queues also latency.

    Examples:

    [bold]unskew simulate --scheme hash --scheme pkg --stream 'zipf(z=1.2, keys=10_000, tuples=1_000_000)'[/bold]

    [bold]unskew simulate --scheme pkg --workers 64 --sources 8 --stream events.parquet --key user --plot p.png[/bold]

    Workers 0 to 4 are twice as fast, until one of them crashes:

    [bold]unskew simulate --scheme pkg --scheme hash --utilisation 0.8 --capacity 0-4:2 --event 't=500k crash 0'[/bold]
    """
    tuples = parse(stream, key=tuple(key or ()), time=time, cost=cost, seed=seed)
    if plot is not None:
        check_picture(plot)
        check_can_write("plot", plot, force)
        new_figure()  # if pictures cannot be drawn, this says so now rather than after the run

    queues = make_queues(capacity or [], rate, utilisation, queue_bound, feedback_delay, migration)
    events = [(text, parse_event(text)) for text in event or []]

    def count_keys() -> Frequencies:
        with progress_bar("counting keys", tuples.length) as done:
            return simulator.count_keys(tuples, done)

    schemes = make_schemes(scheme or ["hash", "shuffle", "pkg"], workers, param or [], count_keys)
    with progress_bar("routing", tuples.length) as done:
        results = simulator.simulate(
            tuples,
            schemes,
            sources=sources,
            feed=feed,
            estimation=estimation,
            oracle=oracle,
            queues=queues,
            events=[happening for _, happening in events],
            progress=done,
        )
    for text, happening in events:
        if str(happening) not in (results[0].events or []):
            notes.print(f"event: '{text}' was due after the last tuple and did not take place", markup=False)
    _remark(results, schemes, queues)
    if plot is not None:
        save_runs(results, plot, [name_of(result) for result in results])
        notes.print(f"picture written to {plot}", markup=False, soft_wrap=True)
    if as_json:
        for result in results:
            print_json(result.to_dict())
    else:
        _show(results)


def _remark(results: Sequence[Result], schemes: Sequence[Scheme], queues: Queues | None) -> None:
    """Say what the user may not have meant."""
    listening = [scheme for scheme in schemes if can(scheme, Listening) or can(scheme, Conversing)]
    deaf = [registration_of(scheme).name for scheme in listening]
    if deaf and queues is None:
        listen = f"{', '.join(dict.fromkeys(deaf))} {'listens' if len(set(deaf)) == 1 else 'listen'} to workers"
        hears = "hears" if len(set(deaf)) == 1 else "hear"
        notes.print(
            f"{listen}, but {hears} nothing here: workers report only with --rate, --utilisation or --capacity",
            style="dim",
            soft_wrap=True,
        )
    late, tuples = results[0].late or 0, results[0].tuples
    if not tuples:
        notes.print("the stream has no tuples: there is no balance to measure", style="dim", soft_wrap=True)
    if MUCH_LATE * tuples < late:
        came = f"{late:,} of {tuples:,} tuples came late, after one of a later time, and count as of that time"
        notes.print(f"{came}: is the stream sorted by time?", style="dim", soft_wrap=True)


NARROWEST_NAME = 8  # columns for the names of schemes, which fold where there is no room; numbers are always whole
PREFIXES = {-3: "n", -2: "u", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P", 6: "E"}  # powers of 1000
MUCH_LATE = 0.01  # of all tuples: a few late ones are nothing to remark on
LEGEND = """max/mean: highest load over mean load. I: highest load less the mean, as a share of
all tuples, at the end and averaged through time. replicas: (worker, key) pairs;
xKG: replicas per key; xbound: over the fewest that allow perfect balance ({bound:,}).
M/s: million tuples routed and measured per second."""


QUEUE_LEGEND = """latency: seconds from arrival until done, mean and percentiles{how}. queue: the most
tuples ever at a worker. max U: work asked of a worker over what it can do.
done/s: tuples done per second. makespan: seconds from the first arrival until all is done.
m, u, n: thousandths, millionths, billionths; k, M, G: thousands and so on."""
COST_LEGEND = "of work: max/mean of the cost of what each worker got, not of the number of tuples."
CHANGED_LEGEND = "Workers came or went: max/mean and I(m) are of those there, since the last time."


def _show(results: list[Result]) -> None:
    first = results[0]
    console.print(
        f"[bold]{escape(first.stream)}[/bold]: {first.tuples:,} tuples, {first.keys:,} keys, p1 {first.p1:.2%}\n"
        f"{_counted(first.workers, 'worker')}, {_counted(first.sources, 'source')} fed by {first.feed}, "
        f"{first.estimation} load estimation"
    )
    names = [name_of(result) for result in results]
    costed = first.work is not None
    rows = [
        (
            _ratio(result.max_over_mean),
            *([_ratio(result.work_max_over_mean)] if costed else []),
            f"{result.imbalance_fraction:.1e}",
            f"{result.mean_imbalance_fraction:.1e}",
            f"{result.replicas:,}",
            f"{result.replicas_over_kg:.2f}",
            f"{result.replicas_over_lower_bound:.2f}",
            f"{result.tuples_per_second / 1e6:.3g}",
        )
        for result in results
    ]
    balance = ("max/mean", *(["of work"] if costed else []), "I(m)/m", "avg I/m")
    _print_table(names, (*balance, "replicas", "xKG", "xbound", "M/s"), rows)
    if first.makespan is not None:
        headers = ("latency", "p50", "p95", "p99", "queue", "max U", "done/s", "makespan")
        _print_table(names, headers, [_queue_row(result) for result in results])
    highest = max(max(result.load) for result in results)
    width = max(len(name) for name in names)
    grouped = group_size(len(first.load))
    console.print(
        f"load of {_counted(len(first.load), 'worker')}, all to one scale"
        + (f", each bar the highest of {grouped}:" if grouped > 1 else ":")
    )
    for name, result in zip(names, results, strict=True):
        remarks = "" if result.agreement is None else f"  agrees with the oracle on {result.agreement:.1%}"
        remarks += f"  lost by crashes: {result.lost:,}" if result.lost else ""
        remarks += _moved(result)
        console.print(f"  {name:{width}} |{sparkline(result.load, highest)}|{remarks}", soft_wrap=True)
    console.print(LEGEND.format(bound=first.replicas_lower_bound), style="dim", soft_wrap=True)
    if costed:
        console.print(COST_LEGEND, style="dim", soft_wrap=True)
    if first.makespan is not None:
        how = "" if first.latency_exact else " within 0.4 %"
        console.print(QUEUE_LEGEND.format(how=how), style="dim", soft_wrap=True)
    if first.members != list(range(first.workers)) and first.members is not None:
        console.print(CHANGED_LEGEND, style="dim", soft_wrap=True)


def _moved(result: Result) -> str:
    """How long the stream waited for room in a queue; of a scheme that moves keys, how much it moved too."""
    waited = f"waited {_short(result.stalled)}s" if result.stalled else ""
    if result.moved_keys is None:
        return f"  {waited} for room in a queue" if waited else ""
    tables = f"{result.replans} new table{'' if result.replans == 1 else 's'}"
    moved = f"{_counted(result.moved_keys, 'key')} moved with {_short(result.moved_state)} of state"
    return f"  {tables}, {moved}" + (f", {waited}" if waited else "")


def _ratio(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}"


def _print_table(names: Sequence[str], headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Names fold where the terminal is narrow. One that is too narrow for the numbers wraps the lines."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("scheme", overflow="fold")
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for name, row in zip(names, rows, strict=True):
        table.add_row(escape(name), *row)
    longest = max(map(len, ("scheme", *names)))
    numbers = console.measure(table, options=console.options.update(width=10**6)).maximum - longest
    table.columns[0].width = min(longest, max(NARROWEST_NAME, console.width - numbers))
    table.width = numbers + table.columns[0].width
    console.print(table, crop=False)


def _queue_row(result: Result) -> tuple[str, ...]:
    latencies = (result.latency_mean, result.latency_p50, result.latency_p95, result.latency_p99)
    highest = result.utilisation_max
    share = "-" if highest is None or highest == math.inf else f"{highest:.3g}"
    rest = (result.longest_queue, result.throughput, result.makespan)
    queue, throughput, makespan = map(_short, rest)
    return (*map(_short, latencies), queue, share, throughput, makespan)


def _short(number: float | None) -> str:
    """Three significant digits, with a prefix where it is from 1000 on or below 0.1."""
    if number is None:
        return "-"
    exponent = int(f"{number:.2e}".partition("e")[2])
    power = 0 if exponent == -1 else exponent // 3
    return f"{number / 1000.0**power:.3g}{PREFIXES[power]}" if power in PREFIXES else f"{number:.2e}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def name_of(result: Result) -> str:
    """The scheme, with those of its parameters that are not at their default."""
    defaults = lookup(result.scheme).parameters
    shown = ", ".join(f"{name}={value}" for name, value in result.params.items() if defaults.get(name, value) != value)
    return f"{result.scheme}({shown})" if shown else result.scheme
