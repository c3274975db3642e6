"""What a stream's tasks leave of the costs that they saw: each cost key by itself, each row once."""

from pathlib import Path

import numpy as np
import pytest

from unskew.plan import KeyColumn
from unskew.sketches.mean_costs import learn, mean_costs_of, new_mean_costs
from unskew.spark.streaming.cost_files import CostFiles
from unskew.spark.streaming.side_folder import SideFolder
from unskew.spark.timed_costs import COLUMNS, ROWS, packed

KEY = np.array([7], np.uint64)


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of the micro-batch."""
    number = [0]
    monkeypatch.setattr("unskew.spark.streaming.cost_files.this_batch", lambda: number[0])
    return number


@pytest.fixture
def files(tmp_path: Path) -> CostFiles:
    return CostFiles(str(tmp_path), (KeyColumn("word", "string"),), 4)


def costing(seconds: float, rows: int = 10) -> bytes:
    sketches = new_mean_costs(ROWS, COLUMNS)
    learn(sketches, KEY, rows, rows * seconds)
    return packed(sketches)


def test_what_workers_took_is_known_in_the_next_micro_batch(files: CostFiles, batch: list[int]) -> None:
    assert files.known(0, None, 0.5) is None
    files.tell(0, costing(1.0))
    files.tell(3, costing(2.0))
    batch[0] = 1
    for source in (1, 0, 2):
        found = files.known(source, None, 0.5)
        assert found is not None
        assert mean_costs_of(found, KEY).tolist() == [1.5]


def test_a_micro_batch_without_rows_teaches_nothing(files: CostFiles, batch: list[int]) -> None:
    """Else all rows of the next one would seem to cost nothing, and go to one worker."""
    files.tell(0, packed(new_mean_costs(ROWS, COLUMNS)))
    batch[0] = 1
    assert files.known(0, None, 0.5) is None


@pytest.mark.parametrize("other", [KeyColumn("word", "bigint"), KeyColumn("page", "string")])
def test_costs_of_another_key_are_left_out_with_a_warning(
    files: CostFiles, batch: list[int], other: KeyColumn, recwarn: pytest.WarningsRecorder
) -> None:
    files.warn_of_other_keys()
    files.known(0, None, 0.5)
    files.tell(0, costing(1.0))
    files.warn_of_other_keys()
    assert not recwarn.list
    others = files._replace(cost_key=(other,))
    with pytest.warns(UserWarning, match=r'^cost_key: .* anew, since what .* learnt by \{"word": "string"\}$'):
        others.warn_of_other_keys()
    batch[0] = 1
    assert others.known(0, None, 0.5) is None
    assert files.known(0, None, 0.5) is not None


def test_files_of_workers_that_there_are_no_more_do_not_count(files: CostFiles, batch: list[int]) -> None:
    """A micro-batch ran with four workers, and after a restart again with two."""
    for worker in range(4):
        files.tell(worker, costing(1.0))
    fewer = files._replace(workers=2)
    for worker in range(2):
        fewer.tell(worker, costing(2.0, rows=20))
    batch[0] = 1
    found = fewer.known(0, None, 0.5)
    assert found is not None
    assert found.counts.cells[0].sum() == 40
    assert mean_costs_of(found, KEY).tolist() == [2.0]


def test_tasks_that_start_later_read_one_file(
    files: CostFiles, batch: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for worker in range(4):
        files.tell(worker, costing(1.0))
    batch[0] = 1
    files.known(0, None, 0.5)
    read: list[str] = []
    really = SideFolder.read_bytes
    monkeypatch.setattr(SideFolder, "read_bytes", lambda folder, name: (read.append(name), really(folder, name))[1])
    assert files.known(5, None, 0.5) is not None
    assert [name.split("/")[2:] for name in read] == [["known", "1"]]


def test_damaged_files_are_left_out_with_a_warning(files: CostFiles, batch: list[int]) -> None:
    files.tell(0, costing(1.0)[:-5])
    batch[0] = 1
    with pytest.warns(UserWarning, match=r"^costs: .*told/0/0 and the files beside it are damaged, and left out"):
        assert files.known(0, None, 0.5) is None
