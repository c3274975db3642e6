"""The paper's data sets (Table 1), and the words in which its results are told.

WP, TW, CT and LJ cannot be had: Zipf streams that match their tuples, keys and p1 stand in, and say so. LN1, LN2 and
ZF are generated as the paper says. SL2 and the other real streams are read from the folder of real streams.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from unskew.experiments.paper import Settings
from unskew.experiments.real import real_file, real_path
from unskew.experiments.words import median, size
from unskew.plots import COLOURS
from unskew.simulate import Result
from unskew.streams import CHUNK, PUBLISHED, Chunk, Graph, Lognormal, StandIn, Stream, Zipf

WORKERS = (5, 10, 50, 100)
COLOUR = dict(zip(WORKERS, COLOURS, strict=False))
SYNTHETIC = 10_000_000  # tuples of LN1, LN2 and ZF
LN = {"LN1": (1.789, 2.366), "LN2": (2.245, 1.133)}
SLASHDOT = "slashdot0902_edges"
REAL = ("stocknet_cashtags", "congress_hashtags", "reddit_domains", "orm_busy")

# The words "close", "similar", "very low" are the paper's, which measures them in orders of magnitude ("always less
# than one order of magnitude", section 6.2). So do the verdicts.
ORDER = 10.0
# "Balanced": the busiest worker has at most 1 % more than the mean. The paper has no number; on its logarithmic plots
# balanced runs lie decades below this line and unbalanced ones decades above, so the exact place hardly matters.
BALANCED = 1.01


def stand_in(name: str, settings: Settings, most: int = 10**12, quick: int = 3_000_000) -> Stream:
    """The stand-in for WP, TW, CT or LJ, or its first `most` tuples, or in a quick run its first `quick`."""
    return StandIn(name, settings.tuples(min(most, PUBLISHED[name].tuples), quick), seed=settings.seed)


def lognormal(name: str, settings: Settings, quick: int = 3_000_000) -> Stream:
    """LN1 or LN2."""
    return Lognormal(*LN[name], settings.tuples(SYNTHETIC, quick), seed=settings.seed)


def zipf(z: float, keys: int, settings: Settings, quick: int = 1_000_000) -> Stream:
    """ZF with exponent `z` and `keys` keys."""
    return Zipf(z, keys, settings.tuples(SYNTHETIC, quick), seed=settings.seed)


def real(name: str, settings: Settings) -> Stream:
    """A stream of the folder of real streams. The graph is shuffled: its file is sorted by source vertex."""
    if name == SLASHDOT:
        return Graph(str(real_path(name, settings)), shuffled=True, seed=settings.seed)
    return real_file(name, settings)


@dataclass(frozen=True)
class Shuffled(Stream):
    """Another stream in a random order, read into memory first: the same keys without their changes through time."""

    stream: Stream
    seed: int = 0

    @property
    def length(self) -> int | None:
        return self.stream.length

    def chunks(self, size: int = CHUNK) -> Iterator[Chunk]:
        keys = pa.chunked_array([chunk.keys for chunk in self.stream.chunks()]).combine_chunks()
        order = np.random.Generator(np.random.PCG64(self.seed)).permutation(len(keys))
        for start in range(0, len(keys), size):
            part = order[start : start + size]
            yield Chunk(keys.take(pa.array(part)), np.arange(start, start + len(part), dtype=np.float64))


def label(name: str, tuples: int) -> str:
    """The data set's name as shown: stand-ins say so, and how much of them was used where it was not all."""
    if name in (SLASHDOT, *REAL):
        return f"{'SL2' if name == SLASHDOT else name} (real)"
    if name not in PUBLISHED:
        return name
    whole = PUBLISHED[name].tuples
    return f"{name} (stand-in)" if tuples >= whole else f"{name} (stand-in, first {size(tuples)} of {size(whole)})"


def shown(number: float) -> str:
    """A fraction as the paper prints it: 7.4e-2."""
    if number == 0:
        return "0"
    digits, _, exponent = f"{number:.1e}".partition("e")
    return f"{digits}e{int(exponent)}"


def spread(values: list[float]) -> str:
    """One number, or the median and the range of several seeds."""
    ordered = sorted(values)
    if len(ordered) == 1:
        return shown(ordered[0])
    return f"{shown(median(ordered))} ({shown(ordered[0])} to {shown(ordered[-1])})"


def fractions(results: list[Result]) -> list[float]:
    return [result.imbalance_fraction for result in results]


def drawable(fraction: float, tuples: int) -> float:
    """For logarithmic axes: an imbalance of less than one tuple is drawn as one."""
    return max(fraction, 1 / tuples)
