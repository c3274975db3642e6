"""Reads ``name(parameter=value, ...)``, the way streams and schemes are written on the command line."""

import ast
from typing import Any, NamedTuple

from unskew.errors import InputError


class Call(NamedTuple):
    name: str
    positional: list[Any]
    named: dict[str, Any]


def parse_call(text: str) -> Call | None:
    """The call that `text` spells with literal arguments (a bare name has none), or None where it is no call."""
    try:
        expression = ast.parse(text.strip(), mode="eval").body
        if isinstance(expression, ast.Name):
            return Call(expression.id, [], {})
        if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Name):
            return None
        positional = [_value(argument) for argument in expression.args]
        named = {str(keyword.arg): _named_value(keyword.value) for keyword in expression.keywords}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if len(named) < len(expression.keywords):  # a name given twice
        return None
    return Call(expression.func.id, positional, named)


def _value(expression: ast.expr) -> Any:
    """What a literal, or one of the names inf and nan, stands for."""
    if isinstance(expression, ast.Name) and expression.id in ("inf", "nan"):
        return float(expression.id)
    return ast.literal_eval(expression)


def _named_value(expression: ast.expr) -> Any:
    """The same; where a parameter is named, a bare word is a text: ``algorithm=scan`` needs no quotes."""
    if isinstance(expression, ast.Name) and expression.id not in ("inf", "nan"):
        return expression.id
    return _value(expression)


def parse_assignment(text: str) -> tuple[str, Any]:
    """``choices=3`` as ("choices", 3)."""
    call = parse_call(f"_({text})")
    if call is None or call.positional or len(call.named) != 1:
        raise InputError(f"param: must be NAME=VALUE, such as choices=3, not {text!r}")
    return next(iter(call.named.items()))
