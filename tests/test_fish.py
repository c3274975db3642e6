"""FISH: decisions against the naive twin, the paper's worked example, and what the scheme's docstring states."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_fish
from samples import SOME_KEYS, ids, streams, uniform, zipf
from unskew import InputError, Router, make
from unskew.ring import first_workers, new_ring
from unskew.schemes.fish import _fan_out
from unskew.simulate import simulate
from unskew.simulate.queues import Queues
from unskew.states import arrays_of
from unskew.streams import Zipf
from unskew.worker_report import WorkerReport

INF = float("inf")


def router(workers, **parameters):
    return Router(make("fish", workers, **parameters))


def report(workers, tuples, busy, now=0.0):
    """What workers tell: they did `tuples` in `busy` seconds."""
    numbers = np.array(tuples, np.int64)
    return WorkerReport(np.array(workers, np.int64), numbers, numbers, np.array(busy, float), 0 * numbers, 10.0, now)


@cache
def ring_of(workers, virtual_nodes):
    return new_ring(np.arange(workers), virtual_nodes)


def candidates(key, count, workers, virtual_nodes=128):
    return first_workers(ring_of(workers, virtual_nodes), key, count).tolist()


# ---------------------------------------------------------------- the twin


@settings(max_examples=200)
@given(
    stream=streams,
    workers=st.integers(1, 20),
    epoch=st.integers(1, 60),
    counters=st.integers(1, 30),
    alpha=st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
    theta=st.sampled_from([0.0, 0.01, 0.1, 0.5]),
    least=st.integers(2, 25),
    virtual_nodes=st.sampled_from([0, 1, 4]),
    whole_epoch=st.booleans(),
    solver=st.booleans(),
)
def test_decides_as_its_twin_whatever_the_parameters(stream, **parameters):
    assert router(**parameters).route(stream).tolist() == naive_fish.naive_fish(stream.tolist(), **parameters)


@given(data=st.data(), workers=st.integers(1, 6), steps=st.integers(1, 5))
def test_decides_as_its_twin_with_time_and_reports(data, workers, steps):
    mine, twin = router(workers, interval=3.0, epoch=20), naive_fish.Fish(workers, interval=3.0, epoch=20)
    now = 0.0
    for _ in range(steps):
        stream = data.draw(streams)
        times = now + np.cumsum(data.draw(st.lists(st.floats(0, 4), min_size=len(stream), max_size=len(stream))))
        decided = [twin.route(key, time) for key, time in zip(stream.tolist(), times.tolist(), strict=True)]
        assert mine.route(stream, times).tolist() == decided
        told = data.draw(st.lists(st.integers(0, workers - 1), unique=True))
        busy = data.draw(st.lists(st.floats(0.01, 10), min_size=len(told), max_size=len(told)))
        mine.observe(report(told, [4] * len(told), busy))
        twin.observe({worker: seconds / 4 for worker, seconds in zip(told, busy, strict=True)})
        now = float(times[-1]) if len(times) else now


@pytest.mark.parametrize("workers", [4, 16])
@pytest.mark.parametrize("alpha", [Fraction(1, 5), Fraction(1, 2)])
def test_exact_counts_would_decide_alike(workers, alpha):
    """The decay rounds; Zipf streams show no decision that depends on it."""
    stream = zipf(1500, 300, 1.3)
    exact = naive_fish.naive_fish(stream.tolist(), workers, alpha=alpha, epoch=100, counters=50, number=Fraction)
    assert router(workers, alpha=float(alpha), epoch=100, counters=50).route(stream).tolist() == exact


# ---------------------------------------------------------------- Algorithm 1: recent counts


@given(stream=streams, epoch=st.integers(1, 40), counters=st.integers(1, 20), alpha=st.sampled_from([0.0, 0.2, 1.0]))
def test_the_counts_sum_to_the_decayed_number_of_tuples_and_the_top_is_their_largest(stream, epoch, counters, alpha):
    source = router(5, epoch=epoch, counters=counters, alpha=alpha)
    source.route(stream)
    ended = max(0, len(stream) - 1) // epoch  # an epoch ends when the next one's first tuple comes
    decayed = sum(epoch * alpha ** (ended - e) for e in range(ended)) + len(stream) - ended * epoch
    assert source.state.sketch.counts.sum() == pytest.approx(decayed)
    assert source.state.sketch.total[0] == pytest.approx(decayed)
    assert source.state.top[0] == source.state.sketch.counts.max()


def turn_of_fortune(before, after):
    """One key has half of the stream, then another one has."""
    rest = uniform(before + after, 200, seed=1)
    rest[:before:2], rest[before::2] = SOME_KEYS[0], SOME_KEYS[1]
    return rest


def test_a_key_that_becomes_hot_is_spread_within_an_epoch_and_for_life_it_is_not():
    """After 200 epochs of another hot key, counts for life leave the new one narrow where recent counts do not."""
    stream = turn_of_fortune(100_000, 3000)
    spread = {}
    for alpha in (0.2, 1.0):
        decisions = router(64, alpha=alpha, epoch=500, counters=300).route(stream)
        is_new = stream[100_000:] == SOME_KEYS[1]
        spread[alpha] = [
            len(set(part[mine].tolist()))
            for part, mine in zip(np.split(decisions[100_000:], 6), np.split(is_new, 6), strict=True)
        ]
    assert spread[0.2][1] > 60  # of 250 tuples, some workers may have been too busy
    assert max(spread[1.0]) <= 32


# ---------------------------------------------------------------- Algorithm 2: CHK


def used(stream, decisions, key):
    return set(decisions[stream == key].tolist())


@given(stream=streams, workers=st.integers(1, 20), epoch=st.integers(1, 50), least=st.integers(2, 9))
def test_a_key_uses_a_prefix_of_its_walk_round_the_ring(stream, workers, epoch, least):
    """Candidates of a smaller d are the first of a larger one: all a key ever had are the first of the largest d."""
    source = router(workers, epoch=epoch, least=least, virtual_nodes=5)
    decisions = source.route(stream)
    for counter in range(int(source.state.sketch.table.used[0])):
        key = source.state.sketch.counted[counter]
        most = min(workers, max(2, int(source.state.widest[counter])))
        assert used(stream, decisions, key) <= set(candidates(key, most, workers, 5))


def test_a_hot_key_has_half_the_workers_for_each_halving_of_its_frequency():
    """The next tuple makes counts of 33, 32, 17 and 16, where the top is 64: d = W, W/2, W/2 and W/4."""
    counts = {0: 64, 1: 32, 2: 31, 3: 16, 4: 15}
    stream = ids([key for key, count in counts.items() for _ in range(count)])
    source = router(32, theta=0.01)
    source.route(stream)
    source.state.widest[:] = 0  # what the first tuples of each key got
    source.route(ids([1, 2, 3, 4]))
    assert source.state.widest[:5].tolist() == [0, 32, 16, 16, 8]


@given(counts=st.lists(st.integers(1, 1000), min_size=1, max_size=30), workers=st.integers(1, 200))
def test_chk_gives_every_hot_key_at_least_the_workers_that_it_needs(counts, workers):
    """A share f_k needs f_k W workers; before rounding d = W / 2^floor(log2(f_top / f_k)) >= f_k W / f_top."""
    for count in counts:
        fan_out = min(workers, int(_fan_out(make("fish", workers), float(count), float(max(counts)))))
        assert fan_out + 1 > count / sum(counts) * workers


def test_least_gives_every_hot_key_so_many_workers_and_as_many_as_there_are_is_w_choices():
    stream = zipf(3000, 50, 1.0)
    for least in (7, 16, 99):
        source = router(16, least=least)
        source.route(stream)
        widest = np.minimum(source.state.widest[source.state.widest > 0], 16)
        assert widest.min() == min(least, 16)


def test_a_key_that_cools_down_has_two_workers_but_is_not_forgotten_while_it_is_counted():
    hot, others = np.repeat(SOME_KEYS[:1], 500), ids(np.arange(3600) % 40 + 100)
    source = router(20, virtual_nodes=8)
    source.route(hot)
    source.route(others)
    assert source.state.sketch.counted[0] == SOME_KEYS[0]
    assert source.state.widest[0] == 20
    chosen = source.route(SOME_KEYS[:1])
    assert source.state.sketch.counts[0] <= source.state.sketch.total[0] / 80
    assert chosen[0] in candidates(SOME_KEYS[0], 2, 20, 8)
    assert source.state.widest[0] == 20


def test_a_replaced_key_is_forgotten_and_comes_back_to_the_same_workers():
    source = router(8, counters=1, virtual_nodes=8, theta=0.9, whole_epoch=False)
    source.route(SOME_KEYS[:1])
    assert source.state.widest[0] == 8
    source.route(np.tile(SOME_KEYS[1:3], 20))  # each takes the only counter: count = min + 1, so each is the top
    assert source.state.top[0] == source.state.sketch.counts[0] == source.state.sketch.total[0] == 41
    narrow = router(8, counters=2, theta=0.6, virtual_nodes=8, whole_epoch=False)
    narrow.route(ids([1, 2, 2, 2, 2, 3]))
    assert narrow.state.sketch.counted.tolist() == ids([3, 2]).tolist()
    assert narrow.state.widest.tolist() == [0, 8]


@pytest.mark.parametrize("whole_epoch", [False, True])
def test_a_single_tuple_after_a_decay_makes_no_key_hot_where_a_share_is_one_of_an_epoch(whole_epoch):
    """The counters sum to 200 then, of which one tuple is more than 1/(4 W); of an epoch of 1000 tuples it is not."""
    source = router(128, whole_epoch=whole_epoch)
    source.route(np.repeat(SOME_KEYS[:1], 1000))
    source.route(SOME_KEYS[1:2])
    assert (source.state.widest[1] > 0) == (not whole_epoch)


# ---------------------------------------------------------------- Algorithm 3: where a tuple waits least


def test_fish_fig_7_the_shortest_waiting_time_wins_not_the_fewest_tuples():
    """Section 4.2.3: W1..W4 got 400, 440, 280, 180 tuples; at time 500 they wait 50, 40, 100, 60. W2, not W4.

    W3 and W4 need twice the time a tuple here, as their numbers say: (500 + 100) / 280 and (500 + 60) / 180 seconds,
    against (500 + 50) / 400 and (500 + 40) / 440 of the first two."""
    source = router(4, theta=1e-9)
    sent, waits = np.array([400, 440, 280, 180]), np.array([50.0, 40.0, 100.0, 60.0])
    source.route(SOME_KEYS[:1], np.zeros(1))
    source.state.backlog[:] = sent
    source.observe(report(range(4), sent, 500.0 + waits))
    assert source.route(SOME_KEYS[:1], np.array([500.0])).tolist() == [1]
    backlog = source.state.backlog - [0, 1, 0, 0]
    assert backlog * source.state.pace == pytest.approx(waits)
    unaware = router(4, theta=1e-9, interval=INF)
    unaware.state.backlog[:] = sent
    unaware.observe(report(range(4), sent, 500.0 + waits))
    assert unaware.route(SOME_KEYS[:1], np.array([500.0])).tolist() == [3]


def test_ties_go_to_the_first_candidate():
    key = SOME_KEYS[3]
    first, second = candidates(key, 2, 50)
    cold = router(50, theta=1.0)
    assert cold.route(np.repeat(key, 4)).tolist() == [first, second] * 2
    hot = router(50, whole_epoch=False)
    assert hot.route(np.repeat(key, 100)).tolist() == list(range(50)) * 2


def test_the_pace_is_of_the_tuples_that_are_done_so_that_equal_workers_tie():
    """Window ends cut tuples in two. Counted as work of the window, the cut parts make equal workers look unequal."""
    queues = Queues(rate=3.9, capacity=1.0)
    stream = Zipf(1.0, 50, 400)
    paces = []

    class Watched(Router):
        def observe(self, report):
            super().observe(report)
            paces.append(self.state.pace.copy())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unskew.simulate.run.Router", Watched)
        simulate(stream, [make("fish", 4, interval=7.3)], queues=queues)
    assert len(paces) > 10
    assert all((pace == 1.0).all() for pace in paces)


def test_without_reports_tuples_are_counted_for_ever_and_with_the_first_one_all_the_time_since_the_start_is_drained():
    source = router(2)
    source.route(np.repeat(SOME_KEYS[:1], 100), np.linspace(1000.0, 1100.0, 100))
    assert source.state.backlog.tolist() == [50, 50]
    source.observe(report([0, 1], [10, 10], [20.0, 100.0]))  # 2 and 10 seconds per tuple
    source.route(SOME_KEYS[:1], np.array([1101.0]))
    assert sorted(source.state.backlog.tolist()) == pytest.approx([1.0, 50 - 101 / 10])


def test_what_elapsed_is_drained_even_if_several_intervals_passed_and_nothing_within_one():
    source = router(1)
    source.route(np.repeat(SOME_KEYS[:1], 100))
    source.observe(report([0], [1], [1.0]))
    source.route(SOME_KEYS[:1], np.array([10.0]))  # not more than T
    assert source.state.backlog[0] == 101
    source.route(SOME_KEYS[:1], np.array([45.0]))  # the printed line would drain 10
    assert source.state.backlog[0] == 101 - 45 + 1
    source.route(SOME_KEYS[:1], np.array([30.0]))  # a late tuple drains nothing
    assert source.state.backlog[0] == 101 - 45 + 2


def test_each_tuple_is_counted_once():
    source = router(3)
    source.route(uniform(500, 30))
    assert source.state.backlog.sum() == 500


def test_a_worker_that_has_not_reported_is_taken_as_the_mean():
    source = router(4)
    source.observe(report([0, 2], [10, 5], [1.0, 1.5]))
    assert source.state.pace == pytest.approx([0.1, 0.2, 0.3, 0.2])
    source.observe(report([1, 3], [0, 4], [1.0, 0.0]))  # nothing can be learnt from these
    assert source.state.reported.tolist() == [True, False, True, False]


def test_faster_workers_get_more():
    source = router(4)
    source.route(SOME_KEYS[:1])
    source.observe(report(range(4), [10, 10, 10, 10], [1.0, 1.0, 2.0, 2.0]))
    got = np.bincount(source.route(np.repeat(SOME_KEYS[:1], 600)), minlength=4)
    assert got == pytest.approx([200, 200, 100, 100], abs=2)


def test_fish_fig_16_without_heuristic_assignment_it_takes_longer_if_half_of_the_workers_are_twice_as_fast():
    """An equal share for all takes 8/6 = 1.33 times as long as one by capacity; 1.25 allows for the first interval."""
    queues = Queues(utilisation=1.0, capacity=[20.0] * 4 + [10.0] * 4)
    schemes = [make("fish", 8, interval=interval) for interval in (1.0, INF)]
    aware, unaware = simulate(Zipf(z=1.4, keys=1000, tuples=20_000), schemes, queues=queues)
    assert unaware.makespan > 1.25 * aware.makespan


@pytest.mark.parametrize("event", ["t=10k add", "t=10k remove 3"])
def test_fish_fig_17_a_ring_saves_replicas_when_a_worker_comes_or_goes(event):
    schemes = [make("fish", 16, virtual_nodes=virtual_nodes) for virtual_nodes in (128, 0)]
    ring, modulo = simulate(Zipf(z=1.0, keys=5000, tuples=20_000), schemes, events=[event])
    assert modulo.replicas > 1.1 * ring.replicas


# ---------------------------------------------------------------- section 5: workers come and go


def test_keys_keep_their_workers_when_one_comes_or_goes():
    stream = ids(np.arange(600))
    source = router(10, theta=1.0)
    before = dict(zip(stream.tolist(), source.route(stream).tolist(), strict=True))
    source.change_workers([3, 0, 1, 2, 4, 5, 6, 7, 8])  # 9 has gone, indices have changed
    names = source.members
    for key in stream:
        assert set(names[first_workers(source.state.ring, key, 2)]) >= set(candidates(key, 2, 10)) - {9}
    stayed = sum(names[worker] == before[int(key)] for key, worker in zip(stream, source.route(stream), strict=True))
    assert stayed > 0.4 * len(stream)  # each key has the same two, or one of them, but the less loaded of the two
    modulo = router(10, theta=1.0, virtual_nodes=0)
    modulo.route(stream)
    modulo.change_workers(range(9))
    moved = modulo.route(stream) != router(10, theta=1.0, virtual_nodes=0).route(stream)
    assert moved.mean() > 0.6  # nearly every key has two other workers, and sits on one by chance at most


def test_a_new_worker_starts_with_an_empty_queue_if_queues_are_known_and_else_with_the_least():
    counted = router(3, whole_epoch=False)
    counted.route(np.repeat(SOME_KEYS[:1], 31))
    counted.change_workers([0, 7, 2])
    assert counted.state.backlog.tolist() == [11, 10, 10]
    known = router(3, whole_epoch=False)
    known.route(np.repeat(SOME_KEYS[:1], 31))
    known.observe(report([0, 1], [1, 1], [2.0, 4.0]))
    known.change_workers([7, 1, 0, 2])
    assert known.state.backlog.tolist() == [0, 10, 11, 10]
    assert known.state.pace.tolist() == [3, 4, 2, 3]
    assert known.state.reported.tolist() == [False, True, True, False]


def test_what_is_known_of_keys_outlives_a_change_of_workers():
    stream = zipf(500, 50)
    source = router(8, epoch=90)
    source.route(stream)
    before = source.state
    source.change_workers(range(1, 9))
    own, theirs = arrays_of(source.state), arrays_of(before)
    for name in own:
        if name.startswith("sketch.") or name in ("widest", "widest_of", "top", "in_epoch", "clock"):
            assert np.array_equal(own[name], theirs[name])
            assert not np.shares_memory(own[name], theirs[name])


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize("virtual_nodes", [0, 1, 128])
def test_one_worker_gets_everything_and_one_key_has_all_workers(virtual_nodes):
    assert set(router(1, virtual_nodes=virtual_nodes).route(zipf(100, 9)).tolist()) == {0}
    chosen = router(7, virtual_nodes=virtual_nodes).route(np.repeat(SOME_KEYS[:1], 700))
    assert np.bincount(chosen).tolist() == [100] * 7
    two = router(2, virtual_nodes=virtual_nodes).route(zipf(1000, 9))
    assert np.bincount(two).tolist() == pytest.approx([500, 500], abs=100 if virtual_nodes == 0 else 0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epoch": 0}, "epoch: must be an integer from 1 to 2**53, not 0"),
        ({"counters": 0}, "counters: must be an integer from 1 to 2000000, not 0"),
        ({"alpha": 1.1}, "alpha: must be a number from 0 to 1, not 1.1"),
        ({"alpha": float("nan")}, "alpha: must be a number from 0 to 1, not nan"),
        ({"theta": -0.1}, "theta: must be 0 for 1/(4 workers), or a share up to 1, not -0.1"),
        ({"least": 1}, "least: must be an integer from 2 to 2147483647, not 1"),
        ({"interval": 0}, "interval: must be seconds from 1e-09 on, or inf, not 0"),
        ({"virtual_nodes": -1}, "virtual_nodes: must be an integer from 0 to 4194304, not -1"),
        ({"virtual_nodes": 2**20}, "workers: must be an integer from 1 to 4, not 10"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(InputError) as refusal:
        make("fish", 10, **parameters)
    assert str(refusal.value) == message


def test_a_damaged_state_is_refused():
    source = router(5, virtual_nodes=4)
    good = source.state
    for damaged in (
        good._replace(ring=good.ring._replace(node_worker=good.ring.node_worker + 1)),
        good._replace(pace=good.pace * 0),
        good._replace(backlog=good.backlog - 1),
        good._replace(sketch=good.sketch._replace(counts=good.sketch.counts - 1)),
    ):
        with pytest.raises(InputError):
            Router(source.scheme, damaged)


def test_workers_that_are_all_replaced_at_once_are_followed():
    stream = ids(np.arange(100) % 7)
    source = router(2)
    source.route(stream)
    source.change_workers([5, 6])
    assert set(source.route(stream).tolist()) == {0, 1}
    source.observe(report([0], [10], [5.0], now=10.0))
    source.change_workers([7, 8, 9])
    assert source.state.pace.tolist() == [0.5, 0.5, 0.5]


def test_a_state_of_a_longer_epoch_is_refused():
    source = router(4)
    source.route(ids(np.arange(500)))
    with pytest.raises(InputError, match=r"^in_epoch: must be an integer from 0 to 100, not 500$"):
        Router(make("fish", 4, epoch=100), source.state)


def test_with_large_epochs_and_sketches_a_flat_stream_is_hardly_split():
    stream = uniform(400_000, 10_000)
    pairs = [
        len(np.unique(np.stack([stream, router(256, **sizes).route(stream).astype(np.uint64)]), axis=1).T) / 10_000
        for sizes in ({}, {"epoch": 4096, "counters": 4096})
    ]
    assert pairs[0] > 3 * pairs[1]
