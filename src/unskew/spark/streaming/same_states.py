"""What the states of a query are of, recorded beside its checkpoint: a restart that changes it is refused.

Spark itself compares only the types of states. It would go on with those of other windows or another aggregate of the
same type, and mix the two.
"""

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from unskew.errors import InputError
from unskew.spark.streaming.adaptive import Adaptive
from unskew.spark.windows import Windows

STATES = "states.json"


def require_same_states(
    adaptive: Adaptive, df: DataFrame, keys: Sequence[str], windows: Windows | None, **others: Any
) -> None:
    """InputError where the checkpoint holds the states of something else; `others` is what else they depend on."""
    states = {
        "keys": [df.schema[name].dataType.simpleString() for name in keys],
        "window": None if windows is None else [f"{each} us" for each in windows.lengths],
        **others,
    }
    folder = adaptive.folder()
    before = folder.read(STATES)
    try:
        same = before is None or json.loads(before) == states
    except ValueError:
        same = True  # damaged, so Spark has to find out itself
    if not same and folder.has_begun():
        raise InputError(
            f"checkpoint: {folder.root} holds the states of {before}, not of {json.dumps(states)}; go on with the same "
            "key types, aggregates and windows, with or without ttl as before, or start anew with another checkpoint. "
            "The scheme, the number of workers, the watermark and the names of results may change"
        )
    folder.write(STATES, json.dumps(states))
