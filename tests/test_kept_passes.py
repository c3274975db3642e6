"""Passes that are kept: found again where nothing has changed, and nowhere else."""

from pathlib import Path

import pytest

from unskew import InputError, PartialKey
from unskew.experiments import kept_passes
from unskew.experiments.grid import Job
from unskew.experiments.kept_passes import KeptPasses
from unskew.experiments.report import check_folder
from unskew.streams import Zipf

JOB = Job("x", "ZF", Zipf(1.0, 10, 100), (PartialKey(5),))
RESULTS = [{"load": [20] * 5, "imbalance": float("inf")}]


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    kept = KeptPasses(tmp_path / "out")
    assert len(kept) == 0
    kept.keep(JOB, RESULTS)
    assert len(kept) == 1
    assert KeptPasses(tmp_path / "out").load([JOB._replace(data="TW"), JOB]) == {1: RESULTS}


def test_another_seed_scheme_or_source_is_another_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptPasses(tmp_path)
    kept.keep(JOB, RESULTS)
    others = [JOB._replace(stream=Zipf(1.0, 10, 100, seed=1)), JOB._replace(schemes=(PartialKey(5, seed=1),))]
    assert kept.load(others) == {}
    monkeypatch.setattr(kept_passes, "_source", lambda: "edited")
    assert kept.load([JOB]) == {}


def test_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    kept = KeptPasses(tmp_path)
    kept.keep(JOB, RESULTS)
    (file,) = (tmp_path / "passes").iterdir()
    file.write_text(file.read_text()[:10])
    assert kept.load([JOB]) == {}


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = KeptPasses(tmp_path / "file")
    kept.keep(JOB, RESULTS)
    assert kept.load([JOB]) == {}


def test_a_folder_with_kept_passes_alone_can_be_written_to(tmp_path: Path) -> None:
    kept = KeptPasses(tmp_path)
    kept.keep(JOB, RESULTS)
    check_folder(tmp_path, force=False)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"all kept \(notes\.txt\); add --force"):
        check_folder(tmp_path, force=False)
    kept.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
