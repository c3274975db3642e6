"""The examples in docstrings run and print what they say, and everything public has one."""

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import unskew
from unskew.contract import Scheme

NEEDS_A_SESSION = "unskew.spark"  # its examples are run by tests/spark/test_docstrings.py
MODULES = [
    module.name
    for module in pkgutil.walk_packages(unskew.__path__, "unskew.")
    if not module.name.startswith(NEEDS_A_SESSION)
]
PACKAGES = ("unskew", "unskew.aggregates", "unskew.partitioning", "unskew.report", "unskew.simulate", "unskew.streams")
NOT_MADE_BY_USERS = (Scheme,)  # a protocol
OPTIONS = doctest.NORMALIZE_WHITESPACE


def examples_of(module_name):
    """The docstrings of a module that have examples."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [found for found in finder.find(importlib.import_module(module_name)) if found.examples]


def public_objects(packages=PACKAGES):
    """The public classes and functions, each once."""
    for package in packages:
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


@pytest.mark.parametrize("found", [each for each in public_objects() if each.values[0] not in NOT_MADE_BY_USERS])
def test_parameters_and_fields_of_everything_public_are_explained(found):
    assert not names_that_lack_an_explanation(found)


def names_that_lack_an_explanation(found):
    """Parameters and fields that its docstring says nothing of."""
    return [name for name in names_to_explain(found) if name not in explained(inspect.getdoc(found) or "")]


def names_to_explain(found):
    """The parameters of a function, the fields of a class, or what it is made with where it has none."""
    if inspect.isclass(found) and issubclass(found, BaseException):
        return []
    if dataclasses.is_dataclass(found):
        return [field.name for field in dataclasses.fields(found) if not field.name.startswith("_")]
    if inspect.isclass(found):
        made_with = [] if "__init__" not in vars(found) else list(inspect.signature(found.__init__).parameters)[1:]
        return list(getattr(found, "_fields", made_with))
    return list(inspect.signature(getattr(found, "py_func", found)).parameters)


def explained(docstring):
    """The names in the sections Parameters and Attributes."""
    parts = re.findall(
        r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", docstring, re.MULTILINE | re.DOTALL
    )
    heads = [line for part in parts for line in part.splitlines() if line and not line.startswith(" ")]
    return {name for head in heads for name in head.split(", ")}


def test_a_wrong_example_is_found():
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(optionflags=OPTIONS).run(wrong, out=lambda text: None).failed == 1


def test_examples_of_compiled_functions_are_found():
    """They are objects of Numba, not functions: nothing else would tell if they were passed over."""
    names = {found.name for found in examples_of("unskew.hashing")}
    assert {"unskew.hashing.candidate", "unskew.hashing.salt_for", "unskew.hashing.salts_for"} <= names
