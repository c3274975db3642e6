"""`watch`: how balanced the micro-batches of a running query are."""

from io import StringIO

from pyspark.sql.streaming import StreamingQuery
from rich.console import Console, RenderableType

from unskew.batch_records import BATCHES, SIDE, BatchRecord
from unskew.batch_screen import screen
from unskew.errors import InputError, InputTypeError
from unskew.spark.streaming.adaptive import METRICS
from unskew.spark.streaming.loop import heard_of
from unskew.spark.streaming.side_folder import SideFolder

WIDTH = 100


class Watch:
    """The records of a query's micro-batches. Print it, or take `records`; both look anew.

    Examples
    --------
    >>> from unskew.spark import Watch
    >>> import tempfile
    >>> Watch(tempfile.mkdtemp(), ["route"]).records()
    {'route': []}
    """

    def __init__(self, checkpoint: str, names: list[str]) -> None:
        self._folders = {name: SideFolder(checkpoint, name) for name in names}
        self._checkpoint = checkpoint

    def records(self) -> dict[str, list[BatchRecord]]:
        """The records of each `Adaptive` of the query by its name, the oldest first."""
        return {name: _records_in(folder) for name, folder in self._folders.items()}

    def __rich__(self) -> RenderableType:
        return screen(self._checkpoint, self.records())

    def __str__(self) -> str:
        text = StringIO()
        Console(file=text, width=WIDTH).print(self)
        return text.getvalue()


def watch(query: StreamingQuery) -> Watch:
    """What is recorded of the micro-batches of a query: load per worker, max/mean, hot keys and their fan-out, rows and
    seconds, and which plan was used. ``unskew top CHECKPOINT`` shows the same live, from any process.

    Parameters
    ----------
    query
        A running or stopped query whose rows were routed with `Adaptive`, after its first batch.

    Examples
    --------
    >>> import tempfile
    >>> from unskew.spark import Adaptive, repartition, watch
    >>> folder = tempfile.mkdtemp()
    >>> df.write.parquet(f"{folder}/rows")
    >>> rows = spark.readStream.schema(df.schema).parquet(f"{folder}/rows")
    >>> placed = repartition(rows, "word", workers=4, plan=Adaptive(f"{folder}/checkpoint"))
    >>> query = placed.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint").start()
    >>> query.processAllAvailable()
    >>> watched = watch(query)
    >>> query.stop()
    """
    if not hasattr(query, "recentProgress"):
        raise InputTypeError(f"query: must be a StreamingQuery, not {type(query).__name__}")
    found = [*heard_of(str(query.id)), *(name for each in query.recentProgress for name in each["observedMetrics"])]
    addresses = [name.removeprefix(METRICS) for name in sorted({*found}) if name.startswith(METRICS)]
    if not addresses:
        raise InputError(
            "query: has no batch yet whose rows were routed with Adaptive; wait for the first, or route its rows with "
            "plan=Adaptive(checkpoint)"
        )
    checkpoint = addresses[0].rsplit(f"/{SIDE}/", 1)[0]
    return Watch(checkpoint, [address.rsplit("/", 1)[1] for address in addresses])


def _records_in(folder: SideFolder) -> list[BatchRecord]:
    texts = (folder.read(f"{BATCHES}/{name}") for name in sorted(folder.names(BATCHES)))
    found = (BatchRecord.from_json(text or "") for text in texts)
    return [record for record in found if record is not None]
