"""A scheme for tests that listens: of a key's two candidates the one with fewer tuples, by what it last heard."""

from typing import NamedTuple

import numpy as np
import pytest

from unskew.checks import require_workers
from unskew.hashing import candidate
from unskew.kernels import kernel
from unskew.registry import SCHEMES, register


class State(NamedTuple):
    load: np.ndarray  # int64[workers], tuples that it believes to be at the worker


@kernel
def choose(scheme, state, key, now):
    first, second = candidate(key, 0, scheme.workers), candidate(key, 1, scheme.workers)
    worker = second if state.load[second] < state.load[first] else first
    state.load[worker] += 1
    return worker


HEARD = []  # every report that any instance got


@register("listener", choose=choose, paper="none", when="in tests")
class Listener(NamedTuple):
    """Listens."""

    workers: int
    report_every: float = 2.0

    def check(self):
        require_workers(self.workers)

    def new_state(self):
        return State(np.zeros(self.workers, np.int64))

    def load_of(self, state):
        return state.load

    def observe(self, state, report):
        HEARD.append(report)
        state.load[report.workers] = report.waiting


REGISTRATION = SCHEMES.pop("listener")  # known only where a test asks for it


@pytest.fixture(scope="module")
def listener():
    SCHEMES["listener"] = REGISTRATION
    yield Listener
    del SCHEMES["listener"]
