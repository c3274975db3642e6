"""What users get wrong is refused in one sentence, by name, before any job; what may be right is warned about."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from jobs import no_job
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StructField, StructType

from unskew import InputError, PartialKey, Plan, make
from unskew.aggregates import Count
from unskew.spark import (
    Adaptive,
    Conversation,
    Feedback,
    add_salt,
    aggregate,
    apply_split,
    key_id,
    plan_for,
    repartition,
    skew_report,
)

W = 4


def same(table: Any) -> Any:
    return table


CALLS: dict[str, Callable[..., Any]] = {
    "repartition": repartition,
    "add_salt": add_salt,
    "aggregate": lambda df, keys, workers, *more, **options: aggregate(
        df, keys, {"n": Count()}, workers, *more, **options
    ),
    "apply_split": lambda df, keys, workers, *more, **options: apply_split(
        df, keys, same, same, "n bigint", workers, *more, **options
    ),
    "plan_for": plan_for,
    "skew_report": skew_report,
}
ROUTING = ["repartition", "add_salt", "aggregate", "apply_split"]


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    return spark.range(100).selectExpr("id % 5 word", "id v")


def refused(spark: SparkSession, message: str, call: Callable[[], Any]) -> None:
    with no_job(spark), pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_a_job_is_noticed(spark: SparkSession) -> None:
    with pytest.raises(AssertionError), no_job(spark):
        spark.range(1).collect()
    with no_job(spark):
        pass


@pytest.mark.parametrize("call", CALLS)
def test_frames_and_keys_of_other_types(spark: SparkSession, df: DataFrame, call: str) -> None:
    for frame, message in {
        None: "^df: must be a Spark DataFrame, not NoneType$",
        "words.parquet": "^df: must be a Spark DataFrame, not str$",
    }.items():
        refused(spark, message, lambda frame=frame: CALLS[call](frame, "word", W))
    pandas = pd.DataFrame({"word": [1]})
    message = "^df: must be a Spark DataFrame, not pandas DataFrame; make one with spark.createDataFrame$"
    refused(spark, message, lambda: CALLS[call](pandas, "word", W))
    for keys, kind in {None: "NoneType", 7: "int", frozenset({"word"}): "frozenset"}.items():
        message = f"^keys: must be the name of a column or a list of names, not {kind}$"
        refused(spark, message, lambda keys=keys: CALLS[call](df, keys, W))
    refused(spark, "^keys: must be names of columns, not NoneType$", lambda: CALLS[call](df, [None], W))


@pytest.mark.parametrize("call", ROUTING)
def test_plans_of_another_type_and_options_beside_a_plan(spark: SparkSession, df: DataFrame, call: str) -> None:
    plan = Plan("fanout", W)
    for options, message in [
        (
            {"plan": "plan.json"},
            r"^plan: must be a Plan, such as .*, or for a stream Adaptive\(checkpoint\), not str$",
        ),
        ({"plan": plan, "sample": 0.5}, "^sample: must be left out where a plan is given, since nothing is counted"),
        ({"plan": plan, "scheme": "pkg"}, "^scheme: must be the plan's own fanout, or left out, not pkg$"),
        ({"plan": plan, "scheme": PartialKey(W)}, "^scheme: must be the plan's own fanout, or left out, not pkg$"),
        ({"plan": Plan("pkg", W), "scheme": "fanout"}, "^scheme: must be the plan's own pkg, or left out, not fanout$"),
    ]:
        refused(spark, message, lambda options=options: CALLS[call](df, "word", W, **options))
    for scheme in (None, "fanout"):
        CALLS[call](df, "word", W, scheme, plan=plan)


@pytest.mark.parametrize("call", CALLS)
def test_a_misspelt_option_is_named_with_the_function_that_was_called(df: DataFrame, call: str) -> None:
    with pytest.raises(TypeError, match=rf"^{call}\(\) got an unexpected keyword argument 'smaple'"):
        CALLS[call](df, "word", W, smaple=0.1)


@pytest.mark.parametrize("call", ["repartition", "add_salt", "plan_for", "skew_report"])
def test_a_stream_without_a_plan(spark: SparkSession, call: str) -> None:
    stream = spark.readStream.format("rate").load()
    message = r"^df: is a stream, whose keys cannot be counted beforehand; give plan=Adaptive\(the query's"
    refused(spark, message, lambda: CALLS[call](stream, "value", W))


@pytest.mark.parametrize("call", [repartition, add_salt])
def test_a_stream_with_a_plan_or_online_is_routed(spark: SparkSession, call: Callable[..., DataFrame]) -> None:
    stream = spark.readStream.format("rate").load()
    assert call(stream, "value", W, plan=Plan("fanout", W)).isStreaming
    assert call(stream, "value", W, "pkg", mode="online").isStreaming
    assert call(stream, "value", W, plan=Plan("fanout", W), deal="position").isStreaming
    assert call(stream.select("value"), "value", W, plan=Plan("fanout", W)).isStreaming


def test_a_feedback_or_a_conversation_on_a_stream_without_what_it_needs(spark: SparkSession, tmp_path: Path) -> None:
    stream, cg, talk = spark.readStream.format("rate").load(), make("cg", W), Conversation(make("posg", W))
    adaptive = Adaptive(tmp_path)
    message = r"^plan: must be Adaptive\(the query's checkpointLocation\) for a Feedback on a stream$"
    refused(spark, message, lambda: repartition(stream, "value", W, Feedback(cg)))
    message = "^anchored: must be False on a stream, whose partitions Spark places anew in each batch$"
    refused(spark, message, lambda: repartition(stream, "value", W, Feedback(cg, anchored=True), plan=adaptive))
    message = r"^df: must be a stream that repartition placed by this Feedback, with plan=Adaptive\(\.\.\.\)$"
    refused(spark, message, lambda: Feedback(cg).timed(stream, same, "value bigint"))
    message = "^checkpoint: must be the query's checkpointLocation where df is a stream, not None$"
    refused(spark, message, lambda: talk.map(stream, "value", same, "value bigint"))
    message = "^checkpoint: is for streams; leave it out for a batch, and call collect after each run$"
    refused(spark, message, lambda: talk.map(spark.range(3), "id", same, "id bigint", checkpoint=tmp_path))


def test_schemas_that_cannot_be(spark: SparkSession, df: DataFrame) -> None:
    number = StructField("n", LongType())
    for schema, message in {
        "n bigint, n bigint": "^schema: must have different columns, and 'n' is there twice$",
        "n bigint, N int": "^schema: must have different columns, and 'N' is there twice$",
        StructType([number, number]): "^schema: must have different columns, and 'n' is there twice$",
        "m interval year to month": "^schema: a column has a type that Spark cannot hand to Python: m interval",
    }.items():
        refused(spark, message, lambda schema=schema: apply_split(df, "word", same, same, schema, W))


def test_columns_of_a_key_id(spark: SparkSession) -> None:
    refused(spark, "^columns: must be at least one column, not none$", key_id)
    refused(spark, "^columns: must be names or Columns, not NoneType$", lambda: key_id("word", None))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def plan(df: DataFrame) -> Plan:
    return plan_for(df, "word", W)


@pytest.mark.parametrize("call", ROUTING)
def test_a_plan_knows_its_columns(spark: SparkSession, df: DataFrame, plan: Plan, call: str) -> None:
    for kind in ("int", "string"):
        other = df.withColumn("word", F.col("word").cast(kind))
        message = f"^plan: was made for keys of type bigint, not {kind}, whose hashes are others"
        refused(spark, message, lambda other=other: CALLS[call](other, "word", W, plan=plan))
    refused(spark, "^plan: .* bigint, not bigint, bigint, ", lambda: CALLS[call](df, ["word", "v"], W, plan=plan))
    with pytest.warns(UserWarning, match="^plan: was made for the column word and is used for v; ") as caught:
        CALLS[call](df, "v", W, plan=plan, deal="position")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CALLS[call](df, "word", W, plan=plan)
        CALLS[call](df, "v", W, plan=Plan(plan.scheme, W, plan.hot_keys))  # made by hand: its columns are not known
