"""The folder of real streams: Parquet files with the columns `ts` and `key`, where they are present."""

from pathlib import Path

from unskew.experiments.paper import Settings
from unskew.streams import File, Stream


def real_path(name: str, settings: Settings) -> Path:
    return settings.data / f"{name}.parquet"


def has_real(name: str, settings: Settings) -> bool:
    return real_path(name, settings).is_file()


def real_file(name: str, settings: Settings) -> Stream:
    """The stream called `name`, in its own order."""
    return File(str(real_path(name, settings)), key="key", time="ts")


def absent(name: str) -> str:
    return f"the file {name}.parquet is absent from the folder of real streams; name the folder with --data"
