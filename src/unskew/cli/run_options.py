"""The options that all applications have, and what is done with them: `unskew run` calls `start`."""

import importlib
import importlib.util
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from unskew.apps.source import Source
from unskew.calls import parse_call
from unskew.checks import require_integer
from unskew.cli.demo_screen import progress
from unskew.cli.output import console, print_json
from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.experiments.report import check_folder
from unskew.file_formats import FORMATS, reason_of
from unskew.page import fresh_path
from unskew.registry import SCHEMES, lookup, make

MOST_WORKERS = 256  # of a local Spark
SAMPLE, OUTPUT = "Where rows come from", "What is written"

PathArgument = Annotated[
    str | None,
    typer.Argument(help="A file, which is a batch, or a folder, which is a stream. Left out: rows are made."),
]
Workers = Annotated[int, typer.Option(help=f"Workers W, 1 to {MOST_WORKERS}.")]
SchemeName = Annotated[
    str | None,
    typer.Option(help="How rows get to workers: a name of `unskew schemes`, such as pkg or 'pkg(choices=3)'."),
]
FileFormat = Annotated[
    str, typer.Option("--format", help=f"{', '.join(FORMATS)}; by default by the file's name.", rich_help_panel=SAMPLE)
]
Rows = Annotated[int, typer.Option(help="Rows that are made, where no path is given.", rich_help_panel=SAMPLE)]
Seed = Annotated[int, typer.Option(help="Another seed, other rows.", rich_help_panel=SAMPLE)]
Batches = Annotated[
    int | None, typer.Option(help="The rows come as a stream of so many micro-batches.", rich_help_panel=SAMPLE)
]
Rate = Annotated[
    int | None, typer.Option(help="They come from Spark's rate source, so many per second.", rich_help_panel=SAMPLE)
]
Seconds = Annotated[
    float, typer.Option(help="With --rate: when to stop, after a micro-batch at least.", rich_help_panel=SAMPLE)
]
Out = Annotated[
    Path | None,
    typer.Option(help="The folder for the result and the page; by default a new one.", rich_help_panel=OUTPUT),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what an earlier run wrote.", rich_help_panel=OUTPUT)]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON object instead of a table.", rich_help_panel=OUTPUT)]


@dataclass(frozen=True)
class Options:
    """What all applications are given."""

    path: str | None
    file_format: str
    rows: int
    seed: int
    batches: int | None
    rate: int | None
    seconds: float
    workers: int
    scheme: str | None
    out: Path | None
    force: bool
    as_json: bool


def start(name: str, options: Options, *, keyed: bool = True, asleep: bool = False, **own: Any) -> None:
    """Run an application and show what it found.

    `keyed`: its scheme is one of unskew's, which routes keys. `asleep`: its workers sleep, so that there may be as many
    at once as it has, however few the cores. `own` are options that only this application has.
    """
    require_integer("workers", options.workers, 1, MOST_WORKERS)
    source = Source(
        options.path, options.file_format, options.rows, options.seed, options.batches, options.rate, options.seconds
    )
    scheme = _keyed_scheme(options.scheme, options.workers) if keyed else options.scheme
    out = options.out or fresh_path(Path(f"unskew-{name}"))
    check_folder(out, options.force)
    for package, extra in (("pyspark", "spark"), ("pandas", "spark"), ("matplotlib", "plots")):
        if importlib.util.find_spec(package) is None:
            raise InputError(f"run: {package} is not installed; type: pip install 'unskew[{extra}]'")
    from unskew.apps.job import MODEL, PAGE, RESULT, Job
    from unskew.spark import PROVIDER, QUICK_START, ROCKS, SPARK_ERRORS, local_spark

    application = importlib.import_module(f"unskew.apps.{name.replace('-', '_')}")
    settings = QUICK_START | {"spark.sql.shuffle.partitions": "8", PROVIDER: ROCKS}
    if asleep:
        settings["spark.master"] = f"local[{options.workers}]"
    with tempfile.TemporaryDirectory(prefix="unskew-run-") as folder, progress() as say, ExitStack() as stack:
        scratch = Path(folder)
        job = Job(
            lambda: stack.enter_context(local_spark(scratch, settings)),
            source,
            options.workers,
            scheme,
            out,
            scratch,
            lambda step: say(step, None),
        )
        try:
            found = application.run(job, **own)
        except SPARK_ERRORS as error:
            if options.path is None:
                raise
            raise InputError(f"path: Spark cannot work on {options.path!r}: {reason_of(error)}") from None
    page, written = out / PAGE, {kind: out / name for kind, name in (("result", RESULT), ("model", MODEL))}
    written = {kind: path for kind, path in written.items() if path.exists()}
    found.page().write(page)
    if options.as_json:
        chosen = {"application": name, "workers": options.workers, "scheme": options.scheme}
        print_json(chosen | dict(found.facts) | {kind: str(path) for kind, path in {**written, "page": page}.items()})
        return
    heads, rows = found.table()
    table = Table(*heads, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
    for sentence in (*found.said, *found.notes):
        console.print(f"\n{escape(sentence)}")
    console.print()
    for kind, path in {**written, "pictures": page}.items():
        console.print(f"The {kind}: [bold]{path}[/bold]", soft_wrap=True)


def _keyed_scheme(text: str | None, workers: int) -> str | Scheme | None:
    """The scheme that `text` spells. One without parameters stays a name, from which Spark makes plans of its own."""
    if text is None:
        return None
    call = parse_call(text)
    allowed = sorted(name for name, registration in SCHEMES.items() if registration.modes)
    if call is None or call.positional or "workers" in call.named:
        raise InputError(
            f"scheme: must be a name or NAME(parameter=value), not {text!r}; allowed are {', '.join(allowed)}"
        )
    if not lookup(call.name).modes:
        raise InputError(f"scheme: {call.name} cannot run on Spark; allowed are {', '.join(allowed)}")
    return make(call.name, workers, **call.named) if call.named else call.name
