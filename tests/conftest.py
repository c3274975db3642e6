"""Settings of all tests, and which of them say nothing more about kernels that run in Python."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# In Python, where only an index out of range is looked for, a quarter of the examples is enough: each takes long.
EXAMPLES = 25 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 100
settings.register_profile("unskew", deadline=None, max_examples=EXAMPLES)
settings.load_profile("unskew")

# `make test` runs the tests of kernels twice: compiled, and in Python (NUMBA_DISABLE_JIT=1), where numpy refuses an
# index out of range that compiled code would read or write. These modules run no kernel, or none that the others do
# not run line by line. A new module runs twice until it is entered here.
ONCE = {
    "test_aggregates",
    "test_apps",
    "test_cg_experiments",
    "test_checks",
    "test_cli",
    "test_cli_queues",
    "test_cli_refusals",
    "test_cost_report",
    "test_deployments",
    "test_documents",
    "test_evaluation",
    "test_exact_moments",
    "test_experiments",
    "test_expressions",
    "test_files",
    "test_fish_experiments",
    "test_gedik_experiments",
    "test_graphs",
    "test_kernels",  # starts processes of its own, one of them without the compiler
    "test_longest_first",
    "test_page",
    "test_posg_experiments",
    "test_report",
    "test_service",
    "test_top",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.stem in ONCE:
            item.add_marker(pytest.mark.once)
