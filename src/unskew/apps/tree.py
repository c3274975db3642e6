"""A decision tree that is grown from histograms: the master's half of Ben-Haim and Tom-Tov's algorithm (JMLR 2010).

For each open leaf, feature and class there is a histogram of the points that reached the leaf. Candidates for a
threshold are the points that cut the histogram of a feature, over all classes, into equal parts. The best is the one
that lowers the entropy of the classes most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.apps.histogram import EMPTY, Histogram, equal_parts, merge, points_below

Found = Mapping[tuple[int, int, str], Histogram]  # (leaf, feature, label)
Floats = npt.NDArray[np.float64]
NONE = -1  # no feature: a leaf


@dataclass
class Tree:
    """Nodes by number, the root first. At a node with a feature, values up to the threshold go to the left."""

    bins: int = 32  # B of the histograms
    parts: int = 16  # that a feature is cut into for candidates
    least: int = 100  # points of a leaf that is split
    gain: float = 0.01  # bits that a split must gain
    depth: int = 8
    feature: list[int] = field(default_factory=lambda: [NONE])
    threshold: list[float] = field(default_factory=lambda: [0.0])
    left: list[int] = field(default_factory=lambda: [NONE])
    right: list[int] = field(default_factory=lambda: [NONE])
    level: list[int] = field(default_factory=lambda: [0])
    label: list[str | None] = field(default_factory=lambda: [None])  # the most frequent
    open: set[int] = field(default_factory=lambda: {0})  # leaves that may still be split

    @property
    def leaves(self) -> int:
        return sum(each == NONE for each in self.feature)

    def leaf_of(self, points: Floats) -> npt.NDArray[np.int64]:
        """The leaf that each point, a row, comes to."""
        at = np.zeros(len(points), np.int64)
        feature, threshold = np.array(self.feature), np.array(self.threshold)
        left, right = np.array(self.left), np.array(self.right)
        inside = feature[at] != NONE
        while inside.any():
            nodes = at[inside]
            goes_left = points[inside, feature[nodes]] <= threshold[nodes]
            at[inside] = np.where(goes_left, left[nodes], right[nodes])
            inside = feature[at] != NONE
        return at

    def classify(self, points: Floats) -> npt.NDArray[np.object_]:
        """The label of each point."""
        return np.array(self.label, object)[self.leaf_of(points)]

    def grow(self, found: Found, features: int, *, closing: bool) -> int:
        """Split the open leaves where it pays; with `closing`, those that it does not pay for are closed. How many."""
        split = 0
        for leaf in sorted(self.open):
            labels = sorted({label for node, _, label in found if node == leaf})
            counts = np.array([_histogram(found, leaf, features, label).total for label in labels])
            if counts.sum() == 0:
                continue
            self.label[leaf] = labels[int(np.argmax(counts))]
            best = self._best_split(found, leaf, features, labels, counts)
            if best is not None:
                self._split(leaf, *best)
                split += 1
            elif closing:
                self.open.remove(leaf)
        return split

    def _best_split(
        self, found: Found, leaf: int, features: int, labels: Sequence[str], counts: Floats
    ) -> tuple[int, float, list[str]] | None:
        """Feature, threshold, and the labels of the new leaves."""
        if counts.sum() < self.least or len(labels) < 2:
            return None
        best, best_gain = None, self.gain
        for feature in range(features):
            of_label = [found.get((leaf, feature, label), EMPTY) for label in labels]
            cuts = equal_parts(reduce(lambda a, b: merge(a, b, self.bins), of_label), self.parts)
            below = np.array([points_below(each, cuts) for each in of_label]).reshape(len(labels), len(cuts))
            totals = np.array([[each.total] for each in of_label])
            share = below.sum(axis=0) / max(1.0, totals.sum())
            gains = _entropy(totals) - share * _entropy(below) - (1 - share) * _entropy(totals - below)
            if len(cuts) and gains.max() > best_gain:
                at, best_gain = int(gains.argmax()), float(gains.max())
                sides = [below[:, at], totals[:, 0] - below[:, at]]
                best = feature, float(cuts[at]), [labels[int(np.argmax(side))] for side in sides]
        return best

    def _split(self, leaf: int, feature: int, threshold: float, labels: Sequence[str]) -> None:
        self.open.remove(leaf)
        self.feature[leaf], self.threshold[leaf] = feature, threshold
        self.left[leaf], self.right[leaf] = len(self.feature), len(self.feature) + 1
        for label in labels:
            if self.level[leaf] + 1 < self.depth:
                self.open.add(len(self.feature))
            self.feature.append(NONE)
            self.threshold.append(0.0)
            self.left.append(NONE)
            self.right.append(NONE)
            self.level.append(self.level[leaf] + 1)
            self.label.append(label)

    def nodes(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """A line per node; `names` are those of the features."""
        return [
            {
                "node": node,
                "feature": None if feature == NONE else names[feature],
                "threshold": None if feature == NONE else self.threshold[node],
                "left": None if feature == NONE else self.left[node],
                "right": None if feature == NONE else self.right[node],
                "label": self.label[node],
            }
            for node, feature in enumerate(self.feature)
        ]


def _histogram(found: Found, leaf: int, features: int, label: str) -> Histogram:
    """That of a feature which has most points: some may be missing in some rows."""
    return max((found.get((leaf, feature, label), EMPTY) for feature in range(features)), key=lambda each: each.total)


def _entropy(counts: Floats) -> Floats:
    """Bits per point, for each column of counts per class."""
    shares = counts / np.maximum(counts.sum(axis=0), 1e-300)
    return -(shares * np.log2(np.maximum(shares, 1e-300))).sum(axis=0)
