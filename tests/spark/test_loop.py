"""The loop on the driver, without any Spark: what a micro-batch had in, the next plan and the records out."""

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyspark.sql import Row

from unskew import Frequencies, Plan, key_ids
from unskew.batch_records import read_records
from unskew.hashing import candidates_of
from unskew.plan import HotKey
from unskew.spark.streaming.loop import COUNTS, PLANS_KEPT, Loop
from unskew.spark.streaming.observed_tally import told_in
from unskew.spark.streaming.plan_file import NAME as PLAN
from unskew.spark.streaming.plan_file import version_in
from unskew.spark.streaming.seen import Seen, seen_in_load, seen_in_rows
from unskew.spark.streaming.side_folder import SideFolder
from unskew.spark.streaming.tally import seen_by_workers

W = 4
WORDS = [f"word-{i}" for i in range(20)]
IDS = key_ids(WORDS)
NAMES = dict(zip(IDS.tolist(), WORDS, strict=True))


def seen(rows: int, version: int, hottest: int = 0, *, at_home: bool = True) -> Seen:
    """A micro-batch, half of whose rows are of one key."""
    counts = np.full(20, rows // 40, np.int64)
    counts[hottest] = rows // 2
    home_load = np.full(W, rows // W, np.int64) if at_home else None
    found = Frequencies(IDS, counts, rows, home_load=home_load)
    return Seen(rows, np.full(W, rows // W, np.int64), version, found, NAMES)


def loop_in(folder: Path, scheme: str = "fanout", keep: int = 100, **parameters: Any) -> Loop:
    """A loop that is told what was seen as it is."""
    (folder / "metadata").write_text("one another")  # ids of queries, in Spark's file of the checkpoint
    side = SideFolder(folder, "route")
    return Loop(
        side, scheme, parameters, W, ["string"], lambda batch, told, plans: told, alpha=0.2, most=100, keep=keep
    )


def progress(batch: int, query: str = "one") -> Any:
    return SimpleNamespace(id=query, runId=query, batchId=batch, timestamp="now", durationMs={"triggerExecution": 7})


def test_metrics_of_a_query_before_that_observed_something_else_are_left_out() -> None:
    """A restart in the same session may go from a planned scheme to one that is online, or back."""
    for metrics in (Row(rows=3, load=None), Row(rows=3, counters=None), Row(told=[])):
        assert seen_in_load(metrics, W) == Seen(0, None)
        assert seen_in_rows(metrics, W, 100, {}) == Seen(0, None)
        assert seen_by_workers(*told_in(metrics, W), W, 100, {}) == Seen(0, None)


def plan_of(folder: Path, version: int) -> Plan:
    return Plan.load(folder / f"unskew/route/plans/{version:012d}.json")


def test_the_plan_that_a_batch_used_can_be_loaded_with_the_names_of_its_keys(tmp_path: Path) -> None:
    loop = loop_in(tmp_path)
    for batch in range(PLANS_KEPT + 5):
        loop.take(progress(batch), seen(4000, batch, hottest=batch % 20))
    records = read_records(tmp_path, "route")
    last = plan_of(tmp_path, records[-1].plan or 0)
    assert [record.plan for record in records] == list(range(PLANS_KEPT + 5))
    assert {hot.key for hot in last.hot_keys} <= set(WORDS)
    assert last.hot_keys[0].key == records[-1].hot_keys[0]["key"]
    assert len(list((tmp_path / "unskew/route/plans").iterdir())) == PLANS_KEPT


def test_plans_are_numbered_on_where_plan_txt_is_lost(tmp_path: Path) -> None:
    before = loop_in(tmp_path)
    for batch in range(PLANS_KEPT + 5):
        before.take(progress(batch), seen(4000, batch, hottest=batch % 20))
    (tmp_path / "unskew/route" / PLAN).unlink()
    after, last = loop_in(tmp_path), PLANS_KEPT + 6  # one is written after the last batch, one by the new loop
    after.take(progress(PLANS_KEPT + 5), seen(4000, last))
    assert read_records(tmp_path, "route")[-1].plan == last
    assert plan_of(tmp_path, last).hot_keys  # goes on from the counts


def test_a_restart_goes_on_with_the_last_plan_and_the_names_of_its_keys(tmp_path: Path) -> None:
    """So a batch that was cut short runs again with the same plan."""
    loop_in(tmp_path).take(progress(0), seen(4000, 0))
    line = (tmp_path / "unskew/route" / PLAN).read_text()
    after = loop_in(tmp_path)
    assert (tmp_path / "unskew/route" / PLAN).read_text() == line
    after.take(progress(1), seen(4000, 1)._replace(names={}))
    record = read_records(tmp_path, "route")[-1]
    assert (record.plan, record.hot_keys[0]["key"]) == (1, "word-0")
    assert record.planned_max_over_mean is not None


@pytest.mark.parametrize("damage", ["", "{}", "another plan", "another number of workers"])
def test_a_restart_writes_the_plan_anew_where_the_last_one_is_not_known(tmp_path: Path, damage: str) -> None:
    loop_in(tmp_path).take(progress(0), seen(4000, 0))
    kept = tmp_path / "unskew/route/plans/000000000001.json"
    others = {"another plan": Plan("fanout", W, (hot(3),)), "another number of workers": Plan("fanout", W + 1)}
    kept.write_text(others[damage].to_json() if damage in others else damage)
    loop_in(tmp_path)
    assert version_in((tmp_path / "unskew/route" / PLAN).read_text()) == 2
    assert plan_of(tmp_path, 2).hot_keys[0].key_id == int(IDS[0])


def test_a_restart_keeps_the_plan_where_the_counts_are_damaged(tmp_path: Path) -> None:
    loop_in(tmp_path).take(progress(0), seen(4000, 0))
    line = (tmp_path / "unskew/route" / PLAN).read_text()
    (tmp_path / "unskew/route" / COUNTS).write_text("{")
    with pytest.warns(UserWarning, match=r"^counts: .* is damaged; keys are counted anew"):
        after = loop_in(tmp_path)
    assert (tmp_path / "unskew/route" / PLAN).read_text() == line
    after.take(progress(1), seen(4000, 1, hottest=7))
    assert read_records(tmp_path, "route")[-1].plan == 1
    assert plan_of(tmp_path, 2).hot_keys[0].key_id == int(IDS[7])  # of the new counts alone


def test_counts_are_never_older_than_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a driver that dies between the two does not go back to the plan before."""
    loop = loop_in(tmp_path)

    def die(loop: Loop, plan: Plan) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Loop, "_write_plan", die)
    with pytest.raises(KeyboardInterrupt):
        loop.take(progress(0), seen(4000, 0))
    monkeypatch.undo()
    loop_in(tmp_path)
    assert plan_of(tmp_path, 1).hot_keys[0].key_id == int(IDS[0])


def test_the_first_plan_has_the_schemes_own_seed(tmp_path: Path) -> None:
    loop_in(tmp_path, "hash", seed=3)
    assert plan_of(tmp_path, 0).cold_salt == 3


def test_another_seed_after_a_restart_makes_another_plan(tmp_path: Path) -> None:
    loop_in(tmp_path, "hash", seed=3).take(progress(0), seen(4000, 0, at_home=False))
    loop_in(tmp_path, "hash", seed=5)
    assert plan_of(tmp_path, 1).cold_salt == 5


def test_what_is_at_home_may_be_known_of_some_batches_only(tmp_path: Path) -> None:
    """A batch that found no plan has all keys at home; the others, with a seed, have none there."""
    loop = loop_in(tmp_path, "pkg", seed=3)
    with pytest.warns(UserWarning, match=r"^plan: batch 0 found .* damaged or missing"):
        loop.take(progress(0), seen(500_000, -1))
    for batch in (1, 2, 3):  # are so much smaller that 0 would have more rows at home than all of them together
        loop.take(progress(batch), seen(4000, batch, hottest=batch, at_home=False))
    assert [record.batch for record in read_records(tmp_path, "route")] == [0, 1, 2, 3]
    assert plan_of(tmp_path, 4).hot_keys[0].key == "word-3"


def test_a_plan_that_could_not_be_written_is_written_after_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, write = loop_in(tmp_path), SideFolder.write

    def fail(folder: SideFolder, name: str, text: str) -> None:
        if name == PLAN:
            raise OSError("no space left")
        write(folder, name, text)

    monkeypatch.setattr(SideFolder, "write", fail)
    with pytest.raises(OSError, match="no space left"):  # the listener makes a warning of it
        loop.take(progress(0), seen(4000, 0))
    monkeypatch.undo()
    loop.take(progress(1), seen(4000, 0))
    assert version_in((tmp_path / "unskew/route" / PLAN).read_text()) == 1
    assert plan_of(tmp_path, 1).hot_keys[0].key == "word-0"


def test_records_of_a_query_that_was_there_before_go(tmp_path: Path) -> None:
    before = loop_in(tmp_path, keep=3)
    for batch in range(900, 904):
        before.take(progress(batch), seen(4000, batch - 900))
    assert [record.batch for record in read_records(tmp_path, "route")] == [901, 902, 903]
    anew = loop_in(tmp_path, keep=3)
    for batch in range(2):
        anew.take(progress(batch, "another"), seen(4000, 5))
    assert [record.batch for record in read_records(tmp_path, "route")] == [0, 1]


def test_what_was_counted_for_another_number_of_workers_is_left_out() -> None:
    loads = {"rows": 40, "load": sketch_of([5] * 8)}
    assert seen_in_load(loads, 8).load.tolist() == [5] * 8  # type: ignore[union-attr]
    assert seen_in_load(loads, 9) == Seen(0, None)
    observed = {"rows": 40, "counters": sketch_of([4] * 8 + [1] * 8), "version": 0, "top": [], "names": []}
    assert seen_in_rows(observed, 8, 100, {}).load.tolist() == [5] * 8  # type: ignore[union-attr]
    assert seen_in_rows(observed, 9, 100, {}) == Seen(0, None)
    assert seen_in_rows({**observed, "counters": None}, 8, 100, {}) == Seen(0, None)  # of too many workers to count
    assert seen_in_rows({**observed, "counters": None}, 20_000, 100, {}).rows == 40
    assert seen_in_rows(observed, 20_000, 100, {}) == Seen(0, None)


def sketch_of(cells: list[int]) -> bytes:
    """A Count-Min sketch of one row of cells, as Spark writes it."""
    head = struct.pack(">iqiiq", 1, sum(cells), 1, len(cells), 7)
    return head + np.array(cells, ">i8").tobytes()


def hot(key: int) -> HotKey:
    return HotKey(int(IDS[key]), 0.1, (0, 1))


def top(*counts: int) -> list[dict[str, int]]:
    """How often the first keys were counted, as Spark tells it."""
    return [{"item": id_, "count": count} for id_, count in zip(IDS.view(np.int64).tolist(), counts, strict=False)]


def test_hot_keys_that_were_observed_count_where_their_homes_are() -> None:
    homes = candidates_of(IDS, 0, W)
    cold, dealt = np.array([100, 200, 300, 400]), np.array([50, 50, 50, 50])
    observed = {"rows": 1200, "counters": sketch_of([*cold, *dealt]), "version": 3, "names": []}

    def home_load(found: list[dict[str, int]], plan: Plan, version: int = 3) -> list[int] | None:
        seen = seen_in_rows({**observed, "top": found}, W, 100, {version: plan})
        assert seen.load is not None
        assert seen.load.tolist() == (cold + dealt).tolist()
        assert seen.frequencies is not None
        at_home = seen.frequencies.home_load
        return None if at_home is None else at_home.tolist()

    expected = cold.copy()
    expected[homes[0]] += 120
    expected[homes[1]] += 80
    both = Plan("fanout", W, (hot(0), hot(1)))
    assert home_load(top(120, 80, 70), both) == expected.tolist()  # the third is cold, and at home anyway
    rare = cold + 20  # 80 of the 200 hot rows are of a key that is rare now
    rare[homes[0]] += 120
    assert home_load(top(120), both) == rare.tolist()
    assert sum(home_load(top(180, 120), both) or []) == 1200  # counted too much by a sketch: never more than all rows
    assert home_load(top(120, 80), both, version=4) is None  # the plan is not known any more
    assert home_load(top(120, 80), Plan("pkg", W, (hot(0), hot(1)), cold_salt=1)) is None  # cold keys are elsewhere


def test_without_a_plan_all_keys_were_at_home() -> None:
    observed = {
        "rows": 40,
        "counters": sketch_of([4, 6, 10, 20, 0, 0, 0, 0]),
        "version": -1,
        "top": top(30),
        "names": None,
    }
    seen = seen_in_rows(observed, W, 100, {})
    assert seen.frequencies is not None
    assert seen.frequencies.home_load is not None
    assert seen.frequencies.home_load.tolist() == [4, 6, 10, 20]
