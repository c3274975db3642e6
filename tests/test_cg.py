"""Consistent grouping: decisions against the naive twin, and what the scheme's docstring states."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_cg
from samples import SOME_KEYS, ids, streams, uniform, zipf
from unskew import InputError, Router, make
from unskew.simulate import simulate
from unskew.simulate.queues import Queues
from unskew.streams import Zipf
from unskew.worker_report import WorkerReport

INF = float("inf")
IDLE, FINE, BUSY = 0.1, 0.8, 1.0


def router(workers, **parameters):
    return Router(make("cg", workers, **parameters))


def tell(source, utilisations):
    """The workers (a dict of worker -> utilisation) tell how busy they were in a window of four seconds."""
    workers = np.array(list(utilisations), np.int64)
    nothing = np.zeros(len(workers), np.int64)
    busy = 4.0 * np.array(list(utilisations.values()), float)
    source.observe(WorkerReport(workers, nothing + 9, nothing + 9, busy, nothing, 4.0, 0.0))


def held(source):
    return np.bincount(source.state.holder, minlength=source.scheme.workers).tolist()


def sets_held(source):
    return [set(np.flatnonzero(source.state.holder == worker).tolist()) for worker in range(source.scheme.workers)]


utilisation = st.sampled_from([0.0, 0.3, 0.75, 0.8, 0.85, 0.86, 1.0])
told_by = st.dictionaries(st.integers(0, 5), utilisation)


# ---------------------------------------------------------------- the twin


@given(
    data=st.data(),
    virtual=st.integers(1, 4),
    epsilon=st.sampled_from([0, 0.01, 1.0, INF]),
    keyed=st.booleans(),
    probe_capacity=st.booleans(),
    seed=st.sampled_from([0, 1, 2**15 - 1]),
    ring=st.booleans(),
    patient=st.booleans(),
)
def test_decides_as_its_twin_whatever_workers_tell(data, **parameters):
    mine, twin = router(6, **parameters), naive_cg.ConsistentGrouping(6, **parameters)
    for _ in range(data.draw(st.integers(1, 6))):
        stream, told = data.draw(streams), data.draw(told_by)
        assert mine.route(stream).tolist() == [twin.route(key) for key in stream.tolist()]
        tell(mine, told)
        twin.observe(told)
        assert sets_held(mine) == [set(virtual_workers) for virtual_workers in twin.held]


def test_utilisation_is_what_came_over_what_the_worker_could_have_executed():
    """Both worked all the time, at 9 tuples per window. 6 came to worker 0, which has a backlog, and 12 to worker 1."""
    workers, nine = np.arange(2), np.array([9, 9])
    report = WorkerReport(workers, np.array([6, 12]), nine, np.array([10.0, 10.0]), nine, 10.0, 0.0)
    for drain, expected in ((False, [11, 9]), (True, [10, 10])):
        source = router(2, drain=drain)
        source.observe(report)
        assert held(source) == expected


def test_utilisation_can_be_how_full_the_queue_is():
    """9 and 2 tuples wait where 10 have room; both workers were equally at work."""
    workers, five = np.arange(2), np.array([5, 5])
    report = WorkerReport(workers, five, five, np.array([8.0, 8.0]), np.array([9, 2]), 10.0, 0.0)
    for bound, expected in ((0, [10, 10]), (10, [9, 11]), (11, [10, 10])):
        source = router(2, queue_bound=bound)
        source.observe(report)
        assert held(source) == expected
    with pytest.raises(InputError, match=r"drain: must be False where queue_bound is above 0, not with 10"):
        make("cg", 2, drain=True, queue_bound=10)


def test_another_seed_is_another_set_of_hash_functions():
    stream = ids(range(1_000))
    chosen = [router(6, seed=seed).route(stream) for seed in (0, 1)]
    assert (chosen[0] != chosen[1]).mean() > 0.5
    with pytest.raises(InputError, match=r"seed: must be .* 32767"):
        make("cg", 6, seed=2**15)


# ---------------------------------------------------------------- virtual workers


@given(stream=streams, workers=st.integers(1, 6), virtual=st.integers(1, 5), epsilon=st.sampled_from([0, 0.01, 0.5]))
def test_no_virtual_worker_ever_has_more_than_its_share(stream, workers, virtual, epsilon):
    source, total = router(workers, virtual=virtual, epsilon=epsilon), workers * virtual
    for t, key in enumerate(stream, start=1):
        source.route(key[None])
        assert source.state.sent.max() < (1 + epsilon) * t / total + 1 + 1e-9


def test_until_something_moves_a_key_with_room_goes_where_hash_sends_it():
    keys = ids(np.arange(50))
    for key in keys:
        assert router(7).route(key[None])[0] == naive.candidate(int(key), 0, 7)
    everywhere = router(7, epsilon=INF).route(keys)
    assert everywhere.tolist() == Router(make("hash", 7)).route(keys).tolist()


def test_cg_fig_6_porc_lies_between_key_grouping_and_shuffle_grouping():
    """Ten workers of ten virtual ones; imbalance and replicas by the assignment to virtual workers."""
    stream = zipf(20_000, 2000, 1.2)
    spread, replicas = {}, {}
    for name, parameters in {
        "kg": {"epsilon": INF},
        "wide": {"epsilon": 1.0},
        "porc": {},
        "sg": {"keyed": False},
    }.items():
        decisions = router(10, **parameters).route(stream)
        spread[name] = np.bincount(decisions, minlength=10).max() / 2000
        replicas[name] = len(set(zip(stream.tolist(), decisions.tolist(), strict=True)))
    assert spread["sg"] == 1.0 <= spread["porc"] < 1.02 < spread["wide"] < spread["kg"]
    assert replicas["kg"] == len(np.unique(stream)) < replicas["wide"] < replicas["porc"] < replicas["sg"]


# ---------------------------------------------------------------- pairing


@given(told=st.lists(told_by, max_size=30), virtual=st.integers(1, 3), probe_capacity=st.booleans())
def test_the_number_of_virtual_workers_is_conserved_and_everyone_keeps_one(told, virtual, probe_capacity):
    source = router(6, virtual=virtual, probe_capacity=probe_capacity)
    for utilisations in told:
        before = np.array(held(source))
        tell(source, utilisations)
        after = np.array(held(source))
        assert after.sum() == 6 * virtual
        assert after.min() >= 1
        assert np.abs(after - before).max() <= 1
        assert not ((source.state.asks > 0).any() and (source.state.asks < 0).any())
        source.scheme.check_state(source.state)


def test_nothing_moves_until_both_an_idle_and_a_busy_worker_are_there():
    source = router(4, virtual=3)
    tell(source, {0: BUSY, 1: BUSY})
    tell(source, {2: FINE})
    assert held(source) == [3, 3, 3, 3]
    tell(source, {3: IDLE})
    assert held(source) == [2, 3, 3, 4]


def test_queues_are_first_come_first_served_and_within_a_window_in_the_order_of_the_report():
    source = router(6, virtual=5)
    tell(source, {4: BUSY})
    tell(source, {1: BUSY, 3: BUSY})
    tell(source, {4: BUSY, 1: BUSY})  # the same again: they keep their places
    tell(source, {0: IDLE})
    assert held(source) == [6, 5, 5, 5, 4, 5]
    tell(source, {4: BUSY, 5: IDLE, 2: IDLE})
    assert held(source) == [6, 4, 6, 4, 4, 6]


def test_without_a_signal_a_wish_is_withdrawn_and_unheard_of_it_stays():
    source = router(4, virtual=5)
    tell(source, {0: BUSY, 1: BUSY})
    tell(source, {0: FINE})
    tell(source, {2: IDLE})
    assert held(source) == [5, 4, 6, 5]


def test_cg_section_6_a_who_finds_nobody_idle_gives_to_who_was_overloaded_least_recently():
    source = router(4, virtual=10, probe_capacity=True)
    tell(source, {0: BUSY, 1: FINE, 2: FINE, 3: FINE})
    assert held(source) == [9, 11, 10, 10]  # of those that never were, the first
    tell(source, {1: BUSY, 3: FINE})
    assert held(source) == [9, 10, 11, 10]
    tell(source, {2: BUSY, 3: BUSY})
    assert held(source) == [10, 11, 10, 9]  # 0 was overloaded before 1 was
    tell(source, dict.fromkeys(range(4), BUSY))
    assert held(source) == [10, 11, 10, 9]  # nobody is left to give to


def test_nobody_gives_to_one_that_is_overloaded_with_its_last_virtual_worker():
    source = router(2, virtual=2, probe_capacity=True)
    tell(source, {0: BUSY, 1: IDLE})
    tell(source, {0: BUSY, 1: BUSY})
    assert held(source) == [1, 3]


def test_the_opposite_wish_goes_to_the_end_of_the_other_queue():
    source = router(4, virtual=5)
    tell(source, {0: IDLE, 1: BUSY})
    assert held(source) == [6, 4, 5, 5]
    tell(source, {0: IDLE})
    tell(source, {0: BUSY, 1: IDLE})
    assert held(source) == [5, 5, 5, 5]
    tell(source, {0: IDLE, 1: IDLE})
    tell(source, {0: BUSY, 2: BUSY, 3: BUSY})  # 1 is served by 0, and 2 and 3 wait
    tell(source, {1: IDLE})
    assert held(source) == [4, 7, 4, 5]


def test_thresholds_are_strict_and_parameters():
    source = router(2, virtual=5)
    tell(source, {0: 0.75, 1: 0.9})
    tell(source, {0: 0.5, 1: 0.85})
    assert held(source) == [5, 5]
    wide = router(2, virtual=5, idle=0.2, busy=0.4)
    tell(wide, {0: 0.19, 1: 0.41})
    assert held(wide) == [6, 4]


def test_the_virtual_worker_that_came_last_is_the_first_to_go():
    source = router(2, virtual=3)
    start = sets_held(source)
    for _ in range(3):
        tell(source, {0: BUSY, 1: IDLE})
        assert sets_held(source) == [{0, 2}, {1, 3, 5, 4}]  # 4 was the highest of worker 0
        tell(source, {0: IDLE, 1: BUSY})
        assert sets_held(source) == start


def test_the_last_virtual_worker_is_never_taken_and_the_next_in_the_queue_is_served_instead():
    source = router(3, virtual=2)
    tell(source, {0: BUSY, 2: IDLE})
    tell(source, {0: BUSY, 1: BUSY, 2: IDLE})
    assert held(source) == [1, 1, 4]
    tell(source, {0: BUSY, 1: BUSY, 2: IDLE})
    assert held(source) == [1, 1, 4]


def test_only_later_tuples_go_elsewhere():
    source = router(2, virtual=2, keyed=False)
    before = source.route(SOME_KEYS[:4])
    tell(source, {0: BUSY, 1: IDLE})
    assert before.tolist() == [0, 1, 0, 1]
    assert source.route(SOME_KEYS[:4]).tolist() == [0, 1, 1, 1]
    assert source.state.sent.tolist() == [2, 2, 2, 2]


# ---------------------------------------------------------------- with queues


def run(schemes, tuples=40_000, **setting):
    return simulate(Zipf(z=1.0, keys=3000, tuples=tuples), schemes, **setting)


def share_of(result, before, workers):
    """Of the tuples after the first run, the share that these workers got."""
    got = np.array(result.load) - np.array(before.load)
    return got[workers].sum() / got.sum()


def test_cg_fig_9_equal_workers_at_80_percent_stay_as_they_are():
    unmoved, moved = run(
        [make("cg", 10, window=1e12), make("cg", 10, window=10.0)], queues=Queues(utilisation=0.8, capacity=20.0)
    )
    assert moved.utilisation_imbalance < 0.01 * moved.utilisation_max + 0.005
    assert moved.latency_p99 < 2.0  # seconds; a tuple takes 0.05
    assert abs(moved.replicas - unmoved.replicas) < 0.03 * unmoved.replicas  # at most few moves


@pytest.mark.parametrize("virtual", [10, 50])
def test_cg_fig_10_three_workers_of_ten_five_times_as_fast_get_what_they_can_do(virtual):
    """Their share is 15/22; hash and shuffle give 3/10 and let queues grow without end."""
    queues = Queues(utilisation=0.8, capacity=[50.0] * 3 + [10.0] * 7)
    shuffle, half, whole = (
        run([make("shuffle", 10)], queues=queues)[0],
        *(run([make("cg", 10, virtual=virtual, window=1.0)], tuples=m, queues=queues)[0] for m in (20_000, 40_000)),
    )
    assert share_of(whole, half, [0, 1, 2]) == pytest.approx(15 / 22, abs=0.04)
    assert whole.latency_p99 < shuffle.latency_p99 / 5
    assert whole.makespan < shuffle.makespan / 1.5
    assert whole.longest_queue == half.longest_queue  # the worst is over in the first half


def test_cg_fig_13_it_recovers_within_a_hundred_windows_when_other_workers_become_the_fast_ones():
    queues = Queues(utilisation=0.8, capacity=[50.0] * 3 + [10.0] * 7)
    event = "t=20k capacity 0-6:10, 7-9:50"
    scheme = make("cg", 10, virtual=20, window=1.0)
    end = 20_000 + 100 * 176  # that many tuples come in a window
    settled, later = (run([scheme], tuples=m, queues=queues, events=[event])[0] for m in (end, end + 7000))
    assert share_of(later, settled, [7, 8, 9]) == pytest.approx(15 / 22, abs=0.06)


def test_several_sources_each_with_a_map_of_its_own_even_out_too():
    queues = Queues(utilisation=0.8, capacity=[50.0] * 3 + [10.0] * 7)
    scheme = make("cg", 10, virtual=20, window=2.0)
    half, whole = (run([scheme], tuples=m, queues=queues, sources=5)[0] for m in (30_000, 50_000))
    assert share_of(whole, half, [0, 1, 2]) == pytest.approx(15 / 22, abs=0.05)


def test_a_source_learns_only_from_workers_that_it_talked_to():
    """One key has a busy worker, the other an idle one: a source with both pairs them, one for each never does."""
    stream, queues = Zipf(z=3.0, keys=2, tuples=3000), Queues(utilisation=1.0, capacity=10.0)
    schemes = [make("hash", 5), make("cg", 5, epsilon=INF, window=1.0)]
    hashed, one_key_each = simulate(stream, schemes, sources=3, feed="key", queues=queues)
    assert np.count_nonzero(hashed.load) == 2
    assert one_key_each.load == hashed.load
    _, both_keys = simulate(stream, schemes, sources=1, queues=queues)
    assert both_keys.load != hashed.load


# ---------------------------------------------------------------- workers come and go


names = st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True)


@given(told=st.lists(told_by, max_size=20), changes=st.lists(names, min_size=1, max_size=3))
def test_virtual_workers_outlive_a_change_of_workers_and_as_few_as_possible_move(told, changes):
    source = router(6, virtual=4)
    source.route(uniform(100, 30))
    for utilisations in told:
        tell(source, utilisations)
    for members in changes:
        before = source.members[source.state.holder]
        counts = {name: int((before == name).sum()) for name in source.members.tolist()}
        sent = source.state.sent.tolist()
        source.change_workers(members)
        after = np.array(members)[source.state.holder]
        now = {name: int((after == name).sum()) for name in members}
        assert sum(now.values()) == 24
        assert min(now.values()) >= 1
        assert source.state.sent.tolist() == sent
        gained = sum(max(0, now[name] - counts.get(name, 0)) for name in members)
        assert (before != after).sum() == gained
        assert not source.state.asks.any()


def test_those_that_stay_keep_their_proportions_and_a_new_one_gets_the_mean():
    source = router(4, virtual=30)
    for _ in range(20):
        tell(source, {0: BUSY, 1: IDLE})
    assert held(source) == [10, 50, 30, 30]
    source.change_workers([0, 1, 2])
    assert held(source) == pytest.approx([10 * 4 / 3, 50 * 4 / 3, 30 * 4 / 3], abs=1)
    source.change_workers([7, 0, 1, 2])
    assert held(source) == pytest.approx([30, 10, 50, 30], abs=1)
    source.change_workers([3])
    assert held(source) == [120]
    assert set(source.route(zipf(50, 9)).tolist()) == {0}


@pytest.mark.parametrize(
    ("start", "members", "expected"),
    [
        ([10, 50, 30, 30], [0, 1, 2, 3], [10, 50, 30, 30]),
        ([10, 50, 30, 30], [3, 1, 0, 2], [30, 50, 10, 30]),
        ([1, 99], [0, 1, 2], [1, 66, 33]),
        ([1, 99, 200], [0, 1], [3, 297]),
        ([1, 1, 1], [0, 1], [2, 1]),
        ([3], [5, 6], [2, 1]),
        ([3, 47], [0, 1, 2, 3], [2, 24, 12, 12]),
    ],
)
def test_virtual_workers_are_shared_out_in_proportion(start, members, expected):
    source = router(len(start), total=sum(start))
    state = source.state._replace(holder=np.repeat(np.arange(len(start)), start).astype(np.int32))
    source = Router(source.scheme, state)
    source.change_workers(members)
    assert held(source) == expected


def test_a_worker_that_comes_and_goes_leaves_the_others_as_they_were():
    source = router(3, total=300)
    source = Router(source.scheme, source.state._replace(holder=np.repeat([0, 1, 2], [10, 140, 150]).astype(np.int32)))
    for name in range(10, 20):
        source.change_workers([0, 1, 2, name])
        source.change_workers([0, 1, 2])
    assert held(source) == pytest.approx([10, 140, 150], abs=1)


def test_what_came_last_is_also_the_first_to_go_when_workers_change_and_afterwards():
    source = router(2, virtual=4)
    tell(source, {0: BUSY, 1: IDLE})
    assert sets_held(source) == [{0, 2, 4}, {1, 3, 5, 7, 6}]
    source.change_workers([0, 1, 2])
    assert sets_held(source) == [{0, 2}, {1, 3, 5}, {4, 6, 7}]  # 6, then 7, and 4 of the other
    tell(source, {1: BUSY, 0: IDLE})
    tell(source, {2: BUSY, 1: IDLE})
    tell(source, {1: BUSY, 0: IDLE})  # hands on what it has just got
    assert sets_held(source) == [{0, 2, 5, 7}, {1, 3}, {4, 6}]


def test_what_a_worker_inherits_has_come_to_it_too():
    source = router(2, virtual=4)
    source.change_workers([1])
    source.change_workers([1, 9])
    assert sets_held(source) == [{1, 3, 5, 7}, {0, 2, 4, 6}]


def test_reports_are_asked_for_every_window():
    assert make("cg", 4, window=7.5).report_every == 7.5


def test_any_number_will_do_for_a_share():
    stream = zipf(500, 50)
    usual = router(4, epsilon=0.5).route(stream).tolist()
    for epsilon in (np.float32(0.5), np.float16(0.5), np.longdouble(0.5), np.float64(0.5)):
        assert router(4, epsilon=epsilon).route(stream).tolist() == usual
    for epsilon in (2, np.int64(2), 10**30):
        assert len(router(4, epsilon=epsilon).route(stream)) == 500
    for small in (np.int8(5), np.uint8(5), np.int16(5)):
        assert len(router(small, virtual=np.int8(100)).state.sent) == 500


def test_most_keys_keep_their_worker_when_one_comes():
    keys = ids(np.arange(2000))
    source = router(10, epsilon=INF)
    before = source.route(keys)
    source.change_workers(range(11))
    after = source.route(keys)
    assert (before != after).mean() == pytest.approx(1 / 11, abs=0.03)
    assert set(after[before != after].tolist()) == {10}


def test_there_must_be_a_virtual_worker_for_each_worker():
    source = router(2, virtual=2)
    source.change_workers(range(4))
    with pytest.raises(InputError, match=r"^workers: 4 virtual workers are enough for 4 workers, not for 5$"):
        source.change_workers(range(5))
    assert held(source) == [1, 1, 1, 1]


def test_events_of_the_simulator():
    queues = Queues(utilisation=0.7, capacity=20.0)
    (result,) = run([make("cg", 5, window=1.0)], tuples=20_000, queues=queues, events=["t=5k add 2", "t=10k crash 1"])
    assert result.members == [0, 2, 3, 4, 5, 6]
    assert min(result.load[5:]) > 500


# ---------------------------------------------------------------- edges


@settings(max_examples=20)
@given(stream=streams)
def test_one_worker_gets_everything_and_has_nobody_to_pair_with(stream):
    source = router(1)
    tell(source, {0: BUSY})
    tell(source, {0: IDLE})
    assert not source.route(stream).any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"virtual": 0}, "virtual: must be an integer from 1 to 4194304, not 0"),
        ({"virtual": 2**20}, "workers: must be an integer from 1 to 4, not 10"),
        ({"total": 9}, "workers: must be an integer from 1 to 9, not 10"),
        ({"total": -1}, "total: must be an integer from 0 to 4194304, not -1"),
        ({"epsilon": -1}, "epsilon: must be a number from 0 on, or inf, not -1"),
        ({"epsilon": float("nan")}, "epsilon: must be a number from 0 on, or inf, not nan"),
        ({"keyed": 1}, "keyed: must be True or False, not 1"),
        ({"drain": "yes"}, "drain: must be True or False, not 'yes'"),
        ({"probe_capacity": None}, "probe_capacity: must be True or False, not None"),
        ({"epsilon": 10**400}, f"epsilon: must be a number from 0 on, or inf, not {10**400!r:.77}..."),
        ({"idle": -0.5}, "idle: must be a utilisation from 0 on, not -0.5"),
        ({"busy": 0.7}, "busy: must be a utilisation from idle (0.75) on, or inf, not 0.7"),
        ({"busy": True}, "busy: must be a utilisation from idle (0.75) on, or inf, not True"),
        ({"window": 0}, "window: must be seconds from 1e-09 to 1e+12, not 0"),
        ({"window": INF}, "window: must be seconds from 1e-09 to 1e+12, not inf"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(InputError) as refusal:
        make("cg", 10, **parameters)
    assert str(refusal.value) == message


def test_a_damaged_state_is_refused():
    source = router(3, virtual=2)
    good = source.state
    for field, damaged in (
        ("holder", good.holder + 1),
        ("holder", good.holder - 1),
        ("holder", good.holder * 0),
        ("total", good.total + 1),
        ("sent", good.sent + 1),
        ("asks", good.asks + 1),
        ("came", good.came + 1),
        ("came", good.came - 1),
        ("overloaded", good.overloaded + 1),
        ("last", good.last + 2**53),
    ):
        with pytest.raises(InputError, match=rf"^(\w+: .*)?\b{field}\b"):  # its value, or how others fit it
            Router(source.scheme, good._replace(**{field: damaged}))
