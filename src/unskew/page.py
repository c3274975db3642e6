"""A self-contained HTML page: headings, text, tables and figures in one file, without scripts or outside assets.

page = Page("Loads", "What every worker got.")
page.add_table(["scheme", "max / mean"], [["hash", "2.1"], ["pkg", "1.0"]])
page.add_figure(figure, "Each bar is a worker.")
page.write(fresh_path(Path("loads.html")))

All text is escaped. Figures become inline SVG whose black turns into the page's own text colour, so that they read well
in light and in dark.
"""

import io
import re
from collections.abc import Sequence
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

from unskew.errors import InputError
from unskew.writing import whole_file

STYLE = """
:root { color-scheme: light dark; --ink: #1d2530; --soft: #5b6675; --line: #d9dee5; --ground: #fbfbfa; --card: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --soft: #9aa5b4; --line: #333c48; --ground: #14181e; --card: #1b2129; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 3rem 1.25rem 5rem; background: var(--ground); color: var(--ink);
  font: 1.05rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
h1 { font-size: 2.1rem; line-height: 1.2; letter-spacing: -0.02em; margin: 0 0 0.5rem; }
h2 { font-size: 1.35rem; margin: 2.75rem 0 0.5rem; }
p { max-width: 44rem; margin: 0.75rem 0; }
p.lead { font-size: 1.2rem; color: var(--soft); margin-top: 0; }
pre, code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 0.9rem; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1rem; overflow-x: auto; }
.scroll { overflow-x: auto; margin: 1.25rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 0.5rem 0.75rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; font-size: 0.9rem; vertical-align: bottom; }
.number { text-align: right; }
figure { margin: 1.5rem 0; padding: 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
figure svg { display: block; width: 100%; height: auto; fill: currentColor; }
figure svg text { font-family: inherit !important; }
figcaption { color: var(--soft); font-size: 0.95rem; margin-top: 0.75rem; }
"""
PAGES = (".html",)
NUMBER = re.compile(r"[-+~≈]?\.?\d")  # how a cell with a number begins
NOTHING = ("", "?", "-")  # what stands where a number is missing


class Page:
    """Collects the parts of a page in order; `write` puts them into one file."""

    def __init__(self, title: str, lead: str = "") -> None:
        self.title = title
        self._parts = [f"<h1>{escape(title)}</h1>"]
        self._figures = 0
        if lead:
            self._parts.append(f'<p class="lead">{escape(lead)}</p>')

    def add_heading(self, text: str) -> None:
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def add_text(self, *paragraphs: str) -> None:
        self._parts += [f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs]

    def add_code(self, text: str) -> None:
        self._parts.append(f"<pre><code>{escape(text)}</code></pre>")

    def add_table(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table; a column of numbers is set to the right."""
        texts = [[str(cell) for cell in row] for row in rows]
        numeric = [_is_numeric([row[i] for row in texts]) for i in range(len(headers))]

        def line(tag: str, cells: Sequence[str]) -> str:
            kinds = (' class="number"' if right else "" for right in numeric)
            return (
                "<tr>" + "".join(f"<{tag}{k}>{escape(c)}</{tag}>" for k, c in zip(kinds, cells, strict=True)) + "</tr>"
            )

        body = "\n".join(line("td", row) for row in texts)
        head = line("th", [str(header) for header in headers])
        self._parts.append(f'<div class="scroll"><table><thead>{head}</thead><tbody>\n{body}\n</tbody></table></div>')

    def add_figure(self, figure: Any, caption: str) -> None:
        """A matplotlib Figure as inline SVG. What it draws in black takes the page's text colour."""
        self._figures += 1
        svg = _inline_svg(figure, f"figure{self._figures}-")
        shown = escape(caption)
        svg = svg.replace("<svg ", f'<svg role="img" aria-label="{shown}" ', 1)
        self._parts.append(f"<figure>\n{svg}\n<figcaption>{shown}</figcaption>\n</figure>")

    def html(self) -> str:
        head = (
            '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style>"
        )
        body = "\n".join(self._parts)
        return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'

    def write(self, path: Path) -> None:
        """Write the page, replacing what is there: the caller chooses the path, if need be by `fresh_path`."""
        with whole_file(path) as unfinished:
            unfinished.write_text(self.html(), encoding="utf-8")


def _is_numeric(cells: list[str]) -> bool:
    """Whether a column holds numbers, some perhaps missing."""
    return any(map(NUMBER.match, cells)) and all(NUMBER.match(cell) or cell in NOTHING for cell in cells)


def check_page(option: str, path: Path) -> None:
    """InputError unless `path`, named by `option`, is the name of a page."""
    if path.suffix not in PAGES:
        raise InputError(f"{option}: {str(path)!r} must end in {' or '.join(PAGES)}")


def fresh_path(path: Path) -> Path:
    """`path`, or if something is there already the first of path-2, path-3, ... that is free."""
    if not path.exists():
        return path
    names = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
    return next(name for name in names if not name.exists())


def _inline_svg(figure: Any, prefix: str) -> str:
    """The figure's <svg> element: text kept as text, no background, ids that no other figure on the page has."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "unskew"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace("#000000", "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", svg).strip()
