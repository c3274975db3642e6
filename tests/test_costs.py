"""Streams whose tuples have costs: how costs are dealt, where they come from, and what queues make of them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test_simulate import Given
from unskew import InputError, make
from unskew.simulate import Queues, simulate
from unskew.streams import Costed, File, Zipf, costed, parse


def columns(stream, size=1000):
    chunks = list(stream.chunks(size))
    return np.concatenate([chunk.keys for chunk in chunks]), np.concatenate([chunk.costs for chunk in chunks])


# ---------------------------------------------------------------- generated costs


def test_costs_are_the_papers_64_values_for_64_keys_each():
    """Section V-A: n = 4096 items, w_n = 64 values from 1 to 64 ms at constant distance, n / w_n items each."""
    costs = Costed().cost_of_keys()
    values, keys = np.unique(np.round(costs * 1000, 9), return_counts=True)
    assert values.tolist() == list(range(1, 65))
    assert keys.tolist() == [64] * 64


@given(keys=st.integers(1, 60), values=st.integers(1, 60), seed=st.integers(0, 9))
def test_all_costs_are_given_to_about_as_many_keys(keys, values, seed):
    if values <= keys:
        costs = Costed(1.0, keys, 10, values=values, least=1.0, most=2.0, seed=seed).cost_of_keys()
        found, numbers = np.unique(costs, return_counts=True)
        assert len(found) == values
        assert numbers.max() - numbers.min() <= 1


def test_geometric_costs_have_even_ratios():
    costs = np.unique(Costed(1.0, 64, 10, values=7, spacing="geometric").cost_of_keys())
    assert (costs[1:] / costs[:-1]).tolist() == pytest.approx([2.0] * 6)


def test_a_tuple_costs_what_its_key_costs_however_the_stream_is_cut():
    stream = Costed(1.2, 50, 500, values=10)
    keys, costs = columns(stream)
    assert costs.tolist() == stream.cost_of_keys()[keys - 1].tolist()
    assert columns(stream, 7)[1].tolist() == costs.tolist()
    assert stream.mean_cost() == pytest.approx(costs.mean())


def test_other_seeds_deal_the_costs_to_other_keys():
    assert Costed(seed=1).cost_of_keys().tolist() != Costed(seed=2).cost_of_keys().tolist()


def test_costs_may_be_dealt_anew_in_mid_stream():
    stream = Costed(0.5, 100, 300, values=50, every=100)
    keys, costs = columns(stream, 130)
    for turn in range(3):
        part = slice(100 * turn, 100 * turn + 100)
        assert costs[part].tolist() == stream.cost_of_keys(turn)[keys[part] - 1].tolist()
    assert stream.cost_of_keys(0).tolist() != stream.cost_of_keys(1).tolist()


@pytest.mark.parametrize(("every", "turns"), [(0, 1), (70, 5)])
def test_costs_are_dealt_once_per_turn_and_not_once_per_chunk(every, turns):
    before = costed._deal_costs.cache_info().misses
    columns(Costed(0.5, 100, 300, values=50, every=every, seed=123_456), 20)
    assert costed._deal_costs.cache_info().misses - before == turns


@pytest.mark.parametrize(
    ("parameters", "rule"),
    [
        ({"values": 101}, "values: must be an integer from 1 to 100, not 101"),
        ({"least": 0}, "least: must be seconds from 1e-9 to 1e9, not 0"),
        ({"least": 2.0, "most": 1.0}, "most: must be seconds from least, 2, to 1e9, not 1.0"),
        ({"most": float("nan")}, "most: must be seconds from least, 0.001, to 1e9, not nan"),
        ({"spacing": "even"}, "spacing: must be constant or geometric, not 'even'"),
        ({"every": -1}, "every: must be an integer from 0 to 2**63 - 1, not -1"),
        ({"keys": 2**28}, "keys: must be an integer from 1 to 134217728, not 268435456"),
    ],
)
def test_costs_that_cannot_be_are_refused(parameters, rule):
    with pytest.raises(InputError) as refusal:
        Costed(**{"z": 1.0, "keys": 100, "tuples": 10, "values": 10} | parameters)
    assert str(refusal.value) == rule


def test_the_expression_reads_what_it_writes():
    stream = Costed(0.5, 100, 1000, values=8, spacing="geometric", seed=3)
    assert parse(str(stream)) == stream
    assert parse("costed()") == Costed()


# ---------------------------------------------------------------- a column of a file


@pytest.fixture
def file(tmp_path):
    def write(costs, suffix=".parquet"):
        table = pa.table({"k": pa.array([f"key {i}" for i in range(len(costs))]), "c": costs})
        path = tmp_path / f"rows{suffix}"
        pa.parquet.write_table(table, path) if suffix == ".parquet" else pa.csv.write_csv(table, path)
        return str(path)

    return write


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("costs", [pa.array([1, 0, 3]), pa.array([1.0, 0.0, 3.0])], ids=["whole", "decimal"])
def test_the_cost_column_of_a_file_is_read(file, costs, suffix):
    stream = File(file(costs, suffix), key="k", cost="c")
    (chunk,) = stream.chunks()
    assert chunk.costs.tolist() == [1.0, 0.0, 3.0]
    assert stream.mean_cost() == pytest.approx(4 / 3)


@pytest.mark.parametrize(
    ("costs", "rule"),
    [
        (pa.array([1.0, None]), "cost: column 'c' has 1 nulls; every tuple needs its cost"),
        (pa.array([1.0, -2.0]), "cost: column 'c' must hold seconds of work from 0 to 1e+09, not -2"),
        (pa.array([float("nan")]), "cost: column 'c' must hold seconds of work from 0 to 1e+09, not nan"),
        (pa.array([float("inf")]), "cost: column 'c' must hold seconds of work from 0 to 1e+09, not inf"),
        (pa.array(["dear"]), "cost: column 'c' must hold numbers, not string such as 'dear'"),
        (pa.array(["1", None, "dear"]), "cost: column 'c' must hold numbers, not string such as 'dear'"),
        (pa.array([[1.0]]), "cost: column 'c' must hold numbers, not list<element: double> such as [1.0]"),
    ],
)
def test_costs_of_a_file_that_cannot_be_are_refused(file, costs, rule):
    with pytest.raises(InputError) as refusal:
        list(File(file(costs), key="k", cost="c").chunks())
    assert str(refusal.value) == rule


def test_a_cost_column_that_is_not_there_is_refused(file):
    with pytest.raises(InputError, match=r"^cost: .* has no column 'price'; it has k, c$"):
        File(file(pa.array([1.0])), key="k", cost="price")
    with pytest.raises(InputError, match=r"^cost: only a file has columns, and 'zipf\(1, 10, 10\)' is not a file$"):
        parse("zipf(1, 10, 10)", cost="c")


# ---------------------------------------------------------------- in queues (test_queue_twin has all else)


def test_costs_of_1_change_nothing():
    numbers = tuple(range(7)) * 20
    queues = Queues(utilisation=0.9)
    (plain,) = simulate(Given(numbers), [make("pkg", 3)], queues=queues)
    (costed,) = simulate(Given(numbers, costs=(1.0,) * 140), [make("pkg", 3)], queues=queues)
    for name in ("load", "rate", "latency_mean", "latency_p99", "makespan", "utilisation", "queue_samples"):
        assert getattr(costed, name) == getattr(plain, name)
    assert costed.work == plain.load
    assert costed.work_max_over_mean == plain.max_over_mean


@given(factor=st.sampled_from([0.25, 0.5, 2.0]))
@settings(max_examples=3)
def test_a_worker_of_half_the_capacity_takes_twice_as_long(factor):
    stream = Costed(1.0, 100, 500, values=10)
    times = {}
    for capacity in (1.0, factor):
        (result,) = simulate(stream, [make("shuffle", 3)], queues=Queues(utilisation=0.9, capacity=capacity))
        times[capacity] = result.latency_mean
        assert result.rate == pytest.approx(0.9 * 3 * capacity / stream.mean_cost())
    assert times[factor] == pytest.approx(times[1.0] / factor)


def test_utilisation_is_work_over_time():
    """Section V-A: at a share of 1 the tuples bring as much work as all workers can do."""
    (result,) = simulate(Costed(), [make("shuffle", 5)], queues=Queues(utilisation=1.0))
    assert sum(result.utilisation) / 5 == pytest.approx(1.0)
    assert sum(result.work) == pytest.approx(32_768 * Costed().mean_cost())


def test_work_is_measured_without_queues_too():
    (result,) = simulate(Given((1, 2, 3, 4), costs=(1.0, 2.0, 3.0, 8.0)), [make("shuffle", 2)])
    assert result.load == [2, 2]
    assert result.work == [4.0, 10.0]
    assert result.work_max_over_mean == pytest.approx(10 / 7)


def test_a_stream_that_costs_nothing_has_no_utilisation():
    with pytest.raises(InputError, match=r"^utilisation: needs tuples that cost something, not a mean cost of 0$"):
        simulate(Given((1, 2), costs=(0.0, 0.0)), [make("shuffle", 2)], queues=Queues(utilisation=1.0))


class Lying(Given):
    """Says that it has costs, and has none."""

    @property
    def has_costs(self):
        return not self.costs


@pytest.mark.parametrize("costs", [(), (1.0, 2.0)])
def test_chunks_whose_costs_are_not_as_the_stream_says_are_refused(costs):
    with pytest.raises(InputError, match=r"^costs: the chunks of .* must have one finite number from 0 on per tuple"):
        simulate(Lying((1, 2), costs=costs), [make("shuffle", 2)])


def test_streams_without_costs_have_none():
    assert not Zipf(1.0, 10, 10).has_costs
    assert Zipf(1.0, 10, 10).mean_cost() == 1.0


def test_tuples_that_cost_nothing_are_done_at_once():
    stream = Given((1, 2, 3, 4), times=(0.0, 1.0, 1.0, 5.0), costs=(0.0, 4.0, 0.0, 0.0))
    (result,) = simulate(stream, [make("shuffle", 1)], queues=Queues())
    assert result.done == 4
    assert result.latency_max == 4.0
    assert result.latency_mean == pytest.approx((0 + 4 + 4 + 0) / 4)
    assert result.makespan == 5.0
