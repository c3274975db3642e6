"""The HTML page: everything escaped, figures inline and with ids of their own, nothing overwritten unasked."""

import re
from pathlib import Path

import pytest

from unskew.page import Page, fresh_path


def test_all_text_is_escaped() -> None:
    page = Page("<b>", "<i>")
    page.add_heading("<h>")
    page.add_text("<p1>", "a & b")
    page.add_code("if a < b:")
    page.add_table(["<th>"], [["<td>"]])
    html = page.html()
    for tag in ("<b>", "<i>", "<h>", "<p1>", "<td><td>", "a & b"):
        assert tag not in html
    assert "&lt;td&gt;" in html
    assert "if a &lt; b:" in html


def test_only_columns_of_numbers_are_set_to_the_right() -> None:
    page = Page("t")
    page.add_table(["name", "n"], [["one", "1.5x"], ["2", -3]])
    assert page.html().count('class="number"') == 3  # the head and two cells of the second column


def test_figures_are_inline_and_take_the_colour_of_the_page() -> None:
    figure_class = pytest.importorskip("matplotlib.figure").Figure
    page = Page("t")
    for _ in range(2):
        figure = figure_class()
        figure.subplots().plot([1, 2, 3], marker="o")
        page.add_figure(figure, 'a "quoted" <caption>')
    html = page.html()
    assert html.count("<svg ") == 2
    assert "<?xml" not in html
    assert "#000000" not in html
    assert not re.findall(r'(?:src|href)="(?!#)', html)  # nothing is loaded from elsewhere
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', html)) <= set(ids)
    assert "&lt;caption&gt;" in html


def test_a_fresh_path_is_never_taken(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert fresh_path(path) == path
    path.touch()
    assert fresh_path(path) == tmp_path / "page-2.html"
    (tmp_path / "page-2.html").touch()
    assert fresh_path(path) == tmp_path / "page-3.html"
