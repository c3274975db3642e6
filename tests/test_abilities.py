"""What `register` refuses: a method that no ability knows, one with other parameters, half an ability."""

from typing import NamedTuple

import numpy as np
import pytest

from samples import every_scheme, scheme_for, zipf
from unskew import SCHEMES, InputError, Router, make
from unskew.contract import ABILITIES, Growing, Listening, Staggered, can, check_class
from unskew.hashing import candidate
from unskew.registry import register
from unskew.simulate import Queues, simulate
from unskew.streams import Zipf

STREAM = zipf(400, 100)


class Good(NamedTuple):
    workers: int

    def check(self):
        pass

    def new_state(self):
        pass


def with_members(**members):
    """A scheme's class with these members more."""
    return type("Odd", (Good,), members)


def refusal(cls):
    with pytest.raises(InputError) as refused:
        check_class(cls)
    return str(refused.value)


@every_scheme
def test_every_scheme_has_what_the_contract_knows_and_nothing_else(name):
    check_class(SCHEMES[name].type)


def test_a_misspelt_method_is_refused_with_the_right_name():
    found = refusal(with_members(obsreve=lambda self, state, report: None))
    assert found == "scheme: Odd has a public method obsreve that no ability knows; did you mean observe?"


def test_a_method_of_any_other_name_is_refused_with_all_names_that_are_known():
    found = refusal(with_members(xyz=lambda self: None))
    assert found.startswith("scheme: Odd has a public method xyz that no ability knows; known are check, check_state, ")


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (
            {"grown": lambda self, state: state},
            "scheme: Odd.grown must take (self, state, tuples), not (self, state)",
        ),
        (
            {"load_of": lambda self, state, extra=1: state},
            "scheme: Odd.load_of must take (self, state), not (self, state, extra)",
        ),
        ({"plan": lambda cls, workers, frequencies: None}, "scheme: Odd.plan must be a class method"),
        (
            {"plan": classmethod(lambda cls, workers, frequencies, needed: None)},
            "scheme: Odd.plan must take (cls, workers, frequencies), not (cls, workers, frequencies, needed)",
        ),
        ({"describe": 7}, "scheme: Odd.describe must be a method"),
        ({"report_every": lambda self: 1.0}, "scheme: Odd.report_every must be a property"),
        (
            {"observe": lambda self, state, report: None},
            "scheme: Odd must have report_every too: it has observe",
        ),
        (
            {"report_every": property(lambda self: 1.0)},
            "scheme: Odd must have observe too: it has report_every",
        ),
    ],
)
def test_a_method_of_another_form_is_refused_by_name(members, expected):
    assert refusal(with_members(**members)) == expected


def test_a_plan_may_take_parameters_of_the_scheme():
    check_class(with_members(plan=classmethod(lambda cls, workers, frequencies, choices=2, **more: None)))


def test_what_is_no_class_of_a_scheme_is_refused():
    assert refusal(7) == "scheme: must be a class that derives from NamedTuple, not 7"
    assert refusal(NamedTuple("Other", [("seed", int)])) == "scheme: the first field of Other must be workers, not seed"
    assert refusal(NamedTuple("Bare", [("workers", int)])) == "scheme: Bare must have check too: it has nothing of it"


def test_a_class_that_is_refused_is_not_registered():
    with pytest.raises(InputError, match="no ability knows"):
        register("odd", choose=candidate, paper="", when="")(with_members(xyz=lambda self: None))
    assert "odd" not in SCHEMES


def test_abilities_share_no_method():
    names = [name for ability in ABILITIES for name in vars(ability) if not name.startswith("_")]
    assert len(names) == len(set(names))


def test_an_ability_is_seen_in_a_class_and_in_its_instances():
    assert can(SCHEMES["potc"].type, Growing)
    assert can(make("potc", 3), Growing)
    assert can(make("cg", 3), Listening)
    assert not can(make("pkg", 3), Listening)


# ---------------------------------------------------------------- sources that start at different places


STAGGERED = [name for name in sorted(SCHEMES) if can(SCHEMES[name].type, Staggered)]


@pytest.mark.parametrize("name", STAGGERED)
def test_the_first_source_decides_as_one_alone_and_the_others_otherwise(name):
    scheme = scheme_for(name, 10, STREAM)
    alone = Router(scheme).route(STREAM)
    assert Router(scheme, source=0).route(STREAM).tolist() == alone.tolist()
    others = [Router(scheme, source=source).route(STREAM).tolist() for source in range(1, 5)]
    assert len({tuple(decisions) for decisions in [alone.tolist(), *others]}) == 5


@pytest.mark.parametrize("sources", [2, 3, 4, 5, 8, 10, 16, 32, 100])
@pytest.mark.parametrize("workers", [2, 8, 10, 64])
def test_sources_of_a_round_start_evenly_spread(workers, sources):
    """Of S starts in W places, no place has more than two above the even share."""
    scheme = make("shuffle", workers)
    first = [int(Router(scheme, source=source).route(STREAM[:1])[0]) for source in range(sources)]
    assert np.bincount(first, minlength=workers).max() <= np.ceil(sources / workers) + 1


@pytest.mark.parametrize(("scheme", "most"), [("shuffle", 2), ("random_two", 4)])
def test_many_sources_wait_hardly_longer_than_one(scheme, most):
    """In step, 32 sources sent bursts: mean latencies of 14 and 33 services, where one source has 1 and 1.6."""
    (result,) = simulate(
        Zipf(1.0, 1000, 100_000), [make(scheme, 8)], sources=32, queues=Queues(utilisation=0.8, capacity=1.0)
    )
    assert result.latency_mean < most


@pytest.mark.parametrize("source", [-1, 2**31, 1.5, "1"])
def test_a_source_is_a_whole_number(source):
    with pytest.raises(InputError, match=r"^source: must be an integer from 0 to 2147483647, not "):
        Router(make("pkg", 4), source=source)


def test_a_worker_half_needs_its_kernel_and_its_methods():
    def execute(scheme, states, worker, key, seconds, waited, source, ticket):
        return False, 0.0

    def hear_reply(scheme, state, worker, ticket, reply):
        return None

    def choose(scheme, state, key, now):
        return 0

    def choose_by_cost(scheme, state, key, now, cost):
        return 0

    rule = "needs the methods of Conversing, execute, hear_reply and message, or none of them$"
    half = {"execute": execute, "hear_reply": hear_reply, "message": tuple}
    with pytest.raises(InputError, match=rule):
        register("odd", choose=choose, **half, paper="", when="")(Good)
    methods = {
        "new_worker_states": lambda self, workers, sources: None,
        "tell": lambda self, states, worker: None,
        "hear": lambda self, state, worker, message: None,
        "may_ask": lambda self, state: False,
        "quiet_for": lambda self, states: None,
    }
    for missing in half:
        some = {name: value for name, value in half.items() if name != missing}
        with pytest.raises(InputError, match=rule):
            register("odd", choose=choose, **some, paper="", when="")(with_members(**methods))
    with pytest.raises(InputError, match="cannot both be told costs and have a worker half"):
        register("odd", choose=choose_by_cost, **half, paper="", when="")(with_members(**methods))
    assert "odd" not in SCHEMES


@pytest.mark.parametrize(
    ("choose", "found"),
    [
        (lambda scheme, state, key, time: 0, "scheme, state, key, time"),
        (lambda scheme, state, key, now, weight: 0, "scheme, state, key, now, weight"),
        (lambda scheme, state, now, key: 0, "scheme, state, now, key"),
        (lambda: 0, "none"),
    ],
)
def test_a_kernel_has_the_parameters_that_it_is_called_with(choose, found):
    """Five of any name once meant that it is told costs."""
    rule = "must be scheme, state, key, now and, if it is told costs, cost"
    with pytest.raises(InputError, match=f"^scheme: the parameters of odd's choose {rule}, not {found}$"):
        register("odd", choose=choose, paper="", when="")(Good)
    assert "odd" not in SCHEMES
