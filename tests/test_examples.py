"""The examples in docstrings run and print what they say, and everything public has one."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import unskew

NEEDS_A_SESSION = "unskew.spark"  # its examples are run by tests/spark/test_docstrings.py
MODULES = [
    module.name
    for module in pkgutil.walk_packages(unskew.__path__, "unskew.")
    if not module.name.startswith(NEEDS_A_SESSION)
]
PACKAGES = ("unskew", "unskew.aggregates", "unskew.partitioning", "unskew.report", "unskew.simulate", "unskew.streams")
OPTIONS = doctest.NORMALIZE_WHITESPACE


def examples_of(module_name):
    """The docstrings of a module that have examples."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [found for found in finder.find(importlib.import_module(module_name)) if found.examples]


def public_objects():
    """The public classes and functions, each once."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found) or callable(found):
                yield pytest.param(found, id=f"{package}.{name}")


@pytest.mark.parametrize("name", ["unskew", *MODULES])
def test_examples_print_what_they_say(name):
    for found in examples_of(name):
        complaints = []
        doctest.DocTestRunner(optionflags=OPTIONS).run(found, out=complaints.append)
        assert not complaints, "".join(complaints)


@pytest.mark.parametrize("found", list(public_objects()))
def test_everything_public_has_an_example(found):
    assert ">>>" in (found.__doc__ or ""), f"{found.__module__}.{found.__name__} needs an example in its docstring"


def test_a_wrong_example_is_found():
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(optionflags=OPTIONS).run(wrong, out=lambda text: None).failed == 1


def test_examples_of_compiled_functions_are_found():
    """They are objects of Numba, not functions: nothing else would tell if they were passed over."""
    names = {found.name for found in examples_of("unskew.hashing")}
    assert {"unskew.hashing.candidate", "unskew.hashing.salt_for", "unskew.hashing.salts_for"} <= names
