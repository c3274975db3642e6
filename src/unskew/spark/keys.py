"""Key ids as native Spark columns, and the rules for the columns that can be keys."""

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from unskew.errors import InputError, InputTypeError
from unskew.plan import KeyColumn
from unskew.spark.frames import column, count_of

LOW_HALF = 0xFFFFFFFF
MOST_NAME = 200  # characters of a key that are kept to show to people


def key_id(*columns: Column | str) -> Column:
    """The key id of each row: one bigint with the bits of the uint64 that `unskew.key_ids` gives for one column.

    High 32 bits: Spark's ``hash`` of the columns, which places the key. Low 32 bits: the low half of ``xxhash64``,
    which tells keys apart. A null leaves both hashes as they were, so (null, "a") and ("a", null) share an id: they are
    routed as one key, which can cost balance, never correctness. The hashes run inside the JVM.

    Parameters
    ----------
    columns
        Names or Columns of any types that Spark can hash. Several make one key, and their order counts.

    Examples
    --------
    >>> from unskew.spark import key_id
    >>> df.select("word", key_id("word").alias("id")).distinct().sort("word").show()
    +----+-------------------+
    |word|                 id|
    +----+-------------------+
    | cat|3074240769011233270|
    | the|2548357470391167514|
    +----+-------------------+
    <BLANKLINE>
    """
    if not columns:
        raise InputError("columns: must be at least one column, not none")
    for each in columns:
        if not isinstance(each, Column | str):
            raise InputTypeError(f"columns: must be names or Columns, not {type(each).__name__}")
    placement = F.shiftleft(F.hash(*columns).cast("bigint"), 32)
    return placement.bitwiseOR(F.xxhash64(*columns).bitwiseAND(F.lit(LOW_HALF)))


def partition_of(workers: int, *columns: Column | str) -> Column:
    """The number of the partition in which ``repartition(workers, *columns)`` puts a row."""
    return F.pmod(F.hash(*columns), F.lit(workers))


def key_names(keys: str | Sequence[str], called: str = "keys") -> list[str]:
    """The names in `keys`, which may be one name or several. Errors speak of the parameter `called`."""
    if isinstance(keys, Column):
        raise InputTypeError(f"{called}: must be names of columns, not a Column; add it with withColumn and name it")
    names = [keys] if isinstance(keys, str) else keys
    if not isinstance(names, list | tuple):
        raise InputTypeError(f"{called}: must be the name of a column or a list of names, not {type(keys).__name__}")
    for name in names:
        if not isinstance(name, str):
            raise InputTypeError(f"{called}: must be names of columns, not {type(name).__name__}")
    return list(names)


def key_columns(df: DataFrame, keys: str | Sequence[str], called: str = "keys") -> list[Column]:
    """The columns called `keys`, checked: each there once, and of a type whose hash says where Spark puts it."""
    names = key_names(keys, called)
    if len(set(names)) < len(names):
        raise InputError(f"{called}: must be different columns, not {', '.join(names)}")
    if not names:
        raise InputError(f"{called}: must name at least one column, not none; allowed are {_listed(df.columns)}")
    fields = {field.name: field for field in df.schema}
    for name in names:
        if name not in fields:
            raise InputError(f"{called}: {name!r} is not a column; allowed are {_listed(df.columns)}")
        same = count_of(df, name)
        if same > 1:
            raise InputError(f"{called}: {name!r} names {same} columns; rename all but one")
        for kind in _parts(fields[name].dataType):
            _require_placeable(name, kind, called)
    return [column(name) for name in names]


def described_keys(df: DataFrame, keys: str | Sequence[str]) -> tuple[KeyColumn, ...]:
    """Names and types of the key columns, as a plan keeps them."""
    return tuple(KeyColumn(name, df.schema[name].dataType.simpleString()) for name in key_names(keys))


def shown_key(columns: Sequence[Column]) -> Column:
    """The key as text, to show to people: cut where it is long."""
    texts = (F.coalesce(F.substring(c.cast("string"), 1, MOST_NAME), F.lit("null")) for c in columns)
    return F.concat_ws(", ", *texts)


def can_be_hashed(kind: DataType) -> bool:
    """Whether Spark can hash values of this type."""
    return not any(_is_unhashable(part) for part in _parts(kind))


def _is_unhashable(kind: DataType) -> bool:
    return isinstance(kind, MapType) or kind.typeName() == "variant"


def _require_placeable(name: str, kind: DataType, called: str) -> None:
    """Refuse what cannot be hashed, and what a shuffle hashes otherwise than ``hash`` does."""
    if _is_unhashable(kind):
        raise InputError(f"{called}: {name!r} holds a {kind.typeName()}, which Spark cannot hash; others are allowed")
    if isinstance(kind, StringType) and kind.collation != "UTF8_BINARY":
        raise InputError(
            f"{called}: {name!r} is a string with collation {kind.collation}, which a shuffle places by another hash; "
            "allowed are strings without collation: make a key column such as lower(...) cast to string"
        )


def _parts(kind: DataType) -> Iterator[DataType]:
    """The type and all types inside it."""
    yield kind
    inner = [field.dataType for field in kind] if isinstance(kind, StructType) else []
    if isinstance(kind, ArrayType):
        inner = [kind.elementType]
    for part in inner:
        yield from _parts(part)


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) or "none: the DataFrame has no columns"
