"""What the command shows while it works."""

import io

import pytest
from rich.console import Console

from unskew.cli import output


@pytest.fixture
def shown(monkeypatch):
    """What goes to standard error, which is no terminal; the clock moves 20 seconds at each look."""
    text, seconds = io.StringIO(), iter(range(0, 10_000, 20))
    monkeypatch.setattr(output, "notes", Console(file=text, width=40))
    monkeypatch.setattr(output.time, "monotonic", lambda: float(next(seconds)))
    return text


def test_without_a_terminal_progress_is_a_line_now_and_then(shown):
    with output.progress_bar("routing", 10**15) as done:
        for _ in range(4):
            done(65_536)
    assert shown.getvalue().splitlines() == [
        "routing: 131,072 done of 1,000,000,000,000,000, about 9,677 years left",
        "routing: 262,144 done of 1,000,000,000,000,000, about 9,677 years left",
    ]


def test_what_is_done_shows_no_progress(shown):
    with output.progress_bar("routing", 200) as done:
        done(100)
        done(100)
    assert shown.getvalue() == ""


def test_progress_through_a_stream_of_unknown_length_tells_what_is_done(shown):
    with output.progress_bar("counting keys", None) as done:
        done(1000)
        done(2000)
    assert shown.getvalue() == "counting keys: 3,000 done\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 second"), (1.6, "2 seconds"), (119, "119 seconds"), (120, "2 minutes"), (5400, "90 minutes"),
     (86_400 * 3, "3 days"), (86_400 * 365 * 1e6, "1,000,000 years")],
)  # fmt: skip
def test_a_time_left_is_told_in_a_unit_that_people_would_choose(seconds, text):
    assert output._duration(seconds) == text
