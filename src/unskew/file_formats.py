"""The format of a file or folder for Spark, by its name and first bytes; and what Spark says if it cannot read it."""

import re
from pathlib import Path

from unskew.errors import InputError

SUFFIXES = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
    ".txt": "text",
    ".text": "text",
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
FIRST_BYTES = {b"PAR1": "parquet", b"ORC": "orc"}  # of files that are not text
TAGGED = re.compile(r"\[[A-Z_.]+\] (.+)")


def format_of(path: str, chosen: str = "") -> str:
    """The format, by the name of the file, or of the first file in the folder whose name tells."""
    if chosen and chosen not in FORMATS:
        raise InputError(f"format: must be one of {', '.join(FORMATS)}, not {chosen!r}")
    names = [path]
    if "://" not in path:
        place = Path(path)
        if not place.exists():
            raise InputError(f"path: there is no {path!r}")
        if place.is_dir():
            names = sorted(str(file) for file in place.rglob("*") if file.is_file() and file.name[0] not in "._")
    if chosen:
        _check_first_bytes(names[0] if names else path, chosen)
        return chosen
    for name in names:
        for suffix in reversed(Path(name).suffixes):  # .csv.gz
            if suffix.lower() in SUFFIXES:
                return SUFFIXES[suffix.lower()]
    raise InputError(f"format: the name {path!r} does not tell; add --format with one of {', '.join(FORMATS)}")


def _check_first_bytes(path: str, chosen: str) -> None:
    """InputError where the file's own first bytes say that it has another format."""
    if not Path(path).is_file():
        return
    with open(path, "rb") as file:
        first = file.read(4)
    for mark, kind in FIRST_BYTES.items():
        if first.startswith(mark) != (kind == chosen) and (first.startswith(mark) or kind == chosen):
            is_one = f"is a {kind} file" if first.startswith(mark) else f"is no {chosen} file"
            raise InputError(f"format: {path!r} {is_one}, not to be read as {chosen}")


def reason_of(error: Exception) -> str:
    """What Spark says, in one line: the text behind the first [ERROR_CLASS], without the stack."""
    said = str(error).strip()
    tagged = TAGGED.search(said)
    return tagged[1] if tagged else (said.splitlines() or [type(error).__name__])[0]
