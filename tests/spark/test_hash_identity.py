"""Our hashes are Spark's, bit for bit: key ids, candidates, and the partition that a shuffle really uses."""

import random
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from unskew import candidate, key_ids, salt_for, salts_for
from unskew.spark import key_id

RANDOM = random.Random(20150413)
TEXTS = ["", "a", "A", " ", "\0", "a\0", "\0\0\0\0", "naïve", "Straße", "日本語", "e\u0301", "\r\n\t"]
TEXTS += ["😀", "👩\u200d👩\u200d👧", "\U00010000", "\ud7ff\ue000\uffff\U0010ffff"]  # beyond 16 bits, and the edges


def _integers(bits: int, count: int) -> list[int | None]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return [0, 1, -1, low, low + 1, high - 1, high, None, *(RANDOM.randint(low, high) for _ in range(count))]


def _strings() -> list[str | None]:
    alphabet = "abc xyz09éß中😀\0"
    of_each_length = ["".join(RANDOM.choices(alphabet, k=length)) for length in range(71)]
    return [*TEXTS, None, *of_each_length, *("x" * n for n in range(71)), "long" * 2**18, "ünï" * 2**18 + "!"]


def _binaries() -> list[bytes | None]:
    of_each_length = [RANDOM.randbytes(length) for length in range(71)]
    return [
        b"\xff",
        b"\x80\x7f",
        b"\0",
        None,
        *of_each_length,
        *(b"\xff" * n for n in range(71)),
        RANDOM.randbytes(2**20),
    ]


KEYS: dict[str, pa.Array] = {
    "bool": pa.array([True, False, None]),
    "int8": pa.array([*range(-128, 128), None], pa.int8()),
    "int16": pa.array(_integers(16, 300), pa.int16()),
    "int32": pa.array(_integers(32, 1000), pa.int32()),
    "int64": pa.array([*_integers(64, 1000), 2**31, -(2**31) - 1, 2**32], pa.int64()),
    "date32": pa.array(
        [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), None]
        + [date(1, 1, 1) + timedelta(RANDOM.randrange(3_652_059)) for _ in range(300)]
    ),
    "string": pa.array(_strings()),
    "binary": pa.array(_binaries()),
}
each_type = pytest.mark.parametrize("kind", KEYS)
WIDTHS = (1, 7, 16, 1000)


def _frame(spark: SparkSession, **columns: Any) -> DataFrame:
    return spark.createDataFrame(pa.table(columns))


@each_type
def test_key_ids_are_sparks_hash_and_xxhash64(spark: SparkSession, kind: str) -> None:
    ids = key_ids(KEYS[kind])
    rows = _frame(spark, key=KEYS[kind]).select(F.hash("key"), F.xxhash64("key"), key_id("key")).toArrow()
    murmur, xx, native = (column.to_numpy() for column in rows.columns)
    assert ((ids >> np.uint64(32)).astype(np.uint32).view(np.int32) == murmur).all()
    assert ((ids & np.uint64(0xFFFFFFFF)) == (xx.view(np.uint64) & np.uint64(0xFFFFFFFF))).all()
    assert (native.view(np.uint64) == ids).all()


@each_type
def test_candidates_are_sparks_hash_of_key_and_salt(spark: SparkSession, kind: str) -> None:
    ids = key_ids(KEYS[kind])
    cases = [(salt, workers) for salt in (0, 1, 2, 9, 12_345, 2**31 - 1, -1, -(2**31)) for workers in WIDTHS]
    spark_partition = [F.pmod(F.hash("key", F.lit(salt)), F.lit(workers)) for salt, workers in cases]
    rows = _frame(spark, key=KEYS[kind]).select(*(c.alias(f"c{j}") for j, c in enumerate(spark_partition))).toArrow()
    for (salt, workers), partitions in zip(cases, rows.columns, strict=True):
        assert [candidate(key, salt, workers) for key in ids] == partitions.to_pylist()


@each_type
@pytest.mark.parametrize("workers", [7, *(pytest.param(each, marks=pytest.mark.slow) for each in WIDTHS if each != 7)])
def test_a_shuffle_uses_the_chosen_worker(spark: SparkSession, kind: str, workers: int) -> None:
    """Each key is sent to a random worker by its salt, and arrives in that partition."""
    keys = KEYS[kind]
    ids = key_ids(keys)
    wanted = np.random.default_rng(workers).integers(workers, size=len(ids), dtype=np.int32)
    salts = salts_for(ids, wanted, workers)
    assert salts.tolist() == [salt_for(key, worker, workers) for key, worker in zip(ids, wanted, strict=True)]
    shuffled = _frame(spark, key=keys, salt=salts, wanted=wanted).repartition(workers, "key", "salt")
    arrived = shuffled.select("wanted", F.spark_partition_id().alias("worker")).toArrow()
    assert arrived["worker"].to_pylist() == arrived["wanted"].to_pylist()
    assert sorted(arrived["worker"].to_pylist()) == sorted(wanted.tolist())  # no row lost; no partition coalesced


def test_very_many_workers(spark: SparkSession) -> None:
    """Where salts are found by running the hash backwards, Spark's hash agrees too."""
    workers = 2**31 - 1
    ids = key_ids(KEYS["string"])
    wanted = np.random.default_rng(workers).integers(workers, size=len(ids), dtype=np.int32)
    df = _frame(spark, key=KEYS["string"], salt=salts_for(ids, wanted, workers))
    assert df.select(F.pmod(F.hash("key", "salt"), F.lit(workers))).toArrow()[0].to_pylist() == wanted.tolist()


def test_several_columns_are_hashed_in_order(spark: SparkSession) -> None:
    """The key id of several columns is Spark's hash of all of them, and the salt goes on from there."""
    first = pa.array([*TEXTS, None, None])
    second = pa.array([*range(len(TEXTS)), None, 5], pa.int32())
    df = _frame(spark, a=first, b=second).withColumn("id", key_id("a", "b"))
    rows = df.select("id", F.hash("a", "b").alias("h"), F.hash("a", "b", F.lit(3)).alias("salted")).toArrow()
    ids = rows["id"].to_numpy().view(np.uint64)
    assert ((ids >> np.uint64(32)).astype(np.uint32).view(np.int32) == rows["h"].to_numpy()).all()
    assert [candidate(key, 3, 16) for key in ids] == [salted % 16 for salted in rows["salted"].to_pylist()]
    assert ids[-2] == key_ids(pa.array([None], pa.string()))[0]
