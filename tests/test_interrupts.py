"""Ctrl-C without Spark: one line, exit status 130, nothing left behind, whenever it comes."""

import ctypes
import logging
import signal
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from interrupting import interrupt
from unskew.cli.interrupts import Interrupted, interrupts
from unskew.writing import whole_file

ENDLESS = "zipf(z=1.2, keys=100_000, tuples=100_000_000_000)"


@pytest.fixture(autouse=True)
def _as_in_a_terminal():
    """Interrupts are heard, also where the tests run in the background. Logging goes on after each test: a command that
    was stopped, in a process of its own, logs nothing more."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    logging.disable(logging.NOTSET)


def after(seconds):
    start = time.monotonic()
    return lambda _: time.monotonic() > start + seconds


@pytest.mark.parametrize("seconds", [0.3, 4.0], ids=["while importing", "while routing"])
def test_simulate_stops_in_one_line(tmp_path, seconds):
    stopped = interrupt(tmp_path, ["simulate", "--stream", ENDLESS, "--plot", "p.png"], after(seconds))
    assert stopped == (130, "", "unskew: stopped\n", [], "")


def test_route_leaves_no_half_written_file(tmp_path):
    table = pa.table({"key": pa.array(range(4_000_000))})
    pa.parquet.write_table(table, tmp_path / "keys.parquet")
    arguments = ["route", "--in", str(tmp_path / "keys.parquet"), "--key", "key", "--out", "routed.csv"]

    def has_begun(_: Path) -> bool:
        return any((tmp_path / "here").iterdir())

    assert interrupt(tmp_path, arguments, has_begun) == (130, "", "unskew: stopped\n", [], "")


def test_impatience_does_not_stop_the_cleaning_up():
    cleaned = []
    with pytest.raises(Interrupted), interrupts() as interrupted:  # noqa: PT012
        assert not interrupted
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            cleaned.append(bool(interrupted))
    assert cleaned == [True]


def test_an_interrupt_that_gets_lost_in_a_callback_is_raised_again(capsys):
    @ctypes.CFUNCTYPE(None)
    def callback():
        signal.raise_signal(signal.SIGINT)
        time.sleep(0)  # the interrupt is raised here, at the latest, and C has no exceptions

    with pytest.raises(Interrupted), interrupts():  # noqa: PT012
        callback()
        time.sleep(60)
    assert capsys.readouterr().err == ""


def test_who_handled_interrupts_before_does_so_again():
    before = signal.getsignal(signal.SIGINT)
    with interrupts():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_interrupts_are_not_ours():
    entered = []

    def run():
        with interrupts() as interrupted:
            entered.append(bool(interrupted))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert entered == [False]


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("before")
    with pytest.raises(Interrupted), whole_file(path) as unfinished:  # noqa: PT012
        unfinished.write_text("half")
        raise Interrupted
    assert path.read_text() == "before"
    with whole_file(path) as unfinished:
        assert unfinished.suffix == ".html"
        unfinished.write_text("whole")
    assert path.read_text() == "whole"
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.html").write_text("before")
    (tmp_path / "link.html").symlink_to("real.html")
    with whole_file(tmp_path / "link.html") as unfinished:
        unfinished.write_text("after")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text() == "after"
