"""What a rerun found: as JSON, as a page, and as it is committed in docs/papers/results."""

import re
from dataclasses import replace

import pytest

from committed import NAMES, RESULTS, SOME_WHOLE, committed, ids
from documents import ROOT
from unskew import __version__
from unskew.cli.reproduce import PAPERS
from unskew.experiments.claims import DIFFERS, MARKS, NOT_TESTABLE, READING, REPRODUCED, Claim, tally, verdict
from unskew.experiments.evaluation import GRIDS, QUICK, WHOLE, WIDTH, Evaluation

SOME = Evaluation(
    paper="pkg",
    title="Some paper, rerun",
    reference="“Some Paper” (Somebody)",
    version="1.2.3",
    grid=QUICK,
    seed=7,
    command="unskew reproduce pkg --quick --seed 7",
    experiments={"fig1": "Figure 1: something", "fig2": "Figure 2: something else"},
    claims=[
        Claim("fig1-a", "a is b", "2", "W=5: 1; W=10: 2", REPRODUCED, "Rule: equal.", "fig1", "unskew"),
        Claim("fig2-b", "a is c", "3", "p1 - 1/W = 4", DIFFERS, "Rule: " + "1 - x " * 60, "fig2", "unskew"),
        Claim("fig2-c", "c is d", "4", "-", NOT_TESTABLE, "It needs a cluster.", "fig2", "unskew"),
    ],
)


def test_json_comes_back_as_it_went() -> None:
    assert Evaluation.from_json(SOME.to_json()) == SOME
    assert Evaluation.from_json(SOME.to_json(indent=2)) == SOME


def test_the_page_says_what_was_run_and_what_was_found() -> None:
    page = SOME.markdown()
    assert "unskew 1.2.3, the quick grid" in page
    assert "seed 7" in page
    assert "**3 claims: 1 reproduced, 0 reproduced under a stated reading, 1 differs, 1 not testable here.**" in page
    assert "the whole grid" in replace(SOME, grid=WHOLE).markdown()
    assert page.index("## Figure 1") < page.index("### fig1-a") < page.index("## Figure 2") < page.index("### fig2-b")


def test_what_was_measured_in_several_places_is_a_list() -> None:
    assert "- measured:\n  - W=5: 1\n  - W=10: 2\n" in SOME.markdown()
    assert "- measured: p1 - 1/W = 4\n" in SOME.markdown()
    assert SOME.markdown().count("measured:") == 2  # nothing was measured of the third


def test_a_rule_is_called_a_rule() -> None:
    assert "- rule: equal.\n" in SOME.markdown()
    assert "- why: It needs a cluster.\n" in SOME.markdown()


def test_no_line_of_the_page_turns_into_a_list_by_being_wrapped() -> None:
    text = SOME.markdown().split("### fig2-b")[1].split("###")[0]
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert len(re.findall(r"^\s*- ", text, re.MULTILINE)) == 3  # published, measured, rule


def test_a_tally_counts_every_verdict() -> None:
    none = "0 reproduced under a stated reading"
    assert tally(SOME.claims) == f"3 claims: 1 reproduced, {none}, 1 differs, 1 not testable here"
    assert tally(SOME.claims[:1]) == f"1 claim: 1 reproduced, {none}, 0 differ, 0 not testable here"


def test_a_claim_that_cannot_fail_is_not_counted() -> None:
    one = replace(SOME.claims[0], by_construction=True)
    assert tally([one, *SOME.claims]) == tally(SOME.claims) + "; 1 more holds by construction and is not counted"
    assert tally([one, one]).endswith("; 2 more hold by construction and are not counted")
    assert "✓ reproduced (by construction, not counted)" in replace(SOME, claims=[one]).markdown()


def test_a_reading_stands_beside_what_the_paper_says_literally() -> None:
    assert [verdict(*holds) for holds in ((True, True), (False, True), (False, False))] == [
        REPRODUCED,
        READING,
        DIFFERS,
    ]
    claim = replace(SOME.claims[1], verdict=READING, reading="b means c.", measured_so="x: 3; y: 3")
    page = replace(SOME, claims=[claim]).markdown()
    assert "**(✓) reproduced under a stated reading**: a is c" in page
    assert "- measured: p1 - 1/W = 4\n- reading: b means c.\n- measured so:\n  - x: 3\n  - y: 3\n- rule:" in page
    assert "1 reproduced under a stated reading, 0 differ" in page


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_page_is_what_the_command_wrote(name: str) -> None:
    found = committed(name)
    assert (RESULTS / f"{name}.json").read_text(encoding="utf-8") == found.to_json(indent=2) + "\n"
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == found.markdown()


@pytest.mark.parametrize("paper", PAPERS)
def test_the_committed_results_are_those_of_this_version(paper: str) -> None:
    found = committed(paper)
    assert (found.paper, found.version) == (paper, __version__)
    assert found.grid in GRIDS
    assert found.command == f"unskew reproduce {paper}" + " --quick" * (found.grid == QUICK)
    assert {claim.verdict for claim in found.claims} <= set(MARKS)
    assert all(claim.reading and claim.measured_so for claim in found.claims if claim.verdict == READING)
    assert len(set(ids(found))) == len(found.claims)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(SOME_WHOLE)])
def test_figures_that_were_run_whole_are_some_of_the_paper(name: str) -> None:
    found, paper = committed(name), name.removesuffix(SOME_WHOLE)
    assert (found.paper, found.version, found.grid) == (paper, __version__, WHOLE)
    assert found.command == f"unskew reproduce {paper}" + "".join(f" --only {figure}" for figure in found.experiments)
    every = committed(paper)
    assert ids(found) == [claim.id for figure in found.experiments for claim in every.of(figure)]


@pytest.mark.parametrize("paper", PAPERS)
def test_the_findings_speak_of_claims_that_exist(paper: str) -> None:
    page = (ROOT / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    named = re.findall(rf"\(results/({paper}(?:{SOME_WHOLE})?)\.md#([^)]+)\)", page)
    assert named
    for name in {name for name, _ in named}:
        known = {id.lower() for id in ids(committed(name))}  # as links to headings are written
        assert {id for other, id in named if other == name} <= known


@pytest.mark.parametrize("paper", ["pkg", "fish", "cg", "deployments"])
def test_the_findings_count_verdicts_as_the_results_do(paper: str) -> None:
    """By the whole grid where a figure was run whole, else by the quick one."""
    page = " ".join((ROOT / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8").split())
    verdicts = {claim.id: claim for claim in committed(paper).claims}
    if paper + SOME_WHOLE in NAMES:
        verdicts |= {claim.id: claim for claim in committed(paper + SOME_WHOLE).claims}
    counted = [claim.verdict for claim in verdicts.values() if not claim.by_construction]
    numbers = re.search(
        r"Of (\d+) claims (\d+) are reproduced, (?:(\d+) more under a stated reading, )?(\d+) differ", page
    )
    assert numbers
    total, reproduced, reading, differ = (int(number or 0) for number in numbers.groups())
    assert total == len(counted)
    assert [reproduced, reading, differ] == [counted.count(kind) for kind in (REPRODUCED, READING, DIFFERS)]
