"""`cost_report` on a real Spark: costs that are told, learnt or timed, and what it refuses."""

import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import InputError
from unskew.spark import LearnedCosts, cost_report

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers cannot import this file
Batches = Iterator[pa.RecordBatch]


@pytest.fixture(scope="module")
def documents(spark: SparkSession) -> Iterator[DataFrame]:
    """1,000 documents, in three partitions of which the first has the expensive ones."""
    costs = np.array([300.0] * 20 + [1.0] * 980)
    table = pa.table({"id": np.arange(1000), "kind": np.arange(1000) < 20, "cost": costs})
    df = spark.createDataFrame(table).repartitionByRange(3, "id").cache()
    df.count()
    yield df
    df.unpersist()


def test_the_numbers_are_those_of_the_data(documents: DataFrame) -> None:
    report = cost_report(documents, "cost", 8)
    assert (report.facts.rows, report.total, report.longest) == (1000, 6980.0, 300.0)
    assert (report.facts.median, report.facts.p99, report.facts.unknown) == (1.0, 300.0, 0)
    assert {cost for _, cost in report.facts.top} == {300.0}
    assert all(re.fullmatch(r"\d+, true, 300.0", row) for row, _ in report.facts.top)
    found = {f.way: f.busiest for f in report.forecasts}
    assert found["as it is"] >= 6000  # one of the three partitions
    assert found["balanced"] <= 1.05 * max(300, 6980 / 8)
    assert report.best.way == "balanced"
    assert "cost='cost'" in report.code


def test_doing_nothing_is_said_where_nothing_helps(documents: DataFrame) -> None:
    even = cost_report(documents.repartition(8), F.lit(1), 8)
    assert even.recommendation.startswith("Do nothing: the partitions are even as they are")
    assert cost_report(documents, "cost", 1).recommendation.startswith("Do nothing: with one worker")
    assert cost_report(documents.limit(0), "cost", 4).recommendation == "Do nothing: there are no rows."
    assert cost_report(documents.limit(1), "cost", 4).recommendation.startswith("Do nothing, or use fewer workers")


def napping(batches: Batches) -> Batches:
    for batch in batches:
        time.sleep(5e-3 * sum(batch["kind"].to_pylist()))
        yield batch


def test_a_function_is_timed_on_a_sample(documents: DataFrame) -> None:
    report = cost_report(documents, napping, 8)
    assert (report.unit, report.sampled, report.facts.rows) == ("s", 1000, 1000)
    assert report.longest >= 5e-3
    assert report.total >= 20 * 5e-3
    assert str(report).count("ms") > 2


def test_with_a_cost_key_the_sample_tells_of_all_rows(documents: DataFrame) -> None:
    report = cost_report(documents.selectExpr("*", "kind AS `{kind}`"), napping, 8, cost_key="{kind}")
    assert report.unit == "s"
    assert report.longest >= 5e-3
    assert report.best.way == "balanced"
    assert "LearnedCosts('{kind}')" in report.code


def test_null_costs_are_remarked_on_and_names_may_repeat(documents: DataFrame) -> None:
    twice = documents.selectExpr("id", "cost AS c", "id AS x", "id AS x", "map(id, id) AS m")
    report = cost_report(twice, "if(id < 30, null, c)", 4)
    assert report.facts.unknown == 30
    assert "30 rows have no cost (null)" in " ".join(report.notes)


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "negative": ("-cost", {}, "cost: must be a finite number from 0 on"),
    "no cost": (3, {}, "cost: must be the name of a column"),
    "cost key": ("cost", {"cost_key": "id"}, "cost_key: must be left out where cost is no function"),
    "no workers": (napping, {"workers": "4"}, "workers: must be an integer from 1 to 10000, not '4'"),
    "too many workers": (napping, {"workers": 10**6}, "workers: must be an integer from 1 to 10000, not 1000000"),
    "no column": (napping, {"cost_key": "nobody"}, "cost_key: 'nobody' is not a column"),
    "nothing learnt": (LearnedCosts("nobody"), {}, "cost_key: 'nobody' is not a column"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_mistakes_are_refused(documents: DataFrame, case: str) -> None:
    cost, options, message = REFUSED[case]
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        cost_report(documents, cost, **({"workers": 4} | options))


def test_a_function_that_fails_says_for_which_row(documents: DataFrame) -> None:
    def failing(batches: Batches) -> Batches:
        for batch in batches:
            if True in batch["kind"].to_pylist():
                raise ValueError("no")
            yield batch

    with pytest.raises(
        RuntimeError, match=r"^function: 'failing' raised ValueError: no, for the row \{'id': \d+, 'kind': True"
    ):
        cost_report(documents, failing, 4)
