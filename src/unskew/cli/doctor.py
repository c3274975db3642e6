"""`unskew doctor`: the skew report for a file or folder that Spark can read."""

import importlib.util
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from unskew.checks import require_workers
from unskew.cli.output import console, notes, print_json
from unskew.errors import InputError
from unskew.file_formats import FORMATS, format_of, reason_of
from unskew.page import check_page
from unskew.plan import require_sample
from unskew.report import PURPOSES, Report
from unskew.report.costs import check_work
from unskew.writing import check_can_write

WORD = "word"  # the key of a text
PURPOSE_NAMES = ", ".join(name for name in PURPOSES if name)


def doctor(
    path: Annotated[str, typer.Argument(help="A file or folder, or an address that Spark knows, such as s3a://...")],
    key: Annotated[
        list[str] | None,
        typer.Option(help="The key column; repeat for a key of several columns. A text has words, and needs none."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Workers W: the partitions of the stage after the shuffle.")] = 64,
    for_: Annotated[str, typer.Option("--for", help=f"What rows are grouped for: {PURPOSE_NAMES}.")] = "",
    sample: Annotated[float, typer.Option(help="Count only this share of the rows, such as 0.1.")] = 1.0,
    row_cost: Annotated[
        float | None,
        typer.Option(help="Seconds that your work takes per row, such as 0.002; then times are compared."),
    ] = None,
    cores: Annotated[int | None, typer.Option(help="Workers that work at the same time; all by default.")] = None,
    file_format: Annotated[
        str, typer.Option("--format", help=f"{', '.join(FORMATS)}; by default by the file's name.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="Also write the report as a page with pictures.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --out replace a file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as a JSON object.")] = False,
) -> None:
    """How skewed is my data, what does that cost, and what should I do? Often: nothing.

    A local Spark counts the keys in one pass. The report shows the hottest ones,
    predicts for every scheme how long the busiest of W workers takes and how many
    partial results there are, and recommends what to do in one sentence.

    What you do with the rows matters, so say it, and what a row costs if you know ([bold]--row-cost[/bold]):

    [bold]--for aggregate[/bold]: count, sum and the like; Spark needs no help.
    [bold]--for whole[/bold]: what must see all rows of a key, such as a median.
    [bold]--for merge[/bold]: what can be merged from partial results.
    [bold]--for python[/bold]: expensive Python for each row or key, which can be merged.
    [bold]--for stateful[/bold]: a stateful stream, which keeps a state for each replica.
    [bold]--for join[/bold]: a join; unskew has none yet.

    Example: [bold]unskew doctor events.parquet --key user --for python --out skew.html[/bold]
    """
    require_workers(workers)
    if for_ and for_ not in PURPOSES:
        raise InputError(f"for: must be one of {PURPOSE_NAMES}, not {for_!r}")
    require_sample(sample)
    check_work(row_cost, cores)
    kind = format_of(path, file_format)
    if out is not None:
        check_page("out", out)
        check_can_write("out", out, force)
    needed = [("pyspark", "spark"), ("pandas", "spark")] + [("matplotlib", "plots")] * (out is not None)
    for package, extra in needed:
        if importlib.util.find_spec(package) is None:
            raise InputError(f"doctor: {package} is not installed; type: pip install 'unskew[{extra}]'")

    keys = _keys(key or [], kind)
    options = {"for_": for_ or None, "sample": None if sample == 1 else sample, "row_cost": row_cost, "cores": cores}
    report = _run(path, kind, keys, workers, options)
    if out is not None:
        from unskew.cli.doctor_page import doctor_page

        doctor_page(report, path).write(out)
    if as_json:
        print_json(report.to_dict() | {"path": path, "page": None if out is None else str(out)})
        return
    console.print(report)
    if out is not None:
        console.print(f"\nThe pictures: [bold]{out}[/bold]", soft_wrap=True)


def _keys(given: Sequence[str], kind: str) -> list[str]:
    """The key columns; a text has one."""
    if kind == "text":
        if [*given] not in ([], [WORD]):
            raise InputError(f"key: a text has the words as its key; leave --key out, or give {WORD}, not {given[0]!r}")
        return [WORD]
    if not given:
        raise InputError("key: name the key column, such as --key user; only a text needs none")
    return [*given]


def _run(path: str, kind: str, keys: Sequence[str], workers: int, options: dict[str, Any]) -> Report:
    from unskew.spark import SPARK_ERRORS, local_spark, skew_report

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="unskew-doctor-") as folder,
        Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress,
    ):
        task = progress.add_task("starting a local Spark")
        with local_spark(Path(folder)) as spark:
            progress.update(task, description=f"counting the keys of {path}")
            reader = spark.read.format(kind)
            try:
                df = (reader.option("header", True) if kind == "csv" else reader).load(path)
                if kind == "text":
                    df = df.selectExpr(rf"explode(split(value, '\\s+')) AS {WORD}").where(f"{WORD} <> ''")
                return skew_report(df, list(keys), workers, **options)
            except SPARK_ERRORS as error:
                raise InputError(f"path: Spark cannot read {path!r} as {kind}: {reason_of(error)}") from None
