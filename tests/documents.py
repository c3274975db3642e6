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
