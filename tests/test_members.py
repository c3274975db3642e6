"""Workers that come and go: what a router makes of a new set of workers, and of what workers tell."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from samples import scheme_for, zipf
from unskew import InputError, Router, make
from unskew.contract import Resizable, can
from unskew.registry import SCHEMES
from unskew.worker_report import WorkerReport

STREAM = zipf(400, 50)
RESIZABLE = sorted(name for name in SCHEMES if name in ("hash", "pkg") or can(SCHEMES[name].type, Resizable))
names = st.lists(st.integers(0, 12), min_size=1, max_size=9, unique=True)


@pytest.mark.parametrize("name", RESIZABLE)
@given(members=names.filter(lambda members: min(members) < 5))  # one of the five stays
@settings(max_examples=10)
def test_decisions_are_indices_of_the_new_workers(name, members):
    router = Router(make(name, 5))
    router.route(STREAM[:200])
    router.change_workers(members)
    assert router.scheme.workers == len(members)
    assert router.members.tolist() == members
    assert set(router.route(STREAM[200:]).tolist()) <= set(range(len(members)))


@given(first=names, second=names)
@settings(max_examples=40)
def test_workers_that_stay_keep_their_load_and_new_ones_start_with_the_least_of_them(first, second):
    router = Router(make("pkg", 13))
    router.route(STREAM)
    load = dict(enumerate(router.state.load.tolist()))
    for members in (first, second):
        staying = [load[name] for name in members if name in load]
        router.change_workers(members)
        load = {name: load.get(name, min(staying, default=0)) for name in members}
        assert router.state.load.tolist() == [load[name] for name in members]


def test_without_a_ring_keys_are_hashed_modulo_the_new_number():
    router = Router(make("hash", 5))
    router.change_workers([0, 1, 3, 4, 5, 6, 7])
    assert router.route(STREAM).tolist() == [naive.candidate(key, 0, 7) for key in STREAM.tolist()]


def test_the_round_of_shuffle_goes_on_at_the_same_share():
    router = Router(make("shuffle", 5))
    router.route(STREAM[:3])
    router.change_workers([0, 1])
    assert router.route(STREAM[:5]).tolist() == [1, 0, 1, 0, 1]


@pytest.mark.parametrize("name", sorted(set(SCHEMES) - set(RESIZABLE)))
def test_a_scheme_that_cannot_follow_says_so_and_goes_on_as_before(name):
    scheme = scheme_for(name, 5, STREAM)
    router, other = Router(scheme), Router(scheme)
    with pytest.raises(
        InputError,
        match=f"^scheme: {name} cannot go on when workers come or go: what it has stored is for the workers ",
    ):
        router.change_workers([0, 1, 2])
    assert router.route(STREAM).tolist() == other.route(STREAM).tolist()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], "members: must be from 1 to 2147483647 whole numbers, one per worker, not []"),
        ([0.5], "members: must be from 1 to 2147483647 whole numbers, one per worker, not [0.5]"),
        ([[0]], "members: must be from 1 to 2147483647 whole numbers, one per worker, not [[0]]"),
        ([1, 1], "members: must be distinct and at least 0, not [1, 1]"),
        ([-1], "members: must be distinct and at least 0, not [-1]"),
    ],
)
def test_wrong_members_are_refused(members, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        Router(make("pkg", 5)).change_workers(members)


def test_members_survive_pickle_and_bytes():
    router = Router(make("pkg", 5))
    router.route(STREAM[:200])
    router.change_workers([0, 3, 9])
    copies = [
        pickle.loads(pickle.dumps(router)),
        Router.from_bytes(router.scheme, router.to_bytes(), router.members),
    ]
    rest = router.route(STREAM[200:]).tolist()
    for copy in copies:
        assert copy.members.tolist() == [0, 3, 9]
        assert copy.route(STREAM[200:]).tolist() == rest
    with pytest.raises(InputError, match=r"^members: must be one name per worker \(3\), not 2$"):
        Router.from_bytes(router.scheme, router.to_bytes(), np.array([0, 1]))
    with pytest.raises(InputError, match=r"^members: must be distinct and at least 0, not "):
        Router.from_bytes(router.scheme, router.to_bytes(), np.array([1, 1, 1]))


WHOLE = "whole numbers from 0 to 9.0072e+15"
GOOD = WorkerReport([0, 4], [1, 2], [1, 2], [0.5, 1], [0, 3], 1.0, 1.0)


@pytest.mark.parametrize("name", ["cg", "fish", "pkg"])
@pytest.mark.parametrize(
    ("report", "message"),
    [
        (None, "report: must be a WorkerReport, not NoneType"),
        (GOOD._replace(workers=[0, 5]), "report: workers must be different indices from 0 to 4, not [0, 5]"),
        (GOOD._replace(workers=[3, 3]), "report: workers must be different indices from 0 to 4, not [3, 3]"),
        (GOOD._replace(workers=[-1, 4]), f"report: workers must be 2 {WHOLE}, not [-1, 4]"),
        (GOOD._replace(workers=[0.0, 4.0]), f"report: workers must be 2 {WHOLE}, not [0.0, 4.0]"),
        (GOOD._replace(workers=[[0], [1, 2]]), f"report: workers must be 2 {WHOLE}, not [[0], [1, 2]]"),
        (GOOD._replace(workers=3), "report: workers must be a list of indices, not 3"),
        (GOOD._replace(came=[1]), f"report: came must be 2 {WHOLE}, not [1]"),
        (GOOD._replace(tuples=[1, -2]), f"report: tuples must be 2 {WHOLE}, not [1, -2]"),
        (GOOD._replace(tuples=[1.7, 1]), f"report: tuples must be 2 {WHOLE}, not [1.7, 1]"),
        (GOOD._replace(busy=[1, np.nan]), "report: busy must be 2 numbers from 0 to 9.0072e+15, not [1, nan]"),
        (GOOD._replace(waiting=["a", "b"]), f"report: waiting must be 2 {WHOLE}, not ['a', 'b']"),
        (GOOD._replace(waiting=[2**64 - 1, 0]), f"report: waiting must be 2 {WHOLE}, not [{2**64 - 1}, 0]"),
        (GOOD._replace(seconds=0.0), "report: seconds must be a number above 0, not 0.0"),
        (GOOD._replace(seconds=None), "report: seconds must be a number above 0, not None"),
        (GOOD._replace(now="late"), "report: now must be a number of seconds, not 'late'"),
    ],
)
def test_a_report_that_cannot_be_is_refused(name, report, message):
    with pytest.raises(InputError) as refusal:
        Router(make(name, 5)).observe(report)
    assert str(refusal.value) == message


@pytest.mark.parametrize("name", ["cg", "fish", "pkg"])
def test_a_report_may_be_of_lists_and_of_nobody(name):
    router = Router(make(name, 5))
    router.observe(GOOD)
    router.observe(WorkerReport([], [], [], [], [], 1.0, 2.0))
    assert len(router.route(STREAM)) == len(STREAM)


def test_a_scheme_that_does_not_listen_is_not_disturbed_by_a_report():
    router, other = Router(make("pkg", 5)), Router(make("pkg", 5))
    assert not router.listens
    whole = np.arange(5)
    router.observe(WorkerReport(whole, whole, whole, whole * 1.0, whole, 1.0, 1.0))
    assert router.route(STREAM).tolist() == other.route(STREAM).tolist()
