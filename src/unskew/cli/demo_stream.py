"""`unskew demo --stream`: a drifting stream on a local Spark, placed by hash and adaptively, batch by batch."""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from unskew.batch_records import BatchRecord, read_records
from unskew.cli.demo_screen import progress
from unskew.cli.output import console, print_json
from unskew.page import Page, fresh_path
from unskew.plots import COLOURS, new_figure

BATCHES, ANEW = 8, 4  # micro-batches, and the one from which on other words are hot
VOCABULARY, EXPONENT = 10_000, 1.2
LABELS = ("hash", "adaptive")


def demo_stream(tuples: int, workers: int, row_cost: float, seed: int, out: Path, as_json: bool) -> None:
    """Run it, show each batch as it ends, and write the page."""
    found = _run(tuples // BATCHES, workers, row_cost, seed)
    page = fresh_path(out)
    _page(found, row_cost).write(page)
    if as_json:
        batches = {label: [_told(record) for record in records] for label, records in found.items()}
        print_json({"tuples": tuples, "workers": workers, "row_cost": row_cost, "batches": batches, "page": str(page)})
        return
    console.print(_table(found))
    console.print(f"\n{_finding(found)}\n\nThe pictures: [bold]{page}[/bold]", soft_wrap=True)


def _run(rows: int, workers: int, row_cost: float, seed: int) -> dict[str, list[BatchRecord]]:
    """The records of both queries. They get each batch one after the other, so that neither waits for the other."""
    from unskew.spark import QUICK_START, local_spark, require_java, sleeping_queries

    require_java()
    settings = QUICK_START | {
        "spark.master": f"local[{workers}]",
        "spark.sql.streaming.pollingDelay": "200ms",
    }
    with tempfile.TemporaryDirectory(prefix="unskew-demo-") as name, progress() as say:
        folder = Path(name)
        say("starting a local Spark", None)
        with local_spark(folder, settings) as spark:
            say("warming up, so that no batch pays for the start of Spark", None)
            _warm_up(spark, folder, workers)
            queries = sleeping_queries(spark, {label: folder / label for label in LABELS}, workers, row_cost)
            found: dict[str, list[BatchRecord]] = {label: [] for label in queries}
            for batch in range(BATCHES):
                words = _words(rows, seed + batch, anew=batch >= ANEW)
                for label, query in queries.items():
                    say(f"batch {batch + 1} of {BATCHES}, {label}", _table(found))
                    _put(words, folder / label / "rows", batch)
                    query.processAllAvailable()
                    found[label] = _records_when(folder / label / "checkpoint", batch)
            for query in queries.values():
                query.stop()
    return found


def _warm_up(spark: Any, folder: Path, workers: int) -> None:
    """Two small batches of a query of the same kind, which are not shown."""
    from unskew.spark import sleeping_queries

    (query,) = sleeping_queries(spark, {"warm": folder / "warm"}, workers, 0.0).values()
    for batch in range(2):
        _put(_words(100 * workers, batch, anew=False), folder / "warm" / "rows", batch)
        query.processAllAvailable()
    query.stop()


def _words(rows: int, seed: int, anew: bool) -> pa.Table:
    weights = 1.0 / np.arange(1, VOCABULARY + 1) ** EXPONENT
    ranks = np.random.default_rng(seed).choice(VOCABULARY, rows, p=weights / weights.sum())
    ranks = VOCABULARY - ranks if anew else ranks
    return pa.table({"word": [f"word{rank}" for rank in ranks], "row": np.arange(rows)})


def _put(words: pa.Table, folder: Path, batch: int) -> None:
    unfinished = folder.parent / "unfinished"
    pq.write_table(words, unfinished)
    os.replace(unfinished, folder / f"{batch:03d}.parquet")


def _records_when(checkpoint: Path, batch: int) -> list[BatchRecord]:
    """The records, once there is one of `batch`: the listener hears of a batch shortly after its end."""
    for _ in range(600):
        records = read_records(checkpoint, "route")
        if records and records[-1].batch >= batch:
            return records
        time.sleep(0.05)
    return read_records(checkpoint, "route")


def _told(record: BatchRecord) -> dict[str, Any]:
    return {
        "batch": record.batch,
        "max_over_mean": record.max_over_mean,
        "seconds": record.seconds,
        "plan": record.plan,
    }


def _table(found: dict[str, list[BatchRecord]]) -> Table:
    heads = [f"{label}: {what}" for label in found for what in ("max/mean", "seconds")]
    table = Table("batch", *heads, box=None, padding=(0, 2, 0, 0))
    for batch in range(max(map(len, found.values()))):
        cells: list[str] = []
        for records in found.values():
            if batch < len(records):
                cells += [f"{records[batch].max_over_mean:.2f}", f"{records[batch].seconds:.1f}"]
            else:
                cells += ["", ""]
        table.add_row(f"{batch + 1}{' (other words are hot)' if batch == ANEW else ''}", *cells)
    return table


def _finding(found: dict[str, list[BatchRecord]]) -> str:
    by_hash, adaptive = (_later(records) for records in found.values())
    return (
        f"By hash, the busiest of {found['hash'][0].workers} workers has {by_hash[0]:.1f} times the mean, and a batch "
        f"takes {by_hash[1]:.1f} s; adaptively {adaptive[0]:.2f} times and {adaptive[1]:.1f} s (medians, without the "
        "first batch and the first one after the change, which no plan can foresee)."
    )


def _later(records: Sequence[BatchRecord]) -> tuple[float, float]:
    """Median max/mean and seconds of the batches before which something was known."""
    known = [record for record in records if record.batch not in (0, ANEW)]
    return (
        float(np.median([record.max_over_mean or 1.0 for record in known])),
        float(np.median([record.seconds for record in known])),
    )


def _page(found: dict[str, list[BatchRecord]], row_cost: float) -> Page:
    rows = found["hash"][0].rows
    page = Page(
        "Hot words that change, and a stream that follows them",
        f"{BATCHES} micro-batches of {rows:,} words; from batch {ANEW + 1} on other words are hot. Each row takes "
        f"{row_cost * 1000:g} ms, which its worker spends asleep.",
    )
    figure = new_figure(11, 6)
    uneven, seconds = figure.subplots(2, 1, sharex=True)
    for (label, records), colour in zip(found.items(), COLOURS[1::-1], strict=False):
        batches = [record.batch + 1 for record in records]
        uneven.plot(batches, [record.max_over_mean for record in records], marker="o", label=label, color=colour)
        seconds.plot(batches, [record.seconds for record in records], marker="o", label=label, color=colour)
    uneven.set(ylabel="busiest worker / mean")
    seconds.set(ylabel="seconds per batch", xlabel="micro-batch", ylim=(0, None))
    uneven.legend()
    page.add_figure(figure, "Each micro-batch, measured. The first has no plan, and the change comes without notice.")
    heads = ["batch", *(f"{label}, {what}" for label in found for what in ("max/mean", "s"))]
    lines = [
        [
            i + 1,
            *(
                cell
                for records in found.values()
                for cell in (f"{records[i].max_over_mean:.2f}", f"{records[i].seconds:.1f}")
            ),
        ]
        for i in range(min(map(len, found.values())))
    ]
    page.add_table(heads, lines)
    page.add_text(_finding(found))
    page.add_code('balanced = repartition(stream, "word", workers, plan=Adaptive(checkpoint))')
    return page
