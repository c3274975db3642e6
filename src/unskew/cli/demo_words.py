"""The demo's input: a day of trending words as Parquet files, skewed and drifting."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from unskew.streams import Drift

TRENDING = ("storm", "election", "goal", "eclipse", "strike", "festival", "heatwave", "airport")
VOCABULARY = 50_000
EXPONENT = 1.05  # the hottest word of the moment is then 11% of the stream: too much for one of 16 workers, not for two
PHASES = 3  # morning, afternoon, evening: each has a hottest word of its own
SLICES = 60
FILES = 8


class Words(NamedTuple):
    """What was written."""

    counts: dict[str, int]  # of each word that occurs
    shares: npt.NDArray[np.float64]  # [SLICES, PHASES]: each trending word's share of each slice of the day


def write_words(folder: Path, tuples: int, seed: int) -> Words:
    """Write `tuples` words to Parquet files in `folder`.

    Like the logs of several front ends, each file holds a part of every moment of the day.
    """
    words = pa.array([*TRENDING, *(f"word{number}" for number in range(len(TRENDING) + 1, VOCABULARY + 1))])
    schema = pa.schema([("word", pa.dictionary(pa.int32(), pa.string()))])
    stream = Drift(z=EXPONENT, keys=VOCABULARY, tuples=tuples, every=-(-tuples // PHASES), seed=seed)
    counts = np.zeros(VOCABULARY, np.int64)
    shares = []
    files = [pq.ParquetWriter(folder / f"front-end-{number}.parquet", schema) for number in range(FILES)]
    for chunk in stream.chunks(-(-tuples // SLICES)):
        ranks = (chunk.keys - 1).astype(np.int32)
        here = np.bincount(ranks, minlength=VOCABULARY)
        counts += here
        shares.append(here[:PHASES] / len(ranks))
        for file, part in zip(files, np.array_split(ranks, FILES), strict=True):
            file.write_table(pa.table([pa.DictionaryArray.from_arrays(part, words)], schema=schema))
    for file in files:
        file.close()
    return Words({words[i].as_py(): int(counts[i]) for i in np.flatnonzero(counts)}, np.array(shares))
