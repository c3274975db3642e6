"""What the applications learn, without Spark: histograms, trees, counters and summaries, beside their references."""

from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew import key_ids, make
from unskew.apps.decision_tree import spread
from unskew.apps.heavy_hitters import merge as merge_summaries
from unskew.apps.heavy_hitters import summarise, workers_of
from unskew.apps.histogram import EMPTY, Histogram, add_points, equal_parts, merge, points_below
from unskew.apps.naive_bayes import TEXT, ClassCounts, Model
from unskew.apps.samples import MENTIONS, TEXTS, WAVES
from unskew.apps.tree import Tree
from unskew.router import Router

POINTS = st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), max_size=60)
BINS = st.integers(2, 12)


def mean(histogram):
    return float((histogram.centres * histogram.counts).sum() / histogram.total)


# ---------------------------------------------------------------- histograms


def test_ten_points_in_five_bins_worked_by_hand():
    one = add_points(EMPTY, [23, 19, 10, 16, 36, 2, 9], 5)
    assert one.centres.tolist() == [2, 9.5, 17.5, 23, 36]  # 19 and 16 are joined first, then 10 and 9
    assert one.counts.tolist() == [1, 2, 2, 1, 1]
    both = merge(one, add_points(EMPTY, [32, 30, 45], 5), 5)
    assert both.centres == pytest.approx([2, 9.5, 58 / 3, 98 / 3, 45])  # 30 with 32, then 36; 17.5 with 23
    assert both.counts.tolist() == [1, 2, 3, 3, 1]
    share = (15 - 9.5) / (58 / 3 - 9.5)  # 1 + 2/2 points below 9.5, and a trapezoid from there
    assert float(points_below(both, 15)) == pytest.approx(2 + (2 + 2 + share) / 2 * share)
    first = (-4 + np.sqrt(16 + 4 * 2 * (10 / 3 - 2))) / 2  # of z^2 + 4 z = 2 (10/3 - 2): a third of the points
    second = (20 / 3 - 4.5) / 3  # both bins have 3 points: a rectangle
    cuts = [9.5 + (58 / 3 - 9.5) * first, 58 / 3 + (98 / 3 - 58 / 3) * second]
    assert equal_parts(both, 3) == pytest.approx(cuts)


@given(POINTS, POINTS, BINS)
def test_merging_keeps_the_number_and_the_mean_of_the_points(here, there, bins):
    both = merge(add_points(EMPTY, here, bins), add_points(EMPTY, there, bins), bins)
    assert both.total == len(here) + len(there)
    assert len(both.centres) <= bins
    assert (np.diff(both.centres) > 0).all()
    if here or there:
        assert mean(both) == pytest.approx(np.mean([*here, *there]), rel=1e-9, abs=1e-6)


@given(POINTS, POINTS, BINS)
def test_merging_is_commutative_and_an_empty_histogram_changes_nothing(here, there, bins):
    a, b = add_points(EMPTY, here, bins), add_points(EMPTY, there, bins)
    ab, ba = merge(a, b, bins), merge(b, a, bins)
    assert ab.centres.tolist() == ba.centres.tolist()
    assert ab.counts.tolist() == ba.counts.tolist()
    assert merge(a, EMPTY, bins).centres.tolist() == a.centres.tolist()
    assert merge(EMPTY, a, bins).counts.tolist() == a.counts.tolist()


@given(st.lists(st.integers(0, 7), min_size=1, max_size=60), st.integers(0, 60))
def test_up_to_as_many_different_points_as_bins_all_is_exact(points, cut):
    both = merge(add_points(EMPTY, points[:cut], 8), add_points(EMPTY, points[cut:], 8), 8)
    values, counts = np.unique(points, return_counts=True)
    assert both.centres.tolist() == values.tolist()
    assert both.counts.tolist() == counts.tolist()


@given(POINTS.filter(bool), BINS)
def test_the_points_below_rise_from_none_to_all(points, bins):
    histogram = add_points(EMPTY, points, bins)
    below = points_below(histogram, np.sort([*points, min(points) - 1.0, max(points) + 1.0]))
    assert below[0] == 0
    assert below[-1] == histogram.total
    assert (np.diff(below) >= -1e-6).all()


def test_equal_parts_of_many_points_are_their_quantiles():
    points = np.random.default_rng(1).normal(size=20_000)
    parts = [add_points(EMPTY, part, 64) for part in np.array_split(points, 7)]
    cuts = equal_parts(reduce(lambda a, b: merge(a, b, 64), parts), 4)
    assert cuts == pytest.approx(np.quantile(points, [0.25, 0.5, 0.75]), abs=0.02)


def test_a_histogram_of_one_value_has_no_cuts():
    assert len(equal_parts(add_points(EMPTY, [3.0] * 10, 4), 5)) == 0
    assert points_below(Histogram(*EMPTY), [1.0]).tolist() == [0.0]


# ---------------------------------------------------------------- trees


def waves(first, rows):
    table = WAVES.rows(np.arange(first, first + rows), 0)
    points = np.stack([table[f"x{i}"].to_numpy() for i in range(21)], axis=1)
    return points, np.array(table["label"].to_pylist(), object)


def grown(points, labels, workers, **settings):
    """A tree from histograms that `workers` made of the points in turn and merged."""
    tree = Tree(**settings)
    while tree.open:
        leaf, found = tree.leaf_of(points), {}
        for worker in range(workers):
            for node in tree.open:
                for label in np.unique(labels):
                    mine = (leaf == node) & (labels == label) & (np.arange(len(points)) % workers == worker)
                    for feature in range(points.shape[1]):
                        part = add_points(EMPTY, points[mine, feature], tree.bins)
                        key = (node, feature, label)
                        found[key] = merge(found.get(key, EMPTY), part, tree.bins)
        tree.grow(found, points.shape[1], closing=True)
    return tree


def test_a_tree_is_as_accurate_as_that_of_scikit_learn():
    """Both of depth 4. Thresholds come from histograms of 32 bins, not from all values: a little is lost."""
    from sklearn.tree import DecisionTreeClassifier

    points, labels = waves(0, 4000)
    others, truth = waves(10_000, 3000)
    exact = DecisionTreeClassifier(criterion="entropy", max_depth=4, min_samples_split=100, random_state=0)
    theirs = float((exact.fit(points, labels).predict(others) == truth).mean())
    ours = {
        workers: float((grown(points, labels, workers, depth=4).classify(others) == truth).mean()) for workers in (1, 4)
    }
    assert theirs > 0.65
    for workers, accuracy in ours.items():
        assert accuracy > theirs - 0.03, f"{workers} workers: {accuracy:.3f}, scikit-learn {theirs:.3f}"


def test_features_of_a_row_come_one_after_the_other_so_that_pkg_can_balance_them():
    features = [f"x{i}" for i in range(21)]
    batch = WAVES.rows(np.arange(500), 0).combine_chunks().to_batches()[0]
    points = spread(batch, features, Tree())
    assert points["feature"].to_pylist() == [*range(21)] * 500
    assert points["value"].to_numpy().reshape(500, 21)[:, 3].tolist() == batch["x3"].to_pylist()
    assert points["label"].to_pylist()[::21] == batch["label"].to_pylist()
    load = {name: np.bincount(Router(make(name, 8)).route(key_ids(points["feature"]))) for name in ("hash", "pkg")}
    busiest = {name: each.max() * 8 / each.sum() for name, each in load.items()}
    assert busiest == {"hash": pytest.approx(1.52, abs=0.01), "pkg": pytest.approx(1.14, abs=0.01)}


def test_a_threshold_that_tells_classes_apart_is_found():
    points = np.random.default_rng(0).random((2000, 3))
    labels = np.where(points[:, 1] <= 0.3, "low", "high").astype(object)
    tree = grown(points, labels, 2, depth=1)
    assert tree.feature[0] == 1
    assert tree.threshold[0] == pytest.approx(0.3, abs=0.04)
    assert (tree.classify(points) == labels).mean() > 0.95


def test_a_leaf_with_few_points_waits_on_a_stream_and_is_closed_in_a_batch():
    found = {(0, 0, label): add_points(EMPTY, [at], 8) for label, at in (("a", 1.0), ("b", 2.0))}
    waiting, closed = Tree(), Tree()
    assert waiting.grow(found, 1, closing=False) == closed.grow(found, 1, closing=True) == 0
    assert waiting.open == {0}
    assert closed.open == set()


# ---------------------------------------------------------------- naive Bayes


def labelled(first, rows):
    table = TEXTS.rows(np.arange(first, first + rows), 0)
    return [text.split() for text in table["text"].to_pylist()], table["label"].to_pylist()


def counters(texts, labels):
    counts = {}
    for words, label in zip(texts, labels, strict=True):
        for word in (TEXT, *words):
            of_word = counts.setdefault(word, {})
            of_word[label] = of_word.get(label, 0) + 1
    return counts


def test_the_model_is_the_multinomial_one_of_scikit_learn():
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    texts, labels = labelled(0, 3000)
    others, truth = labelled(10_000, 1000)
    vectorizer = CountVectorizer(analyzer=list)
    reference = MultinomialNB().fit(vectorizer.fit_transform(texts), labels)
    model = Model(counters(texts, labels))
    assert model.labels == reference.classes_.tolist()
    assert model.prior == pytest.approx(reference.class_log_prior_)
    columns = [vectorizer.vocabulary_[word] for word in model.words]
    np.testing.assert_allclose(model.likelihood.T, reference.feature_log_prob_[:, columns])
    predicted = model.classify(others)
    assert predicted == reference.predict(vectorizer.transform(others)).tolist()
    assert np.mean([a == b for a, b in zip(predicted, truth, strict=True)]) > 0.8


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 9)), max_size=6))
def test_class_counts_merge_in_any_order(parts):
    counts = ClassCounts()
    forward = reduce(counts.merge, parts, counts.zero())
    backward = reduce(counts.merge, parts[::-1], counts.zero())
    assert counts.finish(forward) == counts.finish(backward)
    assert sum(forward.values()) == sum(sum(part.values()) for part in parts)


# ---------------------------------------------------------------- heavy hitters


@pytest.mark.parametrize(("scheme", "terms"), [("hash", 1), ("pkg", 2), ("shuffle", 8)])
def test_the_error_has_one_term_by_hash_two_under_pkg_and_one_per_worker_in_turn(scheme, terms):
    keys = MENTIONS.rows(np.arange(20_000), 0)["entity"].to_pylist()
    chosen = Router(make(scheme, 8)).route(key_ids(keys))
    of_worker = [[key for key, at in zip(keys, chosen, strict=True) if at == worker] for worker in range(8)]
    summaries = [summarise(iter([pa.array(part[:999]), pa.array(part[999:])]), 50) for part in of_worker]
    hitters = merge_summaries(summaries, scheme)
    assert max(hitter.terms for hitter in hitters) == terms
    true = {key: keys.count(key) for key in {hitter.key for hitter in hitters[:50]}}
    for hitter in hitters[:50]:
        assert hitter.count - hitter.error <= true[hitter.key] <= hitter.count
        assert hitter.error <= hitter.terms * max(map(len, of_worker)) / 50


@pytest.mark.parametrize("scheme", ["hash", "pkg", "pkg(choices=3)", "shuffle"])
def test_a_key_is_only_ever_on_workers_that_are_asked_for_it(scheme):
    live = make("pkg", 8, choices=3, seed=2) if "(" in scheme else make(scheme, 8)
    keys = [f"key{i % 97}" for i in range(2000)]
    chosen = Router(live).route(key_ids(keys)).tolist()
    asked = dict(zip(keys, workers_of(keys, live, 8), strict=True))
    assert all(worker in asked[key] for key, worker in zip(keys, chosen, strict=True))
