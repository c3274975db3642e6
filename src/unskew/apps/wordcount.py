"""The most frequent words of a stream of texts, brought up to date again and again (PKG, section 6.2, Q5).

Workers count the words that they get, and their partial counts are added up at the end of each period, here a
micro-batch. A hot word has counters on two workers under PKG, on one by hash, on all of them in turn.

It is the paper's example since nothing is simpler. In earnest, let Spark count: ``groupBy("word").count()`` combines
rows before the shuffle, so that skew does not hurt it.
"""

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.aggregates import Count
from unskew.apps.dealing import COLUMNS, batch_pictures, compare, dealt_pictures, mode_of
from unskew.apps.found import Found, ranking
from unskew.apps.job import Job
from unskew.apps.samples import TEXTS
from unskew.checks import require_integer
from unskew.contract import Scheme
from unskew.spark import Adaptive, aggregate

WORDS = r"filter(split(lower(text), '[^\\p{L}\\p{N}]+'), word -> word <> '')"  # of a text, as an array
CODE = """words = texts.selectExpr("explode(split(lower(text), ' ')) AS word")
counts = aggregate(words, "word", {"count": Count()}, workers, "pkg", plan=Adaptive(checkpoint))"""


def words_of(texts: DataFrame) -> DataFrame:
    """One row per word, in small letters."""
    return texts.selectExpr(f"explode({WORDS}) AS word")


def count_words(
    texts: DataFrame, workers: int, scheme: str | Scheme | None = "pkg", plan: Adaptive | None = None
) -> DataFrame:
    """How often each word occurs. On a stream, give it a plan that adapts."""
    mode = "auto" if plan or scheme is None else mode_of(scheme)
    return aggregate(words_of(texts), "word", {"count": Count()}, workers, scheme, mode=mode, plan=plan)


def run(job: Job, top: int = 20) -> Found:
    """Count, and take the `top` words of each period."""
    require_integer("top", top, 1, 10_000)
    scheme = job.scheme or "pkg"
    texts = job.read(TEXTS.only("text"))
    plan = Adaptive(job.checkpoint) if texts.isStreaming else None
    periods: list[dict[str, Any]] = []

    def take(counts: DataFrame, number: int) -> None:
        first = counts.orderBy(F.desc("count"), "word").limit(top).collect()
        words, different = counts.agg(F.sum("count"), F.count("word")).first() or (0, 0)
        best = [{"word": row["word"], "count": row["count"]} for row in first]
        periods.append({"period": number + 1, "words": words or 0, "different": different, "top": best})

    job.each_batch(count_words(texts, job.workers, scheme, plan), take, mode="complete")
    rows = [
        {"period": period["period"], "rank": rank, **word}
        for period in periods
        for rank, word in enumerate(period["top"], 1)
    ]
    kinds = pa.schema({"period": pa.int64(), "rank": pa.int64(), "word": pa.string(), "count": pa.int64()})
    job.write(pa.Table.from_pylist(rows, kinds))
    last = periods[-1]
    said = f"{last['words']:,} words, {last['different']:,} of them different" + (
        f"; the first is {last['top'][0]['word']!r} with {last['top'][0]['count']:,}." if last["top"] else "."
    )
    names, counts = [word["word"] for word in last["top"]], [word["count"] for word in last["top"]]
    pictures = [(ranking(names, counts, "count"), f"The {len(names)} most frequent words.")]
    title, facts = "The most frequent words", {"periods": periods, "top": last["top"]}
    if texts.isStreaming:
        columns = {"period": "{period}", "words so far": "{words:,}", "different": "{different:,}", "first": "{first}"}
        lines = [period | {"first": " ".join(word["word"] for word in period["top"][:5])} for period in periods]
        return Found(title, [said], columns, lines, facts, pictures + batch_pictures(job), CODE)
    found = compare(job, words_of(texts), "word", scheme)
    facts["dealt"] = [each.to_dict() for each in found]
    pictures += dealt_pictures(found, "words")
    return Found(title, [said], COLUMNS, facts["dealt"], facts, pictures, CODE)
