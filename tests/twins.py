"""Finds the naive twin of a scheme: the function ``naive_NAME`` of one of the files ``tests/naive*.py``."""

from importlib import import_module
from pathlib import Path

import pytest

FILES = sorted(path.stem for path in Path(__file__).parent.glob("naive*.py"))


def twin_of(name):
    """The twin of the scheme called `name`: stream of key ids, workers, parameters -> list of workers."""
    for file in FILES:
        twin = getattr(import_module(file), f"naive_{name}", None)
        if callable(twin):
            return twin
    wanted = f"naive_{name}(stream, workers, **parameters) in tests/naive_{name}.py"
    return pytest.fail(f"the scheme {name} has no naive twin: write {wanted}")
