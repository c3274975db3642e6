"""A streaming parallel decision tree (PKG, section 4.1; Ben-Haim and Tom-Tov, JMLR 2010).

Workers make histograms, one per leaf, feature and class. The driver merges them and splits leaves; then the next round
begins: a micro-batch of a stream, or another pass over a batch. Values go to workers by feature. In turn, as the
algorithm was published, each of W workers has D * C * L histograms. Under PKG a feature is on two workers, so there are
2 * D * C * L, and to merge a histogram means to merge two.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from unskew.aggregates import Aggregate
from unskew.apps.dealing import COLUMNS, Dealt, compare, dealt_pictures, mode_of
from unskew.apps.found import Found, lines
from unskew.apps.histogram import EMPTY, Histogram, add_points, merge, to_plain
from unskew.apps.job import MODEL, Job
from unskew.apps.samples import WAVES, Sample
from unskew.apps.tree import Floats, Tree
from unskew.checks import require_integer
from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.spark import aggregate

NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
CODE = """histograms = aggregate(points, "feature", {"histograms": LeafHistograms(bins=32)}, workers, "pkg")
tree.grow({...: merged histograms by leaf, feature and class})  # then the next round"""
BIN_LISTS = {"centres": pa.list_(pa.float64()), "counts": pa.list_(pa.float64())}


class LeafHistograms(Aggregate):
    """The histograms of a feature by leaf and class. An aggregate of our own: its state is a dictionary of them."""

    columns = ("leaf", "label", "value")
    type = pa.list_(pa.struct({"leaf": pa.int32(), "label": pa.string(), **BIN_LISTS}))

    def __init__(self, bins: int) -> None:
        self.bins = bins

    def zero(self) -> dict[tuple[int, str], Histogram]:
        return {}

    def add(self, state: dict[tuple[int, str], Histogram], batch: pa.RecordBatch) -> dict[tuple[int, str], Histogram]:
        values = batch["value"].to_numpy()
        labels, label_of = np.unique(np.array(batch["label"].to_pylist(), object), return_inverse=True)
        leaf_of = batch["leaf"].to_numpy()
        for leaf in np.unique(leaf_of).tolist():
            for place, label in enumerate(labels):
                here = values[(leaf_of == leaf) & (label_of == place)]
                if len(here):
                    state[leaf, label] = add_points(state.get((leaf, label), EMPTY), here, self.bins)
        return state

    def merge(self, a: Any, b: Any) -> dict[tuple[int, str], Histogram]:
        return {key: merge(a.get(key, EMPTY), b.get(key, EMPTY), self.bins) for key in {**a, **b}}

    def finish(self, state: dict[tuple[int, str], Histogram]) -> list[dict[str, Any]]:
        return [{"leaf": leaf, "label": label, **to_plain(each)} for (leaf, label), each in sorted(state.items())]


def spread(batch: pa.RecordBatch, features: Sequence[str], tree: Tree) -> pa.RecordBatch:
    """The values of some rows one by one: feature, the open leaf that the row comes to, its label, the value."""
    points = matrix(batch, features)
    leaf = tree.leaf_of(points)
    here = np.flatnonzero(np.isin(leaf, list(tree.open)))
    columns = {
        "feature": np.tile(np.arange(len(features), dtype=np.int32), len(here)),  # row by row, as messages come
        "leaf": np.repeat(leaf[here].astype(np.int32), len(features)),
        "label": batch["label"].take(pa.array(np.repeat(here, len(features)))),
        "value": points[here].ravel(),
    }
    made = pa.RecordBatch.from_pydict(columns)
    return made.filter(pa.array(np.isfinite(columns["value"])))


def points_of(rows: DataFrame, features: Sequence[str], tree: Tree) -> DataFrame:
    """One row per row and feature."""

    def spread_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (spread(batch, features, tree) for batch in batches)

    return rows.select("label", *features).mapInArrow(spread_all, "feature int, leaf int, label string, value double")


def matrix(batch: pa.RecordBatch, features: Sequence[str]) -> Floats:
    """The features of some rows; what is missing is NaN."""
    return np.stack([batch[name].cast(pa.float64()).to_numpy(zero_copy_only=False) for name in features], axis=1)


def histograms_of(
    points: DataFrame, bins: int, workers: int, scheme: str | Scheme
) -> dict[tuple[int, int, str], Histogram]:
    """The merged histograms by leaf, feature and class."""
    results = {"histograms": LeafHistograms(bins)}
    rows = aggregate(points, "feature", results, workers, scheme, mode=mode_of(scheme)).collect()
    return {
        (each["leaf"], row["feature"], each["label"]): Histogram(np.array(each["centres"]), np.array(each["counts"]))
        for row in rows
        for each in row["histograms"]
    }


def run(job: Job, other: str | None = None, depth: int = 6, bins: int = 32) -> Found:
    """Grow a tree on rows with a column ``label``, all other columns of numbers are features; then classify `other`."""
    require_integer("depth", depth, 1, 30)
    require_integer("bins", bins, 2, 1000)
    scheme, more, tree = job.scheme or "pkg", job.more(other), Tree(bins=bins, depth=depth)
    rows = job.read(_sample(job.source.path), infer=True).where("label IS NOT NULL")
    features = [name for name, kind in rows.dtypes if name != "label" and kind.split("(")[0] in NUMBERS]
    if not features:
        raise InputError("path: no column of numbers besides label, so there are no features")
    kept: dict[tuple[int, int, str], Histogram] = {}  # of open leaves, from the micro-batches so far
    rounds: list[dict[str, Any]] = []
    dealt: list[Dealt] = []

    def grow(batch: DataFrame, number: int) -> None:
        for again in range(1 if rows.isStreaming else depth):
            if not tree.open:
                break
            job.say(f"round {number + again + 1}, leaves so far: {tree.leaves}")
            points = points_of(batch, features, tree)
            for key, each in histograms_of(points, bins, job.workers, scheme).items():
                kept[key] = merge(kept.get(key, EMPTY), each, bins)
            classes = len({label for _, _, label in kept})
            rounds.append({"round": number + again + 1, "leaves": len(tree.open), "classes": classes})
            rounds[-1] |= {"histograms": len(kept), "features": len(features)}
            dealt[:] = dealt or compare(job, points, "feature", scheme, ["feature", "leaf", "label"])
            tree.grow(kept, len(features), closing=not rows.isStreaming)
            for key in [key for key in kept if key[0] not in tree.open]:
                del kept[key]

    job.each_batch(rows, grow)
    job.write(pa.Table.from_pylist(tree.nodes(features)), MODEL)
    facts: dict[str, Any] = {"leaves": tree.leaves, "features": len(features), "rounds": rounds}
    facts["dealt"] = [each.to_dict() for each in dealt]
    said = [f"A tree of {tree.leaves} leaves over {len(features)} features, after {len(rounds)} rounds."]
    if more is not None:
        job.say("classifying other rows")
        found = classify(job.read_more(more, _sample(other), infer=True), features, tree)
        done = job.spark.read.parquet(str(job.write(found)))
        facts["classified"] = done.count()
        facts["accuracy"] = done.where("label = predicted").count() / max(1, facts["classified"])
        said.append(f"Of {facts['classified']:,} other rows {facts['accuracy']:.1%} got the right label.")
    columns = {**COLUMNS, "histograms of the first round": "{replicas:,}"}
    del columns["replicas"]
    pictures = dealt_pictures(dealt, "histograms in the first round")
    pictures.append((lines({"open leaves": [each["leaves"] for each in rounds]}, "leaves", "round"), "The tree grows."))
    return Found("A decision tree, grown in rounds", said, columns, facts["dealt"], facts, pictures, CODE)


def classify(rows: DataFrame, features: Sequence[str], tree: Tree) -> DataFrame:
    """The labels that rows have, and those that the tree gives them."""
    missing = [name for name in features if name not in rows.columns]
    if missing:
        raise InputError(f"classify: there is no column {missing[0]!r}; the tree needs {', '.join(features)}")

    def predict(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            labels = pa.array(tree.classify(matrix(batch, features)), pa.string())
            yield pa.RecordBatch.from_pydict({"label": batch["label"], "predicted": labels})

    return rows.select("label", *features).mapInArrow(predict, "label string, predicted string")


def _sample(path: str | None) -> Sample:
    return WAVES if path is None else WAVES.only("label")
