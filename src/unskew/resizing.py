"""What becomes of a scheme and its state when workers come and go."""

from typing import Any

import numpy as np

from unskew.contract import LoadAware, Resizable, can
from unskew.errors import InputError
from unskew.members import Names, carried_over
from unskew.states import arrays_of


def resize(name: str, scheme: Any, state: Any, before: Names, after: Names) -> tuple[Any, Any]:
    """The scheme called `name` and its state, for the workers `after` in the place of those `before`.

    A scheme that is `Resizable` has rules of its own. Else, where nothing but an estimate of the load depends on the
    workers, W becomes the new number, so that keys are hashed modulo the new number. A worker that stays keeps its
    load; a new one starts with the least load of those that stay, so that it need not first catch up with what the
    others got in their whole life.
    """
    if can(scheme, Resizable):
        own: tuple[Any, Any] = scheme.resized(state, before, after)
        return own
    _require_simple(name, scheme, state)
    new_scheme = scheme._replace(workers=len(after))
    new_scheme.check()
    new_state = new_scheme.new_state()
    if can(scheme, LoadAware):
        new_scheme.load_of(new_state)[:] = carried_over(scheme.load_of(state), before, after)
    return new_scheme, new_state


def _require_simple(name: str, scheme: Any, state: Any) -> None:
    """InputError where more than the load may depend on the workers."""
    load = scheme.load_of(state) if can(scheme, LoadAware) else None
    in_state = any(array.size and array is not load for array in arrays_of(state).values())
    if in_state or any(isinstance(value, np.ndarray) for value in scheme):
        raise InputError(
            f"scheme: {name} cannot go on when workers come or go: what it has stored is for the workers that it was "
            "made for"
        )
