"""Streams from files: every row, in file order, whatever is in it."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew import InputError, key_ids
from unskew.streams import File, files
from unskew.streams.times_and_costs import seconds

ODD_KEYS = ["a", None, "", " ", "ü", "日本", "\U0001f600", "a\x00b", "007", "x" * 100_000, "a"]


def keys_of(stream, size=1000):
    return [key for chunk in stream.chunks(size) for key in np.asarray(chunk.keys).tolist()]


def times_of(stream, size=1000):
    return [time for chunk in stream.chunks(size) for time in chunk.times.tolist()]


@pytest.fixture
def table(tmp_path):
    def write(columns, suffix=".parquet"):
        path = tmp_path / f"table{suffix}"
        if suffix == ".parquet":
            pa.parquet.write_table(pa.table(columns), path, row_group_size=3)
        else:
            path.write_text(columns, newline="")
        return str(path)

    return write


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_odd_keys_of_parquet_are_all_there_and_have_the_ids_of_their_values(table, size):
    stream = File(table({"k": ODD_KEYS}), key="k")
    assert keys_of(stream, size) == ODD_KEYS
    assert stream.length == len(ODD_KEYS)
    ids = np.concatenate([chunk.key_ids() for chunk in stream.chunks(size)])
    assert ids.tolist() == key_ids(pa.array(ODD_KEYS)).tolist()


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([7, -1, None], pa.int32()),
        pa.array([7, 2**40, None], pa.int64()),
        pa.array([b"a", b"\xff", None]),
        pa.array(["a", "b", None, "a"]).dictionary_encode(),
        pa.array(["a", None], pa.large_string()),
        pa.array([True, False, None]),
        pa.array([None, None]),
    ],
    ids=lambda keys: str(keys.type)[:10],
)
def test_parquet_keeps_the_type_of_its_keys(table, keys):
    stream = File(table({"k": keys}), key="k")
    assert np.concatenate([c.key_ids() for c in stream.chunks(2)]).tolist() == key_ids(keys).tolist()


def test_keys_of_csv_stay_what_is_written(table):
    written = ["007", "7", "1.0", "1e3", "", "true", "null", "NaN", "N/A", "2020-01-01", "ü", "a b", 'say "hi"', "a\nb"]
    text = "k,v\n" + "".join('"' + key.replace('"', '""') + '",1\n' for key in written)
    assert keys_of(File(table(text, ".csv"), key="k")) == written
    assert keys_of(File(table("k,v\n007,1\n,2\n", ".csv"), key="k")) == ["007", ""]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_do_not_end_the_stream(table, end):
    lines = ["k,v", "a,1", "", "", "b,2", "", "c,3", "", ""]
    assert keys_of(File(table(end.join(lines), ".csv"), key="k"), 2) == ["a", "b", "c"]


@given(size=st.integers(1, 30))
@settings(max_examples=10)
def test_rows_of_csv_are_the_same_however_they_are_cut(size, tmp_path_factory):
    path = tmp_path_factory.mktemp("cut") / "t.csv"
    path.write_text("k,t\n" + "".join(f"{i % 7},{i}\n" for i in range(25)))
    stream = File(str(path), key="k", time="t")
    assert keys_of(stream, size) == [str(i % 7) for i in range(25)]
    assert times_of(stream, size) == list(range(25))


def test_a_csv_longer_than_a_block_is_read_to_its_end(table, monkeypatch):
    monkeypatch.setattr(files, "CSV_BLOCK", 100)
    text = "k,v\n" + "".join(f'{i},"{i}\n{i}"\n' for i in range(500))
    assert keys_of(File(table(text, ".csv"), key="k")) == [str(i) for i in range(500)]
    assert keys_of(File(table(text, ".csv"), key="v")) == [f"{i}\n{i}" for i in range(500)]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".txt"])
def test_a_key_of_ten_megabytes_is_a_key(tmp_path, suffix):
    long, path = "x" * 10_000_000, tmp_path / f"long{suffix}"
    if suffix == ".parquet":
        pa.parquet.write_table(pa.table({"k": ["a", long, "b"]}), path)
    else:
        path.write_text(f"a\n{long}\nb\n" if suffix == ".txt" else f"k\na\n{long}\nb\n")
    chunks = File(str(path), key="" if suffix == ".txt" else "k").chunks()
    ids = np.concatenate([chunk.key_ids() for chunk in chunks])
    assert ids.tolist() == key_ids(["a", long, "b"]).tolist()


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".txt"])
def test_a_file_without_rows_is_a_stream_without_tuples(tmp_path, suffix):
    path = tmp_path / f"empty{suffix}"
    if suffix == ".parquet":
        pa.parquet.write_table(pa.table({"k": pa.array([], pa.string()), "t": pa.array([], pa.float64())}), path)
    else:
        path.write_text("" if suffix == ".txt" else "k,t\n")
    stream = File(str(path)) if suffix == ".txt" else File(str(path), key="k", time="t")
    assert keys_of(stream) == []
    assert times_of(stream) == []


# ---------------------------------------------------------------- times


def test_late_and_unsorted_tuples_are_kept_in_file_order(table):
    times = [5.0, 1.0, 9.0, -3.0, 9.0, 0.0]
    stream = File(table({"k": list("abcdef"), "t": times}), key="k", time="t")
    assert keys_of(stream, 2) == list("abcdef")
    assert times_of(stream, 2) == times


def test_without_a_time_column_tuples_are_a_second_apart(table):
    assert times_of(File(table({"k": list("abcdef")}), key="k"), 4) == [0, 1, 2, 3, 4, 5]


MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 500_000, tzinfo=datetime.timezone.utc)
SECONDS = MOMENT.timestamp()


@pytest.mark.parametrize(
    "times",
    [
        pa.array([SECONDS]),
        pa.array([str(SECONDS)]),
        pa.array([str(SECONDS)], pa.large_string()),
        pa.array(["2020-01-02 03:04:05.5"]),
        pa.array(["2020-01-02T03:04:05.500Z"]),
        pa.array(["2020-01-02T05:04:05.5+02:00"]),
        pa.array([MOMENT], pa.timestamp("us", "UTC")),
        pa.array([MOMENT], pa.timestamp("ms", "America/New_York")),
        pa.array([int(SECONDS * 1e9)], pa.timestamp("ns")),
    ],
    ids=lambda times: str(times.type),
)
def test_times_are_seconds_timestamps_or_their_text(times):
    assert seconds(times, "t").tolist() == [SECONDS]


def test_whole_seconds_dates_and_nanoseconds_are_times_too():
    assert seconds(pa.array([1, 2], pa.int32()), "t").tolist() == [1, 2]
    assert seconds(pa.array([2**53]), "t").tolist() == seconds(pa.array([str(2**53)]), "t").tolist() == [2.0**53]
    assert seconds(pa.array([datetime.date(1970, 1, 2)]), "t").tolist() == [86_400]
    assert seconds(pa.array([1_500_000_001], pa.timestamp("ns")), "t").tolist() == [1.5]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (pa.array([1.0, None]), "time: column 't' has 1 nulls; every tuple needs its time"),
        (pa.array([1.0, float("nan")]), "time: column 't' must hold finite times, not nan"),
        (pa.array(["inf"]), "time: column 't' must hold finite times, not inf"),
        (pa.array([1_600_000_000 * 10**9]), "time: column 't' must hold seconds from -2^53 to 2^53, not 1.6e+18: "),
        (pa.array([2**64 - 1], pa.uint64()), "time: column 't' must hold seconds from -2^53 to 2^53, not 1.84467e+19"),
        (pa.array([0.0, -1.6e18]), "time: column 't' must hold seconds from -2^53 to 2^53, not -1.6e+18: divide nano"),
        (pa.array(["1600000000000000000"]), "time: column 't' must hold seconds from -2^53 to 2^53, not 1.6e+18: "),
        (pa.array(["soon"]), "time: column 't' must hold seconds or timestamps, not "),
        (pa.array(["1", "soon"]), "time: column 't' must hold seconds or timestamps, not string such as 'soon'"),
        (pa.array([[1.0]]), "time: column 't' must hold seconds or timestamps, not "),
    ],
)
def test_what_is_no_time_is_refused_by_the_name_of_its_column(times, message):
    with pytest.raises(InputError) as error:
        seconds(times, "t")
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


# ---------------------------------------------------------------- words


def test_words_are_those_of_the_whole_text_wherever_blocks_end(tmp_path, monkeypatch):
    text = " the  cat\n\n\nsat\ton\r\nthe mät\x0b日本 \x0c end" * 3
    path = tmp_path / "words.txt"
    path.write_bytes(text.encode())
    for block in range(1, 40):
        monkeypatch.setattr(files, "TEXT_BLOCK", block)
        assert b" ".join(keys_of(File(str(path)), 5)).decode().split() == text.split()
        assert max(len(chunk.keys) for chunk in File(str(path)).chunks(5)) <= 5
        assert times_of(File(str(path)), 5) == list(range(len(text.split())))


@given(text=st.binary(max_size=60), block=st.integers(1, 20))
@settings(max_examples=100)
def test_any_bytes_are_words_between_ascii_white_space(text, block, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "bytes.txt"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "TEXT_BLOCK", block)
        assert keys_of(File(str(path))) == text.split()


def test_words_have_the_ids_of_strings(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("das Mädchen ")
    assert next(File(str(path)).chunks()).key_ids().tolist() == key_ids(["das", "Mädchen"]).tolist()


# ---------------------------------------------------------------- refusals


def refusal(make):
    with pytest.raises(InputError) as error:
        make()
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("parameter", ["key", "time", "source"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_missing_column_is_refused_with_those_that_there_are(table, parameter, suffix):
    path = table({"k": [1], "v": [2]} if suffix == ".parquet" else "k,v\n1,2\n", suffix)
    told = refusal(lambda: File(path, **({"key": "k"} | {parameter: "nope"})))
    assert told == f"{parameter}: {path} has no column 'nope'; it has k, v"
    assert refusal(lambda: File(path)) == f"key: name the key column of {path}; its columns are k, v"


def test_a_column_name_that_is_there_twice_is_refused(table):
    path = table("k,k\n1,2\n", ".csv")
    assert refusal(lambda: File(path, key="k")) == f"key: {path} has 2 columns 'k'; rename one"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("junk.parquet", b"junk"),
        ("cut.parquet", b"PAR1" + b"\0" * 20 + b"PAR1"),
        ("empty.parquet", b""),
        ("empty.csv", b""),
        ("ragged.csv", b"k,v\n1,2\n3\n"),
        ("latin.csv", b"k,v\n\xff,1\n"),
    ],
)
def test_files_that_cannot_be_read_are_refused_by_name(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    assert refusal(lambda: keys_of(File(str(path), key="k"))).startswith(f"path: {str(path)!r} cannot be read")


def test_other_kinds_of_files_are_refused_with_those_allowed(tmp_path):
    path = tmp_path / "table.xlsx"
    path.write_text("")
    allowed = "allowed are files that end in .parquet, .csv, .txt, .text, .md, .log, and folders of .parquet files"
    assert refusal(lambda: File(str(path))) == f"path: {str(path)!r} ends in '.xlsx'; {allowed}"


def test_words_have_no_columns(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("a")
    assert refusal(lambda: File(str(path), key="k")).endswith("is a text file of words; it has no columns")


def test_keys_of_a_type_that_spark_cannot_place_are_refused_with_those_allowed(table):
    stream = File(table({"k": [1.5]}), key="k")
    assert refusal(lambda: next(stream.chunks()).key_ids()).startswith("keys: double keys are not supported; allowed")


def test_a_folder_of_parquet_files_is_read_in_the_order_of_their_names(tmp_path):
    for name, keys in (("part-1.parquet", ["c"]), ("part-0.parquet", ["a", "b"]), ("part-2.parquet", [])):
        pa.parquet.write_table(pa.table({"k": pa.array(keys, pa.string())}), tmp_path / name)
    (tmp_path / "_SUCCESS").write_text("")
    stream = File(str(tmp_path), key="k")
    assert stream.length == 3
    assert [key for chunk in stream.chunks() for key in chunk.keys.to_pylist()] == ["a", "b", "c"]
