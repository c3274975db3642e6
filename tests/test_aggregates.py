"""Aggregates in parts: the laws of the contract for each of them, results against plain Python, and stated bounds."""

import datetime as dt
import inspect
import math
import random
import statistics
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew import InputError
from unskew.aggregates import (
    Aggregate,
    Count,
    DistinctCount,
    Max,
    Mean,
    Min,
    Quantiles,
    StdDev,
    Sum,
    TopK,
    Variance,
    aggregate,
    states,
)
from unskew.aggregates.groups import first_rows, key_codes
from unskew.aggregates.runs import by_key
from unskew.aggregates.states import States, add_all, in_batches, merge_all
from unskew.failing_rows import RowError


def class_of_the_docstring() -> Aggregate:
    """The class that the contract's docstring shows, made from that very text."""
    lines = inspect.getdoc(aggregate).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("    class"))
    end = next(i for i, line in enumerate(lines) if i > start and line and not line.startswith(" "))
    names: dict[str, Any] = {"Aggregate": Aggregate, "pa": pa}
    assert end - start <= 10
    exec(textwrap.dedent("\n".join(lines[start:end])), names)
    return names["Vocabulary"]()


SCHEMA = pa.schema(
    {
        "i": pa.int32(),
        "long": pa.int64(),
        "f": pa.float64(),
        "d": pa.decimal128(10, 2),
        "text": pa.string(),
        "day": pa.date32(),
    }
)
ROW = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-5, 5),
        "long": st.none() | st.integers(-(2**56), 2**56),
        "f": st.none() | st.floats(-1e6, 1e6),
        "d": st.none() | st.decimals(-1000, 1000, places=2),
        "text": st.none() | st.sampled_from(["", "a b", "b c", "ö", "a, 'b' \"c\""]),
        "day": st.none() | st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
    }
)
Values = list[Any]


def _known(function: Callable[[Values], Any], least: int = 1) -> Callable[[Values], Any]:
    """The function of the values that are not null, null if they are fewer than `least`."""

    def of(values: Values) -> Any:
        values = [value for value in values if value is not None]
        return function(values) if len(values) >= least else None

    return of


def _top(values: Values) -> list[dict[str, Any]]:
    counts = Counter(value for value in values if value is not None)
    top = sorted(counts, key=lambda value: (-counts[value], value))[:3]
    return [{"value": value, "count": counts[value], "error": 0} for value in top]


# Each aggregate with the same thing in plain Python, given all values of the column.
EXPECTED: dict[str, tuple[Aggregate, Callable[[Values], Any]]] = {
    "rows": (Count(), len),
    "values": (Count("text"), _known(len, 0)),
    "sum": (Sum("i"), _known(sum)),
    "sum of longs": (Sum("long"), _known(sum)),
    "sum of floats": (Sum("f"), _known(math.fsum)),
    "sum of decimals": (Sum("d"), _known(sum)),
    "mean": (Mean("i"), _known(statistics.fmean)),
    "mean of floats": (Mean("f"), _known(statistics.fmean)),
    "mean of decimals": (Mean("d"), _known(statistics.fmean)),
    "variance": (Variance("f"), _known(statistics.variance, 2)),
    "population variance": (Variance("i", sample=False), _known(statistics.pvariance)),
    "deviation": (StdDev("d"), _known(lambda values: statistics.stdev(map(float, values)), 2)),
    "population deviation": (StdDev("f", sample=False), _known(statistics.pstdev)),
    "min": (Min("f"), _known(min)),
    "min text": (Min("text"), _known(lambda values: min(values, key=str.encode))),
    "max": (Max("long"), _known(max)),
    "max day": (Max("day"), _known(max)),
    "max decimal": (Max("d"), _known(max)),
    "distinct": (DistinctCount("text"), lambda values: len(set(values) - {None})),
    "distinct days": (DistinctCount("day"), lambda values: len(set(values) - {None})),
    "distinct decimals": (DistinctCount("d"), lambda values: len(set(values) - {None})),
    "median": (Quantiles("f"), _known(statistics.median_low)),
    "quantiles": (Quantiles("i", [0, 1]), _known(lambda values: [min(values), max(values)])),
    "top": (TopK("text", 3), _top),
    "top longs": (TopK("long", 3), _top),
    "own": (class_of_the_docstring(), lambda values: len({word for text in values if text for word in text.split()})),
}


def _same(a: Any, b: Any, scale: float = 1.0) -> bool:
    if isinstance(a, float | int) and isinstance(b, float | int | Decimal):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9 * scale)
    return a == b


def _batch(rows: list[dict[str, Any]], one: Aggregate) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, SCHEMA).select(list(one.columns))


def _fed(one: Aggregate, *parts: list[dict[str, Any]]) -> Any:
    state = one.zero()
    for part in parts:
        state = one.add(state, _batch(part, one))
    return state


def _column(one: Aggregate, rows: list[dict[str, Any]]) -> Values:
    return [row[one.columns[0]] if one.columns else None for row in rows]


@pytest.mark.parametrize("name", EXPECTED)
@settings(max_examples=20)
@given(parts=st.tuples(*[st.lists(ROW, max_size=6)] * 3))
def test_the_laws_of_the_contract(name: str, parts: tuple[list[dict[str, Any]], ...]) -> None:
    one, function = EXPECTED[name]
    rows = [row for part in parts for row in part]
    expected = function(_column(one, rows))
    a, b, c = parts
    ways = {
        "at once": _fed(one, rows),
        "batch by batch": _fed(one, a, b, c),
        "merged from the left": one.merge(one.merge(_fed(one, a), _fed(one, b)), _fed(one, c)),
        "merged from the right": one.merge(_fed(one, a), one.merge(_fed(one, b), _fed(one, c))),
        "merged the other way": one.merge(one.merge(_fed(one, c), _fed(one, b)), _fed(one, a)),
        "zero first": one.merge(one.zero(), _fed(one, rows)),
        "zero last": one.merge(_fed(one, rows), one.zero()),
        "sent": one.merge(*(one.from_bytes(one.to_bytes(_fed(one, *part))) for part in ([a, b], [c]))),
    }
    for way, state in ways.items():
        assert _same(one.finish(state), expected, 1e12), way


def _aggregated(table: pa.Table, keys: list[str], chosen: dict[str, Aggregate], parts: int = 3) -> pa.Table:
    """Both phases, without Spark: the rows dealt over workers, their partial results merged."""
    kinds = [one.result_type(*(table.schema.field(name).type for name in one.columns)) for one in chosen.values()]
    worker = np.random.default_rng(0).integers(0, parts, len(table))
    partials = []
    for w in range(parts):
        phase_1 = States(keys, list(chosen.values()))
        add_all(phase_1, table.filter(pa.array(worker == w)).to_batches(max_chunksize=7))
        if len(phase_1):
            partials += phase_1.partials().to_batches(max_chunksize=5)
    phase_2 = States(keys, list(chosen.values()))
    merge_all(phase_2, partials)
    fields = [*(table.schema.field(key) for key in keys), *(pa.field(n, k) for n, k in zip(chosen, kinds, strict=True))]
    return pa.Table.from_batches(in_batches(phase_2.results(list(chosen), kinds), pa.schema(fields)))


@pytest.mark.parametrize("at_once", [1, 20, 262_144])
@settings(max_examples=20)
@given(rows=st.lists(ROW, min_size=1, max_size=60))
def test_all_aggregates_of_many_keys_at_once(at_once: int, rows: list[dict[str, Any]]) -> None:
    before, states.ROWS = states.ROWS, at_once
    try:
        table = pa.Table.from_pylist(rows, SCHEMA).append_column("key", pa.array([row["i"] for row in rows]))
        found = _aggregated(table, ["key"], {name: one for name, (one, _) in EXPECTED.items()})
    finally:
        states.ROWS = before
    assert len(found) == len({row["i"] for row in rows})
    for result in found.to_pylist():
        mine = [row for row in rows if row["i"] == result["key"]]
        for name, (one, function) in EXPECTED.items():
            assert _same(result[name], function(_column(one, mine)), 1e12), name


NAN = float("nan")
KEYS: dict[str, tuple[pa.DataType, Values]] = {
    "int": (pa.int32(), [None, 0, -1, 2**31 - 1]),
    "string": (pa.string(), [None, "", "a", "A", "a,b", '"', "\0", "ö", "o\u0308"]),
    "binary": (pa.binary(), [None, b"", b"\0", b"\0\0"]),
    "bool": (pa.bool_(), [None, True, False]),
    "date": (pa.date32(), [None, dt.date(1969, 12, 31), dt.date(2024, 2, 29)]),
    "time": (pa.timestamp("us", "UTC"), [None, 0, 1, -1]),
    "decimal": (pa.decimal128(38, 2), [None, Decimal("0.00"), Decimal("-1.25")]),
    "double": (pa.float64(), [None, 0.0, -0.0, NAN, float("-nan"), math.inf, 1e-300]),
    "float": (pa.float32(), [None, 0.0, -0.0, NAN]),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.float64())]),
        [
            None,
            {"a": None, "b": None},
            {"a": 1, "b": -0.0},
            {"a": 1, "b": 0.0},
            {"a": 1, "b": NAN},
            {"a": 1, "b": None},
        ],
    ),
    "list": (pa.list_(pa.string()), [None, [], [None], ["a", "b"], ["ab"], ["a", "b", None], ["b", "a"]]),
    "nested": (
        pa.list_(pa.struct([("a", pa.list_(pa.float64()))])),
        [None, [], [None], [{"a": [0.0]}], [{"a": [-0.0]}]],
    ),
}


def _plain(value: Any) -> Any:
    """The value as a dictionary's key, equal where Spark finds keys equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple(map(_plain, value.values()))
    return tuple(map(_plain, value)) if isinstance(value, list) else value


@given(data=st.data(), names=st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=3, unique=True))
def test_keys_are_told_apart_by_value(data: st.DataObject, names: list[str]) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.sampled_from(KEYS[name][1]) for name in names)), min_size=1, max_size=40))
    columns = [pa.array(column, KEYS[name][0]) for name, column in zip(names, zip(*rows, strict=True), strict=True)]
    table = pa.table([*columns, pa.array(range(len(rows)))], [*names, "v"])
    expected: Counter[Any] = Counter()
    for row in table.select(names).to_pylist():
        expected[tuple(_plain(row[name]) for name in names)] += 1
    found = _aggregated(table, names, {"n": Count()}).to_pylist()
    assert {tuple(_plain(row[name]) for name in names): row["n"] for row in found} == expected
    assert len(found) == len(expected)


def test_the_zero_of_a_key_is_positive_and_codes_count_up() -> None:
    keys = pa.table({"key": [-0.0, 0.0, NAN, None, 1.0, NAN]})
    assert key_codes(keys).tolist() == [0, 0, 1, 2, 3, 1]
    assert first_rows(key_codes(keys)).tolist() == [0, 2, 3, 4]
    (row,) = _aggregated(pa.table({"key": [-0.0]}), ["key"], {"n": Count()}).to_pylist()
    assert math.copysign(1, row["key"]) == 1


def test_a_key_of_a_megabyte() -> None:
    table = pa.table({"key": ["x" * 2**20, "x" * 2**20 + "y"] * 2})
    assert _aggregated(table, ["key"], {"n": Count()})["n"].to_pylist() == [2, 2]


@pytest.mark.parametrize("at_once", [1, 3, 1000])
@given(lengths=st.lists(st.integers(1, 9), max_size=12), cut=st.integers(1, 10))
def test_sorted_rows_come_key_by_key(at_once: int, lengths: list[int], cut: int) -> None:
    keys = [None if key == 2 else key for key, length in enumerate(lengths) for _ in range(length)]
    table = pa.table({"key": pa.array(keys, pa.int64()), "v": pa.array(range(len(keys)), pa.int64())})
    before, states.ROWS = states.ROWS, at_once
    try:
        found = [part.to_pylist() for part in by_key(table.to_batches(max_chunksize=cut), ["key"])]
    finally:
        states.ROWS = before
    ends = np.cumsum(lengths)
    assert found == [table.slice(e - n, n).to_pylist() for e, n in zip(ends, lengths, strict=True)]


def _value(one: Aggregate, values: pa.Array) -> Any:
    """The result for one key whose rows are spread over three workers."""
    table = pa.table({"key": pa.array([0] * len(values)), "v": values})
    return _aggregated(table, ["key"], {"x": one})["x"][0].as_py()


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    assert _value(Sum("v"), pa.array([2**62, 2**62 - 1, -(2**62)])) == 2**62 - 1
    assert _value(Sum("v"), pa.array([-(2**63), 0])) == -(2**63)
    with pytest.raises(InputError, match=r"Sum\(column='v'\): a sum does not fit into int64"):
        _value(Sum("v"), pa.array([2**62] * 2))
    nines = Decimal("9" * 38)
    assert _value(Sum("v"), pa.array([nines, Decimal(-9)], pa.decimal128(38, 0))) == Decimal("9" * 37 + "0")
    with pytest.raises(InputError, match="a sum does not fit into decimal128"):
        _value(Sum("v"), pa.array([nines] * 2, pa.decimal128(38, 0)))


def test_a_quantile_of_decimals_is_one_of_their_values() -> None:
    values = [Decimal(i * 7919 % 100_000) / 100 for i in range(1, 190)]
    found = _value(Quantiles("v", [0.1, 0.25, 0.5, 0.9]), pa.array(values, pa.decimal128(10, 2)))
    assert set(found) <= {float(value) for value in values}


def test_decimal_sums_have_ten_digits_more() -> None:
    assert Sum("v").result_type(pa.decimal128(10, 2)) == pa.decimal128(20, 2)
    assert Sum("v").result_type(pa.decimal128(30, 5)) == pa.decimal128(38, 5)


def test_variance_does_not_cancel() -> None:
    values = 1e9 + np.arange(1000) % 2
    naive = np.mean(values**2) - np.mean(values) ** 2
    assert abs(naive - 0.25) > 1
    # A part's mean is rounded to a multiple of 1e-7 here, and parts are less than 0.1 apart.
    assert _value(Variance("v", sample=False), pa.array(values)) == pytest.approx(0.25, rel=1e-7)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_is_larger_than_all_numbers(kind: pa.DataType) -> None:
    assert _value(Min("v"), pa.array([NAN, math.inf, 1.0, None], kind)) == 1.0
    assert math.isnan(_value(Max("v"), pa.array([NAN, math.inf, 1.0, None], kind)))
    assert math.isnan(_value(Min("v"), pa.array([NAN, None], kind)))
    assert _value(Max("v"), pa.array([None, None], kind)) is None


@given(
    parts=st.lists(st.lists(st.integers(0, 30), max_size=50), min_size=1, max_size=5),
    counters=st.integers(1, 8),
    seed=st.integers(0, 9),
)
def test_top_k_keeps_its_bounds_however_it_is_merged(parts: list[list[int]], counters: int, seed: int) -> None:
    top = TopK("v", k=counters, counters=counters)
    parts_left = [top.add(top.zero(), pa.RecordBatch.from_arrays([pa.array(p, pa.int64())], ["v"])) for p in parts]
    order = random.Random(seed)
    while len(parts_left) > 1:
        order.shuffle(parts_left)
        parts_left.append(top.merge(parts_left.pop(), parts_left.pop()))
    true = Counter(value for part in parts for value in part)
    allowed = true.total() / (counters + 1)
    found = {row["value"]: row for row in top.finish(parts_left[0])}
    for value, row in found.items():
        assert row["count"] - row["error"] <= true[value] <= row["count"]
        assert row["error"] <= allowed
    assert all(value in found for value, count in true.items() if count > allowed)


def test_distinct_count_is_within_five_standard_errors() -> None:
    count = _value(DistinctCount("v"), pa.array(np.arange(100_000) % 50_000))
    assert abs(count / 50_000 - 1) < 5 * 1.04 / math.sqrt(2**12)


@pytest.mark.parametrize(
    ("values", "count"),
    [
        (pa.array(["", "a", "a", None]), 2),
        (pa.array([b"", b"\xff", b"\xfe", b""]), 3),
        (pa.array([0.0, -0.0, NAN, float("-nan")]), 2),
        (pa.array([True, False, None]), 2),
        (pa.array([1, 2, 2], pa.timestamp("us", "UTC")), 2),
    ],
    ids=str,
)
def test_distinct_count_of_odd_values(values: pa.Array, count: int) -> None:
    assert _value(DistinctCount("v"), values) == count


def test_quantiles_are_within_their_rank_error() -> None:
    values = np.random.default_rng(1).permutation(100_000)
    found = _value(Quantiles("v", [0.01, 0.5, 0.99]), pa.array(values))
    assert np.abs(np.array(found) / 100_000 - [0.01, 0.5, 0.99]).max() < 2 * 0.0165


def test_sketches_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    for make in (lambda: DistinctCount("v"), lambda: Quantiles("v")):
        with pytest.raises(InputError, match=r"datasketches: .* pip install 'unskew\[sketches\]'"):
            make()


class OddResult(Aggregate):
    columns = ["v"]
    type = pa.int64()

    def zero(self) -> Any:
        return 0

    def add(self, state: Any, batch: pa.RecordBatch) -> Any:
        return state

    def merge(self, a: Any, b: Any) -> Any:
        return a

    def finish(self, state: Any) -> Any:
        return "text"


class OddType(OddResult):
    type = int


class OddState(OddResult):
    def zero(self) -> Any:
        return lambda: 0


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "sum of text": (lambda: Sum("v").result_type(pa.string()), r"Sum\(column='v'\) cannot take .* type string"),
    "mean of text": (lambda: Mean("v").result_type(pa.string()), "cannot take .*; allowed are integers"),
    "variance of dates": (lambda: StdDev("v").result_type(pa.date32()), "cannot take a column of type date32"),
    "min of lists": (lambda: Min("v").result_type(pa.list_(pa.int8())), "cannot take .* allowed are numbers, texts"),
    "quantiles of text": (lambda: Quantiles("v").result_type(pa.string()), "cannot take"),
    "distinct lists": (lambda: DistinctCount("v").result_type(pa.list_(pa.int8())), "cannot take"),
    "top floats": (lambda: TopK("v").result_type(pa.float64()), "cannot take a column of type double"),
    "no k": (lambda: TopK("v", 0), "k: must be an integer from 1"),
    "fewer counters than k": (lambda: TopK("v", 10, counters=9), "counters: must be an integer from 10"),
    "rank": (lambda: Quantiles("v", [0.5, 50]), r"ranks: must be a number from 0 to 1.* not \[0.5, 50\]"),
    "no ranks": (lambda: Quantiles("v", []), "ranks: must be"),
    "lg_k": (lambda: DistinctCount("v", 30), "lg_k: must be an integer from 7 to 21, not 30"),
    "type": (lambda: OddType().result_type(pa.int64()), "type: .* must say what its result is"),
    "result": (lambda: _value(OddResult(), pa.array([1])), "finished with what is no int64"),
    "state": (lambda: _value(OddState(), pa.array([1])), "state: pickle cannot carry the function"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused(case: str) -> None:
    act, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        act()


class Reciprocals(Aggregate):
    """The sum of 1/v."""

    columns = ("v",)
    type = pa.float64()

    def __repr__(self):
        return "Reciprocals()"

    def zero(self):
        return 0.0

    def add(self, state, batch):
        values = batch["v"].to_pylist()
        if len(values) > 100:
            raise OverflowError("too many at once")
        return state + sum(1 / value for value in values)

    def merge(self, a, b):
        return a + b

    def finish(self, state):
        return state


def test_an_aggregate_that_fails_is_named_with_the_row():
    worker = States(["key"], [Reciprocals()])
    with pytest.raises(
        RowError, match=r"^aggregates: Reciprocals\(\) failed on the row \{'v': 0\}: ZeroDivisionError: "
    ):
        worker.add(pa.table({"key": ["a", "b", "b"], "v": [1, 5, 0]}))
    with pytest.raises(RowError, match=r"failed on 101 rows together, the first \{'v': 1\}: OverflowError: too"):
        worker.add(pa.table({"key": ["c"] * 101, "v": [1] * 101}))
