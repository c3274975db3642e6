"""`unskew doctor`: the skew report, or the cost report, for a file or folder that Spark can read."""

import importlib.util
import tempfile
from collections.abc import Callable, Sequence
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
from unskew.report import PURPOSES, CostReport, Report
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
    cost: Annotated[
        str | None,
        typer.Option(help="What the work on a row costs, such as 'length(text)': then the report is on that."),
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

    Work that keeps no state per key, but costs more for some rows than for others, has no key. Tell what a row costs
    ([bold]--cost[/bold], a column or an SQL expression, in any unit), and the report says how uneven the work is, and
    what balancing it would gain.

    Example: [bold]unskew doctor events.parquet --key user --for python --out skew.html[/bold]
    Example: [bold]unskew doctor documents.parquet --cost 'length(text)' --workers 16[/bold]
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

    if cost is None:
        columns = _keys(key or [], kind)
        options = {"for_": for_ or None, "sample": None if sample == 1 else sample, "row_cost": row_cost}
        report = _skew(path, kind, columns, workers, options | {"cores": cores})
    else:
        given = {"key": key, "for": for_, "sample": sample != 1, "row-cost": row_cost, "cores": cores}
        _require_left_out([name for name, value in given.items() if value])
        report = _costs(path, kind, cost, workers)
    if out is not None:
        from unskew.cli.doctor_page import cost_page, doctor_page

        page = cost_page(report, path) if isinstance(report, CostReport) else doctor_page(report, path)
        page.write(out)
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


def _require_left_out(given: Sequence[str]) -> None:
    if given:
        raise InputError(f"{given[0]}: is for the report on keys; leave --{given[0]} out with --cost, which is on rows")


def _skew(path: str, kind: str, keys: Sequence[str], workers: int, options: dict[str, Any]) -> Report | CostReport:
    def report(df: Any) -> Report:
        from unskew.spark import skew_report

        if kind == "text":
            df = df.selectExpr(rf"explode(split(value, '\\s+')) AS {WORD}").where(f"{WORD} <> ''")
        return skew_report(df, list(keys), workers, **options)

    return _run(path, kind, report, "counting the keys of")


def _costs(path: str, kind: str, cost: str, workers: int) -> Report | CostReport:
    def report(df: Any) -> CostReport:
        from unskew.spark import cost_report

        return cost_report(df, cost, workers)

    return _run(path, kind, report, "adding up the costs of")


def _run(path: str, kind: str, report: Callable[[Any], Report | CostReport], doing: str) -> Report | CostReport:
    from unskew.spark import SPARK_ERRORS, local_spark

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="unskew-doctor-") as folder,
        Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress,
    ):
        task = progress.add_task("starting a local Spark")
        with local_spark(Path(folder)) as spark:
            progress.update(task, description=f"{doing} {path}")
            reader = spark.read.format(kind)
            try:
                return report((reader.option("header", True) if kind == "csv" else reader).load(path))
            except SPARK_ERRORS as error:
                raise InputError(f"path: Spark cannot read {path!r} as {kind}: {reason_of(error)}") from None
