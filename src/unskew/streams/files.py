"""Streams read from files, in file order and in constant memory.

Parquet keeps its column types. In CSV every key is a string (so that "007" stays what it is); the first line names the
columns. A text file is a stream of words, split at ASCII white space (as Spark's split does with \\s).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from unskew.checks import require_integer
from unskew.errors import InputError
from unskew.streams.stream import CHUNK, Chunk, Stream
from unskew.streams.times_and_costs import numbers, seconds

TABLES = (".parquet", ".csv")
WORDS = (".txt", ".text", ".md", ".log")
TEXT_BLOCK = 1 << 20  # bytes
CSV_BLOCK = 1 << 25  # bytes: the longest row that can be read


@dataclass(frozen=True)
class File(Stream):
    """The column `key` of a Parquet or CSV file, or the words of a text file.

    Parameters
    ----------
    path
        A file that ends in .parquet, .csv, .txt, .text, .md or .log, or a folder of Parquet files.
    key
        The column of the keys, or a tuple of columns; a text file has none.
    time
        A column of seconds or timestamps; left out, the tuples are one second apart.
    source
        A column whose hash decides at which source a tuple enters, for skew on the sources.
    cost
        A column of numbers from 0 on: the seconds of work in each tuple, for a worker of capacity 1.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from unskew.streams import File
    >>> path = Path(mkdtemp()) / "words.txt"
    >>> _ = path.write_text("to be or not to be")
    >>> [word for chunk in File(str(path)).chunks() for word in chunk.keys.to_pylist()]
    [b'to', b'be', b'or', b'not', b'to', b'be']
    """

    path: str
    key: str | tuple[str, ...] = ""
    time: str = ""
    source: str = ""
    cost: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.key, tuple) and len(self.key) < 2:
            object.__setattr__(self, "key", "".join(self.key))
        check_readable(self.path)
        if kind_of(self.path) in TABLES:
            names = table_columns(self.path)
            if not self.key or not all(self.key_columns):
                raise InputError(f"key: name the key column of {self.path}; its columns are {', '.join(names)}")
            others = [(parameter, getattr(self, parameter)) for parameter in ("time", "source", "cost")]
            columns = [*(("key", name) for name in self.key_columns), *others]
            for parameter, column in columns:
                if column and column not in names:
                    raise InputError(f"{parameter}: {self.path} has no column {column!r}; it has {', '.join(names)}")
                if names.count(column) > 1:
                    raise InputError(
                        f"{parameter}: {self.path} has {names.count(column)} columns {column!r}; rename one"
                    )
        else:
            for parameter in ("key", "time", "source", "cost"):
                if getattr(self, parameter):
                    raise InputError(f"{parameter}: {self.path} is a text file of words; it has no columns")

    @property
    def key_columns(self) -> tuple[str, ...]:
        """All columns of the key."""
        return (self.key,) if isinstance(self.key, str) else self.key

    @property
    def length(self) -> int | None:
        if kind_of(self.path) == ".parquet":
            return sum(pa.parquet.read_metadata(file).num_rows for file in parquet_files(self.path))
        return None

    @property
    def has_costs(self) -> bool:
        return bool(self.cost)

    def chunks(self, size: int = CHUNK) -> Iterator[Chunk]:
        position = 0
        for keys, times, sources, costs in self._columns(size):
            steps = np.arange(position, position + len(keys), dtype=np.float64)
            moments = steps if times is None else seconds(times, self.time)
            yield Chunk(keys, moments, sources, None if costs is None else numbers(costs, self.cost))
            position += len(keys)

    def _columns(self, size: int) -> Iterator[tuple[Any, Any, Any, Any]]:
        if kind_of(self.path) not in TABLES:
            for words in _words(self.path):
                for start in range(0, len(words), size):
                    yield words.slice(start, size), None, None, None
            return
        wanted = [name for name in dict.fromkeys([*self.key_columns, self.time, self.source, self.cost]) if name]
        for batch in table_batches(self.path, wanted, size):
            others = (batch.column(name) if name else None for name in (self.time, self.source, self.cost))
            yield keys_of(batch, self.key_columns), *others


def keys_of(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    """The column, or a struct of the columns, that is the key."""
    if len(columns) == 1:
        return batch.column(columns[0])
    return pa.StructArray.from_arrays([batch.column(name) for name in columns], list(columns))


@dataclass(frozen=True)
class Graph(Stream):
    """The edges of a directed graph: the key is the destination, and the source vertex decides the source.

    Paper: Partial Key Grouping, section 6.2 (Q3), "skew in the sources".

    Parameters
    ----------
    path
        A Parquet or CSV file, or a folder of Parquet files.
    source, destination
        The columns of the two vertices of an edge.
    shuffled
        True for a random order (the edges are read into memory first): edge lists are sorted by source vertex, which
        no stream is.
    seed
        Of the random order.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from unskew.streams import Graph
    >>> path = Path(mkdtemp()) / "edges.csv"
    >>> _ = path.write_text("src,key\\n1,2\\n1,3\\n2,3\\n")
    >>> [(chunk.source_keys.to_pylist(), chunk.keys.to_pylist()) for chunk in Graph(str(path)).chunks()]
    [(['1', '1', '2'], ['2', '3', '3'])]
    """

    path: str
    source: str = "src"
    destination: str = "key"
    shuffled: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        require_integer("seed", self.seed, 0)
        if kind_of(str(self.path)) not in TABLES:
            raise InputError(f"path: a graph is a {' or '.join(TABLES)} file with two columns, not {self.path!r}")
        self._file  # noqa: B018  (checks the columns now rather than at the first chunk)

    @property
    def _file(self) -> File:
        return File(self.path, key=self.destination, source=self.source)

    @property
    def length(self) -> int | None:
        return self._file.length

    def chunks(self, size: int = CHUNK) -> Iterator[Chunk]:
        if not self.shuffled:
            yield from self._file.chunks(size)
            return
        chunks = list(self._file.chunks(size))
        keys, sources = (_joined([chunk[i] for chunk in chunks]) for i in (0, 2))
        order = pa.array(np.random.Generator(np.random.PCG64(self.seed)).permutation(len(keys)))
        for start in range(0, len(keys), size):
            part = order.slice(start, size)
            times = np.arange(start, start + len(part), dtype=np.float64)
            yield Chunk(keys.take(part), times, sources.take(part))


def _joined(arrays: list[Any]) -> pa.Array:
    return pa.concat_arrays(arrays) if arrays else pa.array([], pa.int64())


def check_readable(path: str) -> None:
    """InputError unless `path` is a file, or a folder of Parquet files, that can be read."""
    allowed = f"allowed are files that end in {', '.join((*TABLES, *WORDS))}, and folders of .parquet files"
    if not is_readable(path):
        raise InputError(f"path: {path!r} is not a file; {allowed}")
    if kind_of(path) not in (*TABLES, *WORDS):
        raise InputError(f"path: {path!r} ends in {Path(path).suffix!r}; {allowed}")


def is_readable(path: Any) -> bool:
    """Whether `path` names a file or a folder of Parquet files; whatever cannot be a file's name does not.

    Nor does an empty text, which Path takes for the current folder.
    """
    try:
        return isinstance(path, str) and path != "" and (Path(path).is_file() or bool(parquet_files(path)))
    except OSError:  # longer than a name can be
        return False


def parquet_files(path: str) -> list[Path]:
    """The file itself, or the Parquet files of a folder as Spark writes them, in the order of their names."""
    return [Path(path)] if Path(path).is_file() else sorted(Path(path).glob("*.parquet"))


def kind_of(path: str) -> str:
    """The ending that says how to read `path`; a folder holds Parquet."""
    return ".parquet" if Path(path).is_dir() else Path(path).suffix


def table_columns(path: str) -> list[str]:
    """The column names of a Parquet or CSV file."""
    try:
        if kind_of(path) == ".parquet":
            return list(pa.parquet.read_schema(parquet_files(path)[0]).names)
        return list(_open_csv(path).schema.names)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"path: {path!r} cannot be read as {kind_of(path)[1:]}: {_one_line(error)}") from None


def table_batches(path: str, columns: list[str] | None, size: int) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet or CSV file, `columns` only or all of them; at least one batch, if an empty one."""
    try:
        if kind_of(path) == ".parquet":
            files = [pa.parquet.ParquetFile(file) for file in parquet_files(path)]
            schema = files[0].schema_arrow
            batches = (batch for file in files for batch in file.iter_batches(size, columns=columns))
        else:
            as_text = dict.fromkeys(table_columns(path), pa.string())
            reader = _open_csv(path, include_columns=columns, column_types=as_text)
            schema = reader.schema
            batches = (batch.slice(i, size) for batch in reader for i in range(0, len(batch), size))
        empty = True
        for batch in batches:
            empty = False
            yield batch
        if empty:
            kept = [field for field in schema if columns is None or field.name in columns]
            yield pa.RecordBatch.from_pylist([], pa.schema(kept))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"path: {path!r} cannot be read: {_one_line(error)}") from None


def _open_csv(path: str, **convert: Any) -> Any:
    return pa.csv.open_csv(
        path,
        pa.csv.ReadOptions(block_size=CSV_BLOCK),
        pa.csv.ParseOptions(newlines_in_values=True),
        pa.csv.ConvertOptions(**convert),
    )


def _words(path: str) -> Iterator[pa.Array]:
    try:
        with open(path, "rb") as file:
            unfinished = b""
            while block := file.read(TEXT_BLOCK):
                words = (unfinished + block).split()
                ends_inside_word = not block[-1:].isspace()
                unfinished = words.pop() if ends_inside_word and words else b""
                if words:
                    yield pa.array(words, pa.binary())
            if unfinished:
                yield pa.array([unfinished], pa.binary())
    except OSError as error:
        raise InputError(f"path: {path!r} cannot be read: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0]
