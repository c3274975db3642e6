"""What every scheme refuses, with a message that names the parameter, the rule and the value."""

import dataclasses
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from samples import every_scheme, scheme_for, zipf
from unskew import SCHEMES, Frequencies, InputError, Plan, Router, follow_plan, key_ids, make, make_plan
from unskew.kernels import kernel
from unskew.plan import HotKey, KeyColumn
from unskew.registry import register
from unskew.simulate.queues import parse_capacity
from unskew.streams import parse

STREAM = zipf(400, 100)


@every_scheme
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (STREAM.astype(np.int64), "1-dimensional int64"),
        (STREAM.astype(np.float64), "1-dimensional float64"),
        (STREAM.reshape(2, -1), "2-dimensional uint64"),
        (STREAM[0], "0-dimensional uint64"),
        ([1, 2, 3], "1-dimensional int64"),
        (["a"], "1-dimensional <U1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_array_of_key_ids_is_refused(name, wrong, told):
    with pytest.raises(InputError) as error:
        Router(scheme_for(name, 10, STREAM)).route(wrong)
    assert isinstance(error.value, TypeError)
    assert str(error.value) == (
        f"key_ids: must be a one-dimensional uint64 array of key ids, not {told}; make them with unskew.key_ids(keys)"
    )


@every_scheme
@pytest.mark.parametrize("times", [np.zeros(399), np.zeros(0), np.zeros((400, 1)), 0.0])
def test_times_that_are_not_one_per_tuple_are_refused(name, times):
    router = Router(scheme_for(name, 10, STREAM))
    with pytest.raises(InputError, match=r"^times: must have one number per tuple \(400\), not shape \("):
        router.route(STREAM, times)
    assert router.to_bytes() == Router(router.scheme).to_bytes()


@every_scheme
@pytest.mark.parametrize("workers", [0, -1, 2**31, 1.5, 10.0, "10", None, True])
def test_wrong_workers_are_refused_with_the_rule_and_the_value(name, workers):
    message = rf"^workers: must be an integer from 1 to \d+, not {re.escape(repr(workers))}$"
    with pytest.raises(InputError, match=message):
        scheme_for(name, workers, STREAM)
    if not SCHEMES[name].offline:
        with pytest.raises(InputError, match=message):
            Router(SCHEMES[name].type(workers))


@every_scheme
def test_wrong_parameters_are_refused_by_name_rule_and_value(name):
    for parameter, default in SCHEMES[name].parameters.items():
        for wrong in ("nonsense", None, -2, *[0.5] * isinstance(default, int)):
            with pytest.raises(InputError, match=rf"^{parameter}: must be .*, not {re.escape(repr(wrong))}$"):
                make(name, 10, **{parameter: wrong})


@every_scheme
def test_unknown_parameters_are_refused_with_those_allowed(name):
    entry = SCHEMES[name]
    with pytest.raises(InputError) as error:
        make(name, 10, colour=3)
    if entry.offline:
        expected = f"scheme: {name} is offline, it needs the frequencies of all keys: {entry.type.__name__}.fit("
    else:
        expected = f"colour: not a parameter of {name}; allowed (with defaults): "
        assert all(f"{parameter}={default}" in str(error.value) for parameter, default in entry.parameters.items())
    assert str(error.value).startswith(expected)


def test_unknown_schemes_are_refused_with_those_allowed():
    with pytest.raises(InputError, match=r"^scheme: 'gkp' is not known; allowed are .*hash, .*pkg, .*shuffle"):
        make("gkp", 10)
    with pytest.raises(InputError, match=r"^scheme: must be a scheme such as .*, not a tuple; decorate one of"):
        Router((10,))
    with pytest.raises(InputError, match=r"^scheme: must be a scheme such as make\('pkg', workers=16\), not the name "):
        Router("pkg")


def test_a_name_is_registered_once():
    with pytest.raises(InputError, match=r"^scheme: the name 'pkg' is taken by PartialKey$"):
        register("pkg", choose=None, paper="", when="")(type("Other", (), {}))
    assert SCHEMES["pkg"].type.__name__ == "PartialKey"


@every_scheme
def test_every_scheme_says_what_it_is(name):
    entry = SCHEMES[name]
    assert all((entry.paper, entry.when, entry.type.__doc__, sys.modules[entry.type.__module__].__doc__))
    assert entry.type._fields[0] == "workers"
    assert Router(scheme_for(name, 3, key_ids(["a", "b"]))).scheme.workers == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"workers": 0},
        {"workers": 4.7},
        {"cold_salt": 2**40},
        {"hot_keys": (HotKey(1, 0.5, ()),)},
        {"hot_keys": (HotKey(1, 0.5, (0,)), HotKey(1, 0.5, (1,)))},
        {"hot_keys": (HotKey(-5, 0.5, (0,)),)},
        {"hot_keys": (HotKey(1, 0.5, (1.9,)),)},
        {"hot_keys": (HotKey(1, float("nan"), (0,)),)},
        {"hot_keys": (HotKey(1, 7, (0,)),)},
        {"hot_keys": (HotKey(1, -1, (0,)),)},
        {"predicted_load": (0.5, 0.5)},
        {"predicted_load": (0.5, 0.5, 0.0, float("nan"))},
    ],
)
def test_a_damaged_plan_is_refused(changes):
    with pytest.raises(InputError, match=r"^plan[:.]"):
        Plan(**({"scheme": "x", "workers": 4} | changes))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", pytest.param("[" * 100_000, id="deep"), '{"unskew_plan": 9}', '{"unskew_plan": 2}']
)
def test_what_is_no_plan_is_refused(text, tmp_path):
    with pytest.raises(InputError, match=r"^plan: "):
        Plan.from_json(text)
    (tmp_path / "plan.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"^path: .* cannot be read"):
        Plan.load(tmp_path / "plan.json")


KEPT = Plan(
    "fanout",
    4,
    (HotKey(2**64 - 1, 0.5, (0, 3, -7), "ä"), HotKey(9, 0.25, (2,))),
    1,
    (0.25,) * 4,
    (KeyColumn("word", "string"), KeyColumn("n", "bigint")),
)


def test_a_plan_survives_json():
    assert Plan.from_json(KEPT.to_json()) == KEPT


def edited(change):
    found = json.loads(KEPT.to_json())
    change(found)
    return json.dumps(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda plan: plan["hot_keys"][0].update(share=float("nan")),
            "share of key 'ä' must be a number from 0 to 1, not nan",
        ),
        (
            lambda plan: plan["hot_keys"][1].update(share=7),
            "share of key 0000000000000009 must be a number from 0 to 1",
        ),
        (lambda plan: plan["hot_keys"][0].update(share=-1), "share of key 'ä' must be a number from 0 to 1, not -1"),
        (lambda plan: plan.update(scheme="fanuot"), "must be of a scheme that makes plans .*fanout.*, not 'fanuot'"),
        (lambda plan: plan.update(scheme="shuffle"), "must be of a scheme that makes plans .*, not 'shuffle'"),
        (lambda plan: plan.update(workers=8, predicted_load=[]), "places of key .* were not made for 8 workers"),
        (lambda plan: plan.update(workers=8), "predicted_load must have one number per worker .8. or none, not 4"),
        (lambda plan: plan["hot_keys"][1].update(salts=[3]), "places of key 0000000000000009 were not made for 4"),
        (lambda plan: plan["hot_keys"][1].pop("workers"), "not what Plan.save wrote"),
        (lambda plan: plan.update(key_columns=["word"]), "not what Plan.save wrote"),
        (lambda plan: plan.update(unskew_plan=1), "must be of format 2, not 1; make it anew"),
    ],
)
def test_an_edited_plan_file_is_refused(change, said):
    with pytest.raises(InputError, match=f"^plan: .*{said}"):
        Plan.from_json(edited(change))


def test_what_is_no_path_and_what_are_no_frequencies_is_refused_in_a_sentence():
    with pytest.raises(InputError, match=r"^path: must be the name of a file that Plan.save wrote, not None"):
        Plan.load(None)
    with pytest.raises(InputError, match=r"^frequencies: must be Frequencies, such as .*, not dict"):
        make_plan("fanout", 4, {"a": 1})


def test_keys_that_share_an_id_are_planned_as_one():
    twice = Frequencies(np.array([1, 2, 1], np.uint64), np.array([5, 4, 5]), 20)
    for name in ("fanout", "pkg"):
        assert make_plan(name, 3, twice).hot_keys[0][:2] == (1, 0.5)


def test_a_plan_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "plan.json"
    Plan("hash", 4).save(path)
    before = path.read_text()

    def full_disk(path, text, encoding):
        path.write_bytes(text.encode()[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "write_text", full_disk)
    with pytest.raises(InputError, match=r"^path: .*plan\.json' cannot be written: No space left on device$"):
        Plan("hash", 5).save(path, force=True)
    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]


def test_a_router_refuses_the_state_of_another():
    for other in (make("pkg", 2), make("potc", 10)):
        with pytest.raises(InputError, match=r"^data: "):
            Router(make("pkg", 10), Router(other).state)


def test_a_scheme_that_chooses_a_worker_that_is_not_there_is_stopped():
    router = Router(make("pkg", 4))
    router._registration = dataclasses.replace(router._registration, choose=_beyond)
    with pytest.raises(InputError, match=r"^scheme: pkg chose worker 9, not one of 0\.\.3"):
        router.route(np.arange(3, dtype=np.uint64))


@kernel
def _beyond(scheme, state, key, now):
    return 9


def test_threads_may_share_a_router():
    router, keys = Router(make("on_greedy", 7)), key_ids(np.arange(40_000))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(router.route, np.split(keys, 4)))
    assert router.state.load.sum() == len(keys)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Router(make("pkg", 3)).probe([1, 2]), "load: must be one whole number per worker (3), not [1, 2]"),
        (lambda: Router(make("pkg", 3)).probe(None), "load: must be one whole number per worker (3), not None"),
        (lambda: follow_plan("plan.json"), "plan: must be a Plan, such as Plan.load('plan.json'), not 'plan.json'"),
        (lambda: Frequencies.of([1, 2]), "counts: must be a mapping of key id to count, see key_ids, not [1, 2]"),
        (lambda: Frequencies.of({"a": 1}), "counts: must be a mapping of key id to count, see key_ids, not {'a': 1}"),
        (lambda: Plan("hash", 4).save(None), "path: must be the name of a file to write, not None"),
        (lambda: make(["pkg"], 4), "scheme: ['pkg'] is not known; allowed are bounded, "),
        (
            lambda: parse("zipf(z=1.2, keys=100, messages=1000)"),
            "stream: zipf has no parameter 'messages'; it is zipf(z, keys, tuples, seed=0, rate=1000.0)",
        ),
        (lambda: parse_capacity("2,3"), "capacity: only one number may be for all workers, not '2,3'"),
    ],
)
def test_a_mistake_is_named_in_one_sentence(call, message):
    with pytest.raises(InputError) as refusal:
        call()
    assert str(refusal.value).startswith(message)
