"""The demo's input: a skewed stream of words as Parquet files, and where Spark's own hash would put them."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from unskew.key_columns import key_ids
from unskew.streams import Zipf

VOCABULARY = 100_000
EXPONENT = 1.2  # the hottest word is then a fifth of the stream, as is the hottest domain of the links on Reddit
FILES = 4


class Words(NamedTuple):
    """A stream of words: those that occur, the hottest first, and how often."""

    words: pa.StringArray
    counts: npt.NDArray[np.int64]

    @property
    def hottest(self) -> float:
        """The share of the hottest word, p1."""
        return float(self.counts.max() / self.counts.sum())

    def are(self, counted: dict[str, int]) -> bool:
        """Whether `counted` has exactly these words with these counts."""
        return counted == dict(zip(self.words.to_pylist(), self.counts.tolist(), strict=True))

    def hashed(self, workers: int) -> npt.NDArray[np.int64]:
        """Rows that each worker gets by Spark's ``df.repartition(workers, "word")``."""
        spark_hash = (key_ids(self.words) >> np.uint64(32)).astype(np.uint32).view(np.int32)
        return np.bincount(spark_hash % workers, self.counts, workers).astype(np.int64)


def write_words(folder: Path, tuples: int, seed: int) -> Words:
    """Write `tuples` words to Parquet files in `folder`."""
    ranks = np.concatenate([chunk.keys for chunk in Zipf(EXPONENT, VOCABULARY, tuples, seed).chunks()]) - 1
    vocabulary = pa.array([f"word{rank}" for rank in range(1, VOCABULARY + 1)])
    for number, part in enumerate(np.array_split(ranks.astype(np.int32), FILES)):
        words = pa.DictionaryArray.from_arrays(part, vocabulary).cast(pa.string())
        pq.write_table(pa.table({"word": words}), folder / f"part-{number}.parquet")
    counts = np.bincount(ranks, minlength=VOCABULARY)
    occurring = np.flatnonzero(counts)
    occurring = occurring[np.argsort(-counts[occurring], kind="stable")]
    return Words(vocabulary.take(pa.array(occurring)), counts[occurring])
