"""Online, `add_salt` puts every row where a Router over the same rows would; bad input is refused on the driver."""

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import SCHEMES, InputError, OffGreedy, PartialKey, Plan, Router, key_ids
from unskew.spark import SALT, add_salt, key_id

ONLINE = sorted(name for name, entry in SCHEMES.items() if "online" in entry.modes)
ROWS = 30_000
WORDS = pa.array([None if k == 3 else f"word-{k}" for k in np.random.default_rng(1).zipf(1.5, ROWS) % 2000])


@pytest.fixture(scope="module")
def words(spark: SparkSession) -> DataFrame:
    """A skewed stream with null among its keys, in one partition: one source, in a known order."""
    table = pa.table({"word": WORDS, "row": pa.array(range(ROWS), pa.int64())})
    return spark.createDataFrame(table).coalesce(1).cache()


def _workers(df: DataFrame, workers: int, *keys: str) -> list[int]:
    """The partition that each row landed in, in row order."""
    landed = df.repartition(workers, *keys, SALT).select("row", F.spark_partition_id().alias("worker"))
    return landed.toArrow().sort_by("row")["worker"].to_pylist()


def online(df: DataFrame, keys: Any, workers: int, scheme: Any = "pkg", **more: Any) -> DataFrame:
    return add_salt(df, keys, workers, scheme, mode="online", **more)


@pytest.mark.parametrize("workers", [1, 16])
@pytest.mark.parametrize("scheme", ONLINE)
def test_rows_land_where_a_router_sends_them(words: DataFrame, scheme: str, workers: int) -> None:
    router = Router(SCHEMES[scheme].type(workers))
    assert _workers(online(words, "word", workers, scheme), workers, "word") == router.route(key_ids(WORDS)).tolist()


def test_a_scheme_object_brings_its_parameters(words: DataFrame) -> None:
    scheme = PartialKey(16, choices=5, seed=3)
    expected = Router(scheme).route(key_ids(WORDS)).tolist()
    assert _workers(online(words, "word", 16, scheme), 16, "word") == expected


def test_an_offline_scheme_works_once_it_is_fitted(words: DataFrame) -> None:
    ids, counts = np.unique(key_ids(WORDS), return_counts=True)
    scheme = OffGreedy.fit(16, ids, counts)
    expected = Router(scheme).route(key_ids(WORDS)).tolist()
    assert _workers(online(words, "word", 16, scheme), 16, "word") == expected


def test_several_key_columns_with_nulls(words: DataFrame) -> None:
    df = words.withColumn("shop", F.when(F.col("row") % 7 != 0, F.col("row") % 7))
    ids = df.select("row", key_id("word", "shop").alias("id")).toArrow().sort_by("row")["id"].to_numpy()
    expected = Router(PartialKey(16)).route(ids.view(np.uint64)).tolist()
    assert _workers(df.transform(online, ["word", "shop"], 16), 16, "word", "shop") == expected


def test_each_task_is_a_source_of_its_own(words: DataFrame) -> None:
    halves = words.repartitionByRange(2, "row").sortWithinPartitions("row").cache()  # its cut is a random sample's
    sizes = halves.groupBy(F.spark_partition_id().alias("source")).count().sort("source").toArrow()["count"].to_pylist()
    ids = key_ids(WORDS)
    expected = [*Router(PartialKey(16)).route(ids[: sizes[0]]), *Router(PartialKey(16)).route(ids[sizes[0] :])]
    assert _workers(online(halves, "word", 16), 16, "word") == expected


def test_an_empty_frame_and_more_workers_than_rows(words: DataFrame) -> None:
    assert online(words.limit(0), "word", 16).repartition(16, "word", SALT).count() == 0
    few = words.sort("row").limit(5)
    expected = Router(PartialKey(500)).route(key_ids(WORDS[:5])).tolist()
    assert _workers(online(few, "word", 500), 500, "word") == expected


def test_only_the_salt_is_added(words: DataFrame) -> None:
    df = online(words, "word", 16, salt="choice")
    assert df.schema.fields[:-1] == words.schema.fields
    assert df.schema["choice"].dataType.simpleString() == "int"
    without = df.drop("choice").toArrow().sort_by("row")
    assert without.equals(words.toArrow().sort_by("row"))


def test_column_names_that_need_quotes(words: DataFrame) -> None:
    odd = words.withColumnRenamed("word", "a.b `c`")
    expected = Router(PartialKey(16)).route(key_ids(WORDS)).tolist()
    assert _workers(online(odd, "a.b `c`", 16), 16, "`a.b ``c```") == expected


def test_the_plan_has_one_exchange_and_one_pass_through_python(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    df = spark.range(1000).withColumn("word", F.col("id").cast("string"))
    online(df, "word", 16).filter(F.col(SALT) >= 0).repartition(16, "word", SALT).explain()
    plan = capsys.readouterr().out
    assert plan.count("Exchange") == 1
    assert "hashpartitioning(word" in plan
    assert plan.count("ArrowEvalPython") == 1


@pytest.fixture(scope="module")
def odd_columns(words: DataFrame) -> DataFrame:
    return words.withColumns(
        {
            "map": F.create_map("word", "row"),
            "nested": F.array(F.struct(F.create_map("word", "row"))),
            "text": F.collate("word", "UTF8_LCASE"),
            SALT: F.lit(1),
        }
    )


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown scheme": ({"scheme": "pgk"}, r"scheme: 'pgk' is not known; allowed are .*pkg"),
    "offline scheme": ({"scheme": "off_greedy"}, r"scheme: off_greedy is offline.*OffGreedy\.fit"),
    "unregistered scheme": ({"scheme": (16,)}, r"scheme: must be a scheme such as .*, not a tuple"),
    "bad parameter": ({"scheme": PartialKey(16, choices=0)}, r"choices: must be .* not 0"),
    "other workers": ({"scheme": PartialKey(8)}, r"workers: must be the scheme's own 8, not 16"),
    "no workers": ({"workers": 0}, r"workers: must be an integer from 1 to 2147483647, not 0"),
    "workers as text": ({"workers": "16"}, r"workers: must be an integer .* not '16'"),
    "missing column": ({"keys": "wrod"}, r"keys: 'wrod' is not a column; allowed are word, row"),
    "one column missing": ({"keys": ["word", "wrod"]}, r"keys: 'wrod' is not a column"),
    "no keys": ({"keys": []}, r"keys: must name at least one column, not none; allowed are word, row"),
    "key twice": ({"keys": ["word", "word"]}, r"keys: must be different columns, not word, word"),
    "a Column": ({"keys": F.col}, r"keys: must be names of columns, not a Column"),
    "key is no name": ({"keys": [7]}, r"keys: must be names of columns, not int"),
    "map key": ({"keys": "map"}, r"keys: 'map' holds a map"),
    "map inside": ({"keys": "nested"}, r"keys: 'nested' holds a map"),
    "collated key": ({"keys": "text"}, r"keys: 'text' is a string with collation UTF8_LCASE"),
    "taken salt": ({"salt": SALT}, r"salt: must be the name of a new column, not '__unskew_salt'; taken are word"),
    "taken in other case": ({"salt": "WORD"}, r"salt: must be the name of a new column, not 'WORD'"),
    "unknown mode": ({"mode": "live"}, r"mode: must be one of auto, planned, online, not 'live'"),
    "no plan for it": ({"scheme": "shuffle", "mode": "planned"}, r"mode: shuffle can be online, not 'planned'"),
    "not online": ({"scheme": "fanout", "mode": "online"}, r"mode: fanout can be planned, not 'online'"),
    "plan and online": ({"plan": Plan("hash", 16), "mode": "online"}, r"mode: a plan is given"),
    "plan of others": ({"plan": Plan("hash", 8)}, r"workers: must be the plan's own 8, not 16"),
    "unknown deal": ({"deal": "wrod"}, r"deal: must be 'content', 'position' or one of row"),
    "deal by a key": ({"deal": "word"}, r"deal: must be 'content', 'position' or one of row"),
    "deal online": ({"scheme": "shuffle", "deal": "row"}, r"deal: .* are for mode 'planned'"),
    "bad sample": ({"sample": 0.0}, r"sample: must be a share of the rows above 0 and up to 1, not 0.0"),
    "empty salt": ({"salt": ""}, r"salt: must be the name of a new column, not ''"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_on_the_driver(odd_columns: DataFrame, case: str) -> None:
    arguments, message = REFUSED[case]
    if case == "a Column":  # which only a running Spark can make
        arguments = {"keys": F.col("word")}
    with pytest.raises(InputError, match=message):
        add_salt(odd_columns, **{"keys": "word", "workers": 16, "salt": "choice", **arguments})


def test_a_name_that_two_columns_have(words: DataFrame) -> None:
    twice = words.select("word", F.col("row").alias("word"))
    with pytest.raises(InputError, match="keys: 'word' names 2 columns"):
        add_salt(twice, "word", 16)


def test_it_warns_when_a_retry_could_corrupt(spark: SparkSession, words: DataFrame) -> None:
    setting = "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        online(words, "word", 16)  # on by default: silent
    spark.conf.set(setting, "false")
    try:
        with pytest.warns(UserWarning, match="enableFullRetryOnMismatch: not true"):
            online(words, "word", 16)
    finally:
        spark.conf.unset(setting)


OWN_SCHEME = """
from typing import NamedTuple
import numpy as np
from unskew.kernels import kernel
from unskew.registry import register

class State(NamedTuple):
    nothing: np.ndarray

@kernel
def choose(scheme, state, key, now):
    return 2

@register("own", choose=choose, paper="none", when="never")
class Own(NamedTuple):
    workers: int

    def check(self):
        pass

    def new_state(self):
        return State(np.zeros(0, np.int64))
"""


def test_a_scheme_of_a_script_or_notebook_runs_in_the_tasks(words: DataFrame) -> None:
    script: dict[str, Any] = {"__name__": "__main__"}
    exec(OWN_SCHEME, script)
    try:
        assert set(_workers(add_salt(words, "word", 4, script["Own"](4)), 4, "word")) == {2}
    finally:
        del SCHEMES["own"]
