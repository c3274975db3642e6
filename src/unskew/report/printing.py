"""Reports as text and for notebooks: what every report that rich can print has in common."""

from html import escape
from io import StringIO
from typing import Any

from rich.console import Console

WIDTH = 100  # of a report as text


def as_text(report: Any) -> str:
    """What rich prints, without colours."""
    console = Console(file=StringIO(), width=WIDTH, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(report)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def as_html(report: Any) -> str:
    """The text as a notebook shows it."""
    return f'<pre style="line-height: 1.3">{escape(as_text(report))}</pre>'
