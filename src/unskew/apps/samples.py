"""Rows that look like the real thing, for applications that are given no data: texts, trades, mentions, waves.

A row is a function of its number and of a seed alone. So the same rows can come as a batch, as files of a stream, or
out of Spark's rate source, which counts; in any order, and again after a retry.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unskew.key_columns import key_ids

Numbers = npt.NDArray[np.int64]
PER_ROW = 64  # random numbers that a row may draw


class Sample(NamedTuple):
    """A kind of rows: the columns, as Spark writes them, and the rows of some numbers."""

    schema: str
    rows: Callable[[Numbers, int], pa.Table]  # (numbers, seed)

    @property
    def columns(self) -> dict[str, str]:
        """The type of each column by its name."""
        return dict(column.strip().split(" ", 1) for column in self.schema.split(","))  # type: ignore[misc]

    def only(self, *names: str) -> "Sample":
        """The same with fewer columns."""
        schema = ", ".join(f"{name} {self.columns[name]}" for name in names)
        return Sample(schema, lambda numbers, seed: self.rows(numbers, seed).select(list(names)))


def draw(numbers: Numbers, columns: int | range, seed: int) -> npt.NDArray[np.float64]:
    """Random numbers from 0 to 1, one per row, or one per row and column if `columns` is a range.

    >>> draw(np.arange(3), 0, seed=1).round(2).tolist()
    [0.5, 1.0, 0.49]
    """
    if isinstance(columns, range):
        wide = (numbers[:, None] * PER_ROW + np.array(columns)).ravel()
        return _hashed(wide, seed).reshape(len(numbers), len(columns))
    return _hashed(numbers * PER_ROW + columns, seed)


def _hashed(numbers: Numbers, seed: int) -> npt.NDArray[np.float64]:
    salt = key_ids(np.array([seed], np.int64)).view(np.int64)[0]
    return (key_ids(numbers.astype(np.int64) ^ salt) >> np.uint64(11)) * 2.0**-53


@cache
def _zipf(z: float, keys: int) -> npt.NDArray[np.float64]:
    """Cumulated probabilities of the ranks 0 to keys - 1."""
    weights = np.arange(1, keys + 1) ** -z
    return np.cumsum(weights) / weights.sum()


def _ranks(uniform: npt.NDArray[np.float64], z: float, keys: int) -> Numbers:
    return np.minimum(np.searchsorted(_zipf(z, keys), uniform), keys - 1)


# ---------------------------------------------------------------- texts with a topic

TOPICS = {
    "sport": "match team goal season coach league player cup final win injury transfer score stadium fans striker",
    "politics": "vote minister party election parliament law policy senate campaign president bill budget tax reform",
    "science": "study cell energy theory planet gene data climate species experiment virus laser brain quantum model",
    "business": "market shares profit bank trade deal price growth company investors sales merger oil stock debt firm",
}
TOPIC_SHARES = np.cumsum([0.4, 0.3, 0.2, 0.1])
COMMON = (
    "the of and to in a is that for it on was with as be by at from he this are or his an they which you had not but "
    "have she were one all their there been has when who will more no if out so said what up its about into than them"
)
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstv" for vowel in "aeiou"]
SHORTEST, LONGEST = 6, 30  # words of a text
ON_TOPIC, OFF_TOPIC = 0.15, 0.08  # of the words: of the text's own topic, of any


@cache
def _vocabulary() -> tuple[npt.NDArray[np.object_], int, list[int]]:
    """All words: the common ones first, how many these are, and where the words of each topic begin."""
    plain = [*COMMON.split(), *(first + second for first in SYLLABLES for second in SYLLABLES)]
    words, starts = list(plain), []
    for topic in TOPICS.values():
        starts.append(len(words))
        words += topic.split()[:14]
    return np.array(words, object), len(plain), starts


def _texts(numbers: Numbers, seed: int) -> pa.Table:
    words, plain, starts = _vocabulary()
    topic = np.searchsorted(TOPIC_SHARES, draw(numbers, 0, seed))
    length = SHORTEST + ((LONGEST - SHORTEST) * draw(numbers, 1, seed)).astype(np.int64)
    kind = draw(numbers, range(2, 2 + LONGEST), seed)
    rank = draw(numbers, range(2 + LONGEST, 2 + 2 * LONGEST), seed)
    about = np.where(kind < ON_TOPIC, topic[:, None], (kind * 1000).astype(np.int64) % len(TOPICS))
    chosen = np.where(
        kind < ON_TOPIC + OFF_TOPIC, np.array(starts)[about] + _ranks(rank, 0.7, 14), _ranks(rank, 1.0, plain)
    )
    texts = [" ".join(row[:n]) for row, n in zip(words[chosen], length.tolist(), strict=True)]
    return pa.table({"text": texts, "label": np.array(list(TOPICS), object)[topic]})


TEXTS = Sample("text string, label string", _texts)

# ---------------------------------------------------------------- trades of a stock exchange

TICKERS, TICKER_SKEW = 500, 0.8  # the most traded has 8 % of the trades, as of the cashtags of stocknet
TRADES_PER_SECOND = 100.0
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@cache
def _tickers() -> npt.NDArray[np.object_]:
    codes = (np.arange(TICKERS) * 7919 + 1234) % 26**3  # 7919 has no divisor of 26, so all differ
    return np.array(["".join(LETTERS[code // 26**i % 26] for i in range(3)) for code in codes], object)


def _trades(numbers: Numbers, seed: int) -> pa.Table:
    rank = _ranks(draw(numbers, 0, seed), TICKER_SKEW, TICKERS)
    base = np.exp(2.5 + 2.5 * draw(np.arange(TICKERS), PER_ROW - 1, seed))[rank]
    wave = 0.02 * np.sin(2 * np.pi * (numbers / 20_000 + 0.37 * rank))
    price = base * (1 + wave + 0.006 * (draw(numbers, 1, seed) - 0.5))
    volume = 100 * np.ceil(-3 * np.log1p(-draw(numbers, 2, seed))).clip(1).astype(np.int64)
    names = _tickers()[rank]
    return pa.table({"ticker": names, "time": numbers / TRADES_PER_SECOND, "price": price.round(2), "volume": volume})


TRADES = Sample("ticker string, time double, price double, volume bigint", _trades)

# ---------------------------------------------------------------- mentions of entities in tweets

ENTITIES, ENTITY_SKEW = 35_000, 0.94  # the most mentioned is in 6.5 % of the tweets, as in POSG's
KINDS = ("politician", "media", "other")  # a third of the entities each


def _mentions(numbers: Numbers, seed: int) -> pa.Table:
    rank = _ranks(draw(numbers, 0, seed), ENTITY_SKEW, ENTITIES)
    kinds = np.array(KINDS, object)[rank % len(KINDS)]
    entities = [f"@{kind}-{place}" for kind, place in zip(kinds, (rank // len(KINDS)).tolist(), strict=True)]
    return pa.table({"tweet": numbers, "entity": entities, "kind": kinds})


MENTIONS = Sample("tweet bigint, entity string, kind string", _mentions)

# ---------------------------------------------------------------- waves: Breiman et al., CART, 1984, section 2.6.2

WAVE_POINTS = 21
WAVE_PAIRS = np.array([(7, 15), (7, 11), (15, 11)])  # the peaks of the two triangles that a wave of each class mixes


def _waves(numbers: Numbers, seed: int) -> pa.Table:
    label = (draw(numbers, 0, seed) * len(WAVE_PAIRS)).astype(np.int64)
    share = draw(numbers, 1, seed)[:, None]
    at = np.arange(1, WAVE_POINTS + 1)
    first, second = (np.maximum(6 - np.abs(at - WAVE_PAIRS[label, i][:, None]), 0) for i in (0, 1))
    radius = np.sqrt(-2 * np.log1p(-draw(numbers, range(2, 2 + WAVE_POINTS), seed)))
    noise = radius * np.cos(2 * np.pi * draw(numbers, range(30, 30 + WAVE_POINTS), seed))
    points = share * first + (1 - share) * second + noise
    columns = {f"x{i}": points[:, i] for i in range(WAVE_POINTS)}
    return pa.table({"label": np.array(["a", "b", "c"], object)[label], **columns})


WAVES = Sample("label string, " + ", ".join(f"x{i} double" for i in range(WAVE_POINTS)), _waves)
