"""What every scheme promises, checked on every registered scheme: a new one is covered as soon as it is registered."""

import contextlib
import io
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
from unskew.contract import Growing, SelfChecking, can
from unskew.states import arrays_of

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
