"""What every scheme promises, checked on every registered scheme: a new one is covered as soon as it is registered."""

import contextlib
import io
import itertools
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samples import STREAMS, any_stream, every_scheme, ids, scheme_for, widest, zipf
from unskew import SCHEMES, InputError, Router, make
from unskew import router as routing
from unskew.contract import Conversing, Growing, SelfChecking, can
from unskew.states import arrays_of
from unskew.worker_half import WorkerHalf

STREAM = zipf(400, 100)


def router_of(name, workers=10, stream=STREAM):
    return Router(scheme_for(name, workers, stream))


def arrays(router):
    return arrays_of(router.state)


def state_bytes(router):
    return sum(array.nbytes for array in arrays(router).values())


def same_state(one, other):
    return all(np.array_equal(array, arrays(other)[field]) for field, array in arrays(one).items())


# ---------------------------------------------------------------- decisions


@every_scheme
@any_stream
@pytest.mark.parametrize("workers", [1, 2, 7, 64])
def test_every_decision_is_a_worker(name, stream, workers):
    chosen = router_of(name, workers, stream).route(stream)
    assert chosen.dtype == np.int32
    assert chosen.shape == stream.shape
    assert chosen.min() >= 0
    assert chosen.max() < workers


@every_scheme
def test_an_empty_batch_decides_nothing_and_changes_nothing(name):
    router, untouched = router_of(name), router_of(name)
    router.route(STREAM[:50])
    untouched.route(STREAM[:50])
    chosen = router.route(np.empty(0, np.uint64))
    assert chosen.dtype == np.int32
    assert len(chosen) == 0
    assert same_state(router, untouched)
    assert len(router_of(name, stream=STREAM[:0]).route(STREAM[:0])) == 0


@every_scheme
@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=6))
@settings(max_examples=20)
def test_cutting_a_batch_never_changes_an_answer(name, cuts):
    whole, cut = router_of(name), router_of(name)
    parts = [cut.route(part) for part in np.split(STREAM, sorted(cuts))]
    assert np.concatenate(parts).tolist() == whole.route(STREAM).tolist()


@every_scheme
def test_where_a_growing_state_is_given_room_never_changes_an_answer(name, monkeypatch):
    stream = ids(np.arange(3000) % 1700)  # more keys than the smallest table holds
    expected = router_of(name, 10, stream).route(stream)
    monkeypatch.setattr(routing, "GROWTH_STEP", 100)
    assert router_of(name, 10, stream).route(stream).tolist() == expected.tolist()


@every_scheme
def test_a_million_workers_are_all_right_or_refused_beforehand(name):
    """A scheme whose state would be too large says how many workers it allows, and they are all right."""
    scheme, stream = widest(name), ids([1, 2, 1, 3, 1])
    chosen = Router(scheme).route(stream)
    assert chosen.min() >= 0
    assert chosen.max() < scheme.workers


@every_scheme
def test_two_routers_of_one_scheme_decide_alike(name):
    scheme = scheme_for(name, 10, STREAM)
    assert Router(scheme).route(STREAM).tolist() == Router(scheme).route(STREAM).tolist()


DECISIONS = """
import json
from samples import STREAMS, scheme_for
from unskew import SCHEMES, Router
stream = STREAMS["mild skew"][:300]
print(json.dumps({name: Router(scheme_for(name, 10, stream)).route(stream).tolist() for name in SCHEMES}))
"""


@pytest.fixture(scope="module")
def in_a_fresh_process():
    environment = os.environ | {
        "PYTHONHASHSEED": "12345",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    run = subprocess.run([sys.executable, "-c", DECISIONS], env=environment, capture_output=True, check=True)
    return json.loads(run.stdout)


@every_scheme
def test_a_fresh_process_with_another_hash_seed_decides_alike(name, in_a_fresh_process):
    stream = STREAMS["mild skew"][:300]
    assert in_a_fresh_process[name] == router_of(name, 10, stream).route(stream).tolist()


# ---------------------------------------------------------------- state


@every_scheme
def test_state_is_a_named_tuple_of_contiguous_arrays(name):
    router = router_of(name)
    for _ in range(2):  # fresh, then used
        assert isinstance(router.state, tuple)
        for array in arrays(router).values():
            assert isinstance(array, np.ndarray)
            assert array.flags.c_contiguous
            assert array.flags.writeable
            assert array.dtype != object
        router.route(STREAM)


@every_scheme
def test_routers_share_no_memory(name):
    scheme = scheme_for(name, 10, STREAM)
    one, other = Router(scheme), Router(scheme)
    assert not any(np.shares_memory(a, b) for a in arrays(one).values() for b in arrays(other).values())
    one.route(STREAM)
    assert not any(np.shares_memory(a, b) for a in arrays(one).values() for b in arrays(other).values())
    assert same_state(other, Router(scheme))
    assert other.route(STREAM).tolist() == Router(scheme).route(STREAM).tolist()


@every_scheme
@given(middle=st.integers(0, len(STREAM)))
@settings(max_examples=5)
def test_bytes_bring_a_router_back_in_mid_stream(name, middle):
    router = router_of(name)
    router.route(STREAM[:middle])
    data = router.to_bytes()
    again = Router.from_bytes(router.scheme, data)
    assert same_state(again, router)
    assert not any(np.shares_memory(a, b) for a in arrays(again).values() for b in arrays(router).values())
    assert again.route(STREAM[middle:]).tolist() == router.route(STREAM[middle:]).tolist()
    assert same_state(again, router)
    assert same_state(Router.from_bytes(router.scheme, data), Router.from_bytes(router.scheme, data))


@every_scheme
def test_bytes_bring_a_grown_state_back(name):
    stream = ids(np.arange(2000))
    router = router_of(name, 10, stream)
    router.route(stream)
    again = Router.from_bytes(router.scheme, router.to_bytes())
    assert again.route(stream[::-1]).tolist() == router.route(stream[::-1]).tolist()


def test_bytes_of_another_scheme_are_refused():
    with pytest.raises(InputError, match=r"^data: must have the arrays \['load'\] .*, not \['next_worker'\]$"):
        Router.from_bytes(make("pkg", 10), Router(make("shuffle", 10)).to_bytes())
    with pytest.raises(InputError, match=r"^data: load must be int64\(11,\) .*, not int64\(10,\)$"):
        Router.from_bytes(make("pkg", 11), Router(make("pkg", 10)).to_bytes())


@pytest.mark.parametrize("name", [name for name in SCHEMES if can(SCHEMES[name].type, Growing)])
def test_a_growing_state_for_other_workers_is_refused(name):
    """Its shapes may differ from a fresh one's, so the scheme itself must check them: it needs `check_state`."""
    assert can(SCHEMES[name].type, SelfChecking)
    with pytest.raises(InputError):
        Router.from_bytes(make(name, 1000), Router(make(name, 10)).to_bytes())


PKG_BYTES = Router(make("pkg", 10)).to_bytes()
NO_STATE = {
    "empty": b"",
    "junk": b"junk",
    "cut": PKG_BYTES[:100],
    "cut at the end": PKG_BYTES[:-1],
    "damaged": PKG_BYTES.replace(b"\0" * 80, b"\0" * 79 + b"\1"),
}


@pytest.mark.parametrize("data", NO_STATE.values(), ids=NO_STATE.keys())
def test_bytes_that_are_no_state_are_refused(data):
    with pytest.raises(InputError, match=r"^data: must be what Router.to_bytes wrote$"):
        Router.from_bytes(make("pkg", 10), data)


def test_bytes_of_one_array_are_refused():
    one_array = io.BytesIO()
    np.save(one_array, np.zeros(10, np.int64))
    with pytest.raises(InputError, match=r"^data: "):
        Router.from_bytes(make("pkg", 10), one_array.getvalue())


@every_scheme
def test_bytes_for_more_workers_are_refused_or_decide_within_range(name):
    router = router_of(name, 10)
    router.route(STREAM[:9])
    with contextlib.suppress(InputError):
        assert Router.from_bytes(scheme_for(name, 5, STREAM), router.to_bytes()).route(STREAM).max() < 5


def test_a_damaged_table_of_keys_is_refused():
    """Kernels rely on the table for their memory, and on an empty cell to end a search."""
    router = router_of("potc")
    router.route(STREAM)
    state = router.state
    good = state.homes
    for damaged in (
        state._replace(homes=good._replace(values=good.values[:-1])),
        state._replace(homes=good._replace(keys=good.keys[:1000], values=good.values[:1000])),
        state._replace(homes=good._replace(values=np.zeros_like(good.values))),
        state._replace(homes=good._replace(values=np.where(good.values == 3, np.int32(10), good.values))),
        state._replace(homes=good._replace(values=np.where(good.values == 3, np.int32(-2), good.values))),
        state._replace(homes=good._replace(used=good.used * 0)),
        state._replace(homes=good._replace(used=np.zeros(2, np.int64))),
        state._replace(load=np.zeros(9, np.int64)),
    ):
        with pytest.raises(InputError, match=r"^(homes\.(keys|values|used)|load): "):
            Router.from_bytes(router.scheme, Router(router.scheme, damaged).to_bytes())


@every_scheme
def test_schemes_and_states_pickle(name):
    router = router_of(name)
    router.route(STREAM[:200])
    scheme, state = pickle.loads(pickle.dumps((router.scheme, router.state)))
    assert type(scheme) is type(router.scheme)
    assert Router(scheme, state).route(STREAM[200:]).tolist() == router.route(STREAM[200:]).tolist()


@every_scheme
def test_a_router_pickles_in_mid_stream(name):
    router = router_of(name)
    router.route(STREAM[:200])
    again = pickle.loads(pickle.dumps(router))
    assert again.route(STREAM[200:]).tolist() == router.route(STREAM[200:]).tolist()


@every_scheme
def test_state_is_bounded_as_the_docstring_says(name):
    """It keeps its size, or grows with the keys by the bytes that the docstring of the scheme's file states."""
    batches = np.split(ids(np.arange(3000) % 2000), 30)
    router = router_of(name, 10, np.concatenate(batches))
    fresh = state_bytes(router)
    for batch in batches:
        router.route(batch)
    if not can(router.scheme, Growing):
        assert state_bytes(router) == fresh
        return
    stated = re.search(r"(\d+) bytes per key", sys.modules[SCHEMES[name].type.__module__].__doc__)
    assert stated, "a growing scheme states its bytes per key"
    assert fresh < state_bytes(router) <= fresh + int(stated[1]) * (2000 + len(batches[0]))
    full = state_bytes(router)
    for batch in batches:  # the same keys again
        router.route(batch)
    assert state_bytes(router) == full


# ---------------------------------------------------------------- inputs


@every_scheme
def test_inputs_stay_as_they_were(name):
    stream, times = STREAM.copy(), np.arange(len(STREAM), dtype=float)
    router_of(name).route(stream, times)
    assert stream.flags.writeable
    assert times.flags.writeable
    assert stream.tolist() == STREAM.tolist()
    assert times.tolist() == list(range(len(STREAM)))


@every_scheme
def test_read_only_strided_and_reversed_inputs_are_read_alike(name):
    expected = router_of(name).route(STREAM).tolist()
    frozen = STREAM.copy()
    frozen.flags.writeable = False
    strided = np.repeat(STREAM, 3)[::3]
    assert not strided.flags.c_contiguous
    column = np.stack([STREAM, STREAM[::-1]], axis=1)[:, 0]
    for variant in (frozen, strided, STREAM[::-1].copy()[::-1], column):
        assert router_of(name).route(variant).tolist() == expected
        assert router_of(name).route(variant, np.zeros(2 * len(STREAM))[::2]).tolist() == expected


@every_scheme
def test_a_scheme_that_was_changed_to_fewer_workers_is_refused_or_decides_within_range(name):
    changed = scheme_for(name, 10, STREAM)._replace(workers=1)
    with contextlib.suppress(InputError):
        assert Router(changed).route(STREAM).max() == 0


# ---------------------------------------------------------------- worker halves


EXECUTED = 9000
TUPLES = {
    "key_ids": zipf(EXECUTED, 20),
    "seconds": (zipf(EXECUTED, 20) % np.uint64(7)).astype(float) + 0.5,
    "workers": np.arange(EXECUTED) % 3,
    "sources": np.arange(EXECUTED) // 7 % 2,
    "tickets": np.where(np.arange(EXECUTED) % 50 == 0, np.arange(EXECUTED), 0),
    "waited": np.arange(EXECUTED) % 5 / 10,
}
every_conversing_scheme = pytest.mark.parametrize(
    "name", [name for name in SCHEMES if can(SCHEMES[name].type, Conversing)]
)


def half_of(name):
    return WorkerHalf(make(name, 10), workers=3, sources=2)


def execute(half, start=0, stop=EXECUTED):
    """The messages of the tuples from `start` to `stop`, with their positions among all."""
    messages = half.execute(**{column: values[start:stop] for column, values in TUPLES.items()})
    return [message._replace(position=message.position + start) for message in messages]


def plain_message(message):
    content = {field: np.asarray(value).tolist() for field, value in message.content._asdict().items()}
    return (*message[:3], type(message.content).__name__, content)


def plain_messages(messages):
    return [plain_message(message) for message in messages]


@every_conversing_scheme
def test_a_worker_half_replies_to_each_ticket_and_tells_all(name):
    messages = execute(half_of(name))
    assert [m.position for m in messages if m.source is not None] == np.flatnonzero(TUPLES["tickets"]).tolist()
    assert {m.worker for m in messages if m.source is None} == {0, 1, 2}


@every_conversing_scheme
def test_a_worker_half_tells_nothing_while_it_says_that_it_is_quiet(name):
    half, executed, earliest, told = half_of(name), np.zeros(3, np.int64), np.zeros(3, np.int64), 0
    for position in range(EXECUTED):
        quiet = half.quiet_for()
        assert quiet.min() >= 1
        earliest = np.maximum(earliest, executed + quiet)
        worker = position % 3
        executed[worker] += 1
        for message in execute(half, position, position + 1):
            if message.source is None:
                assert executed[worker] >= earliest[worker]
                told += 1
    assert told >= 3


@every_conversing_scheme
def test_what_a_worker_half_tells_shares_no_memory_with_its_states(name):
    half = half_of(name)
    told = [message for message in execute(half, 0, 7500) if message.source is None]
    before = plain_messages(told)
    for message in told:
        of_message = [value for value in message.content if isinstance(value, np.ndarray)]
        assert not any(np.shares_memory(a, b) for a in of_message for b in arrays_of(half.states).values())
    execute(half, 7500)
    assert plain_messages(told) == before


@every_conversing_scheme
@given(cuts=st.lists(st.integers(0, EXECUTED), max_size=6))
@settings(max_examples=10)
def test_cutting_what_was_executed_never_changes_a_message(name, cuts):
    whole, cut = half_of(name), half_of(name)
    edges = [0, *sorted(cuts), EXECUTED]
    parts = [message for start, stop in itertools.pairwise(edges) for message in execute(cut, start, stop)]
    assert plain_messages(parts) == plain_messages(execute(whole))


@every_conversing_scheme
@given(middle=st.integers(0, EXECUTED))
@settings(max_examples=5)
def test_bytes_bring_a_worker_half_back_in_mid_stream(name, middle):
    half = half_of(name)
    execute(half, 0, middle)
    again = WorkerHalf.from_bytes(half.scheme, half.to_bytes(), workers=3, sources=2)
    one, other = arrays_of(half.states), arrays_of(again.states)
    assert all(np.array_equal(array, other[field]) for field, array in one.items())
    assert not any(np.shares_memory(a, b) for a in one.values() for b in other.values())
    assert plain_messages(execute(again, middle)) == plain_messages(execute(half, middle))
