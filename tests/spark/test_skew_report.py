"""`skew_report` and `unskew doctor` on a real Spark: counts, keys of all kinds, one pass, and what they refuse."""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from command import runner
from unskew.errors import InputError
from unskew.file_formats import format_of
from unskew.spark import key_id, skew_report
from unskew.spark.skew import _counting_query


@pytest.fixture(scope="module")
def words(spark: SparkSession) -> Iterator[DataFrame]:
    """6,000 keys: one with 20,000 rows, one with 5,000, and 5,998 with one to nine."""
    keys = ["the"] * 20_000 + ["of"] * 5_000 + [f"w{i}" for i in range(5_998) for _ in range(1 + i % 9)]
    df = spark.createDataFrame([(key, i) for i, key in enumerate(keys)], "word string, n int").cache()
    yield df
    df.unpersist()


def test_the_numbers_are_those_of_the_data(words: DataFrame) -> None:
    report = skew_report(words, "word", 8, for_="python")
    rows = words.count()
    assert (report.tuples, report.keys) == (rows, 6_000)
    assert report.p1 == 20_000 / rows
    assert [(key.key, key.count) for key in report.top[:2]] == [("the", 20_000), ("of", 5_000)]
    assert report.counts.top.counts.sum() + report.counts.tail_tuples.sum() == rows
    assert report.advice.scheme == "fanout"
    assert "Use fanout" in str(report)


def test_the_load_by_hash_is_exactly_what_spark_does(words: DataFrame) -> None:
    report = skew_report(words, "word", 8)
    parts = words.repartition(8, "word").groupBy(F.spark_partition_id().alias("w")).count().collect()
    placed = {row["w"]: row["count"] for row in parts}
    load = np.array([placed.get(w, 0) for w in range(8)])
    (by_hash,) = (f for f in report.forecasts if f.scheme == "hash")
    assert by_hash.load == pytest.approx(load / load.mean())


def test_the_data_is_read_once(spark: SparkSession) -> None:
    counted = _counting_query(spark.range(100_000).selectExpr("id % 5000 AS word"), "word", 8, None)
    assert len(counted.collect()) == 2_009
    plan = counted._jdf.queryExecution().executedPlan().toString().split("== Initial Plan ==")[0]
    assert "ReusedExchange" in plan
    assert plan.count("Range (") == 1


def test_counts_of_all_sizes_fall_into_the_right_buckets(spark: SparkSession) -> None:
    sizes = [1, 2, 127, 255, 256, 257, 511, 513, 1000]
    df = spark.createDataFrame([(size,) for size in sizes], "size int")
    rows = df.selectExpr("explode(sequence(1, size * 3000)) AS i", "size").selectExpr("size", "i % 3000 AS i")
    report = skew_report(rows, ["size", "i"], 4)
    assert report.keys == 3_000 * len(sizes)
    assert report.tuples == 3_000 * sum(sizes)
    assert (report.counts.top.counts == 1000).all()
    means = sorted(report.counts.tail_tuples / report.counts.tail_keys)
    assert means == [1, 2, 127, 255, 256.5, 511, 513, 1000]


def test_a_sample_is_an_estimate_and_says_so(words: DataFrame) -> None:
    report = skew_report(words, "word", 8, sample=0.2)
    assert report.tuples == pytest.approx(words.count() * 0.2, rel=0.1)
    assert report.p1 == pytest.approx(20_000 / words.count(), rel=0.1)
    assert report.keys < 6_000
    assert "lower bounds" in report.notes[0]


def test_keys_of_several_columns_and_nulls(spark: SparkSession) -> None:
    df = spark.createDataFrame(
        [("a", None)] * 50 + [(None, "a")] * 50 + [(None, None)] * 100 + [("x, y", "`\n")], "`a.b` string, c string"
    )
    report = skew_report(df, ["a.b", "c"], 4)
    assert (report.tuples, report.keys) == (201, 4)
    assert report.top[0].key == "null, null"
    assert {key.key for key in report.top[1:]} == {"a, null", "null, a", "x, y, `\n"}
    assert report.columns == ("a.b", "c")
    assert any("have no key (null)" in note for note in report.notes)
    assert str(report)


def test_all_keys_null_and_no_rows_at_all(spark: SparkSession) -> None:
    df = spark.range(100).select(F.lit(None).cast("string").alias("k"))
    report = skew_report(df, "k", 4)
    assert (report.keys, report.p1) == (1, 1.0)
    assert report.top[0].key == "null"
    assert report.counts.top.key_ids[0] == np.int64(df.select(key_id("k")).first()[0])
    assert skew_report(df.limit(0), "k", 4).recommendation == "Do nothing: there are no rows."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": 0}, "workers: must be an integer from 1"),
        ({"keys": "nope"}, "keys: 'nope' is not a column; allowed are word, n"),
        ({"for_": "fun"}, "for_: must be one of None, aggregate, whole, merge, python, stateful, join, not 'fun'"),
        ({"sample": 0}, "sample: must be a share of the rows above 0 and up to 1, not 0"),
    ],
)
def test_bad_input_is_refused(words: DataFrame, arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        skew_report(words, **({"keys": "word", "workers": 4} | arguments))


# ---------------------------------------------------------------- unskew doctor


@pytest.fixture
def run(spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("unskew.spark.local_spark", lambda folder: nullcontext(spark))
    return runner(capsys, monkeypatch)


def test_the_doctor_reads_a_file(words: DataFrame, run, tmp_path: Path) -> None:
    words.coalesce(1).write.csv(str(tmp_path / "words"), header=True)
    (file,) = (tmp_path / "words").glob("*.csv")
    done = run("doctor", file, "--key", "word", "--workers", 8, "--json")
    assert done.status == 0, done.err
    (found,) = done.json_lines
    assert found["keys"] == 6_000
    assert found["top"][0] == {"key": "the", "count": 20_000, "share": 20_000 / words.count()}
    assert found["recommended_scheme"] == "fanout"


def test_the_name_tells_the_format(tmp_path: Path) -> None:
    for name, kind in (("a.parquet", "parquet"), ("b.csv.gz", "csv"), ("c.JSONL", "json"), ("d.snappy.orc", "orc")):
        folder = tmp_path / name[0]
        folder.mkdir()
        (folder / "_SUCCESS").touch()
        (folder / name).touch()
        assert format_of(str(folder / name), "") == format_of(str(folder), "") == kind
    assert format_of("s3a://bucket/events.parquet", "") == "parquet"
    assert format_of(str(tmp_path), "csv") == "csv"


def test_the_doctor_prints_and_writes_a_page(words: DataFrame, run, tmp_path: Path) -> None:
    words.write.parquet(str(tmp_path / "words"))
    page = tmp_path / "page.html"
    asked = ("doctor", tmp_path / "words", "--key", "word", "--key", "n", "--for", "aggregate", "--out", page)
    done = run(*asked)
    assert done.status == 0, done.err
    assert "Do nothing: Spark's own partial aggregation" in " ".join(done.out.split())
    assert "page.html" in "".join(done.out.split())
    assert page.read_text().count("<svg") == 3
    again = run(*asked)
    assert again.status == 2
    assert "exists and was kept" in again.err
    assert run(*asked, "--force", "--sample", 0.5, "--json").status == 0


def test_what_the_doctor_cannot_do_is_one_line(words: DataFrame, run, tmp_path: Path) -> None:
    words.limit(10).write.parquet(str(tmp_path / "words"))
    broken = tmp_path / "broken.parquet"
    broken.write_text("this is no Parquet")
    (tmp_path / "data.bin").touch()
    (tmp_path / "data.csv").write_text("word\nthe\n")
    (tmp_path / "words.txt").write_text("to be or not to be")
    parquet = next((tmp_path / "words").glob("*.parquet"))
    (tmp_path / "empty").mkdir()
    for arguments, message in [
        ((tmp_path / "missing",), "path: there is no"),
        ((broken,), "as parquet"),
        ((tmp_path / "data.bin",), "format: the name"),
        ((tmp_path / "empty",), "format: the name"),
        ((tmp_path / "words", "--format", "xml"), "format: must be one of parquet, csv, json, orc, text, not 'xml'"),
        ((parquet, "--format", "csv"), "is a parquet file, not to be read as csv"),
        ((tmp_path / "data.csv", "--format", "parquet"), "is no parquet file, not to be read as parquet"),
        ((tmp_path / "words", "--row-cost", -1), "row_cost: must be seconds per row from 0 to 1e6, not -1.0"),
        ((tmp_path / "words", "--cores", 0), "cores: must be an integer from 1"),
        (
            (tmp_path / "words.txt", "--key", "nope"),
            "key: a text has the words as its key; leave --key out",
        ),
        ((tmp_path / "words", "--workers", 0), "workers: must be an integer from 1"),
        ((tmp_path / "words", "--sample", 2), "sample: must be a share"),
        (
            (tmp_path / "words", "--for", "fun"),
            "for: must be one of aggregate, whole, merge, python, stateful, join, not 'fun'",
        ),
        ((tmp_path / "words", "--key", "nope"), "keys: 'nope' is not a column; allowed are word, n"),
        ((tmp_path / "words", "--out", tmp_path), "must end in .html"),
    ]:
        done = run("doctor", *arguments, "--key", "word")
        assert done.status == 2, arguments
        assert message in done.err
        assert len(done.err.strip().splitlines()) == 1
        assert done.out == ""


def test_the_doctor_counts_the_words_of_a_text(run, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("to be  or\nnot\tto be\n\n")
    (found,) = run("doctor", tmp_path / "words.txt", "--workers", 2, "--json").json_lines
    assert {key["key"]: key["count"] for key in found["top"]} == {"to": 2, "be": 2, "or": 1, "not": 1}
    assert found["columns"] == ["word"]


def test_the_doctor_reports_what_rows_cost(run, tmp_path: Path) -> None:
    sizes = [900] * 4 + [10] * 96
    (tmp_path / "texts.csv").write_text("text\n" + "\n".join("x" * size for size in sizes) + "\n")
    page = tmp_path / "page.html"
    asked = ("doctor", tmp_path / "texts.csv", "--cost", "length(text)", "--workers", 4, "--out", page)
    (found,) = run(*asked, "--json").json_lines
    assert (found["rows"], found["total"], found["longest"]) == (100, sum(sizes), 900.0)
    assert found["forecasts"][0]["way"] == "balanced"
    assert found["top"][0]["cost"] == 900.0
    assert page.read_text().count("<svg") == 1
    assert "The most expensive rows" in page.read_text()
    done = run(*asked, "--force")
    assert "map_balanced(df, function, schema, workers=4, cost='length(text)')" in " ".join(done.out.split())
    for option, value in (
        ("--key", "text"),
        ("--for", "python"),
        ("--row-cost", 0.1),
        ("--cores", 2),
        ("--sample", 0.5),
    ):
        refused = run(*asked, "--force", option, value)
        assert (refused.status, refused.out) == (2, "")
        assert f"{option[2:]}: is for the report on keys; leave {option} out with --cost" in refused.err
    wrong = run("doctor", tmp_path / "texts.csv", "--cost", "text")
    assert (wrong.status, wrong.err) == (2, "unskew: cost: must be a number, not string; cast it, or take its length\n")


def test_a_key_is_needed_but_for_a_text(run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k\n1\n")
    done = run("doctor", tmp_path / "a.csv")
    assert (done.status, done.err) == (
        2,
        "unskew: key: name the key column, such as --key user; only a text needs none\n",
    )


def test_a_function_is_timed_on_rows_of_the_data(words: DataFrame) -> None:
    tables = []

    def slow(rows: pa.Table) -> None:
        tables.append(rows)
        time.sleep(0.001 * rows.num_rows)

    report = skew_report(words, "word", 8, for_="python", row_cost=slow)
    assert report.row_cost == pytest.approx(0.001, rel=0.5)
    assert {tuple(rows.column_names) for rows in tables} == {("word", "n")}
    assert skew_report(words.limit(0), "word", 8, row_cost=slow).row_cost == 0


def test_the_doctor_says_that_java_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    (tmp_path / "a.csv").write_text("k\n1\n")
    done = runner(capsys, monkeypatch)("doctor", tmp_path / "a.csv", "--key", "k")
    assert done.status == 2
    assert "none in JAVA_HOME (/nowhere)" in done.err
