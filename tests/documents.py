"""What the documents show, for the tests that run it."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parent.parent


def code_blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of a document, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


def commands(document: str) -> list[list[str]]:
    """The lines after a `$`, as words."""
    lines = "\n".join(code_blocks(document, "console")).splitlines()
    return [shlex.split(line[2:]) for line in lines if line.startswith("$ ")]


def tables_after_commands(document: str) -> list[list[list[str]]]:
    """The first table after each block of commands: its rows of cells, the head first, without marks of code."""
    blocks = (ROOT / document).read_text().split("```console")[1:]
    return [_first_table(block) for block in blocks]


def _first_table(text: str) -> list[list[str]]:
    rows = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)[0].splitlines()
    return [[cell.strip(" `*") for cell in row.split("|")[1:-1]] for row in [rows[0], *rows[2:]]]
