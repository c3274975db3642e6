"""What the states of a query are of, recorded beside its checkpoint: a restart that changes it is refused.

Spark itself compares only the types of states. It would go on with those of other windows, of another aggregate or of
another key of the same type, and mix the two.
"""

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from unskew.errors import InputError
from unskew.spark.streaming.adaptive import Adaptive
from unskew.spark.streaming.side_folder import SideFolder
from unskew.spark.windows import Windows

STATES = "states.json"


def require_same_states(
    adaptive: Adaptive, df: DataFrame, keys: Sequence[str], windows: Windows | None, **others: Any
) -> None:
    """InputError where the checkpoint holds the states of something else; `others` is what else they depend on."""
    states = {
        "keys": [df.schema[name].dataType.simpleString() for name in keys],
        "names of keys": list(keys),
        "time": None if windows is None else windows.time,
        "window": None if windows is None else [f"{each} us" for each in windows.lengths],
        **others,
    }
    folder = adaptive.folder()
    if folder.has_begun():
        _check(folder, adaptive.name, folder.read(STATES), states)
    folder.write(STATES, json.dumps(states))


def _check(folder: SideFolder, name: str, before: str | None, states: dict[str, Any]) -> None:
    named = folder.siblings_with(STATES) if before is None else []
    if named:
        raise InputError(
            f"checkpoint: {folder.root} holds the states of an Adaptive called {named[0]!r}, not {name!r}; go on with "
            f"name={named[0]!r}, or start anew with another checkpoint"
        )
    try:
        known = dict(json.loads(before or "{}"))
    except (TypeError, ValueError):
        return  # damaged, so Spark has to find out itself
    for field, value in known.items():
        if value != states.get(field):
            raise InputError(
                f"checkpoint: {folder.root} holds states whose {field!r} is {json.dumps(value)}, not "
                f"{json.dumps(states.get(field))}; go on with that (a column that was renamed needs its old name "
                "again), or start anew with another checkpoint. The scheme, the number of workers, the watermark and "
                "the names of aggregates may change"
            )
