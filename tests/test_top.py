"""`unskew top`: what is recorded of a stream, in the terminal and on a page."""

import json
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from command import runner
from unskew.batch_records import BatchRecord, names_in, read_records
from unskew.cli.top_page import make_server
from unskew.errors import InputError

RECORD = BatchRecord(
    batch=7,
    time="2026-01-01T00:00:00Z",
    query="q",
    scheme="fanout",
    workers=4,
    plan=6,
    next_plan=7,
    rows=1000,
    seconds=1.5,
    load=(700, 100, 100, 100),
    planned_max_over_mean=1.01,
    hot_keys=(
        {"key_id": "00000000000000aa", "key": "the [b]", "share": 0.7, "workers": 3},
        {"key_id": "00000000000000ff", "key": None, "share": 0.2, "workers": 2},
    ),
)


@pytest.fixture
def run(capsys, monkeypatch):
    return runner(capsys, monkeypatch)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "unskew" / "route"
    (folder / "batches").mkdir(parents=True)
    for record in (replace(RECORD, batch=6, plan=-1, load=(250, 250, 250, 250)), RECORD):
        (folder / record.file_name).write_text(record.to_json())
    return tmp_path


def test_records_come_back_as_they_were_written_and_damaged_or_unfinished_ones_are_left_out(checkpoint: Path) -> None:
    (checkpoint / "unskew/route/batches/000000000008.json").write_text(RECORD.to_json()[:-9])
    (checkpoint / "unskew/route/batches/.000000000009-1.unfinished.json").write_text(RECORD.to_json())
    assert names_in(checkpoint) == ["route"]
    assert [record.batch for record in read_records(checkpoint, "route")] == [6, 7]
    assert read_records(checkpoint, "route")[1] == RECORD
    assert RECORD.max_over_mean == 2.8
    assert replace(RECORD, load=()).max_over_mean is None


@pytest.mark.parametrize(
    "damage",
    [
        {"rows": None},
        {"rows": "12"},
        {"seconds": "x"},
        {"seconds": float("nan")},
        {"plan": "x"},
        {"workers": 0, "load": []},
        {"load": [-1, 2, 3, 4]},
        {"load": [float("inf")] * 4},
        {"hot_keys": [{}]},
        {"hot_keys": [{"key_id": "ff", "share": "x", "workers": 1}]},
    ],
)
def test_a_record_that_cannot_be_shown_is_left_out(run, checkpoint: Path, damage: dict) -> None:
    changed = json.dumps({**json.loads(RECORD.to_json()), "batch": 8, **damage})
    (checkpoint / "unskew/route/batches/000000000008.json").write_text(changed)
    (checkpoint / "unskew/route/batches/000000000009.json").write_bytes(b"\xff\xfe")
    done = run("top", str(checkpoint), "--once")
    assert done.status == 0, done.err
    assert "batch 7" in done.out


def test_the_terminal_shows_load_balance_and_hot_keys(run, checkpoint: Path) -> None:
    done = run("top", str(checkpoint), "--once")
    assert done.status == 0, done.err
    for text in ("batch 7", "1,000 rows in 1.50 s", "plan 6", "2.80", "700", "the [b]", "70.0 %"):
        assert text in done.out, text
    assert "(id 00000000000000ff)" in done.out
    assert "00000000000000aa" not in done.out


def test_batches_of_live_routers_have_no_plan_and_no_hot_keys(run, tmp_path: Path) -> None:
    online = replace(RECORD, scheme="pkg", plan=None, next_plan=None, planned_max_over_mean=None, hot_keys=())
    (tmp_path / "unskew/route/batches").mkdir(parents=True)
    (tmp_path / "unskew/route" / online.file_name).write_text(online.to_json())
    done = run("top", str(tmp_path), "--once")
    assert "pkg, online" in done.out
    assert "hot key" not in done.out


def test_a_folder_that_is_no_checkpoint_of_ours_is_refused(run, tmp_path: Path) -> None:
    done = run("top", str(tmp_path))
    assert (done.status, done.out) == (2, "")
    assert "must be the checkpoint of a query that was routed with Adaptive" in done.err


def test_all_records_as_json(run, checkpoint: Path) -> None:
    found = json.loads(run("top", str(checkpoint), "--json").out)
    assert [len(record["load"]) for record in found["route"]] == [4, 4]
    assert "only one of --web, --once and --json" in run("top", str(checkpoint), "--json", "--once").err


def test_a_port_that_is_taken_is_refused(checkpoint: Path) -> None:
    with make_server(checkpoint, 0, 1.0) as server, pytest.raises(InputError, match=r"^port: .* cannot be used"):
        make_server(checkpoint, server.server_port, 1.0)


@pytest.fixture
def address(checkpoint: Path):
    with make_server(checkpoint, 0, 1.0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_page_needs_nothing_from_outside_and_its_data_are_the_records(address: str) -> None:
    page = urllib.request.urlopen(f"{address}/").read().decode()
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme: dark" in page
    found = json.loads(urllib.request.urlopen(f"{address}/records.json").read())
    assert [record["max_over_mean"] for record in found["route"]] == [1.0, 2.8]
    assert [len(record["load"]) for record in found["route"]] == [0, 4]  # only that of the last batch is drawn
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{address}/etc/passwd")


def test_the_page_says_so_when_the_checkpoint_is_gone(address: str, checkpoint: Path) -> None:
    shutil.rmtree(checkpoint)
    with pytest.raises(urllib.error.HTTPError, match="410"):
        urllib.request.urlopen(f"{address}/records.json")


def test_a_browser_draws_a_bar_per_worker(address: str, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no chromium on this machine: on Debian, apt-get install chromium")
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=3000",
        f"--user-data-dir={tmp_path}/b",
    ]
    drawn = subprocess.run([browser, *flags, "--dump-dom", f"{address}/"], capture_output=True, text=True, timeout=120)
    assert "batch 7: 1,000 rows in 1.50 s, fanout, plan 6, busiest over mean 2.8" in drawn.stdout
    assert drawn.stdout.count("<rect") == 4
    assert "worker 0: 700 rows" in drawn.stdout
    assert "(id 00000000000000ff)" in drawn.stdout
    assert "the [b]" in drawn.stdout
