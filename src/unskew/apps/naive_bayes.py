"""A naive Bayes classifier of texts, trained on a stream of labelled ones (PKG, sections 2 and 3.1).

What is learnt are counters: how often each word occurred in texts of each class. They are kept by word. Words are
skewed, so by hash one worker has most to do. Under PKG the counters of a hot word are on two workers, in turn on all W.
The model is the same, to the last count, since counts can be added up in any order.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from unskew.aggregates import Aggregate
from unskew.apps.dealing import COLUMNS, batch_pictures, compare, dealt_pictures, mode_of
from unskew.apps.found import Found
from unskew.apps.job import MODEL, Job
from unskew.apps.samples import TEXTS
from unskew.apps.wordcount import WORDS
from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.spark import Adaptive, aggregate

TEXT = ""  # stands for a text as a whole: how often it occurs in a class is how many texts that has
CODE = """counts = aggregate(words, "word", {"counts": ClassCounts()}, workers, "pkg", plan=Adaptive(checkpoint))
model = Model({row["word"]: dict(row["counts"]) for row in counts.collect()})"""


class ClassCounts(Aggregate):
    """How many rows of a key have each label: an aggregate of our own, whose states are dictionaries.

    >>> counts = ClassCounts()
    >>> state = counts.add(counts.zero(), pa.record_batch({"label": ["sport", "science", "sport"]}))
    >>> counts.finish(counts.merge(state, {"science": 2}))
    [{'label': 'science', 'count': 3}, {'label': 'sport', 'count': 2}]
    """

    columns = ("label",)
    type = pa.list_(pa.struct({"label": pa.string(), "count": pa.int64()}))

    def zero(self) -> dict[str, int]:
        return {}

    def add(self, state: dict[str, int], batch: pa.RecordBatch) -> dict[str, int]:
        labels, counts = batch["label"].value_counts().flatten()
        return self.merge(state, dict(zip(labels.to_pylist(), counts.to_pylist(), strict=True)))

    def merge(self, a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
        return {label: a.get(label, 0) + b.get(label, 0) for label in {**a, **b}}

    def finish(self, state: dict[str, int]) -> list[dict[str, Any]]:
        return [{"label": label, "count": state[label]} for label in sorted(state)]


class Model:
    """Multinomial naive Bayes with one added to each count (Laplace). Words that were never seen are left out.

    >>> model = Model({TEXT: {"ham": 1, "spam": 1}, "cheap": {"spam": 2}, "lunch": {"ham": 2}})
    >>> model.classify([["cheap", "lunch", "cheap"], ["lunch"]])
    ['spam', 'ham']
    """

    def __init__(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        self.labels = sorted(counts.get(TEXT, {}))
        texts = np.array([counts[TEXT][label] for label in self.labels], float)
        self.words = {word: place for place, word in enumerate(sorted(set(counts) - {TEXT}))}
        seen = np.array([[counts[word].get(label, 0) for label in self.labels] for word in self.words], float)
        seen = seen.reshape(len(self.words), len(self.labels)) + 1
        self.prior = np.log(texts / texts.sum())
        self.likelihood = np.log(seen / seen.sum(axis=0))

    def classify(self, texts: list[list[str]]) -> list[str]:
        """The most probable label of each text, a list of words; of equals the first."""
        found = []
        for words in texts:
            places = [self.words[word] for word in words if word in self.words]
            found.append(self.labels[int(np.argmax(self.prior + self.likelihood[places].sum(axis=0)))])
        return found


def words_of(texts: DataFrame) -> DataFrame:
    """One row per word of a text, with the text's label, and one row per text."""
    labelled = texts.where("text IS NOT NULL AND label IS NOT NULL")
    return labelled.selectExpr(f"explode(concat(array('{TEXT}'), {WORDS})) AS word", "label")


def train(
    texts: DataFrame, workers: int, scheme: str | Scheme | None = "pkg", plan: Adaptive | None = None
) -> DataFrame:
    """The counters of each word. On a stream, give it a plan that adapts."""
    mode = "auto" if plan or scheme is None else mode_of(scheme)
    return aggregate(words_of(texts), "word", {"counts": ClassCounts()}, workers, scheme, mode=mode, plan=plan)


def classify(texts: DataFrame, model: Model) -> DataFrame:
    """The texts with one more column, ``predicted``."""
    columns = [name for name in ("text", "label") if name in texts.columns]
    schema = ", ".join(f"{name} string" for name in (*columns, "predicted"))

    def predict(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            labels = pa.array(model.classify(batch["words"].to_pylist()), pa.string())
            yield pa.RecordBatch.from_arrays([*(batch[name] for name in columns), labels], [*columns, "predicted"])

    texts = texts.selectExpr(*(f"CAST({name} AS string) AS {name}" for name in columns))
    return texts.selectExpr(*columns, f"coalesce({WORDS}, array()) AS words").mapInArrow(predict, schema)


def run(job: Job, other: str | None = None) -> Found:
    """Train, then classify the texts of the file `other`; where texts are made, some more of them."""
    scheme, more = job.scheme or "pkg", job.more(other)
    texts = job.read(TEXTS)
    plan = Adaptive(job.checkpoint) if texts.isStreaming else None
    counts: dict[str, dict[str, int]] = {}

    def take(rows: DataFrame, number: int) -> None:  # on a stream, the words whose counters have changed
        counts.update((row["word"], {each["label"]: each["count"] for each in row["counts"]}) for row in rows.collect())

    job.each_batch(train(texts, job.workers, scheme, plan), take, mode="update")
    if TEXT not in counts:
        raise InputError("path: no row has both a text and a label, so there is nothing to learn")
    model = Model(counts)
    learnt = [{"word": word, **{"label": label, "count": n}} for word in counts for label, n in counts[word].items()]
    job.write(pa.Table.from_pylist(learnt), MODEL)
    facts: dict[str, Any] = {"words": len(model.words), "classes": model.labels, "texts": sum(counts[TEXT].values())}
    said = [f"Learnt from {facts['texts']:,} texts of {len(model.labels)} classes, with {len(model.words):,} words."]
    if more is not None:
        job.say("classifying other texts")
        found = classify(job.read_more(more, TEXTS if other is None else TEXTS.only("text")), model)
        rows = job.spark.read.parquet(str(job.write(found)))
        facts["classified"] = rows.count()
        if "label" in rows.columns:
            facts["accuracy"] = rows.where("label = predicted").count() / max(1, facts["classified"])
            said.append(f"Of {facts['classified']:,} other texts {facts['accuracy']:.1%} got the right label.")
    title, pictures = "Texts, classified", batch_pictures(job) if texts.isStreaming else []
    if texts.isStreaming:
        columns = {"class": "{label}", "texts": "{count:,}"}
        lines = [{"label": label, "count": counts[TEXT][label]} for label in model.labels]
        return Found(title, said, columns, lines, facts, pictures, CODE)
    found_dealt = compare(job, words_of(texts), "word", scheme)
    facts["dealt"] = [each.to_dict() for each in found_dealt]
    return Found(title, said, COLUMNS, facts["dealt"], facts, dealt_pictures(found_dealt, "words"), CODE)
