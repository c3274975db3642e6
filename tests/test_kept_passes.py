"""Passes that are kept: found again where nothing has changed, and nowhere else."""

from pathlib import Path

import pytest

from unskew import InputError, PartialKey
from unskew.experiments import kept_passes
from unskew.experiments.grid import Job
from unskew.experiments.kept_passes import NAME, KeptPasses
from unskew.experiments.report import check_folder
from unskew.streams import Zipf

JOB = Job("x", "ZF", Zipf(1.0, 10, 100), (PartialKey(5),))
OTHER = JOB._replace(data="TW")
RESULTS = [{"load": [20] * 5, "imbalance": float("inf")}]


def kept_in(folder: Path, *jobs: Job) -> KeptPasses:
    """With one pass of each."""
    kept = KeptPasses(folder, jobs, folder)
    with kept.open():
        for job in jobs:
            kept.keep(job, RESULTS)
    return kept


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    assert kept_in(tmp_path / "out", JOB).number == 1
    assert KeptPasses(tmp_path / "out", [OTHER, JOB], tmp_path / "out").load([OTHER, JOB]) == {1: RESULTS}


def test_another_seed_scheme_source_or_data_is_another_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_in(tmp_path, JOB)
    others = [JOB._replace(stream=Zipf(1.0, 10, 100, seed=1)), JOB._replace(schemes=(PartialKey(5, seed=1),))]
    assert KeptPasses(tmp_path, others, tmp_path).load(others) == {}
    (tmp_path / "stream.parquet").write_text("")
    assert KeptPasses(tmp_path, [JOB], tmp_path).number == 0
    (tmp_path / "stream.parquet").unlink()
    assert KeptPasses(tmp_path, [JOB], tmp_path).number == 1
    monkeypatch.setattr(kept_passes, "_source", lambda: "edited")
    assert KeptPasses(tmp_path, [JOB], tmp_path).load([JOB]) == {}


def test_a_pass_by_other_code_than_the_run_began_with_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptPasses(tmp_path, [JOB], tmp_path)
    monkeypatch.setattr(kept_passes, "_source", lambda: "edited meanwhile")
    with kept.open():
        kept.keep(JOB, RESULTS)
    assert kept.number == 0


def test_a_job_that_is_none_of_those_to_keep_is_not_kept(tmp_path: Path) -> None:
    kept = KeptPasses(tmp_path, [JOB], tmp_path)
    with kept.open():
        kept.keep(OTHER, RESULTS)
    assert kept.load([OTHER, JOB]) == {}


def test_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    kept = kept_in(tmp_path, JOB)
    (file,) = (tmp_path / NAME).iterdir()
    file.write_text(file.read_text()[:10])
    assert kept.load([JOB]) == {}


def test_where_there_is_no_folder_nothing_is_kept(tmp_path: Path) -> None:
    kept = KeptPasses(tmp_path / "elsewhere", [JOB], tmp_path)
    kept.keep(JOB, RESULTS)
    assert kept.load([JOB]) == {}
    assert not (tmp_path / "elsewhere").exists()


def test_no_empty_folder_is_left(tmp_path: Path) -> None:
    with KeptPasses(tmp_path / "out", [JOB], tmp_path).open():
        assert (tmp_path / "out" / NAME).is_dir()
    assert not (tmp_path / "out").exists()


def test_only_passes_of_the_run_are_removed(tmp_path: Path) -> None:
    kept_in(tmp_path, JOB, OTHER)
    (tmp_path / NAME / "mine.txt").write_text("mine")
    kept = KeptPasses(tmp_path, [JOB], tmp_path)
    with kept.open():
        kept.remove()
    assert kept.number == 0
    assert KeptPasses(tmp_path, [OTHER], tmp_path).number == 1
    assert (tmp_path / NAME / "mine.txt").exists()


def test_a_folder_with_kept_passes_alone_can_be_written_to(tmp_path: Path) -> None:
    kept_in(tmp_path, JOB)
    check_folder(tmp_path, force=False)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"all kept \(notes\.txt\); add --force"):
        check_folder(tmp_path, force=False)
