"""The examples in the docstrings of `unskew.spark` run as they stand, on a small DataFrame called df."""

import doctest
import inspect

import pytest
from pyspark.sql import SparkSession

import unskew.spark
from test_examples import names_that_lack_an_explanation

PUBLIC = [name for name in unskew.spark.__all__ if name != "SALT"]


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_runs(spark: SparkSession, name: str) -> None:
    """1,000 rows (word, v): every tenth word is cat, the others are the; v counts from 0."""
    df = spark.range(1000).selectExpr("if(id % 10 = 9, 'cat', 'the') word", "id v").cache()
    example = unskew.spark.__dict__[name]
    finder, runner = (
        doctest.DocTestFinder(recurse=False),
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE),
    )
    (found,) = finder.find(example, name, globs={"spark": spark, "df": df})
    assert found.examples, f"{name} has no example"
    report: list[str] = []
    runner.run(found, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "Watch"])  # which only `watch` makes
def test_parameters_and_fields_are_explained(name: str) -> None:
    assert not names_that_lack_an_explanation(getattr(unskew.spark, name))


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isfunction(getattr(unskew.spark, name))])
def test_every_parameter_is_in_the_signature(name: str) -> None:
    parameters = inspect.signature(getattr(unskew.spark, name)).parameters.values()
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
