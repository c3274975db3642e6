"""What workers of a stream tell reaches the sources of the micro-batches after it, once, however often they run."""

import json
from pathlib import Path

import numpy as np
import pytest

from unskew import Router, key_ids, make
from unskew.contract import Scheme
from unskew.schemes.posg import ROUND_ROBIN
from unskew.spark.feedback import Feedback, _report_of
from unskew.spark.streaming.half_files import HalfFiles, hear_messages
from unskew.spark.streaming.router_files import RouterFiles
from unskew.spark.streaming.told_files import KEPT, ToldFiles
from unskew.states import to_bytes
from unskew.worker_half import WorkerHalf

W = 4
IDS = key_ids([f"word-{i % 50}" for i in range(400)])
Done = dict[int, dict[str, float]]


class Batch:
    """The micro-batch that tasks are of."""

    number = 0


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch) -> Batch:
    now = Batch()
    for module in ("batch_files", "told_files"):
        monkeypatch.setattr(f"unskew.spark.streaming.{module}.this_batch", lambda: now.number)
    return now


@pytest.fixture
def scheme() -> Scheme:
    return make("cg", W)


@pytest.fixture
def files(tmp_path: Path, scheme: Scheme) -> RouterFiles:
    return Feedback(scheme).router_files(str(tmp_path), "route")


def busy(*seconds: float) -> Done:
    return {worker: {"worker": worker, "rows": 100, "busy": each} for worker, each in enumerate(seconds) if each}


def run_source(files: RouterFiles, scheme: Scheme, source: int = 0) -> bytes:
    """The state of a router after it has routed its rows of a micro-batch."""
    router = files.router(scheme, source)
    router.route(IDS)
    files.keep(router, source)
    return router.to_bytes()


def tell(files: RouterFiles, done: Done) -> None:
    assert files.told is not None
    for worker, told in done.items():
        files.told.tell(worker, told)


def expected(scheme: Scheme, *steps: Done | None) -> bytes:
    """The state of a router that hears each of these reports, and routes its rows where there is None."""
    router = Router(scheme)
    for number, step in enumerate(steps):
        if step is None:
            router.route(IDS)
        else:
            router.observe(_report_of(step, number))
    return router.to_bytes()


def test_a_router_hears_in_each_micro_batch_what_was_told_in_the_one_before(
    batch: Batch, files: RouterFiles, scheme: Scheme
) -> None:
    reports = [busy(3, 1, 1, 1), busy(0, 2, 1, 1), busy(3, 1, 1, 1)]
    steps: list[Done | None] = []
    for batch.number, report in enumerate(reports):
        steps.append(None)
        assert run_source(files, scheme) == expected(scheme, *steps)
        tell(files, report)
        assert run_source(files, scheme) == expected(scheme, *steps)  # a task that runs again hears nothing of its own
        steps.append(report)


def test_a_source_that_had_no_rows_hears_it_all_later_and_a_new_one_knows_it(
    batch: Batch, files: RouterFiles, scheme: Scheme
) -> None:
    reports = [busy(3, 1, 1, 1), busy(3, 1, 1, 1), busy(1, 1, 1, 3)]
    run_source(files, scheme, source=1)
    for batch.number, report in enumerate(reports):
        run_source(files, scheme)
        tell(files, report)
    batch.number = 3
    assert run_source(files, scheme, source=1) == expected(scheme, None, *reports, None)
    assert run_source(files, scheme, source=2) == expected(scheme, *reports, None)


def test_a_feedback_that_has_learnt_already_is_what_routers_start_as(
    batch: Batch, tmp_path: Path, scheme: Scheme
) -> None:
    learnt = Router(scheme)
    learnt.observe(_report_of(busy(3, 1, 1, 1), 0))
    files = Feedback(learnt).router_files(str(tmp_path), "route")
    assert run_source(files, scheme, source=3) == expected(scheme, busy(3, 1, 1, 1), None)


def test_files_stay_few(batch: Batch, files: RouterFiles, scheme: Scheme, tmp_path: Path) -> None:
    seen = []
    for batch.number in range(3 * KEPT):
        for source in (1, 0):
            run_source(files, scheme, source)
        tell(files, busy(3, 1, 1, 1))
        seen.append(sum(path.is_file() for path in tmp_path.rglob("*")))
    # of three batches the routers and the newcomer, of two what was told, and of ten what was gathered
    assert max(seen) == seen[-1] == 3 * 3 + 2 * W + KEPT
    names = {path.parent.name for path in tmp_path.rglob("told/*/*.json")}
    assert names == {str(batch.number), str(batch.number - 1)}


def test_what_was_told_long_ago_is_not_heard_and_taken_away(
    batch: Batch, files: RouterFiles, scheme: Scheme, tmp_path: Path
) -> None:
    """Micro-batches in which nobody told anything do not count."""
    run_source(files, scheme, source=1)
    for batch.number in range(0, 20 * KEPT, 20):
        tell(files, busy(3, 1, 1, 1))
    batch.number += 1
    heard = [busy(3, 1, 1, 1)] * KEPT
    assert run_source(files, scheme, source=1) == expected(scheme, None, *heard, None)
    tell(files, busy(3, 1, 1, 1))
    batch.number += 100
    run_source(files, scheme)
    assert len([*tmp_path.rglob("told/*")]) == KEPT
    assert not [*tmp_path.rglob("told/0")]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '"text"',
        '{"worker": 0}',
        '{"worker": 0, "rows": -1, "busy": 1.0}',
        '{"worker": 0, "rows": 1e999, "busy": 1.0}',
        '{"worker": 0, "rows": 1000000000000000000000000, "busy": 1.0}',
        "[" * 100_000,
    ],
)
def test_damaged_files_are_left_out_with_a_warning(
    batch: Batch, files: RouterFiles, scheme: Scheme, tmp_path: Path, text: str
) -> None:
    run_source(files, scheme)
    tell(files, busy(3, 1, 1, 1))
    (tmp_path / "unskew/route/told/0/0.json").write_text(text)
    batch.number = 1
    with pytest.warns(UserWarning, match=r"^told: "):
        run_source(files, scheme)


def test_workers_that_are_gone_tell_nothing(batch: Batch, files: RouterFiles, scheme: Scheme) -> None:
    """The micro-batch ran before with more workers, and was not finished."""
    run_source(files, scheme)
    tell(files, busy(3, 1, 1, 1))
    tell(files, {9: {"worker": 9, "rows": 100, "busy": 1.0}})
    batch.number = 1
    assert run_source(files, scheme) == expected(scheme, None, busy(3, 1, 1, 1), None)


def test_another_number_of_workers_starts_anew_with_a_warning(
    batch: Batch, files: RouterFiles, scheme: Scheme, tmp_path: Path
) -> None:
    run_source(files, scheme)
    tell(files, busy(3, 1, 1, 1))
    batch.number = 1
    fewer = make("cg", 3)
    others = Feedback(fewer).router_files(str(tmp_path), "route")
    with pytest.warns(UserWarning, match=r"^routers: the file of source 0 of micro-batch 0 is no state of it: "):
        found = run_source(others, fewer)
    assert found == expected(fewer, {w: row for w, row in busy(3, 1, 1, 1).items() if w < 3}, None)


def test_worker_halves_go_on_and_idle_time_counts(batch: Batch, tmp_path: Path) -> None:
    scheme = make("posg", 2, window=10)
    halves = HalfFiles(ToldFiles(str(tmp_path), "conversation", 2, hear_messages))
    assert halves.start(scheme, 0) == (None, 0.0, 1)
    half = WorkerHalf(scheme, 1, 3)
    for batch.number in range(2):
        half.execute(IDS[:5], np.ones(5))
        for worker, seconds in ((0, 5.0), (1, 2.0)):
            done = {"worker": worker, "rows": 5, "seconds": seconds + batch.number, "sources": 3, "messages": []}
            halves.keep(worker, {**done, "half": half.to_bytes()})
    batch.number = 3
    assert halves.start(scheme, 0) == (half.to_bytes(), 0.0, 3)
    assert halves.start(scheme, 1) == (half.to_bytes(), 3.0, 3)
    path = tmp_path / "unskew/conversation/halves/1/1.json"
    once = WorkerHalf(scheme, 1, 3)
    once.execute(IDS[:5], np.ones(5))
    for wrong in ("{", "[]", json.dumps({**json.loads(path.read_text()), "half": "AAAA"})):
        path.write_text(wrong)
        with pytest.warns(UserWarning, match=r"^halves: the file of worker 1 of micro-batch 1 is no state of it: "):
            assert halves.start(scheme, 1) == (once.to_bytes(), 3.0, 3)  # goes on from the batch before


def test_a_half_goes_on_though_what_the_slowest_worker_told_is_damaged(batch: Batch, tmp_path: Path) -> None:
    scheme = make("posg", 2, window=10)
    halves = HalfFiles(ToldFiles(str(tmp_path), "conversation", 2, hear_messages))
    half = WorkerHalf(scheme).to_bytes()
    for worker, seconds in ((0, 5.0), (1, 2.0)):
        halves.keep(worker, {"rows": 5, "seconds": seconds, "sources": 1, "messages": [], "half": half})
    batch.number = 1
    (tmp_path / "unskew/conversation/told/0/0.json").unlink()
    assert halves.start(scheme, 0) == (half, 0.0, 1)
    (tmp_path / "unskew/conversation/told/0/1.json").write_text('{"seconds": NaN, "messages": []}')
    assert halves.start(scheme, 0) == (half, 0.0, 1)


def test_messages_of_another_scheme_are_left_out_with_a_warning(batch: Batch, tmp_path: Path) -> None:
    told = ToldFiles(str(tmp_path), "conversation", 2, hear_messages)
    wide = WorkerHalf(make("posg", 2, window=10, columns=90))
    (message,) = [each for each in wide.execute(IDS[:20], np.ones(20)) if each.source is None]
    done = {"worker": 0, "rows": 20, "seconds": 20.0, "sources": 1, "half": wide.to_bytes()}
    row = {"at": 20.0, "source": None, "told": to_bytes(message.content)}
    HalfFiles(told).keep(0, {**done, "messages": [row]})
    batch.number = 1
    router = Router(make("posg", 2, window=10))
    with pytest.warns(UserWarning, match=r"^told: what workers told in micro-batch 0 is left out, as it does not fit"):
        assert not told.catch_up(router, 0, 0)
    assert router.state.phase[0] == ROUND_ROBIN
    same = Router(make("posg", 2, window=10, columns=90))
    assert told.catch_up(same, 0, 0)
    assert same.to_bytes() != Router(same.scheme).to_bytes()
