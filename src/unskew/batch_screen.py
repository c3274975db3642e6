"""The records of a stream as `unskew top` and `unskew.spark.watch` show them in a terminal."""

from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from unskew.batch_records import BatchRecord

LONGEST_BAR = 40
MOST_WORKERS, MOST_BATCHES, MOST_KEYS, MOST_NAME = 32, 60, 8, 50
STEPS = "▁▂▃▄▅▆▇█"


def screen(folder: Path | str, found: dict[str, list[BatchRecord]]) -> RenderableType:
    """All that is recorded in a checkpoint."""
    parts: list[RenderableType] = []
    for name, records in found.items():
        if records:
            parts += _shown(f"{folder} · {name}" if len(found) > 1 else str(folder), records)
    return Group(*parts) if parts else Text(f"{folder}: no micro-batch yet")


def _shown(title: str, records: list[BatchRecord]) -> list[RenderableType]:
    last = records[-1]
    plan = "online" if last.plan is None else "no readable plan" if last.plan < 0 else f"plan {last.plan}"
    head = Text.assemble(
        (title, "bold"),
        f"\nbatch {last.batch} · {last.rows:,} rows in {last.seconds:.2f} s · {last.scheme}, {plan} · "
        f"{last.workers} workers · busiest over mean ",
        (_number(last.max_over_mean), "bold"),
    )
    return [head, _history(records), _bars(last), *([] if last.plan is None else [_hot_keys(last)])]


def _history(records: list[BatchRecord]) -> Text:
    """Max/mean of the last batches: 1 is the lowest step, the highest of them the highest."""
    values = [record.max_over_mean or 1.0 for record in records[-MOST_BATCHES:]]
    highest = max(*values, 1.5)
    steps = [STEPS[min(7, int(8 * (value - 1.0) / (highest - 1.0)))] for value in values]
    return Text(f"max/mean of {len(values)} batches, 1 to {highest:.2f}: {''.join(steps)}")


def _bars(record: BatchRecord) -> RenderableType:
    """Rows per worker; of many workers only the busiest."""
    if not any(record.load):
        return Text("rows per worker: not counted")
    order = sorted(range(record.workers), key=lambda worker: -record.load[worker])
    shown = sorted(order[:MOST_WORKERS])
    table = Table("worker", "rows", "", box=SIMPLE_HEAD, pad_edge=False)
    table.columns[0].justify = table.columns[1].justify = "right"
    mean = sum(record.load) / record.workers
    for worker in shown:
        rows = record.load[worker]
        style = "red" if rows > 1.2 * mean else "green"
        table.add_row(str(worker), f"{rows:,}", Text("█" * round(LONGEST_BAR * rows / max(record.load)), style=style))
    if len(shown) < record.workers:
        table.caption = f"the busiest {len(shown)} of {record.workers} workers"
    return table


def _hot_keys(record: BatchRecord) -> RenderableType:
    if not record.hot_keys:
        return Text("hot keys: none in the plan of this batch")
    table = Table("hot key", "share", "workers", box=SIMPLE_HEAD, pad_edge=False)
    for hot in record.hot_keys[:MOST_KEYS]:
        table.add_row(Text(name_of(hot)[:MOST_NAME]), f"{100 * hot['share']:.1f} %", str(hot["workers"]))
    return table


def name_of(hot: dict[str, Any]) -> str:
    """A hot key of a record, as people know it; its id where that is not known."""
    return str(hot["key"]) if hot.get("key") is not None else f"(id {hot['key_id']})"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"
