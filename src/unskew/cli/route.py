"""`unskew route`: the decisions for a file, row by row, for anyone to check."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import typer

from unskew import Router, salts_for
from unskew.cli.choosing import make_schemes
from unskew.cli.output import console, notes, print_json, progress_bar
from unskew.contract import Conversing, Listening, Scheme, Times, can
from unskew.errors import InputError
from unskew.frequencies import Frequencies
from unskew.key_columns import key_ids
from unskew.registry import registration_of
from unskew.simulate import count_keys
from unskew.simulate.simulator import Progress
from unskew.streams import CHUNK, File
from unskew.streams.files import TABLES, keys_of, kind_of, table_batches, table_columns
from unskew.streams.times_and_costs import seconds
from unskew.writing import check_can_write, whole_file

ADDED = ("worker", "salt")


def route(
    source: Annotated[Path, typer.Option("--in", help="A .parquet or .csv file.")],
    out: Annotated[Path, typer.Option(help="The file to write, .parquet or .csv.")],
    key: Annotated[list[str], typer.Option(help="The key column; repeat for a key of several columns.")],
    scheme: Annotated[str, typer.Option(help="A scheme, such as pkg or pkg(choices=3).")] = "pkg",
    workers: Annotated[int, typer.Option(help="Workers W, at least 1.")] = 10,
    param: Annotated[list[str] | None, typer.Option(help="A scheme's parameter, such as choices=3; repeat.")] = None,
    time: Annotated[str, typer.Option(help="The time column: seconds or timestamps.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object instead of a sentence.")] = False,
) -> None:
    """Add the columns worker and salt to a file: one source, in file order.

    `worker` is what the scheme decided. `salt` is the number that makes Spark decide the same:
    df.repartition(W, key, salt) puts the row in partition number `worker`.

    Example: [bold]unskew route --scheme pkg --workers 10 --in keys.parquet --key key --out routed.parquet[/bold]
    """
    for option, path in (("in", source), ("out", out)):
        if kind_of(str(path)) not in TABLES:
            raise InputError(f"{option}: {str(path)!r} must end in {' or '.join(TABLES)}")
    stream = File(str(source), key=tuple(key), time=time)
    taken = [name for name in table_columns(str(source)) if name.lower() in ADDED]  # Spark ignores case
    if taken:
        raise InputError(f"in: {str(source)!r} has a column {taken[0]!r} already; it would be overwritten")
    if out.exists() and out.samefile(source):
        raise InputError("out: must be another file than --in")
    check_can_write("out", out, force)

    def count_all() -> Frequencies:
        with progress_bar("counting keys", stream.length) as done:
            return count_keys(stream, done)

    (chosen,) = make_schemes([scheme], workers, param or [], count_all)
    if can(chosen, Listening) or can(chosen, Conversing):
        name = registration_of(chosen).name
        notes.print(f"{name} listens to workers, but hears nothing here: a file has none", style="dim", soft_wrap=True)
    late = Late()
    with progress_bar("routing", stream.length) as done:
        rows = _write(_routed(stream, chosen, late, done), out)
    if late.tuples:
        notes.print(f"time: {late.tuples:,} of {rows:,} rows have an earlier time than one before them", markup=False)
    if as_json:
        print_json({"scheme": scheme, "workers": workers, "rows": rows, "late": late.tuples, "out": str(out)})
    else:
        console.print(f"{rows:,} rows routed over {workers} workers: {out}", markup=False, soft_wrap=True)


class Late:
    """Counts tuples whose time is before that of an earlier one."""

    def __init__(self) -> None:
        self.tuples, self._latest = 0, -np.inf

    def note(self, times: Times) -> None:
        clock = np.maximum.accumulate(np.append(self._latest, times))
        self.tuples += int((times < clock[:-1]).sum())
        self._latest = clock[-1]


def _routed(stream: File, scheme: Scheme, late: Late, done: Progress) -> Iterator[pa.RecordBatch]:
    router = Router(scheme)
    for batch in table_batches(stream.path, None, CHUNK):
        ids = key_ids(keys_of(batch, stream.key_columns))
        times = seconds(batch.column(stream.time), stream.time) if stream.time else None
        if times is not None:
            late.note(times)
        workers = router.route(ids, times)
        salts = salts_for(ids, workers, scheme.workers)
        done(len(ids))
        yield batch.append_column("worker", pa.array(workers)).append_column("salt", pa.array(salts))


def _write(batches: Iterator[pa.RecordBatch], out: Path) -> int:
    kind = pa.parquet.ParquetWriter if out.suffix == ".parquet" else pa.csv.CSVWriter
    first = next(batches)
    rows = 0
    try:
        with whole_file(out) as unfinished, kind(unfinished, first.schema) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)
                rows += len(batch)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise InputError(f"out: {str(out)!r} cannot be written: {str(error).splitlines()[0]}") from None
    return rows
