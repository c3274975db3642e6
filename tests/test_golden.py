"""Golden decisions: detect a change of decisions, prove nothing.

A change here means that users' keys move: flag it in CHANGELOG.md, then write the files again with

    python tests/test_golden.py            # of all schemes
    python tests/test_golden.py mine       # of one
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from samples import every_scheme, ids, scheme_for
from unskew import SCHEMES, Router

FOLDER = Path(__file__).parent / "golden"
WORKERS = 10
NUMBERS = (np.arange(2000) * 7919 % 2000) ** 3 // 40_000_000  # by arithmetic alone; 200 keys, of which 0 has 17%


def golden(name):
    stream = ids(NUMBERS)
    decisions = Router(scheme_for(name, WORKERS, stream)).route(stream)
    return {
        "workers": WORKERS,
        "messages": len(decisions),
        "sha256": hashlib.sha256(decisions.astype("<i4").tobytes()).hexdigest(),
        "first": "".join(map(str, decisions[:50])),  # one digit per decision
        "load": np.bincount(decisions, minlength=WORKERS).tolist(),
    }


def file_of(name):
    return FOLDER / f"{name}.json"


@every_scheme
def test_decisions_are_those_of_the_last_release(name):
    if not file_of(name).exists():
        pytest.fail(f"{name} has no golden file yet: type python tests/test_golden.py {name}")
    assert golden(name) == json.loads(file_of(name).read_text())


def test_every_golden_file_has_its_scheme():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(SCHEMES)


if __name__ == "__main__":
    for name in sys.argv[1:] or SCHEMES:
        file_of(name).write_text(json.dumps(golden(name)) + "\n")
