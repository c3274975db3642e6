"""Graphs as streams, and the real data sets that can be laid beside the checkout: what their papers and README say."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from unskew import make
from unskew.simulate import count_keys, simulate
from unskew.streams import File, Graph

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def edge_list(tmp_path):
    def write(columns, suffix=".parquet"):
        path = tmp_path / f"edges{suffix}"
        (pa.parquet.write_table if suffix == ".parquet" else pa.csv.write_csv)(pa.table(columns), path)
        return str(path)

    return write


def edges_of(stream, size=7):
    """(source vertex, key, time) of every edge."""
    columns = [(c.source_keys.tolist(), c.keys.tolist(), c.times.tolist()) for c in stream.chunks(size)]
    return [edge for chunk in columns for edge in zip(*chunk, strict=True)]


@pytest.mark.parametrize(("suffix", "as_read"), [(".parquet", int), (".csv", str)])
def test_a_graph_has_its_destinations_as_keys_and_its_sources_beside(edge_list, suffix, as_read):
    path = edge_list({"from": [i // 3 for i in range(30)], "to": list(range(30))}, suffix)
    graph = Graph(path, source="from", destination="to")
    assert edges_of(graph) == [(as_read(i // 3), as_read(i), i) for i in range(30)]


def test_shuffled_edges_are_the_same_edges_in_another_order_however_cut(edge_list):
    path = edge_list({"src": [i // 3 for i in range(30)], "key": list(range(30))})
    in_order, shuffled = edges_of(Graph(path)), edges_of(Graph(path, shuffled=True))
    assert [edge[:2] for edge in shuffled] != [edge[:2] for edge in in_order]
    assert sorted(edge[:2] for edge in shuffled) == sorted(edge[:2] for edge in in_order)
    assert [time for *_, time in shuffled] == list(range(30))
    for size in (1, 4, 30, 1000):
        assert edges_of(Graph(path, shuffled=True), size) == shuffled
    assert edges_of(Graph(path, shuffled=True, seed=1)) != shuffled


def test_a_graph_without_edges_is_a_stream_without_tuples(edge_list):
    path = edge_list({"src": pa.array([], pa.int64()), "key": pa.array([], pa.int64())})
    assert edges_of(Graph(path)) == edges_of(Graph(path, shuffled=True)) == []


# ---------------------------------------------------------------- real data


def data_set(name):
    path = DATA / f"{name}.parquet"
    if not path.is_file():
        pytest.skip(f"the data set {path.name} is not in ../shared/data beside the checkout")
    return str(path)


@pytest.mark.parametrize(
    ("name", "tuples", "keys", "p1"),
    [
        ("slashdot0902_edges", 948_464, 82_168, 0.00269),
        ("stocknet_cashtags", 242_020, 7_429, 0.0872),
        ("congress_hashtags", 2_769_331, 162_819, 0.0265),
        ("reddit_domains", 2_260_510, 124_926, 0.2117),
        ("orm_busy", 5_000_000, 76_349, 0.0054),
    ],
)
def test_a_real_stream_has_the_tuples_keys_and_p1_of_its_readme(name, tuples, keys, p1):
    counted = count_keys(File(data_set(name), key="key"))
    assert counted.tuples == tuples
    assert len(counted.key_ids) == keys
    assert counted.counts[0] / counted.tuples == pytest.approx(p1, abs=0.00006)


def test_slashdot_has_the_papers_p1_by_nodes_and_a_smaller_one_by_tuples():
    """PKG paper, Table 1: p1 of SL1 is 3.11 %, the largest in-degree over the number of nodes."""
    counted = count_keys(Graph(data_set("slashdot0902_edges")))
    nodes = 82_168
    assert counted.counts.max() / nodes == pytest.approx(0.0311, abs=0.0001)
    assert counted.counts[0] / counted.tuples == pytest.approx(0.0027, abs=0.0001)


def test_slashdot_shuffled_is_routed_as_well_as_in_file_order_and_better_than_by_hash():
    path = data_set("slashdot0902_edges")
    schemes = [make("hash", 10), make("pkg", 10)]
    by_hash, in_order = simulate(Graph(path), schemes, sources=5, feed="key")
    hash_shuffled, shuffled = simulate(Graph(path, shuffled=True), schemes, sources=5, feed="key")
    assert sorted(by_hash.load) == sorted(hash_shuffled.load)
    assert by_hash.keys == in_order.keys == shuffled.keys
    assert max(in_order.imbalance, shuffled.imbalance) < by_hash.imbalance / 10
